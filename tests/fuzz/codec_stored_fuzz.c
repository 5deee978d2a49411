/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: +0 selects a pipeline, +1 element size, +2 bytes. The bytes are encoded as a chunk:
 * decoding must return them, and zlib must accept the deflate stream. The bytes are also decoded as
 * a stream: the result must survive encoding and decoding. If the encoded chunk can be a chunk
 * object as it is, reading that object returns the bytes, too.
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "stored_encode.h"
#include "decode_elems.h"

enum { HEADER = 2, MOST = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint32_t pipelines[8][4] = {
	{0},
	{FILTER_SHUFFLE},
	{FILTER_DEFLATE},
	{FILTER_FLETCHER32},
	{FILTER_SHUFFLE, FILTER_DEFLATE},
	{FILTER_SHUFFLE, FILTER_DEFLATE, FILTER_FLETCHER32},
	{FILTER_FLETCHER32, FILTER_SHUFFLE, FILTER_DEFLATE},
	{FILTER_DEFLATE, FILTER_SHUFFLE, FILTER_DEFLATE, FILTER_FLETCHER32},
};

static void require(int truth)
{
	if (!truth)
		abort();
}

static void round_trip(const struct pipeline *p, uint32_t elem_size, const uint8_t *x, size_t n)
{
	size_t size = (size_t)codec_stored_size(p, n);
	uint8_t *encoded = malloc(size ? size : 1);
	struct bytes back = {0};
	require(encoded != NULL);
	require(stored_encode(p, elem_size, x, n, encoded) == 0);
	require(codec_hdf5_decode(p, 0, elem_size, encoded, size, n, &back, NULL) == 0);
	require(back.len == n && (n == 0 || memcmp(back.data, x, n) == 0));
	bytes_release(&back);
	if (p->n == 1 && p->f[0].id == FILTER_DEFLATE) {
		uint8_t *plain = malloc(n + 1);
		uLongf got = n + 1;
		require(plain && uncompress(plain, &got, encoded, size) == Z_OK);
		require(got == n && memcmp(plain, x, n) == 0);
		free(plain);
	}
	free(encoded);
}

/* The filters that the mask leaves. */
static void applied(const struct pipeline *p, uint32_t mask, struct pipeline *out)
{
	out->n = 0;
	for (uint32_t i = 0; i < p->n; i++)
		if (!(mask & (1u << i)))
			out->f[out->n++] = p->f[i];
}

static void verbatim(const struct pipeline *p, uint32_t mask, uint32_t elem_size, const uint8_t *x,
		     size_t n)
{
	struct arena *a = arena_new(1 << 16);
	const struct dtype *t = dtype_opaque(a, elem_size, "", NULL);
	struct pipeline stored;
	struct bytes object = {0};
	size_t keep = 0;
	applied(p, mask, &stored);
	const size_t size = (size_t)codec_stored_size(&stored, n);
	require(t && bytes_append_zero(&object, size) == 0);
	require(stored_encode(&stored, elem_size, x, n, object.data) == 0);
	require(codec_verbatim(p, mask, t, object.data, size, &keep, NULL) == 0 && keep <= size);
	if (keep > 0) {
		struct codec_plan plan;
		const struct codec_chunk c = {.chain = &plan.chain};
		codec_plan_object(&plan, t, n / elem_size, p, OBJECT_SHUFFLED, NULL);
		struct elems out;
		object.len = keep;
		require(decode_elems(&c, &object, &out, NULL) == 0);
		require(out.fixed.len == n && (n == 0 || memcmp(out.fixed.data, x, n) == 0));
		elems_release(&out);
	}
	bytes_release(&object);
	arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < HEADER)
		return 0;
	const uint32_t *ids = pipelines[data[0] % 8];
	uint32_t elem_size = data[1];
	struct pipeline p = {0};
	while (p.n < 4 && ids[p.n]) {
		p.f[p.n].id = ids[p.n];
		p.n++;
	}
	round_trip(&p, elem_size, data + HEADER, size - HEADER);
	struct bytes plain = {0};
	uint32_t mask = data[0] >> 4;
	if (elem_size > 0)
		verbatim(&p, mask, elem_size, data + HEADER,
			 (size - HEADER) / elem_size * elem_size);
	if (codec_hdf5_decode(&p, mask, elem_size, data + HEADER, size - HEADER, MOST, &plain,
			      NULL) == 0) {
		require(plain.len <= MOST);
		round_trip(&p, elem_size, plain.data ? plain.data : data, plain.len);
	}
	bytes_release(&plain);
	return 0;
}
