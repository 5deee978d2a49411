/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes chunk objects. The elements are encoded first (elements.c). Then the filters are applied:
 * byte shuffle and deflate, as pipeline_of_object() says, or bitshuffle and a Blosc frame, as the
 * service does. The service stores a chunk that is only byte-shuffled without any filter. Elements
 * of variable length are never shuffled, because the service does not unshuffle them. Elements that
 * are stored as they are in memory are copied only if no filter is applied. The functions are pure;
 * any thread may call them.
 */
#include <codec/chunk.h>

#include <errno.h>

#include <data/shuffle.h>

#include "bitshuffle.h"
#include "blosc_frame.h"
#include "elements.h"
#include "step_bytes.h"
#include "zstream.h"

static int apply_shuffle(struct step_bytes *s, size_t elem_size, struct err *err)
{
	struct bytes shuffled auto_bytes = {0};
	if (elem_size <= 1 || s->n == 0)
		return 0;
	const int rc = bytes_reserve(&shuffled, s->n);
	if (rc)
		return err_errno(err, rc, "shuffle");
	shuffle_bytes(shuffled.data, s->data, s->n, elem_size);
	shuffled.len = s->n;
	step_bytes_take(s, &shuffled);
	return 0;
}

/* Applies the filters of new chunk objects. */
static int apply_stream(const struct codec_encode *c, const struct codec_step *step,
			struct step_bytes *s, struct err *err)
{
	struct bytes deflated auto_bytes = {0};
	int rc = 0;
	if (step->level < 0)
		return 0;
	if (step->shuffled)
		rc = apply_shuffle(s, (size_t)c->chain->elem_size, err);
	if (!rc)
		rc = zstream_deflate(s->data, s->n, step->level, &deflated, err);
	if (rc)
		return rc;
	bytes_trim(&deflated);
	step_bytes_take(s, &deflated);
	return 0;
}

static int apply_bitshuffle(struct step_bytes *s, size_t elem_size, struct err *err)
{
	struct bytes shuffled auto_bytes = {0};
	if (elem_size == 0 || s->n == 0)
		return 0;
	const int rc = bitshuffle_encode(s->data, s->n, elem_size, &shuffled, err);
	if (rc)
		return rc;
	bytes_trim(&shuffled);
	step_bytes_take(s, &shuffled);
	return 0;
}

static int apply_served(const struct codec_encode *c, const struct service_filters *f,
			struct step_bytes *s, struct err *err)
{
	const bool shuffled = f->shuffle == SERVED_SHUFFLE_BYTE && !c->chain->type->has_vlen;
	struct bytes frame auto_bytes = {0};
	int rc = 0;
	if (f->refused)
		return err_set(err, -EOPNOTSUPP, "the service does not have the filter \"%s\"",
			       f->refused);
	if (f->shuffle == SERVED_SHUFFLE_BIT)
		rc = apply_bitshuffle(s, (size_t)c->chain->elem_size, err);
	if (rc || !f->compressor)
		return rc;
	rc = blosc_frame_encode(f->compressor, (int)f->level, shuffled, s->data, s->n, &frame, err);
	if (rc)
		return rc;
	step_bytes_take(s, &frame);
	return 0;
}

/* Encodes the elements in the form of a chunk object, before the filters. */
static int begin(const struct codec_encode *c, const struct elems *in, struct step_bytes *s,
		 struct err *err)
{
	const struct dtype *t = c->chain->type;
	uint64_t size = 0;
	if (!elements_are_packed(t)) {
		struct bytes encoded auto_bytes = {0};
		const int rc = elements_encode(c, in, &encoded, err);
		if (rc == 0)
			step_bytes_take(s, &encoded);
		return rc;
	}
	if (!mul_u64(c->chain->nelems, t->size, &size) || size != in->fixed.len)
		return err_set(err, -EIO, "%zu bytes are not %llu elements of %u bytes",
			       in->fixed.len, (unsigned long long)c->chain->nelems, t->size);
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
	const struct codec_step *step = &c->chain->steps[0];
	struct step_bytes s = {0};
	int rc = begin(c, in, &s, err);
	if (rc == 0)
		rc = step->served ? apply_served(c, step->served, &s, err)
				  : apply_stream(c, step, &s, err);
	if (rc == 0 && !step_bytes_give(&s, out) && bytes_append(out, s.data, s.n))
		rc = err_errno(err, -ENOMEM, "chunk of %zu bytes", s.n);
	bytes_release(&s.own);
	return rc;
}
