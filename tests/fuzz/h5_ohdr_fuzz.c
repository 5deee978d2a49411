/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object headers. Input: a file with a header at address 0. The target decodes it unchanged and
 * with correct checksums of its chunks, because few mutations keep a checksum valid. Property: a
 * decoded header can be encoded in one chunk of the counted size, and decoded to the same messages.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <h5/ohdr.h>

#include "require.h"

enum { ARENA_LIMIT = 64 << 20, CHECKSUM_LEN = 4 };

struct file {
	uint8_t *bytes;
	size_t size;
	bool mend; /* correct the checksum of every chunk that is read */
};

static int read_at(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct file *f = ctx;
	require(offset <= f->size && n <= f->size - offset);
	memcpy(buf, f->bytes + offset, n);
	/* The decoder reads the prefix of a header, then each chunk in one piece. */
	if (f->mend && n >= 2 * CHECKSUM_LEN) {
		struct emit e = emit_to(buf, n);
		e.pos = n - CHECKSUM_LEN;
		emit_checksum(&e, 0);
	}
	return 0;
}

/* Leaves the first read unchanged, because it is the read of the prefix. */
static int read_mended(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct file *f = ctx;
	f->mend = offset || f->mend;
	int rc = read_at(ctx, offset, buf, n, err);
	f->mend = true;
	return rc;
}

static void compare(const struct h5_ohdr *a, const struct h5_ohdr *b)
{
	require(a->n == b->n && a->attr_order_tracked == b->attr_order_tracked &&
		a->attr_order_indexed == b->attr_order_indexed && a->has_times == b->has_times &&
		a->has_phase == b->has_phase && a->atime == b->atime && a->mtime == b->mtime &&
		a->ctime == b->ctime && a->btime == b->btime && a->max_compact == b->max_compact &&
		a->min_dense == b->min_dense);
	for (uint32_t i = 0; i < a->n; i++) {
		const struct h5_msg *x = &a->msgs[i], *y = &b->msgs[i];
		require(x->type == y->type && x->flags == y->flags && x->corder == y->corder &&
			x->len == y->len && !memcmp(x->body, y->body, x->len));
	}
}

static void check(struct source *source)
{
	struct arena *a = arena_new(ARENA_LIMIT);
	require(a);
	struct h5_ohdr first, second;
	const struct h5_file file = h5_file_of(source);
	if (!h5_ohdr_decode(&file, 0, a, &first, NULL)) {
		struct emit count = emit_count();
		h5_ohdr_encode(&count, &first);
		struct file f = {.bytes = malloc(count.pos), .size = count.pos};
		require(f.bytes);
		struct emit e = emit_to(f.bytes, f.size);
		h5_ohdr_encode(&e, &first);
		require(!e.bad && e.pos == f.size);
		struct source bytes = {.size = f.size, .read_at = read_at, .ctx = &f};
		const struct h5_file again = h5_file_of(&bytes);
		require(!h5_ohdr_decode(&again, 0, a, &second, NULL));
		compare(&first, &second);
		free(f.bytes);
	}
	arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct file f = {.bytes = malloc(size ? size : 1), .size = size};
	require(f.bytes);
	if (size)
		memcpy(f.bytes, data, size);
	struct source src = {.size = size, .read_at = read_at, .ctx = &f};
	check(&src);
	src.read_at = read_mended;
	check(&src);
	free(f.bytes);
	return 0;
}
