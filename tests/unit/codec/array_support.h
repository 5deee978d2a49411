/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for tests of the chains of arrays. Include it after cmocka.h. */
#ifndef CODEC_ARRAY_SUPPORT_H
#define CODEC_ARRAY_SUPPORT_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <codec/chunk.h>

#include "decode_elems.h"

static struct arena *array_arena;

static inline int array_support_setup(void)
{
	array_arena = arena_new(16 << 20);
	return array_arena ? 0 : -1;
}

static inline void array_support_teardown(void)
{
	arena_free(array_arena);
}

/* A type of elements that have so many bytes. */
static inline const struct dtype *array_type(uint32_t size)
{
	const struct dtype *t = dtype_opaque(array_arena, size, "", NULL);
	assert_non_null(t);
	return t;
}

/* Decodes a copy of exactly these bytes, so that a sanitizer sees a read beyond them. */
static inline int decode_array(const struct codec_chain *chain, const struct bytes *stored,
			       struct elems *out, struct err *err)
{
	const struct codec_chunk c = {.chain = chain};
	struct bytes in = {0};
	if (stored->len > 0) {
		in = (struct bytes){malloc(stored->len), stored->len, stored->len};
		assert_non_null(in.data);
		memcpy(in.data, stored->data, stored->len);
	}
	const int rc = decode_elems(&c, &in, out, err);
	bytes_release(&in);
	if (rc == 0)
		assert_int_equal(out->fixed.len, chain->nelems * chain->type->size);
	else
		assert_null(out->fixed.data);
	assert_null(out->heap.data);
	return rc;
}

static inline void expect_chunk(const char *name, const struct codec_chain *chain,
				const struct bytes *stored, const void *want, size_t n)
{
	struct elems out;
	struct err err = ERR_INIT;
	if (decode_array(chain, stored, &out, &err))
		fail_msg("%s: %s", name, err.msg);
	if (out.fixed.len != n || (n > 0 && memcmp(out.fixed.data, want, n) != 0))
		fail_msg("%s: other bytes (%zu of %zu)", name, out.fixed.len, n);
	elems_release(&out);
}

static inline void expect_refused(const char *name, const struct codec_chain *chain,
				  const struct bytes *stored, int code, const char *word)
{
	struct elems out;
	struct err err = ERR_INIT;
	const int rc = decode_array(chain, stored, &out, &err);
	if (rc != code || !strstr(err.msg, word))
		fail_msg("%s: %d \"%s\" instead of %d \"%s\"", name, rc, err.msg, code, word);
}

/* The bytes decode to the planned size, or are refused. */
static inline void expect_whole_or_error(const struct codec_chain *chain,
					 const struct bytes *stored)
{
	struct elems out;
	struct err err = ERR_INIT;
	if (decode_array(chain, stored, &out, &err))
		assert_true(err.msg[0] != '\0');
	elems_release(&out);
}

#endif
