/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes as hexadecimal text in test tables. They are decoded into heap blocks of exactly their
 * size, so that address sanitizer detects an overrun of one byte.
 */
#ifndef SUPPORT_HEX_H
#define SUPPORT_HEX_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/emit.h>

static inline uint8_t *hex_bytes(const char *hex, size_t *n)
{
	*n = strlen(hex) / 2;
	uint8_t *bytes = malloc(*n ? *n : 1);
	assert_non_null(bytes);
	for (size_t i = 0; i < *n; i++) {
		unsigned int byte;
		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		bytes[i] = (uint8_t)byte;
	}
	return bytes;
}

/* Encodes into a counting emitter and into memory, and compares the bytes with hex. */
static inline void assert_encodes(const char *name, void (*encode)(struct emit *, const void *),
				  const void *what, const char *hex)
{
	size_t n;
	uint8_t *expected = hex_bytes(hex, &n);
	struct emit e = emit_count();
	encode(&e, what);
	if (e.bad || e.pos != n)
		fail_msg("%s: counts %zu bytes, expected %zu", name, e.pos, n);
	uint8_t *got = malloc(n ? n : 1);
	assert_non_null(got);
	e = emit_to(got, n);
	encode(&e, what);
	if (e.bad || e.pos != n)
		fail_msg("%s: writes %zu bytes, counted %zu", name, e.pos, n);
	for (size_t i = 0; i < n; i++)
		if (got[i] != expected[i])
			fail_msg("%s: byte %zu is %02x, expected %02x", name, i, got[i],
				 expected[i]);
	free(got);
	free(expected);
}

#endif
