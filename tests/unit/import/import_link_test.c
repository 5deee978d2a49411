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
	RECORD_MASKED = 16,
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
	struct bytes table;
	size_t size; /* of a record */
	uint64_t stored;
	uint32_t masked; /* chunks to which no filter was applied */
};

static int check_record(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct records *r = ctx;
	const uint8_t *record = r->table.data + chunk->number * r->size;
	assert_true((chunk->number + 1) * r->size <= r->table.len);
	assert_int_equal(number_get_int(record, 8, false), chunk->addr);
	assert_int_equal(number_get_int(record + 8, 4, false), chunk->size);
	if (r->size == RECORD_MASKED)
		assert_int_equal(number_get_int(record + 12, 4, false), chunk->filter_mask);
	r->stored++;
	r->masked += chunk->filter_mask;
	return 0;
}

/* Appends the chunks of the table of a dataset. `others` are their coordinates after the first. */
static void read_table(struct world *w, const char *path, const char *others, struct records *r)
{
	char part[64], key[128];
	snprintf(part, sizeof(part), "\"h5path\": \"%s\"", path);
	auto_free char *doc = find_document(w, part);
	assert_non_null(doc);
	const char *id = strstr(doc, "\"chunk_table\": \"d-") + strlen("\"chunk_table\": \"d-");
	for (unsigned int i = 0;; i++) {
		struct call_result res;
		snprintf(key, sizeof(key), "db/%.17s/d/%.18s/%u%s", id, id + 18, i, others);
		if (call_get(w->store, key, 0, STORE_TO_END, 0, NULL, &res, NULL))
			break;
		assert_int_equal(bytes_append(&r->table, res.body.data, res.body.len), 0);
		bytes_release(&res.body);
	}
}

/* The table of a dataset has what the index of the file has. */
static void check_table(struct world *w, const char *path, struct records *r)
{
	struct source *source = NULL;
	struct h5file *f = NULL;
	uint64_t nonzero = 0;
	uint32_t number = 0;
	assert_int_equal(w->opt.file.open(w->opt.file.ctx, &source, NULL), 0);
	assert_int_equal(h5file_open(source, NULL, &f, NULL), 0);
	while (strcmp(tree_object(h5file_tree(f), number)->o.id, path) != 0)
		number++;
	assert_int_equal(h5file_chunks(f, number, 0, UINT64_MAX, check_record, r, NULL), 0);
	for (size_t i = 0; i < r->table.len / r->size; i++)
		nonzero += number_get_int(r->table.data + i * r->size + 8, 4, false) != 0;
	assert_int_equal(nonzero, r->stored);
	h5file_close(f);
	bytes_release(&r->table);
}

static void test_table(void **state)
{
	struct world w;
	struct import_link link;
	struct records r = {.size = RECORD};
	init(&w, &link, 0);
	world_must_import(&w, NULL);
	read_table(&w, "/fixed/paged", "_0", &r);
	assert_int_equal(r.table.len, 3300 * RECORD);
	check_table(&w, "/fixed/paged", &r);
	assert_int_equal(r.stored, 1500);
	world_release(&w);
}

static int open_links(void *ctx, struct source **out, struct err *err)
{
	return world_open_data(ctx, "links.h5", out, err);
}

/* Data of 512 elements stay in the file, and the document lists up to 1,000 chunks. The table of
 * the others may have several chunks, and masks of filters. */
static void test_limits(void **state)
{
	struct world w;
	struct import_link link;
	struct import_result result;
	struct records r = {.size = RECORD_MASKED};
	init(&w, &link, 0);
	w.opt.file.open = open_links;
	world_must_import(&w, &result);
	assert_int_equal(result.linked, 3);
	assert_int_equal(count_objects(&w, "\"H5D_CONTIGUOUS_REF\""), 1);
	assert_int_equal(count_objects(&w, "\"H5D_CHUNKED_REF\""), 1);
	assert_int_equal(count_objects(&w, "H5D_CHUNKED_REF_INDIRECT"), 1);
	read_table(&w, "/table", "", &r);
	assert_int_equal(count_objects(&w, "\"num_linked_chunks\": 2002,"), 1); /* the summary */
	check_table(&w, "/table", &r);
	assert_int_equal(r.stored, 1001);
	assert_int_equal(r.masked, 1);
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
 * One of the files has a table of several chunks. */
static void test_interrupted(void **state)
{
	static int (*const files[])(void *, struct source **, struct err *) = {open_indexes,
									       open_links};
	for (size_t k = 0; k < sizeof(files) / sizeof(files[0]); k++) {
		struct world clean;
		struct import_link link;
		init(&clean, &link, 0);
		clean.opt.file.open = files[k];
		world_must_import(&clean, NULL);
		const unsigned int n = clean.gate->n;
		char *want = world_content(&clean, "");
		for (unsigned int i = 1; i <= n; i += n / (k ? 4 : 8) + 1) {
			struct world w;
			struct err err;
			init(&w, &link, 0);
			w.opt.file.open = files[k];
			w.gate->later = true;
			assert_int_equal(world_import_failing(&w, i, -EIO, &err), -EIO);
			world_must_import(&w, NULL);
			world_check_content(&w, want);
			world_release(&w);
		}
		free(want);
		world_release(&clean);
	}
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
		cmocka_unit_test(test_limits),
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
