/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents for the tests of the schema layer: a group, dataset or type around the member under
 * test, parsed by the public ops. The domain of the tests has three objects besides its root.
 */
#ifndef SCHEMA_TEST_H
#define SCHEMA_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <schema/schema.h>

#include "schema/hsds/hsds2.h"
#include "schema/hsds/parse_object.h"

#define ROOT_ID	   "g-00112233-44556677-8899-aabbcc-ddeeff"
#define GROUP_ID   "g-00112233-44556677-0001-000000-000000"
#define DATASET_ID "d-00112233-44556677-0002-000000-000000"
#define TYPE_ID	   "t-00112233-44556677-0003-000000-000000"
#define OTHER_ID   "d-00112233-44556677-0004-000000-000000" /* not in the domain */

struct parsed {
	struct arena *arena;
	struct object o;
	struct err err;
	int rc;
	unsigned int skips;
	char what[256]; /* the last skip, "what: why" */
};

static inline struct schema_id test_id(const char *text)
{
	struct schema_id id = {0};
	assert_true(schema_id_parse(text, strlen(text), &id));
	return id;
}

static inline uint32_t test_number(void *ctx, const struct schema_id *id)
{
	static const char *const known[] = {ROOT_ID, GROUP_ID, DATASET_ID, TYPE_ID};
	for (uint32_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct schema_id k = test_id(known[i]);
		if (schema_id_equal(&k, id))
			return i;
	}
	return OBJECT_NONE;
}

static inline void test_skip(void *ctx, const char *what, const struct err *why)
{
	struct parsed *p = ctx;
	p->skips++;
	snprintf(p->what, sizeof(p->what), "%.100s: %.150s", what, why->msg);
}

/* An object's document of n bytes, in a block of exactly that size. */
static inline struct parsed parse_bytes(const char *id_text, const void *text, size_t n)
{
	struct parsed p = {.err = ERR_INIT};
	const struct schema_numbers numbers = {.number = test_number};
	struct schema_id id = test_id(id_text);
	struct schema_id root = test_id(ROOT_ID);
	char *exact = malloc(n ? n : 1);
	assert_non_null(exact);
	memcpy(exact, text, n);
	p.arena = arena_new(64 << 20);
	assert_non_null(p.arena);
	/* skip_ctx outlives the call only here. */
	p.rc = schema_object_parse(p.arena, p.arena, &id, &root, exact, n, &numbers, NULL,
				   test_skip, &p, &p.o, &p.err);
	free(exact);
	return p;
}

static inline struct parsed __attribute__((format(printf, 2, 3)))
parse_printed(const char *id, const char *fmt, ...)
{
	char text[16384];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	assert_true(n >= 0 && (size_t)n < sizeof(text));
	return parse_bytes(id, text, (size_t)n);
}

static inline void parsed_release(struct parsed *p)
{
	object_release(&p->o);
	arena_free(p->arena);
}

#define HEAD(id) "\"id\":\"" id "\",\"root\":\"" ROOT_ID "\",\"created\":1.5,\"lastModified\":2.25"

static inline struct parsed parse_group(const char *members)
{
	return parse_printed(GROUP_ID, "{" HEAD(GROUP_ID) ",%s}", members);
}

static inline struct parsed parse_dataset(const char *members)
{
	return parse_printed(DATASET_ID, "{" HEAD(DATASET_ID) ",\"attributes\":{},%s}", members);
}

static inline struct parsed parse_type(const char *type)
{
	return parse_printed(TYPE_ID, "{" HEAD(TYPE_ID) ",\"attributes\":{},\"type\":%s}", type);
}

/* A group with one attribute "a". members: shape, value and so on. */
static inline struct parsed parse_attr(const char *type, const char *members)
{
	return parse_printed(GROUP_ID,
			     "{" HEAD(GROUP_ID) ",\"attributes\":{\"a\":{\"type\":%s,%s}}}", type,
			     members);
}

static inline void hex_of(const void *bytes, size_t n, char *out, size_t cap)
{
	const uint8_t *b = bytes;
	assert_true(2 * n < cap);
	out[0] = '\0';
	for (size_t i = 0; i < n; i++)
		snprintf(out + 2 * i, 3, "%02x", b[i]);
}

static inline void assert_hex(const void *bytes, size_t n, const char *hex)
{
	char got[1024];
	hex_of(bytes, n, got, sizeof(got));
	assert_string_equal(got, hex);
}

static inline void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, text);
}

#endif
