/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks for every encoder and decoder of a message. A body that libhdf5 wrote is decoded to the
 * expected values and encoded again. Each truncation of it is an error. A body with a defect fails
 * with the expected code. A test provides the functions, the tables and the comparison.
 *
 * Bodies are heap blocks of exactly their size, so that address sanitizer detects an overrun of one
 * byte. The struct for the result is filled with a pattern, so that a member that is not set is
 * detected.
 */
#ifndef TESTS_H5_MESSAGE_CASES_H
#define TESTS_H5_MESSAGE_CASES_H

#include <errno.h>
#include <stdbool.h>

#include <base/cursor.h>
#include <base/mem.h>
#include <h5/file.h>

#include "hex.h"

/* The sizes of addresses and lengths that encoders write. */
static const struct h5_file plain __attribute__((unused)) = {.addr_size = 8, .len_size = 8};

enum { MESSAGE_ARENA_LIMIT = 64 << 20, MESSAGE_PATTERN = 0xa5 };

/* Decoder and encoder of one message with a common signature. */
struct message_codec {
	size_t size; /* of the decoded struct */
	int (*decode)(struct cursor *c, struct arena *a, void *out, struct err *err);
	void (*encode)(struct emit *e, const void *what); /* NULL: it is never written */
	bool (*is_empty)(const void *out); /* checks the struct after a failure; may be NULL */
	/* Number of bytes at the end of a body that may be missing. NULL: none. */
	size_t (*open_end)(const void *decoded);
};

struct malformed_message {
	const char *name;
	const char *hex;
	int rc;
};

/* Decodes n bytes, with err and without; both results must be equal. out: receives the decoded
 * struct, which may borrow from the bytes; may be NULL. */
static inline int decode_message(const struct message_codec *m, const char *name,
				 const uint8_t *bytes, size_t n, struct arena *a, void *out)
{
	struct err err = ERR_INIT;
	struct cursor c = cursor_of(bytes, n), again = c;
	void *scratch = malloc(m->size);
	assert_non_null(scratch);
	memset(scratch, MESSAGE_PATTERN, m->size);
	int rc = m->decode(&c, a, scratch, &err);
	if (err.code != rc || !rc != !err.msg[0])
		fail_msg("%s: returns %d, says %d (%s)", name, rc, err.code, err.msg);
	if (rc && m->is_empty && !m->is_empty(scratch))
		fail_msg("%s: fails with %d and a result", name, rc);
	if (out)
		memcpy(out, scratch, m->size);
	memset(scratch, MESSAGE_PATTERN, m->size);
	if (m->decode(&again, a, scratch, NULL) != rc)
		fail_msg("%s: does not return %d without an err", name, rc);
	free(scratch);
	return rc;
}

static inline void assert_fails(const struct message_codec *m, const char *name,
				const uint8_t *bytes, size_t n, int rc)
{
	struct arena *a = arena_new(MESSAGE_ARENA_LIMIT);
	assert_non_null(a);
	int got = decode_message(m, name, bytes, n, a, NULL);
	if (got != rc)
		fail_msg("%s: %zu bytes give %d, expected %d", name, n, got, rc);
	arena_free(a);
}

/* Decoding any truncation of the n bytes fails. */
static inline void assert_fails_truncated(const struct message_codec *m, const char *name,
					  const uint8_t *bytes, size_t n)
{
	for (size_t len = 0; len < n; len++) {
		uint8_t *part = malloc(len ? len : 1);
		assert_non_null(part);
		memcpy(part, bytes, len);
		assert_fails(m, name, part, len, -EIO);
		free(part);
	}
}

/* Decodes hex, compares the result with `expected`, and encodes it, which must give `encoded`, if
 * there is an encoder. Then checks all truncations of hex. */
static inline void assert_message(const struct message_codec *m, const char *name, const char *hex,
				  const char *encoded,
				  void (*compare)(const char *name, const void *got,
						  const void *expected),
				  const void *expected)
{
	size_t n;
	uint8_t *bytes = hex_bytes(hex, &n);
	struct arena *a = arena_new(MESSAGE_ARENA_LIMIT);
	void *got = malloc(m->size);
	assert_non_null(a);
	assert_non_null(got);
	int rc = decode_message(m, name, bytes, n, a, got);
	if (rc)
		fail_msg("%s: %d", name, rc);
	compare(name, got, expected);
	if (m->encode)
		assert_encodes(name, m->encode, got, encoded);
	assert_fails_truncated(m, name, bytes, n - (m->open_end ? m->open_end(got) : 0));
	free(got);
	arena_free(a);
	free(bytes);
}

static inline void assert_malformed(const struct message_codec *m,
				    const struct malformed_message *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t n;
		uint8_t *bytes = hex_bytes(rows[i].hex, &n);
		assert_fails(m, rows[i].name, bytes, n, rows[i].rc);
		free(bytes);
	}
}

#endif
