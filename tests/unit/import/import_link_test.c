/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links: which datasets refer to the file, the records of chunk tables, and links that were
 * interrupted. The file has datasets with every chunk index (tests/data/indexes.py).
 */
#include "damaged_file.h"

#include <data/number.h>

enum {
	/* Of at least 512 elements: /fixed/paged, /extensible/middle and paged, /tree/two levels,
	 * each with filters and without. */
	LINKED = 8,
	TABLES = 2, /* paged (fixed): 3,300 chunks */
	RECORD = 12,
};

static int open_indexes(void *ctx, struct source **out, struct err *err)
{
	return world_open_data(ctx, "indexes.h5", out, err);
}

static void init(struct world *w, struct import_link *link, unsigned int workers)
{
	world_init(w, workers);
	*link = (struct import_link){.bucket = "bucket", .key = "raw/indexes.h5", .etag = "e1"};
	w->opt.file.open = open_indexes;
	w->opt.file.size = 298330;
	w->opt.link = link;
}

/* The only object under the prefix whose text has this part; the caller frees. */
static char *find_document(struct world *w, const char *part)
{
	auto_page struct store_page page = {0};
	char *found = NULL;
	assert_int_equal(call_list_all(w->store, "db/", false, UINT32_MAX, &page, NULL), 0);
	for (size_t i = 0; i < page.n; i++) {
		struct call_result res;
		assert_int_equal(
			call_get(w->store, page.items[i].key, 0, STORE_TO_END, 0, NULL, &res, NULL),
			0);
		char *text = strndup((char *)res.body.data, res.body.len);
		bytes_release(&res.body);
		if (strstr(text, part)) {
			assert_null(found);
			found = text;
		} else {
			free(text);
		}
	}
	return found;
}

static size_t count_objects(struct world *w, const char *part)
{
	char *all = world_content(w, "db/");
	char hex[256] = "";
	size_t n = 0;
	for (size_t i = 0; part[i]; i++)
		snprintf(hex + 2 * i, 3, "%02x", (uint8_t)part[i]);
	for (const char *at = all; (at = strstr(at, hex)); at++)
		n++;
	free(all);
	return n;
}

static void test_documents(void **state)
{
	struct world w;
	struct import_link link;
	struct import_result result;
	init(&w, &link, 4);
	world_must_import(&w, &result);
	assert_int_equal(result.linked, LINKED);
	assert_true(result.linked_bytes > 0);
	assert_int_equal(count_objects(&w, "H5D_CHUNKED_REF_INDIRECT"), TABLES);
	assert_int_equal(count_objects(&w, "\"H5D_CHUNKED_REF\""), LINKED - TABLES);
	assert_int_equal(count_objects(&w, "\"file_uri\": \"bucket/raw/indexes.h5\""), LINKED);
	assert_int_equal(count_objects(&w, "\"etag\": \"e1\", \"size\": 298330"), LINKED);
	char *doc = find_document(&w, "\"h5path\": \"/extensible, filtered/paged\"");
	assert_non_null(doc);
	assert_non_null(strstr(doc, "\"exact\": true"));
	assert_non_null(strstr(doc, "\"name\": \"shuffle\""));
	assert_non_null(strstr(doc, "{\"0\": ["));
	assert_non_null(strstr(doc, ", \"139999\": ["));
	free(doc);
	assert_int_equal(count_objects(&w, "chunklocator"), 0);
	world_release(&w);
}

struct records {
	const uint8_t *table;
	uint64_t n, stored;
};

static int check_record(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct records *r = ctx;
	const uint8_t *record = r->table + chunk->number * RECORD;
	assert_true(chunk->number < r->n);
	assert_int_equal(number_get_int(record, 8, false), chunk->addr);
	assert_int_equal(number_get_int(record + 8, 4, false), chunk->size);
	r->stored++;
	return 0;
}

/* The table of /fixed/paged has what the index of the file has. */
static void test_table(void **state)
{
	struct world w;
	struct import_link link;
	struct source *source = NULL;
	struct h5file *f = NULL;
	init(&w, &link, 0);
	world_must_import(&w, NULL);
	char *doc = find_document(&w, "\"h5path\": \"/fixed/paged\"");
	assert_non_null(doc);
	const char *id = strstr(doc, "\"chunk_table\": \"d-") + strlen("\"chunk_table\": \"d-");
	char key[128];
	snprintf(key, sizeof(key), "db/%.17s/d/%.18s/0_0", id, id + 18);
	struct call_result res;
	assert_int_equal(call_get(w.store, key, 0, STORE_TO_END, 0, NULL, &res, NULL), 0);
	assert_int_equal(res.body.len, 3300 * RECORD);
	assert_int_equal(open_indexes(&w, &source, NULL), 0);
	assert_int_equal(h5file_open(source, NULL, &f, NULL), 0);
	const struct tree *t = h5file_tree(f);
	struct records r = {.table = res.body.data, .n = 3300};
	uint64_t nonzero = 0;
	for (uint32_t i = 0; i < tree_count(t); i++)
		if (strcmp(tree_object(t, tree_nth(t, i))->o.id, "/fixed/paged") == 0)
			assert_int_equal(h5file_chunks(f, tree_nth(t, i), 0, UINT64_MAX,
						       check_record, &r, NULL),
					 0);
	for (uint64_t i = 0; i < r.n; i++)
		nonzero += number_get_int(r.table + i * RECORD + 8, 4, false) != 0;
	assert_int_equal(r.stored, 1500);
	assert_int_equal(nonzero, r.stored);
	h5file_close(f);
	bytes_release(&res.body);
	free(doc);
	world_release(&w);
}

