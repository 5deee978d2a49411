/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes chunk objects. Which filters were really applied depends on the version of HSDS that
 * wrote the object, not on the pipeline that the dataset records. Therefore the form is detected in
 * the bytes (doc/BUCKET.md, "Filters as found in stored chunks"):
 *
 *   1. a Blosc 1 frame, if byte 0 is 2 and the length in the header is the object's;
 *   2. otherwise a zlib stream, if a compressor is recorded and the bytes begin like one. The
 *      bytes are shuffled if pipeline_of_object() says so, unless the encoding is
 *      ENCODING_HSDS_PLAIN;
 *   3. otherwise plain bytes. HSDS never applies a shuffle that is recorded without a compressor.
 *
 * If bitshuffle is recorded, the result of 1 and 3 may have the bitshuffle form of HSDS
 * (bitshuffle.c).
 *
 * Plain bytes may begin like a frame or a stream: a first sequence of 376 bytes has the count 78 01
 * 00 00. So bytes that are the elements of a whole chunk as they are (of a fixed size: exactly so
 * many) are plain, unless a compressor is recorded and undoing it yields the elements of a whole
 * chunk, too. A chunk of an HDF5 file is different: its filters and their mask are given, and
 * nothing is detected. Pure; any thread.
 */
#include <codec/chunk.h>

#include <errno.h>
#include <string.h>

#include "bitshuffle.h"
#include "blosc_frame.h"
#include "elements.h"
#include "recorded.h"
#include "shuffle.h"
#include "zstream.h"

/* A file that hsload links may have a fletcher32 checksum that the recorded pipeline does not list.
 */
enum { UNLISTED_CHECKSUM = 4 };

struct decoding {
	const struct codec_chunk *chunk;
	struct recorded recorded;
	bool deflated;	   /* a zlib stream is possible */
	bool shuffled;	   /* and if it is one, its bytes are shuffled */
	size_t elem_size;  /* size of an element in the object; 0: variable length */
	uint64_t expected; /* size of the decoded chunk, if elem_size > 0 */
	uint64_t limit;	   /* most bytes that undoing a filter may yield */
	struct err *err;
};

/* What the recorded filters say about a zlib stream. Compressors that are unknown to
 * pipeline_of_object() may have been replaced by zlib, too. */
static void expect_stream(struct decoding *d)
{
	struct pipeline object = {0};
	if (d->chunk->pipeline)
		pipeline_of_object(d->chunk->pipeline, &object);
	d->deflated = d->recorded.compressor || object.n > 0;
	d->shuffled = object.n > 0 ? object.f[0].id == FILTER_SHUFFLE : d->recorded.shuffle;
	if (d->chunk->encoding == ENCODING_HSDS_PLAIN)
		d->shuffled = false;
}

static int decoding_init(struct decoding *d, const struct codec_chunk *c, struct err *err)
{
	*d = (struct decoding){.chunk = c, .recorded = recorded_of(c->pipeline), .err = err};
	expect_stream(d);
	uint64_t size = codec_stored_elem_size(c->type);
	d->limit = c->max_bytes;
	if (size == 0)
		return 0;
	if (!mul_u64(size, c->nelems, &d->expected) || d->expected > SIZE_MAX / 2)
		return err_set(err, -EIO, "a chunk of %llu elements of %llu bytes is too large",
			       (unsigned long long)c->nelems, (unsigned long long)size);
	d->elem_size = (size_t)size;
	d->limit = d->recorded.bitshuffle ? bitshuffle_bound(d->expected) : d->expected;
	return 0;
}

static bool plain_fits(const struct decoding *d, size_t n)
{
	return d->elem_size > 0 && n == d->expected;
}

/* Whether bytes without filters are the elements of a whole chunk. */
static bool is_whole(const struct decoding *d, const struct bytes *b)
{
	return d->elem_size > 0 ? b->len == d->expected
				: elements_fit(d->chunk->type, d->chunk->nelems, b->data, b->len);
}

