/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of frames: see frames.h.
 *
 * Invariants:
 *  1. A node has at least one entry that is not empty, and at least one that is not full.
 *  2. A frame contains at least one offset, and lacks at least one.
 *  3. The ranges of a frame are sorted, and at least one byte lies between two of them.
 *  4. f->bytes is the number of offsets; memory->used is the sum of all nodes and frames.
 */
#include "frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>

enum {
	FRAME_BITS = 16,
	FRAME = 1 << FRAME_BITS,
	NODE_BITS = 4,
	NODE_ENTRIES = 1 << NODE_BITS,
	RANGES_MIN = 2,
	RANGES_MAX = 1024,
	BITMAP_WORDS = FRAME / 64,
};

struct node {
	void *entries[NODE_ENTRIES];
};

struct range {
	uint16_t start, length;
};

struct frame {
	uint32_t bytes;	      /* offsets in the frame */
	uint16_t n, capacity; /* of ranges; capacity is 0 if data is a bitmap */
	/* n struct range, or BITMAP_WORDS words: bit i of word w is offset 64 w + i */
	uint64_t data[];
};

_Static_assert(RANGES_MAX * sizeof(struct range) <= BITMAP_WORDS * sizeof(uint64_t),
	       "ranges never take more memory than a bitmap");

/* The entry of a part of the file that is in the set as a whole. No node has this address. */
static const char full_mark;
#define FULL ((void *)(uintptr_t)&full_mark)

static struct range *ranges_of(const struct frame *fr)
{
	return (struct range *)(uintptr_t)fr->data;
}

static uint32_t end_of(const struct range *r)
{
	return (uint32_t)r->start + r->length;
}

static size_t frame_size(size_t capacity)
{
	const size_t data = capacity ? align_u64(capacity * sizeof(struct range), 8)
				     : BITMAP_WORDS * sizeof(uint64_t);
	return sizeof(struct frame) + data;
}

/* Returns the number of offsets of an entry that has `level` levels of nodes below it. */
static uint64_t span_of(unsigned int level)
{
	return (uint64_t)1 << (FRAME_BITS + NODE_BITS * level);
}

/* ---- memory ---- */

static int resize(struct frames *f, void **p, size_t old, size_t size)
{
	struct frames_memory *m = f->memory;
	if (m->used - old + size > m->allowed)
		return -EAGAIN;
	void *moved = realloc(*p, size);
	if (!moved)
		return -ENOMEM;
	m->used = m->used - old + size;
	*p = moved;
	return 0;
}

static void discard(struct frames *f, void *p, size_t size)
{
	f->memory->used -= size;
	free(p);
}

static void discard_frame(struct frames *f, struct frame *fr)
{
	discard(f, fr, frame_size(fr->capacity));
}

/* Frees what an entry points to. Returns the number of offsets that it had. */
static uint64_t discard_entry(struct frames *f, void *entry, unsigned int level)
{
	if (!entry)
		return 0;
	if (entry == FULL)
		return span_of(level);
	if (level == 0) {
		const uint64_t bytes = ((struct frame *)entry)->bytes;
		discard_frame(f, entry);
		return bytes;
	}
	struct node *node = entry;
	uint64_t bytes = 0;
	for (unsigned int i = 0; i < NODE_ENTRIES; i++)
		bytes += discard_entry(f, node->entries[i], level - 1);
	discard(f, node, sizeof(*node));
	return bytes;
}

void frames_release(struct frames *f)
{
	discard_entry(f, f->root, f->levels);
	*f = (struct frames){.memory = f->memory};
}

/* ---- one frame ---- */

/* Sets or clears the bits of [start, end). */
static void change_bits(struct frame *fr, uint32_t start, uint32_t end, bool add)
{
	for (uint32_t at = start; at < end;) {
		const uint32_t word = at / 64, stop = end < (word + 1) * 64 ? end : (word + 1) * 64;
		const uint64_t mask = UINT64_MAX >> (64 - (stop - at)) << at % 64;
		const uint64_t old = fr->data[word];
		fr->data[word] = add ? old | mask : old & ~mask;
		fr->bytes += (uint32_t)__builtin_popcountll(fr->data[word]);
		fr->bytes -= (uint32_t)__builtin_popcountll(old);
		at = stop;
	}
}

static int make_bitmap(struct frames *f, void **entry)
{
	struct frame *old = *entry;
	void *made = NULL;
	int rc = resize(f, &made, 0, frame_size(0));
	if (rc)
		return rc;
	struct frame *fr = made;
	memset(fr, 0, frame_size(0));
	for (unsigned int i = 0; i < old->n; i++)
		change_bits(fr, ranges_of(old)[i].start, end_of(&ranges_of(old)[i]), true);
	discard_frame(f, old);
	*entry = fr;
	return 0;
}

