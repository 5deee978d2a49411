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

#include "fletcher32.h"
#include "recorded.h"
#include "shuffle.h"
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

int codec_stored_encode(const struct pipeline *p, uint32_t elem_size, const uint8_t *plain,
			size_t n, uint8_t *out, size_t out_n, struct err *err)
{
	static const struct elems_coding none;
	return codec_stored_encode_coded(p, elem_size, plain, n, &none, out, out_n, err);
}

int codec_stored_encode_coded(const struct pipeline *p, uint32_t elem_size, const uint8_t *bytes,
			      size_t n, const struct elems_coding *coding, uint8_t *out,
			      size_t out_n, struct err *err)
{
	if (codec_stored_size(p, n) != out_n)
		return err_set(err, -EINVAL, "%zu bytes are not encoded to %zu bytes", n, out_n);
	uint8_t *end = out + out_n;
	const uint8_t *src = bytes;
	for (uint32_t i = coding->shuffled ? 1 : 0; i < p->n; i++) {
		const struct filter *f = &p->f[i];
		int rc = 0;
		if (f->id == FILTER_SHUFFLE)
			rc = apply_shuffle(end, src, n, elem_size, err);
		else if (f->id == FILTER_DEFLATE)
			zstream_store(end, src, n,
				      src == bytes && coding->has_adler ? &coding->adler32 : NULL);
		else if (f->id == FILTER_FLETCHER32)
			apply_fletcher32(end, src, n);
		else
			rc = err_set(err, -EOPNOTSUPP, "filter %u cannot be encoded", f->id);
		if (rc)
			return rc;
		n = (size_t)filtered_size(f, n);
		src = end - n;
	}
	if (src == bytes && n > 0)
		memcpy(out, bytes, n);
	return 0;
}
