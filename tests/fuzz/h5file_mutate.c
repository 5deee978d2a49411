/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one HDF5 file from another: a few changes to bytes, integers and addresses, mostly in
 * structures with a signature. Afterwards it repairs checksums, so that a change reaches the
 * decoder behind them. The checksums of a file are found before it is changed, by trial: for each
 * signature, the lengths that its structure can have. The same build makes the same output from the
 * same input and seed.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <base/checksum.h>
#include <base/cursor.h>
#include <base/emit.h>

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
/* Of libFuzzer. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) __attribute__((weak));

enum {
	SUMS_MAX = 512,
	SIGNATURES_MAX = 1024,
	CHANGES_MAX = 4,
	TRIAL_MAX = 2048, /* bytes of a structure whose length is found by trial */
	TRIALS_MAX = 12,  /* such structures in a file */
	SUM = 4,
	DIRECT_SUM_MIN = 11, /* first possible place of the checksum of a direct block */
	DIRECT_SUM_MAX = 21,
};

/* A checksum of the n bytes at `from`. `field` has the checksum; inside of the bytes it counts as
 * 0. */
struct sum {
	size_t from, n, field;
};

struct file {
	uint8_t *data;
	size_t size;
	struct sum sums[SUMS_MAX];
	size_t nsums;
	size_t at[SIGNATURES_MAX]; /* of signatures */
	size_t nat;
	unsigned int trials;
	uint32_t random;
};

static uint32_t next(struct file *f)
{
	f->random ^= f->random << 13;
	f->random ^= f->random >> 17;
	f->random ^= f->random << 5;
	return f->random;
}

static size_t below(struct file *f, size_t n)
{
	return n ? next(f) % n : 0;
}

static uint64_t get(const struct file *f, size_t at, unsigned int n)
{
	struct cursor c = cursor_of(f->data + at, at <= f->size ? f->size - at : 0);
	return cur_uint(&c, n);
}

static void put(struct file *f, size_t at, uint64_t v, unsigned int n)
{
	if (at > f->size || n > f->size - at)
		return;
	struct emit e = emit_to(f->data + at, n);
	emit_uint(&e, v, n);
}

/* ---- checksums ---- */

static uint32_t checksum(struct file *f, const struct sum *s)
{
	const bool inside = s->field >= s->from && s->field < s->from + s->n;
	const uint32_t stored = (uint32_t)get(f, s->field, SUM);
	if (inside)
		put(f, s->field, 0, SUM);
	const uint32_t sum = checksum_lookup3(f->data + s->from, s->n, 0);
	if (inside)
		put(f, s->field, stored, SUM);
	return sum;
}

/* Notes the checksum if it is right. */
static bool try_sum(struct file *f, size_t from, size_t n, size_t field)
{
	const struct sum s = {from, n, field};
	if (f->nsums == SUMS_MAX || n > f->size - from || field > f->size - SUM ||
	    get(f, field, SUM) != checksum(f, &s))
		return false;
	f->sums[f->nsums++] = s;
	return true;
}

/* A checksum directly behind any number of bytes. */
static void try_lengths(struct file *f, size_t from)
{
	if (f->trials++ >= TRIALS_MAX)
		return;
	for (size_t n = 8; n <= TRIAL_MAX && from + n + SUM <= f->size; n++)
		if (get(f, from + n, SUM) && try_sum(f, from, n, from + n))
			return;
}

static void try_header(struct file *f, size_t from)
{
	const unsigned int flags = (unsigned int)get(f, from + 5, 1);
	const unsigned int width = 1U << (flags & 3);
	const size_t more = (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0);
	const uint64_t n = get(f, from + 6 + more, width);
	if (n < f->size)
		try_sum(f, from, 6 + more + width + (size_t)n, from + 6 + more + width + (size_t)n);
}

