/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of Zarr stores that have more keys than a page of a listing, before they are opened: exact
 * if the document that marks the store shows all its objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>
#include <base/str.h>

#include "bucket.h"

enum { UNKNOWN = 4096, HOUR = 3600, MANY = 1001 };

/* Elements of an array whose chunks have 2 elements of 2 bytes; the second one is larger than what
 * a file has room for if it is not known which chunks are stored. */
#define FEW  "2002"
#define VAST "4503599627370496"

static char *array(const char *shape)
{
	char *text = NULL;
	assert_true(asprintf(&text,
			     "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[%s],"
			     "\"data_type\":\"int16\",\"chunk_grid\":{\"name\":\"regular\","
			     "\"configuration\":{\"chunk_shape\":[2]}},\"chunk_key_encoding\":"
			     "\"default\",\"fill_value\":0,\"codecs\":[\"bytes\"]}",
			     shape) > 0);
	return text;
}

/* Writes the documents of a store with one array. */
static void put_documents(struct test_bucket *b, const char *store, const char *shape,
			  bool consolidated, const char *attributes)
{
	auto_free char *text = array(shape), *all = NULL, *key = NULL;
	assert_true(asprintf(&all,
			     "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":%s%s%s%s}",
			     attributes,
			     consolidated ? ",\"consolidated_metadata\":{\"kind\":\"inline\","
					    "\"must_understand\":false,\"metadata\":{\"a\":"
					  : "",
			     consolidated ? text : "", consolidated ? "}}" : "") > 0);
	assert_true(asprintf(&key, "%s/zarr.json", store) > 0);
	bucket_put(b, key, all);
	free(key);
	assert_true(asprintf(&key, "%s/a/zarr.json", store) > 0);
	bucket_put(b, key, text);
}

static void put_chunks(struct test_bucket *b, const char *store, int n)
{
	char key[128];
	for (int i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "%s/a/c/%d", store, i);
		bucket_put(b, key, "1234");
	}
}

static void put_store(struct test_bucket *b, const char *store, const char *shape,
		      bool consolidated)
{
	put_documents(b, store, shape, consolidated, "{}");
	put_chunks(b, store, MANY);
}

static void open_as(struct test_bucket *b, enum engine_stat_mode mode, double ttl)
{
	struct engine_options opt;
	engine_close(b->engine);
	engine_options_init(&opt);
	opt.workers = 0;
	opt.stat = mode;
	opt.metadata_ttl = ttl;
	bucket_open_as(b, opt);
}

static struct engine_stat stat_of(struct test_bucket *b, const char *path)
{
	struct engine_stat st;
	struct err err = ERR_INIT;
	if (engine_getattr(b->engine, path, &st, &err))
		fail_msg("%s", err.msg);
	return st;
}

static struct engine_stat open_once(struct test_bucket *b, const char *path)
{
	struct engine_file *f;
	struct engine_stat st;
	struct err err = ERR_INIT;
	if (engine_file_open(b->engine, path, &f, &err))
		fail_msg("%s", err.msg);
	engine_file_stat(f, &st);
	engine_file_close(f);
	return st;
}

static void assert_same(const struct engine_stat *a, const struct engine_stat *b)
{
	assert_true(a->size_exact && b->size_exact && a->size != UNKNOWN);
	assert_int_equal(a->size, b->size);
	assert_int_equal(a->blocks, b->blocks);
	assert_int_equal(a->mtime_ns, b->mtime_ns);
}

/* What a stat costs besides the look-up. */
static struct bucket_counts cost_of(struct test_bucket *b, const char *path,
				    struct engine_stat *out)
{
	struct bucket_counts at[3];
	struct engine_stat st;
	assert_int_equal(engine_lookup(b->engine, path, &st, NULL), 0);
	at[0] = bucket_counts(b);
	assert_int_equal(engine_lookup(b->engine, path, &st, NULL), 0);
	at[1] = bucket_counts(b);
	*out = stat_of(b, path);
	at[2] = bucket_counts(b);
	return (struct bucket_counts){.gets = at[2].gets - 2 * at[1].gets + at[0].gets,
				      .heads = at[2].heads - 2 * at[1].heads + at[0].heads,
				      .lists = at[2].lists - 2 * at[1].lists + at[0].lists};
}

