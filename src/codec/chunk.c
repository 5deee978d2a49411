/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes chunks: runs the steps of a chain. STEP_SERVICE is here; hdf5.c, array_steps.c and
 * elements.c have the others. The filters that HSDS really applied depend on its version, not on
 * the pipeline that the dataset records. Therefore STEP_SERVICE detects the form in the bytes
 * (doc/BUCKET.md, "Filters as found in stored chunks"):
 *
 *   1. a Blosc 1 frame, if byte 0 is 2 and the length in the header is that of the object;
 *   2. otherwise a zlib stream, if a compressor is recorded and the bytes begin like one. The
 *      bytes are shuffled if pipeline_of_object() says so, unless the objects are
 *      OBJECT_UNSHUFFLED;
 *   3. otherwise plain bytes. HSDS never applies a shuffle that is recorded without a compressor.
 *
 * If bitshuffle is recorded, the result of 1 and 3 may have the bitshuffle form of HSDS
 * (bitshuffle.c).
 *
 * Plain bytes may begin like a frame or a stream: a first sequence of 376 bytes has the count 78 01
 * 00 00. If the bytes are the elements of a whole chunk as they are, they may be plain. If the
 * elements have a fixed size, such bytes are a frame only if a compressor is recorded and the frame
 * states no more bytes than a chunk has. If the elements have variable length, bytes that look like
 * a frame are always one. Such bytes that look like a stream are one only if they inflate to the
 * elements of a whole chunk.
 *
 * In a chunk of an HDF5 file or of a Zarr array, what was applied is given, and nothing is
 * detected. The functions are pure; any thread may call them.
 */
#include <codec/chunk.h>

#include <errno.h>

#include <data/shuffle.h>

#include "array_steps.h"
#include "bitshuffle.h"
#include "blosc_frame.h"
#include "elements.h"
#include "hdf5.h"
#include "step_bytes.h"
#include "zstream.h"

/* A file that hsload links may have a fletcher32 checksum that the recorded pipeline does not list.
 */
enum { UNLISTED_CHECKSUM = 4 };

struct decoding {
	const struct codec_chain *chain;
	const struct codec_step *step; /* STEP_SERVICE */
	uint64_t limit;		       /* most bytes that undoing a filter may yield */
	struct chunk_data *shuffled;   /* notes that elements stay so; NULL if they may not */
	struct err *err;
};

static struct decoding decoding_of(const struct codec_chunk *c, const struct codec_step *step,
				   struct chunk_data *out, struct err *err)
{
	return (struct decoding){.chain = c->chain,
				 .step = step,
				 .limit = c->chain->elem_size ? step->largest : c->max_bytes,
				 .shuffled = c->accepts_shuffled ? out : NULL,
				 .err = err};
}

static bool plain_fits(const struct decoding *d, size_t n)
{
	return d->chain->elem_size > 0 && n == d->chain->plain;
}

/* Returns whether bytes without filters are the elements of a whole chunk. */
static bool is_whole(const struct decoding *d, const uint8_t *data, size_t n)
{
	return d->chain->elem_size > 0 ? plain_fits(d, n)
				       : elements_fit(d->chain->type, d->chain->nelems, data, n);
}

static int unshuffle(struct decoding *d, struct step_bytes *b)
{
	struct bytes plain auto_bytes = {0};
	if (d->shuffled && elements_are_packed(d->chain->type)) {
		d->shuffled->shuffled = d->chain->type->size;
		return 0;
	}
	if (b->n == 0)
		return 0;
	int rc = bytes_reserve(&plain, b->n);
	if (rc)
		return err_errno(d->err, rc, "shuffle");
	unshuffle_bytes(plain.data, b->data, b->n, (size_t)d->chain->elem_size);
	plain.len = b->n;
	step_bytes_take(b, &plain);
	return 0;
}

static int undo_zlib(struct decoding *d, struct step_bytes *b)
{
	size_t left = 0;
	int rc = zstream_undo(b, d->limit, &left, d->err);
	if (rc)
		return rc;
	if (left != 0 && left != UNLISTED_CHECKSUM)
		return err_set(d->err, -EIO, "%zu bytes after the zlib stream", left);
	return d->step->shuffled && plain_fits(d, b->n) ? unshuffle(d, b) : 0;
}

/* Inflates an object that begins like a zlib stream. Its bytes stay as they are if it is plain.
 * *is_stream says which it is. */