/* The length of a continuation is behind its address, in a message. */
static void try_continuation(struct file *f, size_t from)
{
	for (unsigned int width = 8; width >= 2; width /= 2)
		for (size_t at = 0; at + 16 < f->size; at++) {
			const uint64_t n = get(f, at + width, width);
			if (get(f, at, width) == from && n > SUM && n < f->size &&
			    try_sum(f, from, (size_t)n - SUM, from + (size_t)n - SUM))
				return;
		}
}

static void try_direct_block(struct file *f, size_t from)
{
	for (size_t n = 64; n <= f->size - from; n *= 2)
		for (size_t at = DIRECT_SUM_MIN; at <= DIRECT_SUM_MAX; at++)
			if (try_sum(f, from, n, from + at))
				return;
}

/* Which lengths a structure has. */
enum shape { FIXED, LENGTHS, HEADER, CONTINUATION, DIRECT };

static const struct kind {
	char magic[5];
	enum shape shape;
	size_t n; /* FIXED: bytes before the checksum, with addresses and lengths of 8 bytes */
} kinds[] = {
	{"OHDR", HEADER, 0},  {"OCHK", CONTINUATION, 0}, {"FRHP", FIXED, 142}, {"FHDB", DIRECT, 0},
	{"FHIB", LENGTHS, 0}, {"BTHD", FIXED, 34},	 {"BTLF", LENGTHS, 0}, {"BTIN", LENGTHS, 0},
	{"FSHD", FIXED, 78},  {"SMTB", LENGTHS, 0},	 {"SMLI", LENGTHS, 0}, {"EAHD", FIXED, 68},
	{"EAIB", LENGTHS, 0}, {"EASB", LENGTHS, 0},	 {"EADB", LENGTHS, 0}, {"FAHD", FIXED, 24},
	{"FADB", LENGTHS, 0},
};

/* Signatures without checksums. */
static const char plain[][5] = {"TREE", "SNOD", "HEAP", "GCOL"};

static void find_sum(struct file *f, size_t from, const struct kind *k)
{
	switch (k->shape) {
	case FIXED:
		if (!try_sum(f, from, k->n, from + k->n))
			try_lengths(f, from);
		break;
	case LENGTHS:
		try_lengths(f, from);
		break;
	case HEADER:
		try_header(f, from);
		break;
	case CONTINUATION:
		try_continuation(f, from);
		break;
	case DIRECT:
		try_direct_block(f, from);
		break;
	}
}

static void find_structures(struct file *f)
{
	for (size_t at = 0; at + 8 <= f->size && f->nat < SIGNATURES_MAX; at++) {
		const uint8_t *p = f->data + at;
		if (memcmp(p, "\211HDF\r\n\032\n", 8) == 0) {
			f->at[f->nat++] = at;
			if (at + 48 <= f->size && p[8] >= 2)
				try_sum(f, at, (size_t)12 + 4 * p[9], at + 12 + 4 * (size_t)p[9]);
		}
		if (p[0] < 'B' || p[0] > 'T')
			continue;
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
			if (memcmp(p, kinds[i].magic, 4) == 0) {
				f->at[f->nat++] = at;
				find_sum(f, at, &kinds[i]);
				break;
			}
		for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
			if (f->nat < SIGNATURES_MAX && memcmp(p, plain[i], 4) == 0)
				f->at[f->nat++] = at;
	}
}

static void repair(struct file *f)
{
	for (size_t i = 0; i < f->nsums; i++) {
		const struct sum *s = &f->sums[i];
		if (s->from + s->n <= f->size && s->field + SUM <= f->size)
			put(f, s->field, checksum(f, s), SUM);
	}
}

/* ---- changes ---- */

/* A place in a structure; sometimes any place. */
static size_t any_place(struct file *f)
{
	if (f->nat == 0 || below(f, 8) == 0)
		return below(f, f->size);
	size_t from = f->at[below(f, f->nat)], n = below(f, 3) ? 64 : 512;
	if (f->nsums && below(f, 2)) {
		const struct sum *s = &f->sums[below(f, f->nsums)];
		from = s->from;
		n = s->n;
	}
	const size_t at = from + below(f, n);
	return at < f->size ? at : below(f, f->size);
}