static int unshuffle(struct decoding *d, struct bytes *b)
{
	struct bytes plain auto_bytes = {0};
	if (b->len == 0)
		return 0;
	int rc = bytes_reserve(&plain, b->len);
	if (rc)
		return err_errno(d->err, rc, "shuffle");
	unshuffle_bytes(plain.data, b->data, b->len, d->elem_size);
	plain.len = b->len;
	bytes_release(b);
	*b = plain;
	plain = (struct bytes){0};
	return 0;
}

static int undo_zlib(struct decoding *d, const struct bytes *stored, struct bytes *out)
{
	size_t left = 0;
	int rc = zstream_inflate(stored->data, stored->len, d->limit, out, &left, d->err);
	if (rc)
		return rc;
	if (left != 0 && left != UNLISTED_CHECKSUM)
		return err_set(d->err, -EIO, "%zu bytes after the zlib stream", left);
	return d->shuffled && plain_fits(d, out->len) ? unshuffle(d, out) : 0;
}

/* Inflates an object that begins like a zlib stream. *out stays empty if the object is plain. */
static int undo_stream(struct decoding *d, const struct bytes *stored, struct bytes *out)
{
	const bool may_be_plain = is_whole(d, stored);
	int rc = undo_zlib(d, stored, out);
	if (rc == -ENOMEM || !may_be_plain || (rc == 0 && is_whole(d, out)))
		return rc;
	bytes_release(out);
	if (d->err)
		err_clear(d->err);
	return 0;
}

/* True if the object is a frame, and not plain bytes that look like one. */
static bool is_frame(const struct decoding *d, const struct bytes *stored, struct blosc_frame *f)
{
	if (!blosc_frame_parse(stored->data, stored->len, stored->len, f))
		return false;
	return !plain_fits(d, stored->len) || (d->recorded.compressor && f->nbytes <= d->limit);
}

static int undo_bitshuffle(struct decoding *d, struct bytes *b)
{
	struct bytes plain auto_bytes = {0};
	if (!d->recorded.bitshuffle || d->elem_size == 0 ||
	    !bitshuffle_looks_like(b->data, b->len, d->expected))
		return 0;
	int rc = bitshuffle_decode(b->data, b->len, d->elem_size, d->expected, &plain, d->err);
	if (rc == -EIO && plain_fits(d, b->len)) /* plain bytes that look like that form */
		return 0;
	if (rc)
		return rc;
	bytes_release(b);
	*b = plain;
	plain = (struct bytes){0};
	return 0;
}

/* Undoes the filters of stored. *out owns the result: new bytes, or the bytes of stored, which is
 * empty then. */
static int undo_filters(struct decoding *d, struct bytes *stored, struct bytes *out)
{
	struct blosc_frame frame;
	int rc = 0;
	if (is_frame(d, stored, &frame)) {
		rc = blosc_frame_decode(&frame, stored->data, stored->len, d->limit, out, d->err);
	} else if (d->deflated && zstream_looks_like(stored->data, stored->len)) {
		rc = undo_stream(d, stored, out);
		if (rc || out->data)
			return rc;
	}
	if (rc == 0 && !out->data) {
		*out = *stored;
		*stored = (struct bytes){0};
	}
	return rc ? rc : undo_bitshuffle(d, out);
}

static int wrong_length(const struct decoding *d, size_t n)
{
	const struct recorded *r = &d->recorded;
	if (r->unknown && !r->deflate)
		return err_set(
			d->err, -EOPNOTSUPP,
			"chunk has %zu bytes, its shape needs %llu: filter %u is not built in", n,
			(unsigned long long)d->expected, r->unknown);
	return err_set(d->err, -EIO, "chunk has %zu bytes, its shape needs %llu", n,
		       (unsigned long long)d->expected);
}

