/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks in HDF5 files that a domain refers to: which requests are made, and what happens when a
 * file is not what the domain expects. The file is not HDF5 here: its index is not read.
 */
#include "domain_fixture.h"

#include <errno.h>

#include <ranges/file_finder.h>
#include <store/implement.h>
#include <bucket/schemas.h>

#define TABLE	  SMALL_ID("d", "0002-000000-000009")
#define TABLE_KEY SMALL_PREFIX "/d/0002-000000-000009/"
#define DOCUMENT(layout)                                                                           \
	"{" SMALL_HEAD(                                                                            \
		SMALL_INTS) ",'type':" SMALL_I32 ",'shape':{'class':'H5S_SIMPLE',"                 \
			    "'dims':[12]},'attributes':{},'layout':{'class':"                      \
			    "'H5D_CHUNKED','dims':[4]},'creationProperties':{'layout':{" layout    \
			    "}}}"
#define CHUNKED(chunks)                                                                            \
	DOCUMENT("'class':'H5D_CHUNKED_REF','file_uri':'b/data','dims':[4],'chunks':" chunks)
#define INDIRECT                                                                                   \
	DOCUMENT("'class':'H5D_CHUNKED_REF_INDIRECT','file_uri':'b/data','dims':[4],"              \
		 "'chunk_table':'" TABLE "'")

struct test {
	struct fixture *f;
	struct file_finder files;
	struct store *store; /* of the file; NULL: that of the fixture */
	struct chunk_result chunks[4];
	unsigned int calls;
	bool local_etags;
	struct store_counts before;
};

static int resolve(void *ctx, const char *uri, struct found_file *out, struct err *err)
{
	struct test *t = ctx;
	if (strncmp(uri, "b/", 2) != 0)
		return err_set(err, -EACCES, "%s is outside of the bucket", uri);
	snprintf(out->key, sizeof(out->key), "%s", uri + 2);
	out->store = t->store ? t->store : t->f->store;
	out->local_etags = t->local_etags;
	return 0;
}

/* A file of the numbers 0, 1, 2 … */
static void put_file(struct test *t, int32_t first, size_t n)
{
	int32_t values[4096];
	for (size_t i = 0; i < n; i++)
		values[i] = first + (int32_t)i;
	assert_int_equal(call_put(t->f->store, "data", values, n * 4, NULL, NULL, NULL), 0);
}

static int try_open(struct test *t, const struct domain_hint *hint, struct domain **out)
{
	return domain_open(&(struct domain_bucket){.env = &t->f->env,
						   .store = t->f->store,
						   .schemas = schema_all(),
						   .files = &t->files},
			   "d.h5", hint, out, NULL);
}

static void open_with(struct test *t, struct fixture *f, const char *document)
{
	*t = (struct test){.f = f};
	t->files = (struct file_finder){.resolve = resolve, .ctx = t};
	small_put(f->store, SMALL_KEY_INTS, document);
	put_file(t, 0, 1000);
	assert_int_equal(try_open(t, NULL, &f->domain), 0);
	store_count_read(f->store, &t->before);
}

static void keep(void *arg, struct chunk_result *chunk)
{
	struct test *t = arg;
	t->chunks[t->calls++] = *chunk;
}

static uint32_t ints(const struct domain *d)
{
	const struct tree *tree = domain_tree(d);
	for (uint32_t i = 0; i < tree_count(tree); i++)
		if (strcmp(tree_object(tree, tree_nth(tree, i))->o.id, SMALL_INTS) == 0)
			return tree_nth(tree, i);
	fail_msg("no ints");
	return 0;
}

static const struct chunk_result *get(struct test *t, uint64_t number)
{
	const struct chunk_source chunks = domain_chunk_source(t->f->domain);
	elems_release(&t->chunks[0].data.elems);
	t->calls = 0;
	chunks.get(chunks.ctx,
		   &(struct chunk_request){.dataset = ints(t->f->domain), .number = number}, keep,
		   t);
	assert_int_equal(t->calls, 1);
	return &t->chunks[0];
}

static void assert_values(const struct chunk_result *chunk, int32_t first)
{
	int32_t values[4];
	if (chunk->code)
		fail_msg("%s", chunk->err.msg);
	assert_int_equal(chunk->data.elems.fixed.len, sizeof(values));
	memcpy(values, chunk->data.elems.fixed.data, sizeof(values));
	for (int i = 0; i < 4; i++)
		assert_int_equal(values[i], first + i);
}

static uint64_t gets(struct test *t)
{
	struct store_counts now;
	store_count_read(t->f->store, &now);
	return now.calls[STORE_GET] - t->before.calls[STORE_GET];
}

static void done(struct test *t)
{
	elems_release(&t->chunks[0].data.elems);
}