static uint64_t any_value(struct file *f, uint64_t old, unsigned int n)
{
	const uint64_t max = n < 8 ? (UINT64_C(1) << 8 * n) - 1 : UINT64_MAX;
	switch (below(f, 12)) {
	case 0:
		return 0;
	case 1:
		return max;
	case 2:
		return max / 2 + below(f, 2);
	case 3:
		return f->size - below(f, 3);
	case 4:
		return old + 1;
	case 5:
		return old - 1;
	case 6:
		return old * 2;
	case 7:
		return UINT64_C(1) << below(f, 8 * n);
	case 8:
		return max - below(f, 16);
	case 9:
	case 10:
		return f->nat ? f->at[below(f, f->nat)] : below(f, f->size);
	default:
		return below(f, 256);
	}
}

static bool is_address(const struct file *f, uint64_t v)
{
	for (size_t i = 0; i < f->nat; i++)
		if (f->at[i] == v && v)
			return true;
	return false;
}

/* Exchanges two addresses of structures, or replaces one by the other. */
static void change_addresses(struct file *f)
{
	size_t at[64], n = 0;
	if (f->size < 8)
		return;
	for (size_t i = below(f, f->size); n < 64 && i + 8 <= f->size; i++)
		if (is_address(f, get(f, i, 8)))
			at[n++] = i;
	if (n < 2)
		return;
	const size_t a = at[below(f, n)], b = at[below(f, n)];
	const uint64_t of_a = get(f, a, 8), of_b = get(f, b, 8);
	put(f, a, of_b, 8);
	if (below(f, 2))
		put(f, b, of_a, 8);
}

static void copy_bytes(struct file *f)
{
	const size_t from = any_place(f), to = any_place(f);
	size_t n = 1 + below(f, below(f, 2) ? 16 : 256);
	if (n > f->size - from)
		n = f->size - from;
	if (n > f->size - to)
		n = f->size - to;
	memmove(f->data + to, f->data + from, n);
}

static void cut_or_extend(struct file *f, size_t max_size)
{
	const size_t n = 1 + below(f, below(f, 2) ? 64 : f->size);
	if (below(f, 2)) {
		f->size -= n < f->size ? n : f->size - 1;
	} else if (n <= max_size - f->size) {
		memset(f->data + f->size, 0, n);
		f->size += n;
	}
}

static void change(struct file *f, size_t max_size)
{
	static const unsigned int widths[] = {1, 2, 4, 8};
	const size_t at = any_place(f);
	const unsigned int width = widths[below(f, 4)];
	switch (below(f, 16)) {
	case 0:
		copy_bytes(f);
		break;
	case 1:
	case 2:
	case 3:
		change_addresses(f);
		break;
	case 4:
		if (below(f, 4) == 0)
			cut_or_extend(f, max_size);
		break;
	case 5:
	case 6:
	case 7:
		f->data[at] ^= (uint8_t)(1U << below(f, 8));
		break;
	case 8:
		if (LLVMFuzzerMutate && f->size - at >= 64)
			LLVMFuzzerMutate(f->data + at, 64, 64);
		break;
	default:
		put(f, at, any_value(f, get(f, at, width), width), width);
		break;
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	struct file *f = calloc(1, sizeof(*f));
	if (!f || size < 16 || size > max_size) {
		free(f);
		return size;
	}
	f->data = data;
	f->size = size;
	f->random = seed * 2654435761U + 1;
	for (int i = 0; i < 4; i++)
		next(f);
	find_structures(f);
	for (size_t n = 1 + below(f, CHANGES_MAX); n; n--)
		change(f, max_size);
	if (below(f, 16))
		repair(f);
	size = f->size;
	free(f);
	return size;
}
