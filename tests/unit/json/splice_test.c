/* SPDX-License-Identifier: Apache-2.0 */
/* Places of members in a JSON text, and replacements. */
#include "schema_test.h"

#include <json/splice.h>

static void finds_members(void **state)
{
	static const char text[] =
		" { \"a\" : 1 , \"b\\\"\\u0063\": {\"x\": [1, \"},\"]} ,\"\":NaN}";
	struct arena *a = arena_new(1 << 20);
	struct splice_object o;
	assert_int_equal(splice_scan(text, sizeof(text) - 1, 0, a, &o, NULL), 0);
	assert_int_equal(o.n, 3);
	assert_int_equal(o.inside, 2);
	static const struct {
		const char *name, *member;
	} rows[] = {{"a", "\"a\" : 1"},
		    {"b\"c", "\"b\\\"\\u0063\": {\"x\": [1, \"},\"]}"},
		    {"", "\"\":NaN"}};
	for (size_t i = 0; i < 3; i++) {
		const struct splice_member *m = &o.members[i];
		assert_string_equal(m->name, rows[i].name);
		assert_int_equal(m->end - m->start, strlen(rows[i].member));
		assert_memory_equal(text + m->start, rows[i].member, m->end - m->start);
	}
	assert_memory_equal(text + o.members[1].value, "{\"x\"", 4);
	assert_int_equal(splice_end(&o), sizeof(text) - 2);
	assert_int_equal(splice_scan(text, sizeof(text) - 1, o.members[1].value, a, &o, NULL), 0);
	assert_string_equal(o.members[0].name, "x");
	arena_free(a);
}

static void the_last_one_counts(void **state)
{
	static const char text[] = "{\"a\":1,\"\\u0061\":2,\"b\":3,\"a\\u0000\":4}";
	struct arena *a = arena_new(1 << 20);
	struct splice_object o;
	size_t n;
	assert_int_equal(splice_scan(text, sizeof(text) - 1, 0, a, &o, NULL), 0);
	assert_int_equal(text[splice_find(&o, "a", &n)->value], '2');
	assert_int_equal(n, 2);
	assert_null(splice_find(&o, "c", &n));
	assert_int_equal(n, 0);
	assert_int_equal(splice_scan("{ }", 3, 0, a, &o, NULL), 0);
	assert_int_equal(o.n, 0);
	assert_int_equal(splice_end(&o), 1);
	arena_free(a);
}

/* Each of them in a block of exactly its size. */
static void stops_at_the_end(void **state)
{
	static const char *const rows[] = {
		"",	   " ",		"[1]",	     "{",	    "{\"",	 "{\"a",
		"{\"a\\",  "{\"a\"",	"{\"a\":",   "{\"a\":1",    "{\"a\":1,", "{\"a\":1,}",
		"{\"a\"}", "{\"a\":}",	"{\"a\":\"", "{\"a\":\"\\", "{\"a\":[",	 "{\"a\":[}",
		"{a:1}",   "{\"a\" 1}", "{\"a\":{",  "{\"a\":1]"};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct arena *a = arena_new(1 << 20);
		struct splice_object o;
		const size_t n = strlen(rows[i]);
		char *exact = malloc(n ? n : 1);
		memcpy(exact, rows[i], n);
		if (splice_scan(exact, n, 0, a, &o, NULL) != -EIO)
			fail_msg("%s", rows[i]);
		free(exact);
		arena_free(a);
	}
}

static void replaces_in_any_order(void **state)
{
	static const char text[] = "abcdef";
	auto_bytes struct bytes out = {0};
	struct splice s;
	splice_init(&s, text, 6);
	splice_begin(&s, false);
	write_uint(&s.w, 12);
	splice_commit(&s, 4, 5);
	splice_begin(&s, false);
	splice_commit(&s, 0, 1);
	splice_begin(&s, true);
	write_uint(&s.w, 3);
	splice_commit(&s, 2, 2);
	splice_begin(&s, false);
	write_uint(&s.w, 4);
	splice_commit(&s, 2, 2);
	assert_int_equal(splice_apply(&s, &out, NULL), 0);
	assert_int_equal(bytes_append(&out, "", 1), 0);
	assert_string_equal((char *)out.data, "b, 34cd12f");
	splice_begin(&s, false);
	splice_commit(&s, 3, 5);
	assert_int_equal(splice_apply(&s, &out, NULL), -EIO);
	splice_release(&s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_members),
		cmocka_unit_test(the_last_one_counts),
		cmocka_unit_test(stops_at_the_end),
		cmocka_unit_test(replaces_in_any_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
