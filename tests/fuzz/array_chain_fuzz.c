/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: the chain of a Zarr array, and the bytes of a chunk.
 *
 *   +0  u8  bytes of an element as it is shown - 1, modulo 16
 *   +1  u8  number of axes, modulo 5; then u8 extent of each
 *   then    u8 number of codecs, modulo 7; then for each, in the order of decoding,
 *           u8 which, u8 parameter: bytes of an element, or where the order of axes begins
 *   then    the bytes
 *
 * Decoding yields exactly the planned size or an error, and a copy of the chain yields the same. If
 * no codec compresses or widens, the elements have the bytes that are stored, in another order, and
 * a chunk of another size than the plan says is refused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/cursor.h>
#include <codec/chunk.h>

#include "require.h"
#include "decode_elems.h"

enum { AXES = 5, STEPS = 7, CODECS = CODEC_WIDEN + 1, CRC = 4, MOST = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	uint32_t shown, elem_size, rank, n;
	uint64_t shape[AXES], nelems;
	uint32_t orders[STEPS][AXES];
	struct codec_array_step steps[STEPS];
	bool permutes; /* every step only moves bytes, or cuts off a checksum */
	size_t sums;
	const uint8_t *bytes;
	size_t left;
};

static void read_step(struct cursor *c, struct input *x, uint32_t i)
{
	struct codec_array_step *s = &x->steps[i];
	s->codec = cur_u8(c) % CODECS;
	const uint8_t param = cur_u8(c);
	s->elem_size = param;
	s->big_endian = param & 1;
	x->permutes = x->permutes && s->codec >= CODEC_SHUFFLE && s->codec != CODEC_WIDEN;
	x->sums += s->codec == CODEC_CRC32C;
	if (s->codec != CODEC_TRANSPOSE)
		return;
	/* Two orders for each begin: forwards and backwards. */
	for (uint32_t k = 0; k < x->rank; k++) {
		const uint32_t axis = (param / 2 + k) % x->rank;
		x->orders[i][k] = param & 1 ? x->rank - 1 - axis : axis;
	}
	s->rank = x->rank;
	s->shape = x->shape;
	s->order = x->orders[i];
}

static void read_input(struct cursor *c, struct input *x)
{
	*x = (struct input){.nelems = 1, .permutes = true};
	x->shown = x->elem_size = cur_u8(c) % 16 + 1u;
	x->rank = cur_u8(c) % AXES;
	for (uint32_t i = 0; i < x->rank; i++) {
		x->shape[i] = cur_u8(c);
		x->nelems *= x->shape[i];
	}
	x->n = cur_u8(c) % STEPS;
	for (uint32_t i = 0; i < x->n; i++)
		read_step(c, x, i);
	for (uint32_t i = x->n; i-- > 0;) {
		if (x->steps[i].codec == CODEC_WIDEN)
			x->elem_size /= 2;
		else if (x->steps[i].codec == CODEC_TRANSPOSE)
			x->steps[i].elem_size = x->elem_size;
	}
	x->left = cur_left(c);
	x->bytes = cur_bytes(c, x->left);
}

static int decode(const struct codec_chain *chain, const struct input *x, struct bytes *out)
{
	const struct codec_chunk c = {.chain = chain};
	struct bytes in = {0};
	struct elems e;
	struct err err = ERR_INIT;
	if (x->left > 0) {
		/* A block of exactly n bytes, so that a sanitizer sees a read beyond them. */
		in = (struct bytes){malloc(x->left), x->left, x->left};
		require(in.data != NULL);
		memcpy(in.data, x->bytes, x->left);
	}
	const int rc = decode_elems(&c, &in, &e, &err);
	require(rc == err.code && (rc == 0) == (err.msg[0] == '\0'));
	require(rc == 0 || rc == -EIO || rc == -EOPNOTSUPP);
	require(e.heap.data == NULL);
	require(rc == 0 ? e.fixed.len == x->nelems * x->shown : e.fixed.data == NULL);
	bytes_release(&in);
	*out = e.fixed;
	return rc;
}

/* Counts how often each byte occurs. */
static void count(const uint8_t *bytes, size_t n, size_t counts[static 256])
{
	for (size_t i = 0; i < n; i++)
		counts[bytes[i]]++;
}

static void check(const struct codec_chain *chain, const struct input *x, const struct bytes *out)
{
	const struct codec_size size = codec_chunk_size(chain);
	uint64_t decoded = 0;
	const struct codec_chunk c = {.chain = chain};
	require(codec_decoded_size(&c, x->bytes, x->left, x->left, &decoded, NULL) == 0);
	require(decoded == out->len);
	require(size.exact == CODEC_UNKNOWN || size.exact == x->left);
	if (!x->permutes)
		return;
	size_t before[256] = {0}, after[256] = {0};
	require(x->left == out->len + CRC * x->sums);
	if (x->sums > 0) /* they may have been moved before they are cut off */
		return;
	count(x->bytes, out->len, before);
	count(out->data, out->len, after);
	require(memcmp(before, after, sizeof(before)) == 0);
}

static void run(const struct input *x, struct arena *arena)
{
	const struct dtype *t = dtype_opaque(arena, x->shown, "", NULL);
	struct codec_plan plan;
	struct bytes one, two;
	require(t != NULL);
	if (codec_plan_array(&plan, t, x->elem_size, x->nelems, x->steps, x->n))
		return;
	const struct codec_chain *copy = codec_chain_copy(&plan.chain, arena);
	require(copy != NULL);
	const int rc = decode(&plan.chain, x, &one);
	require(decode(copy, x, &two) == rc);
	require(one.len == two.len && (one.len == 0 || memcmp(one.data, two.data, one.len) == 0));
	if (rc == 0)
		check(&plan.chain, x, &one);
	bytes_release(&one);
	bytes_release(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t none[1];
	struct cursor c = cursor_of(data, size);
	struct input x;
	read_input(&c, &x);
	if (!x.bytes)
		x.bytes = none;
	if (!cur_ok(&c) || x.nelems * x.shown > MOST)
		return 0;
	struct arena *arena = arena_new(1 << 20);
	require(arena != NULL);
	run(&x, arena);
	arena_free(arena);
	return 0;
}