static void assert_cost(struct bucket_counts cost, uint64_t gets, uint64_t lists)
{
	assert_int_equal(cost.gets, gets);
	assert_int_equal(cost.heads, 0);
	assert_int_equal(cost.lists, lists);
}

static void the_document_gives_the_size(void **state)
{
	static const enum engine_stat_mode modes[] = {ENGINE_STAT_AUTO, ENGINE_STAT_EXACT};
	struct test_bucket *b = *state;
	struct engine_stat st;
	put_store(b, "x.zarr", FEW, true);
	for (size_t i = 0; i < 2; i++) {
		open_as(b, modes[i], 0);
		assert_cost(cost_of(b, "x.zarr.nc", &st), 1, 1);
		const struct engine_stat opened = open_once(b, "x.zarr.nc");
		assert_same(&st, &opened);
		const struct engine_stat after = stat_of(b, "x.zarr.nc");
		assert_same(&st, &after);
	}
	open_as(b, ENGINE_STAT_ESTIMATE, 0);
	assert_int_equal(stat_of(b, "x.zarr.nc").size, UNKNOWN);
}

static void a_document_of_any_size_is_requested_once(void **state)
{
	struct test_bucket *b = *state;
	struct engine_stat st;
	const size_t n = 600000;
	auto_free char *attributes = malloc(n + 32);
	assert_non_null(attributes);
	strcpy(attributes, "{\"t\":\"");
	memset(attributes + 6, 'x', n);
	strcpy(attributes + 6 + n, "\"}");
	put_documents(b, "x.zarr", FEW, true, attributes);
	put_chunks(b, "x.zarr", MANY);
	open_as(b, ENGINE_STAT_AUTO, HOUR);
	assert_cost(cost_of(b, "x.zarr.nc", &st), 1, 1);
	const struct engine_stat opened = open_once(b, "x.zarr.nc");
	assert_same(&st, &opened);
}

/* The version of the document is that of the size. */
static void the_size_is_remembered(void **state)
{
	struct test_bucket *b = *state;
	struct engine_stat first, again;
	put_store(b, "x.zarr", FEW, true);
	open_as(b, ENGINE_STAT_AUTO, 0);
	assert_cost(cost_of(b, "x.zarr.nc", &first), 1, 1);
	assert_cost(cost_of(b, "x.zarr.nc", &again), 0, 1);
	assert_same(&first, &again);
	/* That of an open, too. */
	open_as(b, ENGINE_STAT_AUTO, 0);
	const struct engine_stat opened = open_once(b, "x.zarr.nc");
	assert_cost(cost_of(b, "x.zarr.nc", &again), 0, 1);
	assert_same(&opened, &again);
}

/* Before and after an open, and although the file is open. */
static void a_change_shows_without_an_open(void **state)
{
	struct test_bucket *b = *state;
	struct engine_file *f;
	put_store(b, "x.zarr", FEW, true);
	open_as(b, ENGINE_STAT_AUTO, 0);
	const struct engine_stat first = stat_of(b, "x.zarr.nc");
	assert_int_equal(engine_file_open(b->engine, "x.zarr.nc", &f, NULL), 0);
	put_documents(b, "x.zarr", "4004", true, "{}");
	const struct engine_stat second = stat_of(b, "x.zarr.nc");
	assert_true(second.size_exact && second.size >= first.size + 4004);
	struct engine_stat open;
	engine_file_stat(f, &open);
	assert_int_equal(open.size, first.size);
	engine_file_close(f);
	const struct engine_stat opened = open_once(b, "x.zarr.nc");
	assert_same(&second, &opened);
	/* The document alone is back: its earlier size is not shown for the newer one. */
	put_documents(b, "x.zarr", "2002", true, "{\"t\":1}");
	const struct engine_stat third = stat_of(b, "x.zarr.nc"), again = open_once(b, "x.zarr.nc");
	assert_true(third.size < second.size);
	assert_same(&third, &again);
}