static int undo_stream(struct decoding *d, struct step_bytes *b, bool *is_stream)
{
	struct step_bytes inflated = {.data = b->data, .n = b->n};
	const bool may_be_plain = is_whole(d, b->data, b->n);
	const int rc = undo_zlib(d, &inflated);
	*is_stream = rc == 0 && (!may_be_plain || is_whole(d, inflated.data, inflated.n));
	if (*is_stream) {
		bytes_release(&b->own);
		*b = inflated;
		return 0;
	}
	bytes_release(&inflated.own);
	if (rc == -ENOMEM || !may_be_plain)
		return rc;
	if (d->err)
		err_clear(d->err);
	return 0;
}

/* Returns true if the object is a frame, and not plain bytes that look like one. */
static bool is_frame(const struct decoding *d, const struct step_bytes *b, struct blosc_frame *f)
{
	if (!blosc_frame_parse(b->data, b->n, b->n, f))
		return false;
	return !plain_fits(d, b->n) || (d->step->compressor && f->nbytes <= d->limit);
}

static int undo_bitshuffle(struct decoding *d, struct step_bytes *b)
{
	const struct codec_chain *c = d->chain;
	struct bytes plain auto_bytes = {0};
	if (!d->step->bitshuffle || c->elem_size == 0 ||
	    !bitshuffle_looks_like(b->data, b->n, c->plain))
		return 0;
	int rc = bitshuffle_decode(b->data, b->n, (size_t)c->elem_size, c->plain, &plain, d->err);
	if (rc == -EIO && plain_fits(d, b->n)) /* plain bytes that look like this form */
		return 0;
	if (rc == 0)
		step_bytes_take(b, &plain);
	return rc;
}

static int undo_service(struct decoding *d, struct step_bytes *b)
{
	struct bytes plain auto_bytes = {0};
	struct blosc_frame frame;
	int rc = 0;
	bool inflated = false;
	if (is_frame(d, b, &frame)) {
		rc = blosc_frame_decode(&frame, b->data, b->n, d->limit, &plain, d->err);
		if (rc == 0)
			step_bytes_take(b, &plain);
	} else if (d->step->stream && zstream_looks_like(b->data, b->n)) {
		rc = undo_stream(d, b, &inflated);
	}
	return rc || inflated ? rc : undo_bitshuffle(d, b);
}

static int too_large(const struct codec_chain *c, struct err *err)
{
	return err_set(err, -EIO, "a chunk of %llu elements of %llu bytes is too large",
		       (unsigned long long)c->nelems, (unsigned long long)c->elem_size);
}

/* Sets the error of a chunk that has n bytes at a step, where `needed` bytes are required. */
static int wrong_length(const struct codec_chain *c, size_t n, uint64_t needed, struct err *err)
{
	const struct codec_step *first = &c->steps[0];
	if (c->n > 0 && first->kind == STEP_SERVICE && first->unknown && !first->deflate)
		return err_set(
			err, -EOPNOTSUPP,
			"chunk has %zu bytes, its shape needs %llu: filter %u is not built in", n,
			(unsigned long long)needed, first->unknown);
	return err_set(err, -EIO, "chunk has %zu bytes, its shape needs %llu", n,
		       (unsigned long long)needed);
}

static int undo_step(const struct codec_chunk *c, const struct codec_step *step,
		     struct step_bytes *b, struct chunk_data *out, struct err *err)
{
	const struct codec_chain *chain = c->chain;
	if (step->kind == STEP_FILTER)
		return c->filter_mask & (1u << step->bit) ? 0 : hdf5_undo(step, b, err);
	if (step->kind == STEP_ARRAY) {
		const uint64_t needed = array_input_of(step).exact;
		if (needed != CODEC_UNKNOWN && b->n != needed)
			return wrong_length(chain, b->n, needed, err);
		return array_undo(step, b, err);
	}
	struct decoding d = decoding_of(c, step, out, err);
	const int rc = undo_service(&d, b);
	if (rc == 0 && chain->elem_size == 0 && b->n > c->max_bytes)
		return err_set(err, -EIO, "chunk has %zu bytes, the limit is %llu", b->n,
			       (unsigned long long)c->max_bytes);
	return rc;
}

/* Returns whether the elements can be given as they are before the last step, because it only
 * unshuffles them. */
