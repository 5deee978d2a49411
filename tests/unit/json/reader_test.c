/* SPDX-License-Identifier: Apache-2.0 */
/* The lenient JSON parser, tested with documents of groups. */
#include "schema_test.h"

#include <json/reader.h>

static void link_names_survive(void **state)
{
	static const struct {
		const char *json, *hex;
		bool utf8;
	} rows[] = {
		{"plain", "706c61696e", true},
		{"lone\\udce9", "6c6f6e65edb3a9", false},
		{"\\uD83Dx", "eda0bd78", false},
		{"\\ud83d\\ud83d\\ude00", "eda0bdf09f9880", false},
		{"\\ud83d\\ude00", "f09f9880", true},
		{"\\ud83d\\u0041", "eda0bd41", false},
		{"\\u0010sdce9", "107364636539", true}, /* the escape itself, as text */
		{"\\u0010", "10", true},
		{"\\u0010nNaN", "106e4e614e", true},
		{"\\u00101", "1031", true},
		{"\\\\u0000", "5c7530303030", true},
		{"\\\"\\u00e9", "22c3a9", true},
		{"é", "c3a9", true},
		{"NaN", "4e614e", true},
		{"-Infinity, 18446744073709551615",
		 "2d496e66696e6974792c203138343436373434303733373039353531363135", true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[512];
		snprintf(text, sizeof(text),
			 "\"links\":{\"%s\":{\"class\":\"H5L_TYPE_HARD\",\"id\":\"" ROOT_ID "\"}}",
			 rows[i].json);
		struct parsed p = parse_group(text);
		assert_int_equal(p.rc, 0);
		assert_int_equal(p.o.group.nlinks, 1);
		const struct link *l = &p.o.group.links[0];
		assert_hex(l->name, strlen(l->name), rows[i].hex);
		assert_int_equal(l->utf8, rows[i].utf8);
		parsed_release(&p);
	}
}

static void last_member_wins(void **state)
{
	struct parsed p = parse_group("\"links\":{},\"links\":{\"a\":{\"class\":\"H5L_TYPE_SOFT\","
				      "\"h5path\":\"x\",\"h5path\":\"y\"}}");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.group.nlinks, 1);
	assert_string_equal(p.o.group.links[0].path, "y");
	parsed_release(&p);
}

static void the_last_of_each_name_wins(void **state)
{
#define SOFT(name, path) "\"" name "\":{\"class\":\"H5L_TYPE_SOFT\",\"h5path\":\"" path "\"}"
	static const struct {
		const char *members, *name, *path; /* of the only link; NULL: there is none */
		unsigned int skips;
	} rows[] = {
		{"\"links\":{" SOFT("a", "x") "," SOFT("a", "y") "}", "a", "y", 0},
		{"\"links\":{" SOFT("a", "x") "," SOFT("\\u0061", "y") "}", "a", "y", 0},
		{"\"links\":{" SOFT("\\u0061", "x") ",\"a\":{}}", NULL, NULL, 1},
		{"\"links\":{\"a\":{}," SOFT("a", "y") "}", "a", "y", 1},
		{"\"links\":{" SOFT("a", "x") "," SOFT("a", "y") "," SOFT("a", "z") "}", "a", "z",
		 0},
		{"\"l\\u0069nks\":{" SOFT("a", "x") "}", "a", "x", 0},
		{"\"links\":{" SOFT("a", "x") "},\"l\\u0069nks\":{}", NULL, NULL, 0},
		{"\"links\":{},\"links\" \t\n:\r {" SOFT("a", "x") "}", "a", "x", 0},
		{"\"links\":{" SOFT("a", "x") "},\"links\":null", NULL, NULL, 0},
		{"\"links\":null,\"links\":{" SOFT("a", "x") "}", "a", "x", 0},
		{"\"other\":{\"links\":{" SOFT("a", "x") "}}", NULL, NULL, 0},
		{"\"other\":[\"links\",{" SOFT("a", "x") "}]", NULL, NULL, 0},
		{"\"links\":{" SOFT("links", "links") "}", "links", "links", 0},
		{"\"x\":NaN,\"links\":{" SOFT("\\u0000", "x") "," SOFT("a", "x") "},\"y\":NaN", "a",
		 "x", 1},
		{"\"links\" : { } ", NULL, NULL, 0},
	};
#undef SOFT
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parsed p = parse_group(rows[i].members);
		if (p.rc)
			fail_msg("%s: %s", rows[i].members, p.err.msg);
		assert_int_equal(p.skips, rows[i].skips);
		assert_int_equal(p.o.group.nlinks, rows[i].name ? 1 : 0);
		if (rows[i].name) {
			assert_string_equal(p.o.group.links[0].name, rows[i].name);
			assert_string_equal(p.o.group.links[0].path, rows[i].path);
		}
		parsed_release(&p);
	}
	struct parsed p = parse_group("\"links\":[]");
	assert_contains(p.err.msg, "links: not an object");
	parsed_release(&p);
}

