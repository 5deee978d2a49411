/* SPDX-License-Identifier: Apache-2.0 */
/* The forms that only the lenient reader accepts, and objects that are kept apart by a path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <json/numbers.h>
#include <json/reader.h>

static json_t *load(const char *text)
{
	json_t *doc = NULL;
	struct err err = ERR_INIT;
	if (json_text_load_lenient(text, strlen(text), &doc, &err))
		fail_msg("%s: %s", text, err.msg);
	return doc;
}

static void expect_text(const json_t *value, const char *want, bool literal)
{
	auto_bytes struct bytes scratch = {0};
	struct json_string text;
	assert_true(json_is_string(value));
	assert_int_equal(json_string_decode(json_string_value(value), json_string_length(value),
					    &scratch, &text),
			 0);
	assert_int_equal(text.n, strlen(want));
	assert_memory_equal(text.s, want, text.n);
	assert_int_equal(text.literal, literal);
}

static void expect_strict_refuses(const char *text)
{
	json_t *doc;
	assert_int_equal(json_text_load(text, strlen(text), &doc, NULL), -EIO);
	assert_null(doc);
}

static void literals(void **state)
{
	static const struct {
		const char *text;
		bool strict; /* the strict reader accepts it, too */
		double real; /* NaN: any NaN */
	} cases[] = {
		{"NaN", true, NAN},
		{"Infinity", true, INFINITY},
		{"-Infinity", true, -INFINITY},
		{"nan", false, NAN},
		{"-nan", false, NAN},
		{"-NaN", false, NAN},
		{"inf", false, INFINITY},
		{"-inf", false, -INFINITY},
		{"1180591620717411303424", true, 0x1p70},
		{"-1180591620717411303424", true, -0x1p70},
		{"18446744073709551615", true, 0x1p64},
		{"1e+300", true, 1e300},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[80];
		struct json_number number;
		snprintf(text, sizeof(text), "{\"a\": [%s, %s ]}", cases[i].text, cases[i].text);
		json_t *doc = load(text);
		expect_text(json_array_get(json_object_get(doc, "a"), 0), cases[i].text, true);
		expect_text(json_array_get(json_object_get(doc, "a"), 1), cases[i].text, true);
		json_decref(doc);
		if (!cases[i].strict)
			expect_strict_refuses(text);
		assert_true(json_number_text(cases[i].text, strlen(cases[i].text), &number));
		assert_true(isnan(cases[i].real) ? isnan(number.real)
						 : number.real == cases[i].real);
	}
}

/* Jansson reads -0 as an integer without a sign. */
static void negative_zero(void **state)
{
	static const char text[] = "{\"a\":-0,\"b\":-0.0,\"c\":0,\"d\":-01e0,\"e\":[-0]}";
	static const char valid[] = "{\"a\":-0,\"b\":-0.0,\"c\":0,\"e\":[-0],\"f\":\"-0\"}";
	struct json_number number;
	json_t *doc;
	assert_int_equal(json_text_load_lenient(text, strlen(text), &doc, NULL), -EIO);
	doc = load(valid);
	expect_text(json_object_get(doc, "a"), "-0", true);
	expect_text(json_array_get(json_object_get(doc, "e"), 0), "-0", true);
	expect_text(json_object_get(doc, "f"), "-0", false);
	assert_true(json_is_real(json_object_get(doc, "b")));
	assert_true(signbit(json_real_value(json_object_get(doc, "b"))));
	assert_true(json_is_integer(json_object_get(doc, "c")));
	json_decref(doc);
	assert_true(json_number_text("-0", 2, &number));
	assert_true(number.bits == 0 && number.real == 0 && signbit(number.real));
	assert_int_equal(json_text_load(valid, strlen(valid), &doc, NULL), 0);
	assert_true(json_is_integer(json_object_get(doc, "a")));
	json_decref(doc);
}

