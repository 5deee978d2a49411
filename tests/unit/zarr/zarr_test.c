/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of the schemas: names of files, documents that mark a store, and what stores do not have.
 */
#include "zarr_store.h"

#include "schema/zarr/zarr_space.h"

static void files_are_named_nc_unless_the_name_says_what_they_are(void **state)
{
	static const struct {
		const char *name;
		bool is_file_name;
	} rows[] = {
		{"x.zarr", false}, {"x.nc", true},   {"x.NC4", true},	  {"x.h5", true},
		{"x.hdf5", true},  {".nc", false},   {"nc", false},	  {"x.nc.zarr", false},
		{"x.nc3", false},  {".hdf5", false}, {"x.zarr.h5", true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(zarr2_ops.is_file_name(rows[i].name), rows[i].is_file_name);
		assert_int_equal(zarr3_ops.is_file_name(rows[i].name), rows[i].is_file_name);
	}
	assert_string_equal(zarr2_ops.suffix, ".nc");
	assert_false(zarr2_ops.is_document("x.zarr/.zgroup"));
	assert_false(zarr2_ops.is_storage("x.zarr/.zgroup"));
}

/* Runs classify() on a store that has one document, or none. Writes the keys that it asks for. */
static struct schema_document *classify(const char *has, const char *known, struct str *keys)
{
	const struct schema_document before = {.info = {.root = known}};
	unsigned int step = known ? zarr3_ops.again(&before) : 0;
	struct schema_document *out = NULL;
	struct schema_answer answer = {.etag = "v7"};
	char key[64];
	struct schema_request req = {.key = key, .room = sizeof(key)};
	int rc = zarr3_ops.classify("d/x", NULL, &step, NULL, &req, &out, NULL);
	str_cut(keys, 0);
	while (rc == SCHEMA_NEEDS_ANSWER) {
		str_addf(keys, "%s ", key + strlen("d/x/"));
		answer.absent = strcmp(key + strlen("d/x/"), has) != 0;
		rc = zarr3_ops.classify("d/x", NULL, &step, &answer, &req, &out, NULL);
	}
	assert_int_equal(rc, 0);
	return out;
}

static void documents_are_tried_in_the_order_of_preference(void **state)
{
	static const struct {
		const char *has, *known, *keys;
		const struct schema_ops *schema;
	} rows[] = {
		{"zarr.json", NULL, "zarr.json ", &zarr3_ops},
		{".zmetadata", NULL, "zarr.json .zmetadata ", &zarr2_ops},
		{".zgroup", NULL, "zarr.json .zmetadata .zgroup ", &zarr2_ops},
		{".zarray", NULL, "zarr.json .zmetadata .zgroup .zarray ", &zarr2_ops},
		{"", NULL, "zarr.json .zmetadata .zgroup .zarray ", NULL},
		{"zarr.json", "zarr.json", "zarr.json ", &zarr3_ops},
		{".zmetadata", ".zmetadata", ".zmetadata ", &zarr2_ops},
		{".zgroup", ".zgroup", ".zgroup ", &zarr2_ops},
		{".zarray", ".zarray", ".zarray ", &zarr2_ops},
		{".zarray", ".zmetadata", ".zmetadata .zgroup .zarray ", &zarr2_ops},
		{"", ".zarray", ".zarray ", NULL},
		{"zarr.json", "other", "zarr.json ", &zarr3_ops},
	};
	auto_str struct str keys = {0};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct schema_document *d = classify(rows[i].has, rows[i].known, &keys);
		assert_string_equal(str_text(&keys), rows[i].keys);
		assert_int_equal(d != NULL, rows[i].schema != NULL);
		if (d) {
			assert_ptr_equal(d->schema, rows[i].schema);
			assert_string_equal(d->info.root, rows[i].has);
			assert_string_equal(d->etag, "v7");
		}
		schema_document_unref(d);
	}
}

static void a_document_directly_below_a_name_shows_a_store(void **state)
{
	static const struct {
		const char *key;
		bool shows;
	} rows[] = {
		{"x/.zgroup", true},	{"x/.zarray", true}, {"x/.zmetadata", true},
		{"x/zarr.json", true},	{".zgroup", false},  {"x/.zattrs", false},
		{"x/y/.zgroup", false}, {"x/0.0", false},    {"x/", false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct schema_survey s = {0};
		zarr2_ops.survey(&s, rows[i].key);
		assert_int_equal(s.marks, rows[i].shows);
		assert_int_equal(s.documents, rows[i].shows);
		assert_false(s.storage || s.document || s.anything);
	}
}

static void a_store_has_no_summary(void **state)
{
	struct schema_info info;
	struct err err = ERR_INIT;
	char key[8] = "before";
	size_t len = 7;
	assert_int_equal(zarr2_ops.info_key(NULL, key, sizeof(key)), 0);
	assert_string_equal(key, "");
	assert_int_equal(zarr2_ops.info_key(NULL, NULL, 0), 0);
	assert_int_equal(zarr2_ops.info_parse("{}", 2, &info, &err), -EIO);
	assert_null(zarr2_ops.object_text(NULL, 0, &len));
	assert_int_equal(len, 0);
	assert_int_equal(zarr2_ops.resolve(NULL, "datasets/d", 10), 0);
}

static void codecs_are_those_of_the_array(void **state)
{
	const struct zarr_locator l = {.codecs = "shuffle(4), zlib(5)"}, none = {0};
	struct object o = {.kind = OBJECT_DATASET, .dataset = {.locator = &l}};
	assert_string_equal(zarr2_ops.codecs(&o), "shuffle(4), zlib(5)");
	o.dataset.locator = &none;
	assert_null(zarr2_ops.codecs(&o));
	o.dataset.locator = NULL;
	assert_null(zarr2_ops.codecs(&o));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_named_nc_unless_the_name_says_what_they_are),
		cmocka_unit_test(documents_are_tried_in_the_order_of_preference),
		cmocka_unit_test(a_document_directly_below_a_name_shows_a_store),
		cmocka_unit_test(a_store_has_no_summary),
		cmocka_unit_test(codecs_are_those_of_the_array),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
