/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents of objects that are edited: an edit fails, or its result is parsed as the changed
 * object, and no other bytes have changed. The input is the document, a NUL, and the steps of
 * support/edited.h.
 */
#include <errno.h>
#include <string.h>

#include "edited.h"
#include "require.h"

enum { STEPS_MAX = 24 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* The id after the first `"member"` in the document; if there is none, the fallback. */
static struct schema_id id_of(const char *text, size_t n, const char *member, const char *fallback)
{
	struct schema_id id;
	const char *at = memmem(text, n, member, strlen(member));
	if (at) {
		at += strlen(member);
		while (at < text + n && strchr(": \"", *at))
			at++;
		if (text + n - at >= SCHEMA_ID_LEN && schema_id_parse(at, SCHEMA_ID_LEN, &id))
			return id;
	}
	require(schema_id_parse(fallback, strlen(fallback), &id));
	return id;
}

static void edit(struct edited *e, const char *text, size_t n, const uint8_t *steps, size_t nsteps)
{
	auto_bytes struct bytes out = {0};
	struct err err = ERR_INIT;
	for (size_t i = 0; i < nsteps; i++)
		edited_step(e, steps + 3 * i);
	const int rc = edited_make(e, text, n, &out, &err);
	require(rc == err.code && (rc == 0) == (err.msg[0] == '\0'));
	require(rc == 0 || ((rc == -EIO || rc == -EOPNOTSUPP) && out.len == 0));
	const char *why = rc ? NULL : edited_differs(e, &out);
	if (!rc && !why)
		why = edited_bytes_differ(e, text, n, &out);
	if (why)
		fprintf(stderr, "%s:\n%.*s\n%.*s\n", why, (int)n, text, (int)out.len,
			(char *)out.data);
	require(!why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, '\0', size) : NULL;
	const size_t n = end ? (size_t)(end - data) : size;
	const size_t steps = end ? (size - n - 1) / 3 : 0;
	char *text = malloc(n ? n : 1); /* of exactly its size */
	require(text);
	memcpy(text, data, n);
	const struct schema_id id =
		id_of(text, n, "\"id\"", "g-00000000-00000000-0000-000000-000000");
	const struct schema_id root =
		id_of(text, n, "\"root\"", "g-00000000-00000000-8888-888888-888888");
	struct edited e = {0};
	if (root.kind == OBJECT_GROUP && n < 64 << 10 &&
	    !edited_init(&e, &id, &root, text, n, STEPS_MAX, NULL))
		edit(&e, text, n, end ? end + 1 : NULL, steps < STEPS_MAX ? steps : STEPS_MAX);
	edited_release(&e);
	free(text);
	return 0;
}

/* Where the text after a comma begins; n: there is none behind `at`. */
static size_t after_comma(const uint8_t *data, size_t n, size_t at)
{
	const uint8_t *comma = memchr(data + at, ',', n - at);
	return comma ? (size_t)(comma - data) + 1 : n;
}

/* Copies a piece between two commas behind another comma: a member that occurs twice, or elsewhere.
 */
static size_t copy_piece(uint8_t *data, size_t n, size_t size, size_t max_size, const uint32_t *r)
{
	uint8_t piece[1024];
	const size_t from = after_comma(data, n, r[0] % n), to = after_comma(data, n, r[1] % n);
	const size_t end = after_comma(data, n, from), len = end - from;
	if (end == n || to == n || len > sizeof(piece) || size + len > max_size)
		return size;
	memcpy(piece, data + from, len);
	memmove(data + to + len, data + to, size - to);
	memcpy(data + to, piece, len);
	return size + len;
}

/* Changes a byte of the text, or a step, or copies a piece of the text. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	static const uint8_t bytes[] = "\"{}[],:\\u0 1n\x80";
	uint64_t state = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	uint32_t r[3];
	for (int i = 0; i < 3; i++) {
		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		r[i] = (uint32_t)(state >> 33);
	}
	const uint8_t *end = size ? memchr(data, '\0', size) : NULL;
	const size_t n = end ? (size_t)(end - data) : size;
	if (n == 0)
		return size;
	if (r[0] % 8 == 0)
		data[r[1] % n] = bytes[r[2] % (sizeof(bytes) - 1)];
	else if (r[0] % 8 < 3)
		return copy_piece(data, n, size, max_size, r + 1);
	else if (size > n + 1)
		data[n + 1 + r[1] % (size - n - 1)] = (uint8_t)r[2];
	return size;
}