static void escapes(void **state)
{
	static const struct {
		const char *json, *want;
		bool strict;
	} cases[] = {
		{"it\\'s", "it's", false}, {"\\'\\'", "''", false},
		{"\\\\'", "\\'", true},	   {"\\\\\\'", "\\'", false},
		{"a\\/b", "a/b", true},	   {"\\'\\u0010\\ud800\\'", "'\x10\xed\xa0\x80'", false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[80];
		snprintf(text, sizeof(text), "{\"a\":\"%s\",\"%s\":1}", cases[i].json,
			 cases[i].json);
		json_t *doc = load(text);
		const json_t *value = json_object_get(doc, "a");
		expect_text(value, cases[i].want, false);
		assert_int_equal(json_integer_value(json_object_get(doc, json_string_value(value))),
				 1);
		json_decref(doc);
		if (!cases[i].strict)
			expect_strict_refuses(text);
	}
}

static void byte_order_mark(void **state)
{
#define BOM "\xef\xbb\xbf"
	json_t *doc = load(BOM "{\"a\":1}");
	assert_int_equal(json_integer_value(json_object_get(doc, "a")), 1);
	json_decref(doc);
	doc = load(BOM " {\"a\":\"" BOM "\"}\r\n");
	expect_text(json_object_get(doc, "a"), BOM, false);
	json_decref(doc);
	expect_strict_refuses(BOM "{\"a\":1}");
	static const char *const bad[] = {BOM, BOM BOM "{}", "\xef\xbb{}", "{}" BOM, " " BOM "{}"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(json_text_load_lenient(bad[i], strlen(bad[i]), &doc, NULL), -EIO);
#undef BOM
}

/* What is malformed for the strict reader and is none of the forms stays malformed. */
static void refused(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"nan",
		"{nan:1}",
		"{-inf:1}",
		"{'a':1}",
		"{\"a\":Nan}",
		"{\"a\":NAN}",
		"{\"a\":+nan}",
		"{\"a\":+inf}",
		"{\"a\":--inf}",
		"{\"a\":infinity}",
		"{\"a\":nan0}",
		"{\"a\":-0x1}",
		"{\"a\":-00}",
		"{\"a\":+0}",
		"{\"a\":\"\\q\"}",
		"{\"a\":\"\\'}",
		"{\"a\":'b'}",
		"{\"a\":\\'b\\'}",
		"{\"a\":1,}",
		"{\"a\":1}}",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		json_t *doc;
		struct err err = ERR_INIT;
		const int rc = json_text_load_lenient(bad[i], strlen(bad[i]), &doc, &err);
		if (rc != -EIO || doc || !err.msg[0])
			fail_msg("%s: %d", bad[i], rc);
	}
}

/* ---- an object that is kept apart ---- */

/* Loads a document and lists the members of the object as "name=value ", where a value is an
 * integer or text. "-": no object is kept apart. */
static int list_apart(const char *text, const struct json_text_how *how, char *list, size_t room,
		      json_t **rest)
{
	struct json_text json;
	struct json_text_members m;
	auto_bytes struct bytes scratch = {0};
	int rc = json_text_load_as(text, strlen(text), how, &json, NULL);
	snprintf(list, room, "%s", rc == 0 && !json.apart ? "-" : "");
	*rest = json.doc;
	json_text_members_begin(&m, &json);
	while (json.apart && (rc = json_text_next(&m, NULL)) > 0) {
		const size_t at = strlen(list);
		struct json_string s = {.s = "", .n = 0};
		if (json_is_string(m.value))
			assert_int_equal(json_string_decode(json_string_value(m.value),
							    json_string_length(m.value), &scratch,
							    &s),
					 0);
		if (json_is_string(m.value))
			snprintf(list + at, room - at, "%s=%s%.*s ", json_string_value(m.name),
				 s.literal ? "#" : "", (int)s.n, s.s);
		else
			snprintf(list + at, room - at, "%s=%d ", json_string_value(m.name),
				 (int)json_integer_value(m.value));
	}
	json_text_members_end(&m);
	bytes_release(&json.rewritten);
	return rc;
}

static void paths(void **state)
{
	static const struct {
		const char *text, *path[2];
		const char *list; /* NULL: refused */
		bool strict;
	} cases[] = {
		{"{\"c\":{\"m\":{\"x\":1,\"y\":2}}}", {"c", "m"}, "x=1 y=2 ", true},
		{"{\"a\":0,\"c\":{\"k\":1,\"m\":{\"x\":1},\"l\":2},\"m\":3}",
		 {"c", "m"},
		 "x=1 ",
		 true},
		{"{\"c\":{\"m\":{}}}", {"c", "m"}, "", true},
		{"{\"c\":{\"m\":{\"x\":1}}}", {"c"}, "m=0 ", true},
		{"{\"c\":{\"m\":{\"x\":1}}}", {"m"}, "-", true},
		{"{\"c\":{\"m\":{\"x\":1}}}", {NULL}, "-", true},
		{"{\"m\":{\"x\":1},\"c\":{}}", {"c", "m"}, "-", true},
		{"{\"m\":{\"x\":1}}", {"c", "m"}, "-", true},
		{"{\"c\":null,\"m\":{\"x\":1}}", {"c", "m"}, "-", true},
		{"{\"c\":[{\"m\":{\"x\":1}}]}", {"c", "m"}, "-", true},
		{"{\"c\":{\"m\":[{\"x\":1}]}}", {"c", "m"}, "-", true},
		{"{\"c\":{\"d\":{\"m\":{\"x\":1}}}}", {"c", "m"}, "-", true},
		{"{\"d\":{\"c\":{\"m\":{\"x\":1}}}}", {"c", "m"}, "-", true},
		{"{\"c\":{\"m\":{\"c\":{\"m\":{}}}}}", {"c", "m"}, "c=0 ", true},
		{"{\"c\":\"c\",\"d\":{\"m\":{\"x\":1}}}", {"c", "m"}, "-", true},
		{"{\"\\u0063\" : { \"\\u006d\" : {\"x\":1} } }", {"c", "m"}, "x=1 ", true},
		/* The last one counts. */
		{"{\"c\":{\"m\":{\"x\":1},\"m\":{\"x\":2}}}", {"c", "m"}, "x=2 ", true},
		{"{\"c\":{\"m\":{\"x\":1}},\"c\":{\"m\":{\"x\":2}}}", {"c", "m"}, "x=2 ", true},
		{"{\"c\":{\"m\":{\"x\":1}},\"c\":{}}", {"c", "m"}, "-", true},
		{"{\"c\":{\"m\":{\"x\":1}},\"c\":null}", {"c", "m"}, "-", true},
		{"{\"c\":{\"m\":{\"x\":1},\"m\":null}}", {"c", "m"}, "-", true},
		{"{\"c\":{\"m\":{x}},\"c\":{}}", {"c", "m"}, NULL, true},
		{"{\"c\":{\"m\":{x},\"m\":1}}", {"c", "m"}, NULL, true},
		{"{\"c\":{x},\"c\":1}", {"c"}, NULL, true},
		/* Malformed. */
		{"{\"c\":{\"m\":{\"x\":1}", {"c", "m"}, NULL, true},
		{"{\"c\":{\"m\":{\"x\":1}}", {"c", "m"}, NULL, true},
		{"{\"c\":{\"m\":{\"x\":1]}}", {"c", "m"}, NULL, true},
		{"{\"c\":{\"m\":{\"x\" 1}}}", {"c", "m"}, NULL, true},
		{"{\"c\":{\"m\"{\"x\":1}}}", {"c", "m"}, NULL, true},
		/* Lenient forms, outside and inside of the object. */
		{"\xef\xbb\xbf{\"c\":{\"m\":{\"x\":1}}}", {"c", "m"}, "x=1 ", false},
		{"{\"a\":nan,\"c\":{\"b\":-0,\"m\":{\"x\":-0,\"y\":-nan,\"z\":\"\\'\"},\"d\":inf}}",
		 {"c", "m"},
		 "x=#-0 y=#-nan z=' ",
		 false},
		{"{\"m\":{\"\\'\":inf,\"h\":1180591620717411303424}}",
		 {"m"},
		 "'=#inf h=#1180591620717411303424 ",
		 false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int lenient = 0; lenient < 2; lenient++) {
			const struct json_text_how how = {
				.lenient = lenient, .path = {cases[i].path[0], cases[i].path[1]}};
			struct json_text_area area;
			char list[200];
			json_t *rest;
			json_text_area_begin(&area);
			const int rc = list_apart(cases[i].text, &how, list, sizeof(list), &rest);
			const bool accepted = cases[i].list && (lenient || cases[i].strict);
			if (rc != (accepted ? 0 : -EIO))
				fail_msg("%s: %d", cases[i].text, rc);
			if (accepted)
				assert_string_equal(list, cases[i].list);
			json_text_area_end(&area);
		}
	}
}

/* What is not kept apart stays in the document. */
static void the_rest(void **state)
{
	static const char text[] = "{\"a\":-0,\"c\":{\"kind\":\"inline\",\"m\":{\"x\":1},\"z\":["
				   "nan]},\"m\":{\"x\":2}}";
	const struct json_text_how how = {.lenient = true, .path = {"c", "m"}};
	struct json_text_area area;
	char list[200];
	json_t *doc;
	json_text_area_begin(&area);
	assert_int_equal(list_apart(text, &how, list, sizeof(list), &doc), 0);
	assert_int_equal(json_object_size(doc), 3);
	const json_t *c = json_object_get(doc, "c");
	assert_int_equal(json_object_size(c), 2);
	assert_string_equal(json_text_word(c, "kind"), "inline");
	expect_text(json_array_get(json_object_get(c, "z"), 0), "nan", true);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(doc, "m"), "x")), 2);
	json_text_area_end(&area);
}