static void one_chunk_is_one_range(void **state)
{
	struct test t;
	open_with(&t, *state, CHUNKED("{'0':[400,16],'2':[800,16]}"));
	assert_values(get(&t, 0), 100);
	assert_values(get(&t, 2), 200);
	assert_int_equal(gets(&t), 2);
	assert_true(get(&t, 1)->absent);
	assert_int_equal(gets(&t), 2);
	done(&t);
}

static void a_contiguous_dataset_is_one_range(void **state)
{
	struct test t;
	open_with(&t, *state,
		  DOCUMENT("'class':'H5D_CONTIGUOUS_REF','file_uri':'b/data','offset':40,"
			   "'size':48"));
	const struct chunk_result *chunk = get(&t, 0);
	assert_int_equal(chunk->code, 0);
	assert_int_equal(chunk->data.elems.fixed.len, 48);
	assert_int_equal(chunk->data.elems.fixed.data[44], 21);
	assert_int_equal(gets(&t), 1);
	done(&t);
}

static void assert_fails(struct test *t, uint64_t number, int code, const char *why)
{
	const struct chunk_result *chunk = get(t, number);
	assert_int_equal(chunk->code, code);
	if (!strstr(chunk->err.msg, why))
		fail_msg("%s", chunk->err.msg);
}

static void a_range_past_the_end_fails_by_name(void **state)
{
	struct test t;
	open_with(&t, *state, CHUNKED("{'0':[3996,16],'1':[9000,16],'2':[800,16]}"));
	assert_fails(&t, 0, -EIO, "b/data, bytes 3996-4011: the range is past the end");
	assert_fails(&t, 1, -EIO, "past the end of the file, which has 4000 bytes");
	assert_int_equal(gets(&t), 1); /* the size is known by then */
	assert_values(get(&t, 2), 200);
	assert_false(domain_is_outdated(t.f->domain));
	done(&t);
}

static void a_missing_file_fails_by_name(void **state)
{
	struct test t;
	open_with(&t, *state, CHUNKED("{'0':[0,16]}"));
	assert_int_equal(call_delete(t.f->store, "data", NULL, NULL), 0);
	assert_fails(&t, 0, -EIO, "b/data");
	assert_fails(&t, 0, -EIO, "does not exist");
}

static void a_file_outside_of_the_bucket_is_refused(void **state)
{
	struct test t;
	open_with(&t, *state,
		  DOCUMENT("'class':'H5D_CHUNKED_REF','file_uri':'other/data','dims':[4],'chunks':"
			   "{'0':[0,16]}"));
	assert_fails(&t, 0, -EACCES, "other/data is outside");
	assert_int_equal(gets(&t), 0);
}

static void a_file_that_changes_is_never_mixed(void **state)
{
	struct test t;
	struct domain *again;
	open_with(&t, *state, CHUNKED("{'0':[400,16],'1':[800,16]}"));
	assert_values(get(&t, 0), 100);
	put_file(&t, 5000, 1000);
	assert_false(domain_is_outdated(t.f->domain));
	assert_fails(&t, 1, -EIO, "-000001: b/data: the file has changed");
	assert_true(get(&t, 1)->file_lost);
	assert_true(domain_is_outdated(t.f->domain));
	assert_fails(&t, 0, -EIO, "the file has changed");
	/* The next open makes a new snapshot. */
	const struct domain_hint hint = {.previous = t.f->domain};
	assert_int_equal(try_open(&t, &hint, &again), 0);
	assert_ptr_not_equal(again, t.f->domain);
	domain_unref(t.f->domain);
	t.f->domain = again;
	assert_values(get(&t, 1), 5200);
	done(&t);
}

static void another_version_than_the_recorded_one_is_refused(void **state)
{
	static const char *const recorded[] = {"'size':4004", "'etag':'other'"};
	for (size_t i = 0; i < 2; i++) {
		struct test t;
		char document[1024];
		struct fixture *f = *state;
		snprintf(document, sizeof(document), CHUNKED("{'0':[400,16]},'hsmount':{%s}"),
			 recorded[i]);
		open_with(&t, f, document);
		assert_fails(&t, 0, -EIO, "not the version that the domain was made from");
		domain_unref(f->domain);
		f->domain = NULL;
	}
}

/* A file of a directory has another ETag after the bucket was copied. */
static void a_recorded_etag_says_nothing_of_a_directory(void **state)
{
	struct test t;
	open_with(&t, *state,
		  CHUNKED("{'0':[400,16],'1':[800,16]},'hsmount':{'etag':'other','size':4000}"));
	t.local_etags = true;
	assert_values(get(&t, 0), 100);
	put_file(&t, 5000, 1000);
	assert_fails(&t, 1, -EIO, "has changed since the domain was opened");
	done(&t);
}

