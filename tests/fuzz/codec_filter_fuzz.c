/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a pipeline as a file records it, and the bytes of a chunk.
 *
 *   +0  u8  number of filters - 1, modulo 4; then for each filter
 *           u8 which, u8 number of parameters, u32 LE parameters
 *   then    u8 filter mask, u8 element size, u32 LE most bytes of the chunk, modulo 2^20, the bytes
 *
 * No result has more bytes than the limit, and masked filters do not change a byte. The result of
 * one filter does not depend on the limit, as long as it fits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/cursor.h>
#include <codec/chunk.h>

enum { FILTERS = 4, PARAMS = 64, MOST = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

static const uint32_t ids[] = {
	FILTER_DEFLATE,	    FILTER_SHUFFLE, FILTER_FLETCHER32, FILTER_SZIP,  FILTER_NBIT,
	FILTER_SCALEOFFSET, FILTER_BZIP2,   FILTER_LZF,	       FILTER_BLOSC, FILTER_LZ4,
	FILTER_BITSHUFFLE,  FILTER_ZSTD,    FILTER_ZFP,	       FILTER_VBZ,
};
enum { IDS = sizeof(ids) / sizeof(ids[0]) };

struct input {
	struct pipeline p;
	uint32_t params[FILTERS][PARAMS];
	uint32_t mask, elem_size, max;
	const uint8_t *bytes;
	size_t n;
};

static void read_input(struct cursor *c, struct input *x)
{
	x->p = (struct pipeline){.n = cur_u8(c) % FILTERS + 1u};
	for (uint32_t i = 0; i < x->p.n; i++) {
		x->p.f[i].id = ids[cur_u8(c) % IDS];
		x->p.f[i].nparams = cur_u8(c) % (PARAMS + 1);
		x->p.f[i].params = x->params[i];
		for (uint32_t k = 0; k < x->p.f[i].nparams; k++)
			x->params[i][k] = cur_u32(c);
	}
	x->mask = cur_u8(c);
	x->elem_size = cur_u8(c);
	x->max = cur_u32(c) % (MOST + 1);
	x->n = cur_left(c);
	x->bytes = cur_bytes(c, x->n);
}

static int decode(const struct input *x, uint32_t max, struct bytes *out)
{
	/* A block of exactly n bytes, so that a sanitizer sees a read beyond them. */
	uint8_t *in = malloc(x->n ? x->n : 1);
	require(in != NULL);
	memcpy(in, x->bytes, x->n);
	const int rc = codec_hdf5_decode(&x->p, x->mask, x->elem_size, in, x->n, max, out, NULL);
	require(rc == 0 ? out->len <= max : out->data == NULL);
	free(in);
	return rc;
}

static void check(const struct input *x, const struct bytes *out)
{
	const uint32_t all = (1u << x->p.n) - 1;
	struct bytes again = {0};
	if ((x->mask & all) == all)
		require(out->len == x->n && memcmp(out->data, x->bytes, x->n) == 0);
	if (x->p.n > 1)
		return;
	require(decode(x, (uint32_t)out->len, &again) == 0 && again.len == out->len);
	require(out->len == 0 || memcmp(again.data, out->data, out->len) == 0);
	bytes_release(&again);
	require(out->len == 0 || decode(x, (uint32_t)out->len - 1, &again) == -EIO);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t none[1];
	struct cursor c = cursor_of(data, size);
	struct bytes out = {0};
	struct input x;
	read_input(&c, &x);
	if (!x.bytes)
		x.bytes = none;
	if (cur_ok(&c) && decode(&x, x.max, &out) == 0)
		check(&x, &out);
	bytes_release(&out);
	return 0;
}
