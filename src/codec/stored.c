/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters of an HDF5 file: deflate (1), shuffle (2) and fletcher32 (3), which every libhdf5 has.
 *
 * The encoder uses the cheapest form of each filter: deflate as stored blocks. So the encoded size
 * depends on the size of the input alone. Every filter writes its output to the end of the output
 * buffer, which leaves room in front for the filters that follow. Only a shuffle that is not the
 * first filter needs scratch memory.
 *
 *   fletcher32:  +0 data   +n u32 LE checksum of the data
 *
 * The decoder accepts any stream of these filters, also one that libhdf5 has compressed.
 */
#include <codec/chunk.h>

#include <errno.h>
#include <string.h>

#include <base/checksum.h>
#include <base/cursor.h>
#include <base/emit.h>

#include "recorded.h"
#include "shuffle.h"
#include "zstream.h"

enum { FLETCHER32_SIZE = 4 };

static bool is_stored_filter(uint32_t id)
{
	return id == FILTER_SHUFFLE || id == FILTER_DEFLATE || id == FILTER_FLETCHER32;
}

void codec_stored_pipeline(const struct pipeline *p, struct pipeline *out)
{
	struct pipeline stored = {0};
	for (uint32_t i = 0; i < p->n && i < FILTER_MAX; i++) {
		const struct filter *f = &p->f[i];
		if (is_stored_filter(f->id) && !recorded_is_bitshuffle(f))
			stored.f[stored.n++] = *f;
	}
	*out = stored;
}

static uint64_t filtered_size(const struct filter *f, uint64_t n)
{
	uint64_t size = n;
	if (f->id == FILTER_DEFLATE)
		size = zstream_stored_size(n);
	else if (f->id == FILTER_FLETCHER32 && !add_u64(n, FLETCHER32_SIZE, &size))
		size = UINT64_MAX;
	return size;
}

uint64_t codec_stored_size(const struct pipeline *p, uint64_t n)
{
	for (uint32_t i = 0; i < p->n; i++)
		n = filtered_size(&p->f[i], n);
	return n;
}

/* Shuffles the n bytes at src to the n bytes before end. */
static int apply_shuffle(uint8_t *end, const uint8_t *src, size_t n, uint32_t elem_size,
			 struct err *err)
{
	if (src != end - n) {
		shuffle_bytes(end - n, src, n, elem_size);
		return 0;
	}
	auto_free uint8_t *scratch = malloc(n ? n : 1);
	if (!scratch)
		return err_errno(err, -ENOMEM, "shuffle");
	memcpy(scratch, src, n);
	shuffle_bytes(end - n, scratch, n, elem_size);
	return 0;
}

static void apply_fletcher32(uint8_t *end, const uint8_t *src, size_t n)
{
	uint32_t sum = checksum_fletcher32(src, n);
	memmove(end - FLETCHER32_SIZE - n, src, n);
	struct emit e = emit_to(end - FLETCHER32_SIZE, FLETCHER32_SIZE);
	emit_u32(&e, sum);
}

int codec_stored_encode(const struct pipeline *p, uint32_t elem_size, const uint8_t *plain,
			size_t n, uint8_t *out, size_t out_n, struct err *err)
{
	if (codec_stored_size(p, n) != out_n)
		return err_set(err, -EINVAL, "%zu bytes are not encoded to %zu bytes", n, out_n);
	uint8_t *end = out + out_n;
	const uint8_t *src = plain;
	for (uint32_t i = 0; i < p->n; i++) {
		const struct filter *f = &p->f[i];
		int rc = 0;
		if (f->id == FILTER_SHUFFLE)
			rc = apply_shuffle(end, src, n, elem_size, err);
		else if (f->id == FILTER_DEFLATE)
			zstream_store(end, src, n);
		else if (f->id == FILTER_FLETCHER32)
			apply_fletcher32(end, src, n);
		else
			rc = err_set(err, -EOPNOTSUPP, "filter %u cannot be encoded", f->id);
		if (rc)
			return rc;
		n = (size_t)filtered_size(f, n);
		src = end - n;
	}
	if (src == plain && n > 0)
		memcpy(out, plain, n);
	return 0;
}

/* The bytes between two filters: borrowed from the caller, then owned after the first filter that
 * allocates. */