/* However many members the inner object has, one of them is in memory at a time. */
static void many_members(void **state)
{
	enum { N = 50000 };
	const struct json_text_how how = {.path = {"consolidated_metadata", "metadata"}};
	auto_bytes struct bytes text = {0};
	struct json_text_area area;
	struct json_text_members m;
	struct json_text json;
	int n = 0, rc;
	static const char head[] = "{\"consolidated_metadata\":{\"kind\":\"inline\",\"metadata\":{";
	assert_int_equal(bytes_append(&text, head, sizeof(head) - 1), 0);
	for (int i = 0; i < N; i++) {
		char member[128];
		snprintf(member, sizeof(member),
			 "%s\"%d\":{\"zarr_format\":3,\"shape\":[%d],\"fill_value\":-0}",
			 i ? "," : "", i, i);
		assert_int_equal(bytes_append(&text, member, strlen(member)), 0);
	}
	assert_int_equal(bytes_append(&text, "}}}", 3), 0);
	json_text_area_begin(&area);
	assert_int_equal(json_text_load_as(text.data, text.len, &how, &json, NULL), 0);
	json_text_members_begin(&m, &json);
	while ((rc = json_text_next(&m, NULL)) > 0)
		assert_int_equal(
			json_integer_value(json_array_get(json_object_get(m.value, "shape"), 0)),
			n++);
	assert_int_equal(rc, 0);
	assert_int_equal(n, N);
	assert_int_equal(area.n, 1);
	json_text_members_end(&m);
	json_text_area_end(&area);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(literals), cmocka_unit_test(negative_zero),
		cmocka_unit_test(escapes),  cmocka_unit_test(byte_order_mark),
		cmocka_unit_test(refused),  cmocka_unit_test(paths),
		cmocka_unit_test(the_rest), cmocka_unit_test(many_members),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