/* Text that Python's JSON parser refuses is refused here, too: the lexical pass must not make it
 * legal.
 */
static void refuses_malformed(void **state)
{
	static const char *const bad[] = {
		"\"x\":nan",
		"\"x\":-NaN",
		"\"x\":+Infinity",
		"\"x\":NaNx",
		"\"x\":1NaN",
		"\"x\":NaN NaN",
		"NaN:1",
		"12345678901234567890:1",
		"\"x\":012345678901234567890",
		"\"x\":12345678901234567890.",
		"\"x\":1e",
		"\"x\":1e1000x",
		"\"x\":--1",
		"\"x\":1-2345678901234567890",
		"\"x\":\"\\u12\"",
		"\"x\":\"\\ud800\\u12\"",
		"\"x\":\"\\q\"",
		"\"x\":\"raw\ncontrol\"",
		"\"x\":\"raw\x10"
		"0\"",
		"\"x\":\"\xff\"",
		"\"x\":\"\xed\xb3\xa9\"",
		"\"x\":[1,2",
		"\"x\":\"open",
		"\"x\":\"open\\",
		"\"x\":\"open\\u",
		"\"x\":tru",
		"\"x\":1}}",
		"\"links\":{\"a\":}",
		"\"links\":{\"a\":{},}",
		"\"links\":{,}",
		"\"links\":{\"a\" {}}",
		"\"links\":{\"a\":{} \"b\":{}}",
		"\"links\":{\"a\":{}]",
		"\"links\":{\"a\":[}}",
		"\"links\":{\"a\":{}",
		"\"links\":{a:{}}",
		"\"links\":{1:{}}",
		"\"links\":{}{}",
		"\"links\":{} {\"a\":{}}",
		"\"links\" {}",
		"\"links\"::{}",
		"\"links\":,{}",
		"\"x\":\"links\":{}",
		"\"links\":{\"a\":\"\x10"
		"a\"}",
		"\"links\":\"\x10"
		"a\"",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct parsed p = parse_group(bad[i]);
		if (p.rc != -EIO)
			fail_msg("%d for: %s", p.rc, bad[i]);
		assert_contains(p.err.msg, "JSON");
		parsed_release(&p);
	}
	static const struct {
		const char *text;
		size_t n;
	} whole[] = {{"", 0},	  {"[]", 2},	{"1", 1}, {"NaN", 3},
		     {"{}\0", 3}, {"{} {}", 5}, {" ", 1}, {"{\"x\":1\0}", 8}};
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		struct parsed p = parse_bytes(GROUP_ID, whole[i].text, whole[i].n);
		assert_int_equal(p.rc, -EIO);
		parsed_release(&p);
	}
}

static struct parsed parse_nested(unsigned int levels)
{
	char text[2 * JSON_TEXT_DEPTH + 32];
	int n = snprintf(text, sizeof(text), "\"x\":");
	memset(text + n, '[', levels);
	memset(text + n + levels, ']', levels);
	text[n + 2 * levels] = '\0';
	return parse_group(text);
}