/* A chunk of an HDF5 file has the elements as they are in memory, and nothing is detected. */
static int decode_hdf5(const struct codec_chunk *c, struct bytes *stored, struct elems *out,
		       struct err *err)
{
	struct bytes plain auto_bytes = {0};
	uint64_t expected;
	int rc = 0;
	if (!dtype_is_plain(c->type))
		return err_set(err, -EOPNOTSUPP,
			       "a chunk of an HDF5 file with variable-length data or references");
	if (!mul_u64(c->type->size, c->nelems, &expected) || expected > SIZE_MAX / 2)
		return err_set(err, -EIO, "a chunk of %llu elements of %u bytes is too large",
			       (unsigned long long)c->nelems, c->type->size);
	const uint64_t limit = c->covered ? codec_hdf5_limit(expected) : expected;
	const uint64_t least = c->covered ? c->covered * c->type->size : expected;
	if (c->pipeline->n == 0 && stored->len == expected) {
		plain = *stored;
		*stored = (struct bytes){0};
	} else {
		rc = codec_hdf5_decode(c->pipeline, c->filter_mask, c->type->size, stored->data,
				       stored->len, (size_t)limit, &plain, err);
	}
	plain.len = (size_t)min_u64(plain.len, expected);
	if (!rc && plain.len < least)
		rc = err_set(err, -EIO, "chunk has %zu bytes, its shape needs %llu", plain.len,
			     (unsigned long long)expected);
	if (!rc && bytes_append_zero(&plain, (size_t)expected - plain.len))
		rc = err_set(err, -ENOMEM, "out of memory");
	if (rc)
		return rc;
	out->fixed = plain;
	plain = (struct bytes){0};
	return 0;
}

int codec_chunk_decode(const struct codec_chunk *c, struct bytes *stored, struct elems *out,
		       struct err *err)
{
	struct bytes plain auto_bytes = {0};
	struct decoding d;
	*out = (struct elems){0};
	if (c->encoding == ENCODING_HDF5)
		return decode_hdf5(c, stored, out, err);
	int rc = decoding_init(&d, c, err);
	if (rc)
		return rc;
	rc = undo_filters(&d, stored, &plain);
	if (rc)
		return rc;
	if (d.elem_size > 0 && plain.len != d.expected)
		return wrong_length(&d, plain.len);
	if (d.elem_size == 0 && plain.len > c->max_bytes)
		return err_set(err, -EIO, "chunk has %zu bytes, the limit is %llu", plain.len,
			       (unsigned long long)c->max_bytes);
	if (elements_are_packed(c->type)) {
		out->fixed = plain;
		plain = (struct bytes){0};
		return 0;
	}
	rc = elements_decode(c, plain.data, plain.len, out, err);
	if (rc)
		elems_release(out);
	return rc;
}

/* The decoded size of a whole object that begins like a zlib stream. */
static int inflated_size(const struct codec_chunk *c, const uint8_t *object, size_t n,
			 uint64_t *decoded, struct err *err)
{
	const struct bytes stored = {.data = (uint8_t *)(uintptr_t)object, .len = n};
	struct bytes plain auto_bytes = {0};
	struct decoding d;
	int rc = decoding_init(&d, c, err);
	if (!rc)
		rc = undo_stream(&d, &stored, &plain);
	if (!rc)
		*decoded = plain.data ? plain.len : n;
	return rc;
}

int codec_decoded_size(const struct codec_chunk *c, const uint8_t *head, size_t n,
		       uint64_t object_size, uint64_t *decoded, struct err *err)
{
	struct recorded r = recorded_of(c->pipeline);
	struct pipeline object;
	struct blosc_frame frame;
	uint64_t size = object_size;
	pipeline_of_object(c->pipeline, &object);
	if (n < min_u64(BLOSC_FRAME_HEADER, object_size))
		return err_set(err, -EAGAIN, "%zu bytes do not show the decoded size", n);
	if (blosc_frame_parse(head, n, object_size, &frame)) {
		size = frame.nbytes;
	} else if ((r.compressor || object.n > 0) && zstream_looks_like(head, n)) {
		if (n < object_size)
			return err_set(err, -EAGAIN,
				       "a zlib stream does not state its decoded size");
		return inflated_size(c, head, n, decoded, err);
	}
	if (size > c->max_bytes)
		return err_set(err, -EFBIG, "chunk has %llu bytes, the limit is %llu",
			       (unsigned long long)size, (unsigned long long)c->max_bytes);
	*decoded = size;
	return 0;
}