static void a_chunk_that_does_not_decode_names_the_file(void **state)
{
	struct test t;
	open_with(&t, *state, CHUNKED("{'0':[0,12]},'hsmount':{'exact':true}"));
	assert_fails(&t, 0, -EIO, "b/data, 12 bytes at offset 0: chunk has 12 bytes");
	assert_int_equal(gets(&t), 1); /* the recorded filters are complete: no index is read */
}

static void without_all_filters_the_index_is_read(void **state)
{
	struct test t;
	open_with(&t, *state, CHUNKED("{'0':[0,12]}"));
	assert_fails(&t, 0, -EIO, "dataset /ints"); /* which is no HDF5 file */
	assert_int_equal(gets(&t), 2);
}

/* ---- tables ---- */

static void put_table(struct test *t)
{
	static const uint8_t records[] = {
		0x90, 1, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, /* 400 */
		0,    0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, /* absent */
		0x20, 3, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, /* 800 */
	};
	small_put(t->f->store, TABLE_KEY ".dataset.json",
		  "{" SMALL_HEAD(
			  TABLE) ",'type':{'class':'H5T_COMPOUND','fields':[{'name':'offset',"
				 "'type':{'class':'H5T_INTEGER','base':'H5T_STD_I64LE'}},{'name':"
				 "'size','type':" SMALL_I32 "}]},'shape':{'class':'H5S_SIMPLE',"
				 "'dims':[3]},'attributes':{},'layout':{'class':'H5D_CHUNKED',"
				 "'dims':[3]}}");
	assert_int_equal(
		call_put(t->f->store, TABLE_KEY "0", records, sizeof(records), NULL, NULL, NULL),
		0);
}

static void a_chunk_of_a_table_is_read_once(void **state)
{
	struct test t = {.f = *state};
	put_table(&t);
	open_with(&t, *state, INDIRECT);
	assert_int_equal(gets(&t), 0);
	assert_values(get(&t, 0), 100);
	assert_int_equal(gets(&t), 2);
	assert_values(get(&t, 2), 200);
	assert_int_equal(gets(&t), 3);
	assert_true(get(&t, 1)->absent);
	assert_int_equal(gets(&t), 3);
	done(&t);
}

static void reads_that_begin_together_are_joined(void **state)
{
	struct test t = {.f = *state};
	put_table(&t);
	open_with(&t, *state, INDIRECT);
	get(&t, 1); /* the chunk of the table is in memory now */
	t.calls = 0;
	const struct chunk_source chunks = domain_chunk_source(t.f->domain);
	void *batch = chunks.begin(chunks.ctx);
	assert_non_null(batch);
	for (uint64_t i = 0; i < 3; i++)
		chunks.get(chunks.ctx,
			   &(struct chunk_request){
				   .dataset = ints(t.f->domain), .number = 2 - i, .batch = batch},
			   keep, &t);
	assert_int_equal(t.calls, 1); /* the absent one */
	chunks.end(chunks.ctx, batch);
	assert_int_equal(t.calls, 3);
	assert_true(t.chunks[0].absent);
	assert_values(&t.chunks[1], 100);
	assert_values(&t.chunks[2], 200);
	assert_int_equal(gets(&t), 2); /* the table, and one range of 416 bytes */
	for (int i = 0; i < 3; i++)
		elems_release(&t.chunks[i].data.elems);
}

/* A store that answers later. */
struct slow {
	struct store base;
	struct store_request *req;
	unsigned int n;
};

static void hold(struct store *s, struct store_request *req)
{
	struct slow *slow = (struct slow *)s;
	slow->req = req;
	slow->n++;
}

static void free_nothing(struct store *s)
{
}

static const struct store_ops slow_ops = {.name = "slow", .submit = hold, .free = free_nothing};