/* Returns the first range that ends after `at`, or n if there is none. */
static unsigned int search(const struct frame *fr, uint32_t at)
{
	unsigned int low = 0, high = fr->n;
	while (low < high) {
		const unsigned int middle = (low + high) / 2;
		if (end_of(&ranges_of(fr)[middle]) > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* What replaces the ranges [first, last) of a frame. */
struct splice {
	unsigned int first, last, n;
	uint32_t starts[2], ends[2];
};

static void splice_add(struct splice *s, uint32_t start, uint32_t end)
{
	if (start == end)
		return;
	s->starts[s->n] = start;
	s->ends[s->n++] = end;
}

static struct splice plan_splice(const struct frame *fr, uint32_t start, uint32_t end, bool add)
{
	const struct range *r = ranges_of(fr);
	/* Ranges that only touch [start, end) are joined with it when it is added. */
	struct splice s = {.first = search(fr, add && start ? start - 1 : start)};
	s.last = s.first;
	while (s.last < fr->n && (add ? r[s.last].start <= end : r[s.last].start < end))
		s.last++;
	const bool any = s.last > s.first;
	const uint32_t low = any && r[s.first].start < start ? r[s.first].start : start;
	const uint32_t high = any && end_of(&r[s.last - 1]) > end ? end_of(&r[s.last - 1]) : end;
	if (add) {
		splice_add(&s, low, high);
	} else {
		splice_add(&s, low, start);
		splice_add(&s, end, high);
	}
	return s;
}

static void run_splice(struct frame *fr, const struct splice *s)
{
	struct range *r = ranges_of(fr);
	for (unsigned int i = s->first; i < s->last; i++)
		fr->bytes -= r[i].length;
	memmove(r + s->first + s->n, r + s->last, (fr->n - s->last) * sizeof(*r));
	for (unsigned int i = 0; i < s->n; i++) {
		r[s->first + i] = (struct range){(uint16_t)s->starts[i],
						 (uint16_t)(s->ends[i] - s->starts[i])};
		fr->bytes += s->ends[i] - s->starts[i];
	}
	fr->n = (uint16_t)(fr->n + s->n - (s->last - s->first));
}

static int make_room(struct frames *f, void **entry, size_t n)
{
	const struct frame *fr = *entry;
	const size_t old = fr->capacity;
	const size_t capacity = old * 2 < RANGES_MAX ? old * 2 : RANGES_MAX;
	if (n <= old)
		return 0;
	int rc = resize(f, entry, frame_size(old), frame_size(capacity));
	if (rc == 0)
		((struct frame *)*entry)->capacity = (uint16_t)capacity;
	return rc;
}

static int change_ranges(struct frames *f, void **entry, uint32_t start, uint32_t end, bool add)
{
	struct frame *fr = *entry;
	const struct splice s = plan_splice(fr, start, end, add);
	const size_t n = fr->n + s.n - (s.last - s.first);
	/* A range of 65,536 bytes has no struct range: the caller's entry becomes full. */
	if (s.n == 1 && s.ends[0] - s.starts[0] == FRAME) {
		fr->bytes = FRAME;
		return 0;
	}
	int rc = n > RANGES_MAX ? make_bitmap(f, entry) : make_room(f, entry, n);
	if (rc)
		return rc;
	if (n > RANGES_MAX)
		change_bits(*entry, start, end, add);
	else
		run_splice(*entry, &s);
	return 0;
}

/* Makes a frame for an entry that is empty (add) or full (remove), with the change. */
static int make_frame(struct frames *f, void **entry, uint32_t start, uint32_t end, bool add)
{
	struct splice s = {.first = 0};
	void *made = NULL;
	int rc = resize(f, &made, 0, frame_size(RANGES_MIN));
	if (rc)
		return rc;
	if (add) {
		splice_add(&s, start, end);
	} else {
		splice_add(&s, 0, start);
		splice_add(&s, end, FRAME);
	}
	struct frame *fr = made;
	*fr = (struct frame){.capacity = RANGES_MIN};
	run_splice(fr, &s);
	*entry = fr;
	return 0;
}

/* The caller handles entries that do not change, and changes of a whole frame. */
static int change_frame(struct frames *f, void **entry, uint32_t start, uint32_t end, bool add)
{
	uint32_t before = *entry == FULL ? FRAME : 0;
	int rc = 0;
	if (!*entry || *entry == FULL) {
		rc = make_frame(f, entry, start, end, add);
		if (rc)
			return rc;
	} else {
		struct frame *fr = *entry;
		before = fr->bytes;
		if (fr->capacity)
			rc = change_ranges(f, entry, start, end, add);
		else
			change_bits(fr, start, end, add);
	}
	struct frame *fr = *entry;
	f->bytes += fr->bytes;
	f->bytes -= before;
	if (fr->bytes == 0 || fr->bytes == FRAME) {
		*entry = fr->bytes ? FULL : NULL;
		discard_frame(f, fr);
	}
	return rc;
}

/* ---- the tree ---- */

static int make_node(struct frames *f, void **entry)
{
	void *made = NULL;
	int rc = resize(f, &made, 0, sizeof(struct node));
	if (rc)
		return rc;
	for (unsigned int i = 0; i < NODE_ENTRIES; i++)
		((struct node *)made)->entries[i] = *entry;
	*entry = made;
	return 0;
}

/* Restores invariant 1. */
static void join_entries(struct frames *f, void **entry)
{
	struct node *node = *entry;
	void *first = node->entries[0];
	if (first && first != FULL)
		return;
	for (unsigned int i = 1; i < NODE_ENTRIES; i++)
		if (node->entries[i] != first)
			return;
	discard(f, node, sizeof(*node));
	*entry = first;
}

/* start and end are relative to the entry. Changes are made from left to right. frames_remove() up
 * to the end needs memory only at `start`, so a failure leaves all as it was. */
static int change(struct frames *f, void **entry, unsigned int level, uint64_t start, uint64_t end,
		  bool add)
{
	if (*entry == (add ? FULL : NULL))
		return 0;
	if (start == 0 && end == span_of(level)) {
		f->bytes -= discard_entry(f, *entry, level);
		f->bytes += add ? end : 0;
		*entry = add ? FULL : NULL;
		return 0;
	}
	if (level == 0)
		return change_frame(f, entry, (uint32_t)start, (uint32_t)end, add);
	int rc = !*entry || *entry == FULL ? make_node(f, entry) : 0;
	if (rc)
		return rc;
	struct node *node = *entry;
	const uint64_t span = span_of(level - 1);
	for (uint64_t i = start / span; rc == 0 && i * span < end; i++) {
		const uint64_t from = max_u64(start, i * span), to = min_u64(end, (i + 1) * span);
		rc = change(f, &node->entries[i], level - 1, from - i * span, to - i * span, add);
	}
	join_entries(f, entry);
	return rc;
}

/* Adds levels on top until the tree reaches `end`. */
static int grow(struct frames *f, uint64_t end)
{
	while (span_of(f->levels) < end) {
		if (f->root) {
			void *top = NULL;
			int rc = make_node(f, &top);
			if (rc)
				return rc;
			((struct node *)top)->entries[0] = f->root;
			f->root = top;
		}
		f->levels++;
	}
	return 0;
}

int frames_add(struct frames *f, uint64_t start, uint64_t end)
{
	if (start == end)
		return 0;
	int rc = grow(f, end);
	return rc ? rc : change(f, &f->root, f->levels, start, end, true);
}

int frames_remove(struct frames *f, uint64_t start, uint64_t end)
{
	end = min_u64(end, span_of(f->levels));
	return start < end ? change(f, &f->root, f->levels, start, end, false) : 0;
}

/* ---- finding ---- */

static uint32_t find_bit(const struct frame *fr, uint32_t at, bool inside)
{
	uint64_t mask = UINT64_MAX << at % 64;
	for (uint32_t word = at / 64; word < BITMAP_WORDS; word++, mask = UINT64_MAX) {
		const uint64_t bits = (inside ? fr->data[word] : ~fr->data[word]) & mask;
		if (bits)
			return word * 64 + (uint32_t)__builtin_ctzll(bits);
	}
	return FRAME;
}

static uint32_t find_in_frame(const struct frame *fr, uint32_t at, bool inside)
{
	if (!fr->capacity)
		return find_bit(fr, at, inside);
	const unsigned int i = search(fr, at);
	const struct range *r = &ranges_of(fr)[i];
	const bool covered = i < fr->n && r->start <= at;
	if (covered == inside)
		return at;
	if (covered)
		return end_of(r);
	return i < fr->n ? r->start : FRAME;
}

/* `at` is relative to the entry. So is the result, which is the span of the entry if there is no
 * such offset. */
static uint64_t find(void *entry, unsigned int level, uint64_t at, bool inside)
{
	if (!entry || entry == FULL)
		return (entry == FULL) == inside ? at : span_of(level);
	if (level == 0)
		return find_in_frame(entry, (uint32_t)at, inside);
	const struct node *node = entry;
	const uint64_t span = span_of(level - 1);
	for (uint64_t i = at / span; i < NODE_ENTRIES; i++) {
		const uint64_t from = max_u64(at, i * span) - i * span;
		const uint64_t found = find(node->entries[i], level - 1, from, inside);
		if (found < span)
			return i * span + found;
	}
	return span_of(level);
}

uint64_t frames_find(const struct frames *f, uint64_t at, bool inside)
{
	const uint64_t span = span_of(f->levels);
	const uint64_t found = at < span ? find(f->root, f->levels, at, inside) : span;
	if (found < span)
		return found;
	return inside ? FRAMES_NONE : max_u64(at, span);
}

uint64_t frames_count(const struct frames *f, uint64_t start, uint64_t end)
{
	uint64_t n = 0;
	for (uint64_t at = frames_find(f, start, true); at < end;
	     at = frames_find(f, start, true)) {
		start = frames_find(f, at, false);
		n += min_u64(start, end) - at;
	}
	return n;
}