static void depth_is_limited(void **state)
{
	struct parsed p = parse_nested(JSON_TEXT_DEPTH - 1);
	assert_int_equal(p.rc, 0);
	parsed_release(&p);
	p = parse_nested(JSON_TEXT_DEPTH);
	assert_int_equal(p.rc, -EIO);
	assert_contains(p.err.msg, "nested");
	parsed_release(&p);
}

/* A document of n bytes that repeats `unit` is refused for the memory that its values would take,
 * before Jansson, which would refuse its syntax, sees it. */
static void expect_too_many_values(const char *unit, size_t n)
{
	const size_t len = strlen(unit);
	char *text = malloc(n + len);
	assert_non_null(text);
	for (size_t i = 0; i < n; i += len)
		memcpy(text + i, unit, len);
	struct parsed p = parse_bytes(GROUP_ID, text, n);
	free(text);
	assert_int_equal(p.rc, -EIO);
	assert_contains(p.err.msg, "too many values");
	parsed_release(&p);
}

/* A document with 44 MB of links that all together would take too much memory, and then `end`. */
static void expect_large_links(const char *end, int rc, const char *why)
{
	enum { LINKS = 440, VALUES = 33000, ROOM = LINKS * (3 * VALUES + 16) + 512 };
	char *text = malloc(ROOM);
	assert_non_null(text);
	int n = snprintf(text, ROOM, "{" HEAD(GROUP_ID) ",\"links\":{");
	for (int i = 0; i < LINKS; i++) {
		n += snprintf(text + n, (size_t)(ROOM - n), "%s\"%d\":[", i ? "," : "", i);
		for (int k = 0; k < VALUES; k++, n += 3)
			memcpy(text + n, "[],", 3);
		memcpy(text + n - 1, "]", 1);
	}
	n += snprintf(text + n, (size_t)(ROOM - n), "%s", end);
	struct parsed p = parse_bytes(GROUP_ID, text, (size_t)n);
	free(text);
	assert_int_equal(p.rc, rc);
	assert_int_equal(p.skips, rc ? 0 : LINKS);
	if (rc)
		assert_contains(p.err.msg, why);
	parsed_release(&p);
}

/* A document that seems to have 16 million links is damaged. It does not make the daemon run out of
 * memory. */
static void expect_many_commas(void)
{
	enum { COMMAS = 16 << 20, ROOM = COMMAS + 512 };
	char *text = malloc(ROOM);
	assert_non_null(text);
	int n = snprintf(text, ROOM, "{" HEAD(GROUP_ID) ",\"links\":{\"a\":1");
	memset(text + n, ',', COMMAS);
	n += COMMAS;
	n += snprintf(text + n, (size_t)(ROOM - n), "}}");
	struct parsed p = parse_bytes(GROUP_ID, text, (size_t)n);
	free(text);
	assert_int_equal(p.rc, -EIO);
	parsed_release(&p);
}

static void memory_of_values_is_limited(void **state)
{
	expect_too_many_values("[]", 40 << 20);
	expect_too_many_values("{}", 40 << 20);
	expect_too_many_values(",", 54 << 20);
	/* A string costs a value and its length, the comma another value: none of the three can be
	 * left out of the sum. */
	expect_too_many_values("\"\",", 3 * 20400000);
	expect_many_commas();
	/* Of the links, one is in memory at a time. If the document is damaged or has them twice,
	 * all of them would be. */
	expect_large_links("}}", 0, NULL);
	expect_large_links("", -EIO, "the document ends within \"links\"");
	expect_large_links("},\"links\":{}}", -EIO, "too many values");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link_names_survive),
		cmocka_unit_test(last_member_wins),
		cmocka_unit_test(the_last_of_each_name_wins),
		cmocka_unit_test(refuses_malformed),
		cmocka_unit_test(depth_is_limited),
		cmocka_unit_test(memory_of_values_is_limited),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
