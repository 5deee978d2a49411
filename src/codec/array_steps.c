/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Undoes the codecs of a Zarr array. Most of them are those of numcodecs
 * (github.com/zarr-developers/numcodecs), the others those of the Zarr v3 specification. In this
 * file, a step is "behind" another one if it runs later, in the order of decoding.
 *
 * CODEC_TRANSPOSE and CODEC_WIDEN need the exact number of elements. So no compressor may be behind
 * them, and the plan knows the size of their output. The bytes between two compressors have no
 * exact size. A step yields no more of them than the codecs behind it can have made of the elements
 * (slack_of()), and at most LIMIT_FACTOR times the bytes of the elements and LIMIT_MIN more. So
 * hostile bytes take no more memory than a few times the chunk. The functions are pure; any thread
 * may call them.
 */
#include "array_steps.h"

#include <errno.h>
#include <limits.h>
#include <lz4.h>

#include <base/checksum.h>
#include <base/cursor.h>
#include <data/shuffle.h>

#include "blosc_frame.h"
#include "decoders.h"
#include "transpose.h"
#include "widen.h"
#include "zstream.h"

enum {
	CRC32C_SIZE = 4,
	LZ4_HEADER = 4,
	LZ4_RATIO = 255, /* no byte of LZ4 decodes to more bytes */
	WIDEN_FACTOR = 2,
};

/* ---- plan ---- */

bool array_is_filter(const struct codec_step *step)
{
	return step->array.codec != CODEC_TRANSPOSE && step->array.codec != CODEC_WIDEN;
}

/* Returns the most bytes that a compressor adds to n bytes which it cannot compress. Its members,
 * frames and blocks may be short. */
static uint64_t slack_of(uint64_t n)
{
	enum { HEADERS = 1024 };
	return n / 8 + HEADERS;
}

struct array_input array_input_of(const struct codec_step *step)
{
	const bool known = step->exact != CODEC_UNKNOWN;
	struct array_input in = {.exact = step->exact, .most = step->largest};
	uint64_t more = 0;
	switch (step->array.codec) {
	case CODEC_SHUFFLE:
	case CODEC_TRANSPOSE:
		return in;
	case CODEC_WIDEN:
		in.exact = known ? in.exact / WIDEN_FACTOR : CODEC_UNKNOWN;
		in.most /= WIDEN_FACTOR;
		return in;
	case CODEC_CRC32C:
		in.exact = known ? in.exact + CRC32C_SIZE : CODEC_UNKNOWN;
		more = CRC32C_SIZE;
		break;
	default:
		in.exact = CODEC_UNKNOWN;
		more = slack_of(in.most);
		break;
	}
	if (!add_u64(in.most, more, &in.most))
		in.most = UINT64_MAX;
	return in;
}

static bool is_permutation(uint32_t rank, const uint32_t *order)
{
	uint64_t seen = 0;
	_Static_assert(TRANSPOSE_MAX_RANK < 64, "a bit for each axis");
	for (uint32_t i = 0; i < rank; i++) {
		if (order[i] >= rank || seen & UINT64_C(1) << order[i])
			return false;
		seen |= UINT64_C(1) << order[i];
	}
	return true;
}

static bool transpose_fits(const struct codec_array_step *s, uint64_t exact)
{
	uint64_t size = s->elem_size;
	if (exact == CODEC_UNKNOWN || s->rank > TRANSPOSE_MAX_RANK ||
	    !is_permutation(s->rank, s->order))
		return false;
	for (uint32_t i = 0; i < s->rank; i++)
		if (!mul_u64(size, s->shape[i], &size))
			return false;
	return s->elem_size > 0 && exact == size;
}

/* Returns whether the step can yield what the steps behind it need. `whole` is the size of the
 * decoded elements in bytes. */
