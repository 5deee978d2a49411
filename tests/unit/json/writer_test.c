/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as Python writes it. */
#include "schema_test.h"

#include <math.h>

#include <json/writer.h>

static void assert_written(const struct bytes *out, const char *text)
{
	assert_int_equal(out->len, strlen(text));
	assert_memory_equal(out->data, text, out->len);
}

static void values_are_separated(void **state)
{
	struct bytes out = {0};
	struct writer w = {.out = &out};
	write_open(&w, '{');
	write_member_word(&w, "a", "b");
	write_key(&w, "list");
	write_open(&w, '[');
	write_uint(&w, UINT64_MAX);
	write_int(&w, INT64_MIN);
	write_open(&w, '[');
	write_close(&w, ']');
	write_null(&w);
	write_bool(&w, true);
	write_close(&w, ']');
	write_member_uint(&w, "n", 0);
	write_key(&w, "raw");
	write_base64(&w, "abcd", 4);
	write_key(&w, "t");
	write_time(&w, 1700000000012345678);
	write_close(&w, '}');
	assert_written(&out,
		       "{\"a\": \"b\", \"list\": [18446744073709551615, -9223372036854775808, "
		       "[], null, true], \"n\": 0, \"raw\": \"YWJjZA==\", \"t\": "
		       "1700000000.012345}");
	assert_false(w.bad);
	bytes_release(&out);
}

static void text_is_ascii(void **state)
{
	static const struct {
		const char *text;
		size_t n;
		const char *json;
	} rows[] = {
		{"", 0, "\"\""},
		{"a \"b\" \\", 7, "\"a \\\"b\\\" \\\\\""},
		{"\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\""},
		{"\0\x10\x7f", 3, "\"\\u0000\\u0010\\u007f\""},
		{"\xc3\xa9", 2, "\"\\u00e9\""},
		{"\xe2\x82\xac", 3, "\"\\u20ac\""},
		{"\xf0\x9f\x90\x98", 4, "\"\\ud83d\\udc18\""},
		{"\xe9t\xed\xb3", 4, "\"\\udce9t\\udced\\udcb3\""},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bytes out = {0};
		struct writer w = {.out = &out};
		write_text(&w, rows[i].text, rows[i].n);
		assert_written(&out, rows[i].json);
		bytes_release(&out);
	}
}

static void reals_are_read_back(void **state)
{
	static const struct {
		double v;
		const char *json;
	} rows[] = {
		{0.0, "0.0"},		{-0.0, "-0.0"},
		{1.0, "1.0"},		{0.1, "0.1"},
		{1e16, "1e+16"},	{0.1 + 0.2, "0.30000000000000004"},
		{1e-7, "1e-07"},	{5e-324, "4.94065645841247e-324"},
		{INFINITY, "Infinity"}, {-INFINITY, "-Infinity"},
		{NAN, "NaN"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bytes out = {0};
		struct writer w = {.out = &out};
		write_real(&w, rows[i].v);
		assert_written(&out, rows[i].json);
		bytes_release(&out);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_separated),
		cmocka_unit_test(text_is_ascii),
		cmocka_unit_test(reals_are_read_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
