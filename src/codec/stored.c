/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes with the filters deflate (1), shuffle (2) and fletcher32 (3), which every libhdf5 has.
 * hdf5.c decodes them.
 *
 * The encoder uses the cheapest form of each filter: deflate writes stored blocks. So the encoded
 * size depends on the size of the input alone. Every filter writes its output to the end of the
 * output buffer, which leaves room in front for the filters that follow. Only a shuffle that is not
 * the first filter needs scratch memory.
 *
 *   fletcher32:  +0 data   +n u32 LE checksum of the data
 */
#include <codec/chunk.h>

#include <errno.h>
#include <string.h>

#include <base/checksum.h>
#include <base/emit.h>
#include <data/shuffle.h>

#include "fletcher32.h"
#include "recorded.h"
#include "zstream.h"

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

/* Encodes bytes with the filters from `first` on. The checksum is that of the bytes, or NULL. */
static int encode(const struct pipeline *p, uint32_t first, uint32_t elem_size,
		  const uint8_t *plain, size_t n, const uint32_t *adler, uint8_t *out, size_t out_n,
		  struct err *err)
{
	uint8_t *end = out + out_n;
	const uint8_t *src = plain;
	for (uint32_t i = first; i < p->n; i++) {
		const struct filter *f = &p->f[i];
		int rc = 0;
		if (f->id == FILTER_SHUFFLE)
			rc = apply_shuffle(end, src, n, elem_size, err);
		else if (f->id == FILTER_DEFLATE)
			zstream_store(end, src, n, i == first ? adler : NULL);
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

bool codec_slot_is_deflated(const struct pipeline *p)
{
	return p->n > 0 && p->f[p->n - 1].id == FILTER_DEFLATE;
}

int codec_slot_make(const struct pipeline *p, uint32_t elem_size, struct chunk_data *d,
		    struct err *err)
{
	struct bytes *bytes = &d->elems.fixed;
	const bool deflated = codec_slot_is_deflated(p);
	const uint32_t first = d->shuffled && p->n > 0 ? 1 : 0;
	struct pipeline now = *p;
	now.n -= deflated;
	if (now.n > first) {
		struct bytes made auto_bytes = {0};
		const size_t size = (size_t)codec_stored_size(&now, bytes->len);
		int rc = bytes_reserve(&made, size);
		if (rc)
			return err_set(err, rc, "out of memory: a chunk of %zu bytes", size);
		rc = encode(&now, first, elem_size, bytes->data, bytes->len,
			    d->has_adler ? &d->adler32 : NULL, made.data, size, err);
		if (rc)
			return rc;
		made.len = size;
		bytes_release(bytes);
		*bytes = made;
		made = (struct bytes){0};
		d->has_adler = false;
	}
	if (deflated && !d->has_adler) {
		d->adler32 = zstream_adler32(bytes->data, bytes->len);
		d->has_adler = true;
	}
	if (p->n > 0)
		d->shuffled = 0;
	return 0;
}

void codec_stored_read(const struct chunk_data *d, uint64_t at, uint8_t *out, size_t n)
{
	zstream_stored_read(d->elems.fixed.data, d->elems.fixed.len, d->adler32, at, out, n);
}