struct stream {
	const uint8_t *data;
	size_t n;
	struct bytes own;
};

static void stream_take(struct stream *s, struct bytes *b)
{
	bytes_release(&s->own);
	s->own = *b;
	*b = (struct bytes){0};
	s->data = s->own.data;
	s->n = s->own.len;
}

static int undo_deflate(struct stream *s, uint64_t limit, struct err *err)
{
	struct bytes plain auto_bytes = {0};
	size_t left = 0; /* libhdf5 ignores bytes after the stream, too */
	int rc = zstream_inflate(s->data, s->n, limit, &plain, &left, err);
	if (rc == 0)
		stream_take(s, &plain);
	return rc;
}

static int undo_shuffle(struct stream *s, uint32_t elem_size, struct err *err)
{
	struct bytes plain auto_bytes = {0};
	if (s->n == 0)
		return 0;
	int rc = bytes_reserve(&plain, s->n);
	if (rc)
		return err_errno(err, rc, "shuffle");
	unshuffle_bytes(plain.data, s->data, s->n, elem_size);
	plain.len = s->n;
	stream_take(s, &plain);
	return 0;
}

static int undo_fletcher32(struct stream *s, struct err *err)
{
	if (s->n < FLETCHER32_SIZE)
		return err_set(err, -EIO, "fletcher32: %zu bytes are too few for a checksum", s->n);
	size_t n = s->n - FLETCHER32_SIZE;
	struct cursor c = cursor_of(s->data + n, FLETCHER32_SIZE);
	uint32_t stored = cur_u32(&c);
	uint32_t sum = checksum_fletcher32(s->data, n);
	/* libhdf5 before 1.6.3 swapped the bytes of each half. Readers still accept that. */
	uint32_t swapped = (sum & 0x00ff00ff) << 8 | (sum >> 8 & 0x00ff00ff);
	if (stored != sum && stored != swapped)
		return err_set(err, -EIO,
			       "fletcher32: the checksum is %08x, that of the data is %08x", stored,
			       sum);
	s->n = n;
	return 0;
}

/* Most bytes that filters [0, i) can yield from at most max bytes. Other encoders may write
 * slightly longer streams than this one. */
static uint64_t intermediate_limit(const struct pipeline *p, uint32_t i, uint64_t max)
{
	enum { DEFLATE_SLACK = 64 };
	for (uint32_t k = 0; k < i; k++) {
		uint64_t slack = p->f[k].id == FILTER_DEFLATE ? max / 8 + DEFLATE_SLACK : 0;
		if (p->f[k].id == FILTER_FLETCHER32)
			slack = FLETCHER32_SIZE;
		if (!add_u64(max, slack, &max))
			return UINT64_MAX;
	}
	return max;
}

static int undo(const struct pipeline *p, uint32_t i, uint32_t elem_size, size_t max,
		struct stream *s, struct err *err)
{
	switch (p->f[i].id) {
	case FILTER_DEFLATE:
		return undo_deflate(s, intermediate_limit(p, i, max), err);
	case FILTER_SHUFFLE:
		return undo_shuffle(s, elem_size, err);
	case FILTER_FLETCHER32:
		return undo_fletcher32(s, err);
	default:
		return err_set(err, -EOPNOTSUPP, "filter %u is not built in", p->f[i].id);
	}
}

int codec_hdf5_decode(const struct pipeline *p, uint32_t filter_mask, uint32_t elem_size,
		      const uint8_t *in, size_t n, size_t max, struct bytes *out, struct err *err)
{
	struct stream s = {.data = in, .n = n};
	int rc = 0;
	for (uint32_t i = p->n; i-- > 0 && rc == 0;)
		if (i >= 32 || !(filter_mask & (1u << i)))
			rc = undo(p, i, elem_size, max, &s, err);
	if (rc == 0 && s.n > max)
		rc = err_set(err, -EIO, "chunk decodes to %zu bytes, at most %zu are expected", s.n,
			     max);
	if (rc == 0 && s.data == s.own.data && s.own.data) {
		s.own.len = s.n;
		*out = s.own;
		return 0;
	}
	if (rc == 0) {
		rc = bytes_append(out, s.data, s.n);
		if (rc)
			err_errno(err, rc, "chunk of %zu bytes", s.n);
	}
	bytes_release(&s.own);
	return rc;
}