static bool fits(const struct codec_array_step *s, uint64_t exact, uint64_t whole)
{
	switch (s->codec) {
	case CODEC_ZLIB:
	case CODEC_GZIP:
	case CODEC_ZSTD:
	case CODEC_BLOSC:
	case CODEC_BZ2:
	case CODEC_LZ4:
	case CODEC_CRC32C:
		return true;
	case CODEC_SHUFFLE:
		return s->elem_size > 0;
	case CODEC_TRANSPOSE:
		return transpose_fits(s, exact);
	case CODEC_WIDEN:
		return exact == whole;
	}
	return false;
}

int array_plan(struct codec_step *steps, const struct codec_array_step *array, uint32_t n,
	       uint32_t elem_size, uint32_t shown, uint64_t nelems)
{
	const uint64_t whole = nelems * shown;
	const uint64_t limit = step_bytes_limit(whole);
	struct array_input in = {.exact = whole, .most = whole};
	uint64_t factor = 1;
	for (uint32_t i = n; i-- > 0;) {
		const bool widens = array[i].codec == CODEC_WIDEN;
		if (!fits(&array[i], in.exact, whole) || (widens && factor > 1))
			return -EINVAL;
		if (widens)
			factor = WIDEN_FACTOR;
		steps[i] = (struct codec_step){.kind = STEP_ARRAY,
					       .largest = min_u64(in.most, limit),
					       .exact = in.exact,
					       .array = array[i]};
		in = array_input_of(&steps[i]);
	}
	if (elem_size == 0 || elem_size * factor != shown)
		return -EINVAL;
	return factor > 1 && elem_size % 2 != 0 ? -EINVAL : 0;
}

int array_plan_bytes(struct codec_step *steps, const struct codec_array_step *array, uint32_t n,
		     uint64_t most)
{
	for (uint32_t i = n; i-- > 0;) {
		steps[i] = (struct codec_step){.kind = STEP_ARRAY,
					       .largest = most,
					       .exact = CODEC_UNKNOWN,
					       .array = array[i]};
		if (!array_is_filter(&steps[i]) || !fits(&array[i], CODEC_UNKNOWN, CODEC_UNKNOWN))
			return -EINVAL;
		most = array_input_of(&steps[i]).most;
	}
	return 0;
}

/* ---- codecs ---- */

static int undo_zlib(const struct codec_step *step, struct step_bytes *b, struct err *err)
{
	size_t left = 0;
	const int rc = zstream_undo(b, step->largest, &left, err);
	if (rc == 0 && left > 0)
		return err_set(err, -EIO, "%zu bytes after the zlib stream", left);
	return rc;
}

static int undo_blosc(const struct codec_step *step, const uint8_t *in, size_t n, struct bytes *out,
		      struct err *err)
{
	struct blosc_frame f;
	if (!blosc_frame_parse(in, n, n, &f))
		return err_set(err, -EIO, "blosc: %zu bytes are not a Blosc 1 frame", n);
	return blosc_frame_decode(&f, in, n, step->largest, out, err);
}

/* Decodes the form of numcodecs:
 *
 *   +0  u32 LE  bytes decoded
 *   +4          one LZ4 block */
static int undo_lz4(const struct codec_step *step, const uint8_t *in, size_t n, struct bytes *out,
		    struct err *err)
{
	struct cursor c = cursor_of(in, n);
	const uint32_t size = cur_u32(&c);
	if (!cur_ok(&c) || n - LZ4_HEADER > INT_MAX)
		return err_set(err, -EIO, "lz4: %zu bytes are no block with its size", n);
	if (size > step->largest || size / LZ4_RATIO > n || size > INT_MAX)
		return err_set(err, -EIO, "lz4: %zu bytes state %u, at most %llu are expected", n,
			       size, (unsigned long long)step->largest);
	const int rc = bytes_reserve(out, size ? size : 1);
	if (rc)
		return err_errno(err, rc, "lz4");
	const int got = LZ4_decompress_safe((const char *)in + LZ4_HEADER, (char *)out->data,
					    (int)(n - LZ4_HEADER), (int)size);
	if (got < 0 || (uint32_t)got != size)
		return err_set(err, -EIO, "lz4: damaged block of %zu bytes for %u", n - LZ4_HEADER,
			       size);
	out->len = size;
	return 0;
}