static void joined_reads_are_cancelled_when_all_are(void **state)
{
	struct test t;
	struct slow slow = {.n = 0};
	atomic_bool cancelled[2] = {false, false};
	open_with(&t, *state, CHUNKED("{'0':[400,16],'2':[800,16]}"));
	store_init(&slow.base, &slow_ops, &t.f->env, 0);
	t.store = &slow.base;
	const struct chunk_source chunks = domain_chunk_source(t.f->domain);
	void *batch = chunks.begin(chunks.ctx);
	for (uint64_t i = 0; i < 2; i++)
		chunks.get(chunks.ctx,
			   &(struct chunk_request){.dataset = ints(t.f->domain),
						   .number = 2 * i,
						   .cancelled = &cancelled[i],
						   .batch = batch},
			   keep, &t);
	chunks.end(chunks.ctx, batch);
	assert_int_equal(slow.n, 1);
	assert_int_equal(slow.req->range.length, 416);
	for (int i = 0; i < 2; i++) {
		assert_false(is_cancelled(&slow.req->cancelled));
		atomic_store(&cancelled[i], true);
	}
	assert_true(is_cancelled(&slow.req->cancelled));
	store_fail(&slow.base, slow.req, -ECANCELED, "cancelled");
	assert_int_equal(t.calls, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(t.chunks[i].code, -ECANCELED);
}

/* A gap is fetched if it has at most 4 KiB, or no more bytes than the chunks. */
static void far_chunks_are_not_joined(void **state)
{
	struct test t;
	open_with(&t, *state, CHUNKED("{'0':[400,16],'1':[4512,16],'2':[8625,16]}"));
	put_file(&t, 0, 1024 * 3);
	const struct chunk_source chunks = domain_chunk_source(t.f->domain);
	void *batch = chunks.begin(chunks.ctx);
	for (uint64_t i = 0; i < 3; i++)
		chunks.get(chunks.ctx,
			   &(struct chunk_request){
				   .dataset = ints(t.f->domain), .number = i, .batch = batch},
			   keep, &t);
	chunks.end(chunks.ctx, batch);
	assert_int_equal(t.calls, 3);
	assert_int_equal(gets(&t), 2); /* gaps of 4,096 and 4,097 bytes */
	for (int i = 0; i < 3; i++)
		elems_release(&t.chunks[i].data.elems);
}

static void a_forgotten_table_is_read_again(void **state)
{
	struct test t = {.f = *state};
	put_table(&t);
	open_with(&t, *state, INDIRECT);
	get(&t, 1);
	assert_int_equal(gets(&t), 1);
	domain_forget_chunks(t.f->domain);
	get(&t, 1);
	assert_int_equal(gets(&t), 2);
	done(&t);
}

/* A domain may refer to very many files. */
static void files_are_charged_to_the_budget(void **state)
{
	struct test t;
	struct fixture *f = *state;
	struct budget_stats before, after;
	f->env.budget = budget_new(&(struct budget_limits){.bytes = 1 << 20});
	open_with(&t, f, CHUNKED("{'0':[400,16]}"));
	budget_get_stats(f->env.budget, &before);
	get(&t, 0);
	budget_get_stats(f->env.budget, &after);
	assert_true(after.used[BUDGET_TREES] > before.used[BUDGET_TREES] + 500);
	done(&t);
	domain_unref(f->domain);
	f->domain = NULL;
	budget_get_stats(f->env.budget, &after);
	assert_int_equal(after.used[BUDGET_TREES], 0);
	budget_free(f->env.budget);
	f->env.budget = NULL;
}

static void a_missing_table_is_no_absent_chunk(void **state)
{
	struct test t;
	open_with(&t, *state, INDIRECT);
	assert_fails(&t, 0, -EIO, "its chunk table does not exist");
}

static void a_table_without_its_chunk_makes_chunks_absent(void **state)
{
	struct test t = {.f = *state};
	put_table(&t);
	assert_int_equal(call_delete(t.f->store, TABLE_KEY "0", NULL, NULL), 0);
	open_with(&t, *state, INDIRECT);
	assert_true(get(&t, 0)->absent);
}

static void a_damaged_chunk_of_a_table_is_an_error(void **state)
{
	struct test t = {.f = *state};
	put_table(&t);
	assert_int_equal(call_put(t.f->store, TABLE_KEY "0", "short", 5, NULL, NULL, NULL), 0);
	open_with(&t, *state, INDIRECT);
	assert_fails(&t, 0, -EIO, TABLE_KEY "0");
	assert_fails(&t, 1, -EIO, TABLE_KEY "0");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(one_chunk_is_one_range),
		TEST(a_contiguous_dataset_is_one_range),
		TEST(a_range_past_the_end_fails_by_name),
		TEST(a_missing_file_fails_by_name),
		TEST(a_file_outside_of_the_bucket_is_refused),
		TEST(a_file_that_changes_is_never_mixed),
		TEST(another_version_than_the_recorded_one_is_refused),
		TEST(a_recorded_etag_says_nothing_of_a_directory),
		TEST(a_chunk_that_does_not_decode_names_the_file),
		TEST(without_all_filters_the_index_is_read),
		TEST(a_chunk_of_a_table_is_read_once),
		TEST(reads_that_begin_together_are_joined),
		TEST(joined_reads_are_cancelled_when_all_are),
		TEST(far_chunks_are_not_joined),
		TEST(a_forgotten_table_is_read_again),
		TEST(files_are_charged_to_the_budget),
		TEST(a_missing_table_is_no_absent_chunk),
		TEST(a_table_without_its_chunk_makes_chunks_absent),
		TEST(a_damaged_chunk_of_a_table_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
