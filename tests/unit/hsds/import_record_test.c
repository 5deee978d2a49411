/* SPDX-License-Identifier: Apache-2.0 */
/* The record of an unfinished import. */
#include "schema_test.h"
#include <bucket/schemas.h>
#include "storages.h"

static int parse(const char *text, struct arena *a, struct schema_import *out, struct err *err)
{
	return schema_all()[0]->writer->import_parse(text, strlen(text), a, out, err);
}

static void what_is_emitted_is_parsed(void **state)
{
	const struct schema_import rows[] = {
		{.storage = storage_nth(0x0123456789abcdef),
		 .path = "home/u/a \"quoted\".h5",
		 .file = "/data/Gr\xc3\xb6\xc3\x9f"
			 "e.h5",
		 .replaces = ROOT_ID,
		 .min_chunk = 1 << 20,
		 .size = INT64_MAX,
		 .mtime_ns = 1700000000123456789,
		 .created_ns = 1700000000987654321,
		 .link = "tables",
		 .etag = "\"12-3\"",
		 .life = "6f1c"},
		{.storage = storage_nth(UINT64_MAX),
		 .path = "lone \xe9",
		 .file = "\xed\xb3\xa9\xff",
		 .mtime_ns = -1},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct schema_import *row = &rows[i];
		struct arena *a = arena_new(1 << 20);
		struct bytes text = {0};
		struct schema_import got;
		struct err err = ERR_INIT;
		assert_int_equal(schema_all()[0]->writer->import_emit(row, &text, &err), 0);
		for (size_t k = 0; k < text.len; k++)
			assert_in_range(text.data[k], 0x20, 0x7e);
		assert_int_equal(
			schema_all()[0]->writer->import_parse(text.data, text.len, a, &got, &err),
			0);
		assert_true(same_storage(&got.storage, &row->storage));
		assert_string_equal(got.path, row->path);
		assert_string_equal(got.file, row->file);
		assert_int_equal(!got.replaces, !row->replaces);
		if (row->replaces)
			assert_string_equal(got.replaces, row->replaces);
		assert_int_equal(got.min_chunk, row->min_chunk);
		assert_int_equal(got.size, row->size);
		assert_int_equal(got.mtime_ns, row->mtime_ns);
		assert_int_equal(got.created_ns, row->created_ns);
		assert_string_equal(got.link ? got.link : "", row->link ? row->link : "");
		assert_string_equal(got.etag ? got.etag : "", row->etag ? row->etag : "");
		assert_string_equal(got.life ? got.life : "", row->life ? row->life : "");
		bytes_release(&text);
		arena_free(a);
	}
}

static void damaged_records_are_refused(void **state)
{
#define REST   "\"size\":1,\"min_chunk\":0,\"mtime\":2,\"created\":3"
#define PATHS  "\"path\":\"p\",\"file\":\"f\""
#define DIGITS "\"domain\":\"0123456789abcdef\""
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"", "empty document"},
		{"{", "JSON"},
		{"{" PATHS "," REST "}", "domain: not 16"},
		{"{\"domain\":\"0123\"," PATHS "," REST "}", "domain: not 16"},
		{"{\"domain\":\"0123456789abcdeg\"," PATHS "," REST "}", "domain: not 16"},
		{"{" DIGITS "," PATHS "}", "not sizes"},
		{"{" DIGITS "," PATHS ",\"size\":-1,\"min_chunk\":0}", "not sizes"},
		{"{" DIGITS "," PATHS ",\"size\":1,\"min_chunk\":0,\"mtime\":1.5}", "not times"},
		{"{" DIGITS ",\"file\":\"f\"," REST "}", "path: missing"},
		{"{" DIGITS ",\"path\":\"p\"," REST "}", "file: missing"},
		{"{" DIGITS ",\"path_base64\":\"?\",\"file\":\"f\"," REST "}", "not the base64"},
		{"{" DIGITS ",\"path_base64\":\"YQBi\",\"file\":\"f\"," REST "}", "not the base64"},
		{"{" DIGITS ",\"path\":\"a\\u0000b\",\"file\":\"f\"," REST "}", "NUL"},
		{"{" DIGITS ",\"replaces\":\"d\"," PATHS "," REST "}", "replaces: not the id"},
		{"{" DIGITS ",\"replaces\":\"" DATASET_ID "\"," PATHS "," REST "}",
		 "replaces: not the id"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct arena *a = arena_new(1 << 20);
		struct schema_import got;
		struct err err = ERR_INIT;
		assert_int_equal(parse(rows[i].text, a, &got, &err), -EIO);
		assert_contains(err.msg, rows[i].why);
		assert_contains(err.msg, "record of an import");
		arena_free(a);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_emitted_is_parsed),
		cmocka_unit_test(damaged_records_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