static int too_many(const struct codec_step *step, size_t n, struct err *err)
{
	return err_set(err, -EIO, "chunk has %zu bytes, at most %llu are expected", n,
		       (unsigned long long)step->largest);
}

/* Checks the checksum, and cuts it off. */
static int check_crc32c(const struct codec_step *step, struct step_bytes *b, struct err *err)
{
	if (b->n < CRC32C_SIZE)
		return err_set(err, -EIO, "crc32c: %zu bytes are too few for a checksum", b->n);
	const size_t n = b->n - CRC32C_SIZE;
	struct cursor c = cursor_of(b->data + n, CRC32C_SIZE);
	const uint32_t stored = cur_u32(&c);
	if (n > step->largest)
		return too_many(step, n, err);
	const uint32_t crc = checksum_crc32c(b->data, n, 0);
	if (stored != crc)
		return err_set(err, -EIO,
			       "crc32c does not match: %08x is stored, that of the data is %08x",
			       stored, crc);
	b->n = n;
	return 0;
}

static int decompress(const struct codec_step *step, struct step_bytes *b, struct err *err)
{
	struct bytes plain auto_bytes = {0};
	const uint64_t limit = step->largest;
	int rc;
	switch (step->array.codec) {
	case CODEC_GZIP:
		rc = zstream_gunzip(b->data, b->n, limit, &plain, err);
		break;
	case CODEC_ZSTD:
		rc = zstd_decode(b->data, b->n, limit, &plain, err);
		break;
	case CODEC_BLOSC:
		rc = undo_blosc(step, b->data, b->n, &plain, err);
		break;
	case CODEC_BZ2:
		rc = bzip2_decode(b->data, b->n, limit, true, &plain, err);
		break;
	default:
		rc = undo_lz4(step, b->data, b->n, &plain, err);
		break;
	}
	if (rc == 0)
		step_bytes_take(b, &plain);
	return rc;
}

/* Returns whether the step changes no byte. *t becomes the plan of a transposition. */
static bool is_identity(const struct codec_step *step, struct transpose *t)
{
	const struct codec_array_step *s = &step->array;
	if (s->codec == CODEC_TRANSPOSE) {
		transpose_plan(t, s->elem_size, s->rank, s->shape, s->order);
		return transpose_is_identity(t);
	}
	return s->codec == CODEC_SHUFFLE && s->elem_size == 1;
}

/* Undoes shuffle and transpose, or widens. */
static int rearrange(const struct codec_step *step, struct step_bytes *b, struct err *err)
{
	struct bytes plain auto_bytes = {0};
	struct transpose t;
	if (b->n > step->largest)
		return too_many(step, b->n, err);
	if (b->n == 0 || is_identity(step, &t))
		return 0;
	const bool widens = step->array.codec == CODEC_WIDEN;
	const size_t n = widens ? b->n * WIDEN_FACTOR : b->n;
	const int rc = bytes_reserve(&plain, n);
	if (rc)
		return err_errno(err, rc, "chunk of %zu bytes", n);
	if (widens)
		widen_halves(plain.data, b->data, b->n / 2, step->array.big_endian);
	else if (step->array.codec == CODEC_TRANSPOSE)
		transpose_copy(&t, plain.data, b->data);
	else
		unshuffle_bytes(plain.data, b->data, n, step->array.elem_size);
	plain.len = n;
	step_bytes_take(b, &plain);
	return 0;
}

int array_undo(const struct codec_step *step, struct step_bytes *b, struct err *err)
{
	switch (step->array.codec) {
	case CODEC_ZLIB:
		return undo_zlib(step, b, err);
	case CODEC_CRC32C:
		return check_crc32c(step, b, err);
	case CODEC_SHUFFLE:
	case CODEC_TRANSPOSE:
	case CODEC_WIDEN:
		return rearrange(step, b, err);
	default:
		return decompress(step, b, err);
	}
}