static void test_located(void **state)
{
	struct world w;
	struct import_link link;
	struct import_result result;
	init(&w, &link, 0);
	link.locate = true;
	world_must_import(&w, &result);
	assert_int_equal(count_objects(&w, "\"chunklocator\", \"--h5path=/fixed/paged\", "
					   "\"--filepath=raw/indexes.h5\", \"--bucket=bucket\""),
			 1);
	/* The path of the other one, "/fixed, filtered/paged", has characters of a shell. */
	assert_int_equal(count_objects(&w, "chunklocator"), TABLES - 1);
	world_release(&w);
}

/* All requests from one on fail, from several places on; then the same command completes the link.
 */
static void test_interrupted(void **state)
{
	struct world clean;
	struct import_link link;
	init(&clean, &link, 0);
	world_must_import(&clean, NULL);
	const unsigned int n = clean.gate->n;
	char *want = world_content(&clean, "");
	for (unsigned int i = 1; i <= n; i += n / 8 + 1) {
		struct world w;
		struct err err;
		init(&w, &link, 0);
		w.gate->later = true;
		assert_int_equal(world_import_failing(&w, i, -EIO, &err), -EIO);
		world_must_import(&w, NULL);
		world_check_content(&w, want);
		world_release(&w);
	}
	free(want);
	world_release(&clean);
}

/* A link is not continued as another kind of link, nor as an import, nor of another version. */
static void test_another_kind(void **state)
{
	struct world w;
	struct import_link link, other;
	struct err err;
	init(&w, &link, 0);
	w.gate->later = true;
	assert_int_equal(world_import_failing(&w, 30, -EIO, &err), -EIO);
	other = link;
	other.locate = true;
	w.opt.link = &other;
	assert_int_equal(world_import(&w, NULL, &err), -EEXIST);
	assert_non_null(strstr(err.msg, "--fastlink"));
	other = link;
	other.etag = "e2";
	assert_int_equal(world_import(&w, NULL, &err), -EEXIST);
	assert_non_null(strstr(err.msg, "another version"));
	w.opt.link = NULL;
	assert_int_equal(world_import(&w, NULL, &err), -EEXIST);
	assert_non_null(strstr(err.msg, "it is a link"));
	w.opt.link = &link;
	world_must_import(&w, NULL);
	world_release(&w);
}

static void test_changed_file(void **state)
{
	struct world w;
	struct import_link link;
	struct err err;
	init(&w, &link, 0);
	w.check = -ESTALE;
	assert_int_equal(world_import(&w, NULL, &err), -ESTALE);
	assert_int_equal(world_objects(&w, "home/ann/run.h5"), 0);
	world_release(&w);
}

/* ---- verification ---- */

static void begin_verify(struct world *w, struct import_link *link, struct damage *d)
{
	init(w, link, 0);
	link->verify = true;
	damage_file(w, d);
}

static void test_verified(void **state)
{
	struct world w, plain;
	struct import_link link;
	struct import_result result;
	init(&plain, &link, 0);
	world_must_import(&plain, NULL);
	char *want = world_content(&plain, "");
	init(&w, &link, 0);
	link.verify = true;
	world_must_import(&w, &result);
	world_check_content(&w, want);
	assert_int_equal(result.linked, LINKED);
	assert_int_equal(w.done, result.linked_bytes);
	assert_int_equal(w.total, result.linked_bytes);
	free(want);
	world_release(&w);
	world_release(&plain);
}

/* Nothing is put, and the record of the link is removed. Without verification, data are not read.
 */
static void test_damaged_chunk(void **state)
{
	struct world w;
	struct import_link link;
	struct import_result result;
	struct damage d;
	struct err err;
	begin_verify(&w, &link, &d);
	assert_int_equal(world_import(&w, &result, &err), -EIO);
	assert_string_equal(err.msg, "/data/run.h5: 1 chunk of the file is damaged");
	assert_non_null(strstr(w.notes, "dataset /x: chunk (0): "));
	assert_int_equal(result.problems, 1);
	assert_true(result.refused);
	assert_int_equal(d.reads, 1);
	assert_int_equal(world_objects(&w, ""), 0);
	d.reads = 0;
	link.verify = false;
	world_must_import(&w, NULL);
	assert_int_equal(d.reads, 0);
	world_release(&w);
}

/* An error of the source is no damage, and a user may interrupt. */
static void test_verification_ends_early(void **state)
{
	struct world w;
	struct import_link link;
	struct damage d;
	struct err err;
	atomic_bool cancelled = false;
	begin_verify(&w, &link, &d);
	d.code = -ETIMEDOUT;
	assert_int_equal(world_import(&w, NULL, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.msg, "dataset /x: chunk (0): "));
	assert_int_equal(world_objects(&w, ""), 0);
	d.code = 0;
	d.cancelled = &cancelled;
	w.opt.cancelled = &cancelled;
	assert_int_equal(world_import(&w, NULL, &err), -ECANCELED);
	assert_int_equal(world_objects(&w, "home"), 0);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_documents),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_located),
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_another_kind),
		cmocka_unit_test(test_changed_file),
		cmocka_unit_test(test_verified),
		cmocka_unit_test(test_damaged_chunk),
		cmocka_unit_test(test_verification_ends_early),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
