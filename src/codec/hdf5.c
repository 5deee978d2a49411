/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the chunks of HDF5 files: undoes the filters of a pipeline from the last to the first,
 * except for those that the chunk's mask excludes. The parameters of the filters are those in the
 * file.
 *
 * No step yields more bytes than the filters before it can have made of a chunk of max bytes: max
 * plus a slack for each of them (slack_of()), but at most step_bytes_limit() of it. The slack
 * of filters that a chunk's mask excludes is permitted, too. So neither a hostile stream nor
 * hostile parameters take more memory than a few times max. The functions are pure; any thread may
 * call them.
 */
#include <codec/chunk.h>

#include <errno.h>

#include <data/shuffle.h>

#include "fletcher32.h"
#include "hdf5.h"
#include "undo.h"
#include "zstream.h"

static int undo_shuffle(const struct undo *u, const uint8_t *in, size_t n, struct bytes *out,
			struct err *err)
{
	if (n == 0)
		return 0;
	int rc = n > u->limit ? -EIO : bytes_reserve(out, n);
	if (rc == -EIO)
		return err_set(err, rc, "shuffle: %zu bytes, at most %llu are expected", n,
			       (unsigned long long)u->limit);
	if (rc)
		return err_errno(err, rc, "shuffle");
	unshuffle_bytes(out->data, in, n, undo_param(u, 0, u->elem_size));
	out->len = n;
	return 0;
}

/* The filters with a decoder. hdf5_undo() undoes those that have no function. */
static const struct {
	uint32_t id;
	undo_fn *undo;
} decoders[] = {
	{FILTER_DEFLATE, NULL},
	{FILTER_SHUFFLE, undo_shuffle},
	{FILTER_FLETCHER32, NULL},
	{FILTER_SZIP, undo_szip},
	{FILTER_NBIT, undo_nbit},
	{FILTER_SCALEOFFSET, undo_scaleoffset},
	{FILTER_BZIP2, undo_bzip2},
	{FILTER_LZF, undo_lzf},
	{FILTER_BLOSC, undo_blosc},
	{FILTER_LZ4, undo_lz4},
	{FILTER_BITSHUFFLE, undo_bitshuffle},
#ifdef HAVE_ZFP
	{FILTER_ZFP, undo_zfp},
#endif
	{FILTER_ZSTD, undo_zstd},
	{FILTER_VBZ, undo_vbz},
	{FILTER_BITGROOM, NULL},
	{FILTER_BITROUND, NULL},
};
enum { DECODERS = sizeof(decoders) / sizeof(decoders[0]) };

static size_t find_decoder(uint32_t id)
{
	size_t i = 0;
	while (i < DECODERS && decoders[i].id != id)
		i++;
	return i;
}

bool codec_filter_known(uint32_t id)
{
	return find_decoder(id) < DECODERS;
}

/* Returns whether a filter only rounds the numbers that are written. */
static bool rounds(uint32_t id)
{
	return id == FILTER_BITGROOM || id == FILTER_BITROUND;
}

/* Returns the most bytes that a filter adds to n bytes that it cannot compress. LZ4 and bitshuffle
 * have a length in front of each block, and blocks may be as short as a few bytes. VBZ makes up to
 * three bytes of one, and zfp a whole block of an element. */
static uint64_t slack_of(uint32_t id, uint64_t n)
{
	enum { HEADERS = 1024, BLOCKS_FACTOR = 4 };
	switch (id) {
	case FILTER_SHUFFLE:
	case FILTER_BITGROOM:
	case FILTER_BITROUND:
		return 0;
	case FILTER_FLETCHER32:
		return FLETCHER32_SIZE;
	case FILTER_LZ4:
	case FILTER_BITSHUFFLE:
	case FILTER_VBZ:
	case FILTER_ZFP:
		return n < UINT64_MAX / BLOCKS_FACTOR - HEADERS ? BLOCKS_FACTOR * n + HEADERS
								: UINT64_MAX;
	default:
		return n / 8 + HEADERS;
	}
}