/* Its listing then shows the time of the newest key, and which chunks are stored. */
static void a_store_that_becomes_small(void **state)
{
	struct test_bucket *b = *state;
	char key[128];
	put_store(b, "x.zarr", FEW, true);
	put_store(b, "y.zarr", VAST, true);
	open_as(b, ENGINE_STAT_AUTO, 0);
	const struct engine_stat large = stat_of(b, "x.zarr.nc");
	assert_int_equal(stat_of(b, "y.zarr.nc").size, UNKNOWN);
	for (int i = 10; i < MANY; i++) {
		snprintf(key, sizeof(key), "x.zarr/a/c/%d", i);
		bucket_remove(b, key);
		key[0] = 'y';
		bucket_remove(b, key);
	}
	const struct engine_stat x = stat_of(b, "x.zarr.nc"), y = stat_of(b, "y.zarr.nc");
	const struct engine_stat x2 = open_once(b, "x.zarr.nc"), y2 = open_once(b, "y.zarr.nc");
	assert_true(x.mtime_ns >= large.mtime_ns);
	/* The snapshot of the first stat is used again, because the document is the same: its time
	 * is that of the document. */
	assert_true(x.size_exact && x2.size_exact);
	assert_int_equal(x.size, x2.size);
	assert_int_equal(x.blocks, x2.blocks);
	assert_same(&y, &y2);
}

/* Its objects have documents of their own, or the layout depends on the keys of its chunks. */
static void otherwise_it_is_a_large_domain(void **state)
{
	static const struct {
		const char *shape;
		bool consolidated;
	} cases[] = {{FEW, false}, {VAST, true}};
	struct test_bucket *b = *state;
	char store[16], file[32];
	for (size_t i = 0; i < 2; i++) {
		snprintf(store, sizeof(store), "%zu.zarr", i);
		snprintf(file, sizeof(file), "%s.nc", store);
		put_store(b, store, cases[i].shape, cases[i].consolidated);
		open_as(b, ENGINE_STAT_AUTO, 0);
		const struct engine_stat before = stat_of(b, file);
		assert_true(before.size == UNKNOWN && !before.size_exact);
		const struct engine_stat opened = open_once(b, file), after = stat_of(b, file);
		assert_same(&opened, &after);
		assert_int_equal(before.mtime_ns, opened.mtime_ns);
		open_as(b, ENGINE_STAT_EXACT, 0);
		const struct engine_stat exact = stat_of(b, file);
		assert_same(&exact, &opened);
	}
}

static void a_damaged_document(void **state)
{
	struct test_bucket *b = *state;
	put_chunks(b, "x.zarr", MANY);
	bucket_put(b, "x.zarr/zarr.json", "damaged");
	open_as(b, ENGINE_STAT_AUTO, 0);
	const struct engine_stat st = stat_of(b, "x.zarr.nc");
	assert_true(st.size == UNKNOWN && !st.size_exact);
	put_documents(b, "x.zarr", FEW, true, "{}");
	assert_true(stat_of(b, "x.zarr.nc").size_exact);
}

/* What is not known because the bucket did not answer is not remembered. */
static void a_request_that_fails(void **state)
{
	struct test_bucket *b = *state;
	struct engine_options opt;
	put_store(b, "x.zarr", FEW, true);
	engine_options_init(&opt);
	opt.workers = 0;
	opt.metadata_ttl = HOUR;
	opt.debug_fault = "fail:1:EIO@x.zarr/zarr.json";
	bucket_open_as(b, opt);
	struct engine_stat st = stat_of(b, "x.zarr.nc");
	if (!st.size_exact) { /* the look-up did not request it */
		assert_int_equal(st.size, UNKNOWN);
		st = stat_of(b, "x.zarr.nc");
	}
	const struct engine_stat opened = open_once(b, "x.zarr.nc");
	assert_same(&st, &opened);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_document_gives_the_size), TEST(a_document_of_any_size_is_requested_once),
		TEST(the_size_is_remembered),	   TEST(a_change_shows_without_an_open),
		TEST(a_store_that_becomes_small),  TEST(otherwise_it_is_a_large_domain),
		TEST(a_damaged_document),	   TEST(a_request_that_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