static bool stays_shuffled(const struct codec_chunk *c, const struct codec_step *step,
			   const struct step_bytes *b)
{
	const struct dtype *t = c->chain->type;
	size_t size = 0;
	if (!c->accepts_shuffled || b->n != c->chain->nelems * t->size)
		return false;
	if (step->kind == STEP_FILTER && !(c->filter_mask & (1u << step->bit)))
		size = hdf5_unshuffles(step);
	else if (step->kind == STEP_ARRAY && step->array.codec == CODEC_SHUFFLE)
		size = step->array.elem_size;
	return size == t->size;
}

/* Moves the elements of a chunk that are stored as they are in memory to out. If no step has made
 * new bytes, they are those of *stored. */
static int give(const struct codec_chunk *c, struct step_bytes *b, struct bytes *stored,
		struct chunk_data *out, struct err *err)
{
	const struct codec_chain *chain = c->chain;
	struct bytes *fixed = &out->elems.fixed;
	const uint64_t whole = chain->nelems * chain->type->size;
	const uint64_t most = chain->certain ? codec_hdf5_limit(whole) : whole;
	const uint64_t least = chain->certain ? c->covered * chain->elem_size : whole;
	if (b->n < least || b->n > most)
		return wrong_length(chain, b->n, whole, err);
	b->n = (size_t)min_u64(b->n, whole);
	out->has_adler = b->summed > 0 && b->summed == b->n && b->n == whole;
	out->adler32 = b->adler32;
	if (!step_bytes_give(b, fixed)) {
		*fixed = *stored;
		fixed->len = b->n;
		*stored = (struct bytes){0};
	}
	return bytes_append_zero(fixed, (size_t)whole - fixed->len) ? err_no_memory(err) : 0;
}

int codec_chunk_decode(const struct codec_chunk *c, struct bytes *stored, struct chunk_data *out,
		       struct err *err)
{
	const struct codec_chain *chain = c->chain;
	struct step_bytes b = {.data = stored->data, .n = stored->len};
	const bool has_elements = chain->n > 0 && chain->steps[chain->n - 1].kind == STEP_ELEMENTS;
	int rc = 0;
	*out = (struct chunk_data){0};
	if (chain->elem_size > 0 && chain->plain == CODEC_UNKNOWN)
		return too_large(chain, err);
	const uint32_t n = chain->n - has_elements;
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		if (i + 1 == n && stays_shuffled(c, &chain->steps[i], &b)) {
			out->shuffled = chain->type->size;
			break;
		}
		rc = undo_step(c, &chain->steps[i], &b, out, err);
		if (rc == 0 && !c->filter_mask && chain->steps[i].exact != CODEC_UNKNOWN &&
		    chain->steps[i].exact != b.n)
			rc = wrong_length(chain, b.n, chain->steps[i].exact, err);
	}
	if (rc == 0 && has_elements && !elements_are_packed(chain->type))
		rc = elements_decode(c, b.data, b.n, &out->elems, err);
	else if (rc == 0)
		rc = give(c, &b, stored, out, err);
	bytes_release(&b.own);
	if (rc)
		chunk_data_release(out);
	return rc;
}

int codec_decoded_size(const struct codec_chunk *c, const uint8_t *head, size_t n,
		       uint64_t object_size, uint64_t *decoded, struct err *err)
{
	const struct codec_chain *chain = c->chain;
	if (chain->n == 0 || chain->steps[0].kind != STEP_SERVICE) {
		*decoded = chain->nelems * chain->type->size;
		return chain->plain == CODEC_UNKNOWN ? too_large(chain, err) : 0;
	}
	struct decoding d = decoding_of(c, &chain->steps[0], NULL, err);
	struct blosc_frame frame;
	uint64_t size = object_size;
	if (n < min_u64(BLOSC_FRAME_HEADER, object_size))
		return err_set(err, -EAGAIN, "%zu bytes do not show the decoded size", n);
	if (blosc_frame_parse(head, n, object_size, &frame)) {
		size = frame.nbytes;
	} else if (d.step->stream && zstream_looks_like(head, n)) {
		if (n < object_size)
			return err_set(err, -EAGAIN,
				       "a zlib stream does not state its decoded size");
		struct step_bytes b = {.data = head, .n = n};
		bool is_stream;
		const int rc = undo_stream(&d, &b, &is_stream);
		*decoded = b.n;
		bytes_release(&b.own);
		return rc;
	}
	if (size > c->max_bytes)
		return err_set(err, -EFBIG, "chunk has %llu bytes, the limit is %llu",
			       (unsigned long long)size, (unsigned long long)c->max_bytes);
	*decoded = size;
	return 0;
}
