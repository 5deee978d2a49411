/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for tests of the filters of an HDF5 file. Include it after cmocka.h. */
#ifndef CODEC_FILTER_SUPPORT_H
#define CODEC_FILTER_SUPPORT_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <codec/chunk.h>

/* A chunk that another program has encoded with one filter. Bytes are hexadecimal digits. */
struct chunk_case {
	const char *name;
	uint32_t id;
	uint32_t elem_size;
	uint32_t nparams;
	uint32_t params[40];
	const char *stored;
	const char *plain;
};

static inline struct bytes from_hex(const char *text)
{
	struct bytes b = {0};
	for (; *text; text += 2) {
		const char digits[] = {text[0], text[1], 0};
		const uint8_t byte = (uint8_t)strtoul(digits, NULL, 16);
		assert_int_equal(bytes_append(&b, &byte, 1), 0);
	}
	return b;
}

static inline struct pipeline one_filter(uint32_t id, uint32_t nparams, const uint32_t *params)
{
	struct pipeline p = {.n = 1};
	p.f[0] = (struct filter){.id = id, .nparams = nparams, .params = params};
	return p;
}

/* A copy of exactly n bytes, so that a sanitizer sees a read beyond them. */
static inline uint8_t *exact(const void *bytes, size_t n)
{
	uint8_t *copy = test_malloc(n ? n : 1);
	if (n)
		memcpy(copy, bytes, n);
	return copy;
}

static inline void expect_bytes(const char *name, const struct pipeline *p, uint32_t elem_size,
				const struct bytes *stored, const void *plain, size_t n)
{
	struct bytes out = {0};
	struct err err = ERR_INIT;
	uint8_t *in = exact(stored->data, stored->len);
	if (codec_hdf5_decode(p, 0, elem_size, in, stored->len, n, &out, &err))
		fail_msg("%s: %s", name, err.msg);
	if (out.len != n || (n && memcmp(out.data, plain, n) != 0))
		fail_msg("%s: other bytes (%zu of %zu)", name, out.len, n);
	bytes_release(&out);
	/* One byte less is too few for a chunk of this size. */
	if (n > 0 && codec_hdf5_decode(p, 0, elem_size, in, stored->len, n - 1, &out, NULL) != -EIO)
		fail_msg("%s: more bytes than the limit", name);
	assert_null(out.data);
	test_free(in);
}

static inline void expect_failure(const char *name, const struct pipeline *p, uint32_t elem_size,
				  const void *stored, size_t stored_n, size_t max, int code,
				  const char *word)
{
	struct bytes out = {0};
	struct err err = ERR_INIT;
	uint8_t *in = exact(stored, stored_n);
	const int rc = codec_hdf5_decode(p, 0, elem_size, in, stored_n, max, &out, &err);
	if (rc != code || !strstr(err.msg, word))
		fail_msg("%s: %d \"%s\" instead of %d \"%s\"", name, rc, err.msg, code, word);
	assert_null(out.data);
	test_free(in);
}

/* Decodes a case, then every shorter input, and every input with a flipped bit. Inputs that lack
 * more than `spare` bytes fail, unless the filter has changed nothing. */
static inline void check_case(const struct chunk_case *c, size_t spare)
{
	const struct pipeline p = one_filter(c->id, c->nparams, c->params);
	struct bytes stored = from_hex(c->stored), plain = from_hex(c->plain);
	expect_bytes(c->name, &p, c->elem_size, &stored, plain.data, plain.len);
	for (size_t n = 0; n < stored.len; n++) {
		struct bytes out = {0};
		uint8_t *in = exact(stored.data, n);
		const int rc = codec_hdf5_decode(&p, 0, c->elem_size, in, n, plain.len, &out, NULL);
		if (rc != -EIO && n + spare < stored.len && strcmp(c->stored, c->plain) != 0)
			fail_msg("%s: %zu of %zu bytes are decoded", c->name, n, stored.len);
		bytes_release(&out);
		test_free(in);
	}
	for (size_t bit = 0; bit < 8 * stored.len; bit++) {
		struct bytes out = {0};
		uint8_t *in = exact(stored.data, stored.len);
		in[bit / 8] ^= (uint8_t)(1 << bit % 8);
		codec_hdf5_decode(&p, 0, c->elem_size, in, stored.len, plain.len, &out, NULL);
		assert_true(out.len <= plain.len);
		bytes_release(&out);
		test_free(in);
	}
	bytes_release(&stored);
	bytes_release(&plain);
}

#endif
