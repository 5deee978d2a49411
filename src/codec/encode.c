/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes chunk objects: the elements (elements.c), then byte shuffle and deflate, as
 * pipeline_of_object() says, or bitshuffle and a Blosc frame, as the service does. The service
 * stores a chunk that is only byte-shuffled without any filter. Elements of variable length are
 * never shuffled: the service does not unshuffle them. Elements that are stored as they are in
 * memory are copied only if no filter is applied. Pure; any thread.
 */
#include <codec/chunk.h>

#include <errno.h>

#include "bitshuffle.h"
#include "blosc_frame.h"
#include "elements.h"
#include "shuffle.h"
#include "zstream.h"

enum { LEVEL_DEFAULT = 6, LEVEL_MAX = 9 };

/* The bytes between two steps: borrowed from the input, or owned. */
struct stage {
	const uint8_t *data;
	size_t n;
	struct bytes own;
};

static void stage_take(struct stage *s, struct bytes *b)
{
	bytes_release(&s->own);
	s->own = *b;
	*b = (struct bytes){0};
	s->data = s->own.data;
	s->n = s->own.len;
}

static int apply_shuffle(struct stage *s, const struct dtype *t, struct err *err)
{
	struct bytes shuffled auto_bytes = {0};
	const uint64_t elem_size = codec_stored_elem_size(t);
	if (elem_size <= 1 || s->n == 0)
		return 0;
	const int rc = bytes_reserve(&shuffled, s->n);
	if (rc)
		return err_errno(err, rc, "shuffle");
	shuffle_bytes(shuffled.data, s->data, s->n, (size_t)elem_size);
	shuffled.len = s->n;
	stage_take(s, &shuffled);
	return 0;
}

static int apply_deflate(struct stage *s, const struct filter *f, struct err *err)
{
	struct bytes deflated auto_bytes = {0};
	const bool is_valid = f->nparams > 0 && f->params[0] <= LEVEL_MAX;
	const int level = is_valid ? (int)f->params[0] : LEVEL_DEFAULT;
	const int rc = zstream_deflate(s->data, s->n, level, &deflated, err);
	if (rc)
		return rc;
	bytes_trim(&deflated);
	stage_take(s, &deflated);
	return 0;
}

static int apply_pipeline(const struct codec_encode *c, struct stage *s, struct err *err)
{
	struct pipeline p;
	int rc = 0;
	pipeline_of_object(c->pipeline, &p);
	for (uint32_t i = 0; i < p.n && rc == 0; i++)
		rc = p.f[i].id == FILTER_SHUFFLE ? apply_shuffle(s, c->type, err)
						 : apply_deflate(s, &p.f[i], err);
	return rc;
}

static int apply_bitshuffle(struct stage *s, const struct dtype *t, struct err *err)
{
	struct bytes shuffled auto_bytes = {0};
	const uint64_t elem_size = codec_stored_elem_size(t);
	if (elem_size == 0 || s->n == 0)
		return 0;
	const int rc = bitshuffle_encode(s->data, s->n, (size_t)elem_size, &shuffled, err);
	if (rc)
		return rc;
	bytes_trim(&shuffled);
	stage_take(s, &shuffled);
	return 0;
}

static int apply_served(const struct codec_encode *c, struct stage *s, struct err *err)
{
	const struct service_filters *f = c->served;
	const bool shuffled = f->shuffle == SERVED_SHUFFLE_BYTE && !c->type->has_vlen;
	struct bytes frame auto_bytes = {0};
	int rc = 0;
	if (f->refused)
		return err_set(err, -EOPNOTSUPP, "the service does not have the filter \"%s\"",
			       f->refused);
	if (f->shuffle == SERVED_SHUFFLE_BIT)
		rc = apply_bitshuffle(s, c->type, err);
	if (rc || !f->compressor)
		return rc;
	rc = blosc_frame_encode(f->compressor, (int)f->level, shuffled, s->data, s->n, &frame, err);
	if (rc)
		return rc;
	stage_take(s, &frame);
	return 0;
}

/* The elements, in the form of a chunk object. */
static int begin(const struct codec_encode *c, const struct elems *in, struct stage *s,
		 struct err *err)
{
	uint64_t size = 0;
	if (!elements_are_packed(c->type)) {
		struct bytes encoded auto_bytes = {0};
		const int rc = elements_encode(c, in, &encoded, err);
		if (rc == 0)
			stage_take(s, &encoded);
		return rc;
	}
	if (!mul_u64(c->nelems, c->type->size, &size) || size != in->fixed.len)
		return err_set(err, -EIO, "%zu bytes are not %llu elements of %u bytes",
			       in->fixed.len, (unsigned long long)c->nelems, c->type->size);
	if (size > ELEMENTS_ENCODED_MAX)
		return err_set(err, -EFBIG, "a chunk of %llu bytes is too large",
			       (unsigned long long)size);
	s->data = in->fixed.data;
	s->n = in->fixed.len;
	return 0;
}

int codec_chunk_encode(const struct codec_encode *c, const struct elems *in, struct bytes *out,
		       struct err *err)
{
	struct stage s = {0};
	int rc = begin(c, in, &s, err);
	if (rc == 0)
		rc = c->served ? apply_served(c, &s, err) : apply_pipeline(c, &s, err);
	if (rc == 0 && s.data == s.own.data) {
		*out = s.own;
		return 0;
	}
	if (rc == 0 && bytes_append(out, s.data, s.n))
		rc = err_errno(err, -ENOMEM, "chunk of %zu bytes", s.n);
	bytes_release(&s.own);
	return rc;
}
