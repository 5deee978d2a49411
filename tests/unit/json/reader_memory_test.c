/* SPDX-License-Identifier: Apache-2.0 */
/* Documents whose memory is freed at once. The sanitizers find what is freed twice or never. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json/reader.h>
#include <json/reader_memory.h>

static json_t *load(const char *text)
{
	json_t *doc;
	assert_int_equal(json_text_load(text, strlen(text), &doc, NULL), 0);
	return doc;
}

static void a_document_ends_with_its_area(void **state)
{
	struct json_text_area area;
	(void)state;
	json_t *outside = load("{\"outside\": [1, \"two\"]}");
	for (int again = 0; again < 3; again++) {
		json_text_area_begin(&area);
		json_t *doc = load("{\"a\": {\"b\": [1, 2.5, \"text\", null, true]}}");
		assert_string_equal(json_string_value(json_array_get(
					    json_object_get(json_object_get(doc, "a"), "b"), 2)),
				    "text");
		json_decref(load("{\"dropped\": {}}"));
		json_text_area_end(&area);
	}
	/* A document that is older than an area may be dropped while it is active, and a value of
	 * the area may not outlive it. */
	json_text_area_begin(&area);
	assert_int_equal(json_array_size(json_object_get(outside, "outside")), 2);
	json_decref(outside);
	json_text_area_end(&area);
	json_decref(load("{\"after\": 1}"));
}

/* Many blocks, and a value that is longer than the next block. */
static void a_large_document(void **state)
{
	enum { N = 20000, LONG = 1 << 20 };
	struct json_text_area area;
	auto_bytes struct bytes text = {0};
	auto_free char *filler = malloc(LONG);
	char member[64];
	(void)state;
	memset(filler, 'x', LONG);
	assert_int_equal(bytes_append(&text, "{\"long\": \"", 10), 0);
	assert_int_equal(bytes_append(&text, filler, LONG), 0);
	assert_int_equal(bytes_append(&text, "\"", 1), 0);
	for (int i = 0; i < N; i++) {
		snprintf(member, sizeof(member), ", \"member %d\": {\"number\": %d}", i, i);
		assert_int_equal(bytes_append(&text, member, strlen(member)), 0);
	}
	assert_int_equal(bytes_append(&text, "}", 2), 0);
	json_text_area_begin(&area);
	json_t *doc = load((const char *)text.data);
	assert_int_equal(json_object_size(doc), N + 1);
	assert_int_equal(json_string_length(json_object_get(doc, "long")), LONG);
	for (int i = 0; i < N; i++) {
		snprintf(member, sizeof(member), "member %d", i);
		const json_t *value = json_object_get(json_object_get(doc, member), "number");
		assert_int_equal(json_integer_value(value), i);
	}
	assert_in_range(area.n, 5, JSON_TEXT_BLOCKS - 1);
	json_text_area_end(&area);
}

/* However many members it has, one of them is in memory at a time. */
static void members_one_by_one(void **state)
{
	enum { N = 20000 };
	struct json_text_area area;
	struct json_text_members m;
	struct json_text json;
	auto_bytes struct bytes text = {0};
	char member[64];
	int n = 0, rc;
	(void)state;
	assert_int_equal(bytes_append(&text, "{\"all\": {", 9), 0);
	for (int i = 0; i < N; i++) {
		snprintf(member, sizeof(member), "%s\"%d\": {\"number\": [%d]}", i ? ", " : "", i,
			 i);
		assert_int_equal(bytes_append(&text, member, strlen(member)), 0);
	}
	assert_int_equal(bytes_append(&text, "}}", 2), 0);
	json_text_area_begin(&area);
	assert_int_equal(json_text_load_apart(text.data, text.len, "all", &json, NULL), 0);
	assert_int_equal(json_object_size(json.doc), 0);
	json_text_members_begin(&m, &json);
	while ((rc = json_text_next(&m, NULL)) > 0) {
		const json_t *value = json_array_get(json_object_get(m.value, "number"), 0);
		assert_int_equal(atoi(json_string_value(m.name)), n);
		assert_int_equal(json_integer_value(value), n++);
	}
	json_text_members_end(&m);
	assert_int_equal(rc, 0);
	assert_int_equal(n, N);
	assert_int_equal(area.n, 1);
	json_text_area_end(&area);
}

/* A document that cannot be parsed leaves nothing behind. */
static void a_damaged_document(void **state)
{
	struct json_text_area area;
	json_t *doc;
	(void)state;
	json_text_area_begin(&area);
	assert_int_not_equal(json_text_load("{\"a\": [1, 2", 11, &doc, NULL), 0);
	assert_null(doc);
	json_text_area_end(&area);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_document_ends_with_its_area),
		cmocka_unit_test(a_large_document),
		cmocka_unit_test(members_one_by_one),
		cmocka_unit_test(a_damaged_document),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