/* The step of filter i yields at most as many bytes as filters [0, i) can have made of max bytes. A
 * long pipeline of filters with much slack would permit any size, so there is a limit for all of
 * them. */
void hdf5_plan(struct codec_step *steps, const struct filter *filters, uint32_t n,
	       uint32_t elem_size, uint64_t max, uint64_t exact)
{
	const uint64_t limit = step_bytes_limit(max);
	uint64_t most = max;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t id = filters[i].id;
		steps[n - 1 - i] = (struct codec_step){.kind = STEP_FILTER,
						       .largest = min_u64(most, limit),
						       .exact = exact,
						       .filter = &filters[i],
						       .elem_size = elem_size,
						       .bit = i};
		if (!add_u64(most, slack_of(id, most), &most))
			most = UINT64_MAX;
		if (id == FILTER_FLETCHER32 && exact != CODEC_UNKNOWN)
			exact += FLETCHER32_SIZE;
		else if (id != FILTER_SHUFFLE && !rounds(id))
			exact = CODEC_UNKNOWN;
	}
}

int hdf5_undo(const struct codec_step *step, struct step_bytes *b, struct err *err)
{
	const struct undo u = {
		.f = step->filter, .elem_size = step->elem_size, .limit = step->largest};
	struct bytes plain auto_bytes = {0};
	const size_t i = find_decoder(u.f->id);
	if (i == DECODERS) {
		if (u.f->name && u.f->name[0])
			return err_set(err, -EOPNOTSUPP, "filter %u (%s) is not built in", u.f->id,
				       u.f->name);
		return err_set(err, -EOPNOTSUPP, "filter %u is not built in", u.f->id);
	}
	size_t left; /* libhdf5 ignores bytes after the stream, too */
	if (u.f->id == FILTER_DEFLATE)
		return zstream_undo(b, u.limit, &left, err);
	if (rounds(u.f->id))
		return 0;
	if (u.f->id == FILTER_FLETCHER32) /* changes no byte */
		return fletcher32_check(b->data, b->n, &b->n, err);
	const int rc = decoders[i].undo(&u, b->data, b->n, &plain, err);
	if (rc == 0)
		step_bytes_take(b, &plain);
	return rc;
}

size_t hdf5_unshuffles(const struct codec_step *step)
{
	const struct undo u = {.f = step->filter};
	return u.f->id == FILTER_SHUFFLE ? undo_param(&u, 0, step->elem_size) : 0;
}

uint64_t codec_hdf5_limit(uint64_t n)
{
	enum { FACTOR = 2, MORE = 64 << 10 };
	return n < UINT64_MAX / FACTOR - MORE ? FACTOR * n + MORE : n;
}

int codec_hdf5_decode(const struct pipeline *p, uint32_t filter_mask, uint32_t elem_size,
		      const uint8_t *in, size_t n, size_t max, struct bytes *out, struct err *err)
{
	struct step_bytes b = {.data = in, .n = n};
	struct codec_step steps[FILTER_MAX];
	int rc = 0;
	if (p->n > FILTER_MAX)
		return err_set(err, -EIO, "pipeline of %u filters", p->n);
	hdf5_plan(steps, p->f, p->n, elem_size, max, CODEC_UNKNOWN);
	for (uint32_t i = 0; i < p->n && rc == 0; i++)
		if (!(filter_mask & (1u << steps[i].bit)))
			rc = hdf5_undo(&steps[i], &b, err);
	if (rc == 0 && b.n > max)
		rc = err_set(err, -EIO, "chunk decodes to %zu bytes, at most %zu are expected", b.n,
			     max);
	if (rc == 0 && !step_bytes_give(&b, out) && bytes_append(out, b.data, b.n))
		rc = err_errno(err, -ENOMEM, "chunk of %zu bytes", b.n);
	bytes_release(&b.own);
	return rc;
}
