/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and times of domains before they are opened: exact, remembered, estimated; and what they
 * cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <store/implement.h>

#include "bucket.h"

#include "engine/engine_internal.h"

enum { UNKNOWN = 4096, HOUR = 3600 };

static const char summary[] =
	"{\"lastModified\": 1720000000, \"num_groups\": 1, \"num_datatypes\": 0, \"datasets\": {}, "
	"\"num_chunks\": 3, \"allocated_bytes\": 500000, \"metadata_bytes\": 1000, "
	"\"logical_bytes\": 1000000}";

/* A domain of more than a thousand keys. */
static void put_large(struct test_bucket *b, unsigned int n, const char *path)
{
	char key[128];
	bucket_domain(b, n, path);
	for (int i = 0; i <= 1000; i++) {
		snprintf(key, sizeof(key), "db/%08x-00000000/d/1111-222222-000001/%d", n, i);
		bucket_put(b, key, "12345678");
	}
}

static void put_summary(struct test_bucket *b, unsigned int n, const char *text)
{
	char key[128];
	snprintf(key, sizeof(key), "db/%08x-00000000/.info.json", n);
	bucket_put(b, key, text);
}

static void open_as(struct test_bucket *b, enum engine_stat_mode mode, double ttl,
		    const char *fault, const char *cache_dir)
{
	struct engine_options opt;
	if (b->engine)
		engine_close(b->engine);
	b->engine = NULL;
	engine_options_init(&opt);
	opt.workers = 0;
	opt.stat = mode;
	opt.metadata_ttl = ttl;
	opt.debug_fault = fault;
	opt.cache_dir = cache_dir;
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

/* Opens and closes a file; returns what fstat(2) shows. */
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
	assert_int_equal(a->size, b->size);
	assert_int_equal(a->blocks, b->blocks);
	assert_int_equal(a->mtime_ns, b->mtime_ns);
	assert_int_equal(a->ctime_ns, b->ctime_ns);
}

static void an_open_changes_nothing(void **state)
{
	struct test_bucket *b = *state;
	const struct bucket_more more = {.links = NULL};
	bucket_datasets(b, "x.h5", 3, 1, &more);
	bucket_chunk(b, 1, "0123456789abcdef");
	for (int again = 0; again < 2; again++) {
		open_as(b, ENGINE_STAT_AUTO, again ? 0 : HOUR, NULL, NULL);
		const struct engine_stat before = stat_of(b, "x.h5");
		assert_true(before.size_exact && before.version == 0);
		const struct engine_stat open = open_once(b, "x.h5");
		assert_true(open.version && !open.unchecked);
		assert_same(&before, &open);
		const struct engine_stat after = stat_of(b, "x.h5");
		assert_int_equal(after.version, open.version);
		assert_same(&before, &after);
	}
}

static void requests_of_a_small_domain(void **state)
{
	struct test_bucket *b = *state;
	struct engine_stat st;
	const struct bucket_more more = {.links = NULL};
	bucket_datasets(b, "x.h5", 3, 1, &more);
	open_as(b, ENGINE_STAT_AUTO, HOUR, NULL, NULL);
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), 0);
	assert_int_equal(st.size, UNKNOWN);
	const uint64_t looked_up = bucket_requests(b);
	stat_of(b, "x.h5");
	assert_int_equal(bucket_requests(b), looked_up + 1 + 4); /* the listing, four objects */
	assert_int_equal(bucket_counts(b).lists, 2);
	stat_of(b, "x.h5");
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), 0);
	assert_true(st.size_exact);
	assert_int_equal(bucket_requests(b), looked_up + 5);
	/* When the name has become stale: its document and the listing. */
	open_as(b, ENGINE_STAT_AUTO, 0, NULL, NULL);
	stat_of(b, "x.h5");
	const uint64_t first = bucket_requests(b);
	stat_of(b, "x.h5");
	assert_int_equal(bucket_requests(b), first + 2);
}

static void a_change_is_seen_without_an_open(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "x.h5");
	open_as(b, ENGINE_STAT_AUTO, 0, NULL, NULL);
	const struct engine_stat before = stat_of(b, "x.h5"), opened = open_once(b, "x.h5");
	bucket_put_root(b, 1, 9);
	struct engine_stat st;
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), 0);
	assert_true(st.version == opened.version && st.unchecked);
	st = stat_of(b, "x.h5");
	assert_true(st.version == 0 && st.size_exact && st.mtime_ns > before.mtime_ns);
	const struct engine_stat again = open_once(b, "x.h5");
	assert_true(again.version && again.version != opened.version);
	assert_same(&st, &again);
	st = stat_of(b, "x.h5");
	assert_int_equal(st.version, again.version);
}

/* It reads only what has changed, as an open does. */
static void a_change_of_an_opened_domain_is_cheap(void **state)
{
	struct test_bucket *b = *state;
	const struct bucket_more none = {.links = NULL};
	bucket_datasets(b, "x.h5", 8, 1, &none);
	open_as(b, ENGINE_STAT_AUTO, 0, NULL, NULL);
	const struct engine_stat opened = open_once(b, "x.h5");
	bucket_put_root(b, 1, 9);
	const struct bucket_counts before = bucket_counts(b);
	const struct engine_stat st = stat_of(b, "x.h5");
	const struct bucket_counts after = bucket_counts(b);
	assert_true(st.version == 0 && st.size_exact && st.mtime_ns > opened.mtime_ns);
	/* The document of the domain twice, the root group; and the listing twice. */
	assert_int_equal(after.gets - before.gets, 3);
	assert_int_equal(after.lists - before.lists, 2);
	const struct engine_stat again = open_once(b, "x.h5");
	assert_same(&st, &again);
}

static void a_damaged_domain(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "x.h5");
	bucket_put(b, "db/00000001-00000000/.group.json", "damaged");
	bucket_domain(b, 2, "y.h5");
	bucket_put(b, "y.h5/.domain.json", "damaged");
	open_as(b, ENGINE_STAT_AUTO, 0, NULL, NULL);
	for (int exact = 0; exact < 2; exact++) {
		const struct engine_stat x = stat_of(b, "x.h5"), y = stat_of(b, "y.h5");
		assert_true(x.size == UNKNOWN && !x.size_exact && x.version == 0);
		assert_true(y.size == UNKNOWN && !y.size_exact && y.version == 0);
		/* The damage of a version is remembered. */
		const uint64_t before = bucket_requests(b);
		stat_of(b, "x.h5");
		assert_int_equal(bucket_requests(b), before + 2);
		open_as(b, ENGINE_STAT_EXACT, 0, NULL, NULL);
	}
	/* Repaired, it has a size. */
	bucket_put_root(b, 1, 0);
	assert_true(stat_of(b, "x.h5").size_exact);
}

static void a_failure_is_not_remembered(void **state)
{
	static const char *const faults[] = {"fail:1:EIO@db/*", "fail:1:EIO@*/.group.json"};
	struct test_bucket *b = *state;
	struct engine_stat st;
	bucket_domain(b, 1, "x.h5");
	for (size_t i = 0; i < 2; i++) {
		open_as(b, ENGINE_STAT_AUTO, HOUR, faults[i], NULL);
		st = stat_of(b, "x.h5");
		assert_true(st.size == UNKNOWN && !st.size_exact);
		assert_true(stat_of(b, "x.h5").size_exact);
		open_as(b, ENGINE_STAT_EXACT, HOUR, faults[i], NULL);
		assert_int_equal(engine_getattr(b->engine, "x.h5", &st, NULL), -EIO);
		assert_true(stat_of(b, "x.h5").size_exact);
	}
	/* What was opened before is still known. */
	open_as(b, ENGINE_STAT_AUTO, 0, "fail:2:EIO@db/00000001-00000000/", NULL);
	const struct engine_stat opened = open_once(b, "x.h5");
	st = stat_of(b, "x.h5");
	assert_true(st.version == opened.version && st.unchecked);
	assert_same(&opened, &st);
	assert_false(stat_of(b, "x.h5").unchecked);
}

static void a_large_domain(void **state)
{
	struct test_bucket *b = *state;
	put_large(b, 1, "x.h5");
	put_large(b, 2, "y.h5");
	put_summary(b, 1, summary);
	open_as(b, ENGINE_STAT_AUTO, HOUR, NULL, NULL);
	const struct engine_stat before = stat_of(b, "x.h5");
	assert_int_equal(before.size, 1001000);
	assert_false(before.size_exact);
	assert_int_equal(before.mtime_ns, INT64_C(1720000000) * 1000000000);
	assert_int_equal(stat_of(b, "y.h5").size, UNKNOWN);
	assert_int_equal(stat_of(b, "y.h5").mtime_ns, INT64_C(1700000001) * 1000000000);
	const struct engine_stat opened = open_once(b, "x.h5"), after = stat_of(b, "x.h5");
	assert_true(opened.size < 1001000 && opened.mtime_ns == before.mtime_ns);
	assert_same(&opened, &after);
	/* Without an earlier stat, too. */
	open_as(b, ENGINE_STAT_AUTO, 0, NULL, NULL);
	const struct engine_stat cold = open_once(b, "x.h5");
	assert_same(&opened, &cold);
	const uint64_t first = bucket_requests(b);
	const struct engine_stat known = stat_of(b, "x.h5");
	assert_same(&opened, &known);
	assert_int_equal(bucket_requests(b), first + 2); /* both documents */
	/* Another summary means another version, and that does not count for what was opened. */
	put_summary(b, 1, "{\"lastModified\": 1720000007}");
	const struct engine_stat later = stat_of(b, "x.h5");
	assert_int_equal(later.size, opened.size);
	assert_int_equal(later.mtime_ns, INT64_C(1720000007) * 1000000000);
	assert_int_equal(open_once(b, "x.h5").mtime_ns, later.mtime_ns);
}

static void a_summary_that_could_not_be_read_is_requested_again(void **state)
{
	struct test_bucket *b = *state;
	put_large(b, 1, "x.h5");
	put_summary(b, 1, summary);
	open_as(b, ENGINE_STAT_AUTO, HOUR, "fail:1:EIO@*/.info.json", NULL);
	assert_int_equal(stat_of(b, "x.h5").size, UNKNOWN);
	assert_int_equal(stat_of(b, "x.h5").size, 1001000);
	/* Nor does it fail an open. */
	open_as(b, ENGINE_STAT_AUTO, HOUR, "fail:1:EIO@*/.info.json", NULL);
	assert_true(open_once(b, "x.h5").unchecked);
	assert_int_equal(stat_of(b, "x.h5").mtime_ns, INT64_C(1720000000) * 1000000000);
	put_summary(b, 1, "damaged");
	open_as(b, ENGINE_STAT_AUTO, HOUR, NULL, NULL);
	assert_int_equal(stat_of(b, "x.h5").size, UNKNOWN);
}

static void later_mounts_remember(void **state)
{
	struct test_bucket *b = *state;
	char cache[128];
	const struct bucket_more more = {.links = NULL};
	snprintf(cache, sizeof(cache), "%s.cache", b->dir);
	bucket_datasets(b, "x.h5", 3, 1, &more);
	put_large(b, 2, "y.h5");
	put_summary(b, 2, summary);
	/* The cache takes nothing that is younger than two seconds. */
	char command[512];
	snprintf(command, sizeof(command), "find %s -type f -exec touch -d 2020-01-01 {} +",
		 b->dir);
	assert_int_equal(system(command), 0);
	open_as(b, ENGINE_STAT_AUTO, HOUR, NULL, cache);
	const struct engine_stat x = stat_of(b, "x.h5"), y = open_once(b, "y.h5");
	/* Nothing but the names, a listing each, and the summary. */
	open_as(b, ENGINE_STAT_AUTO, HOUR, NULL, cache);
	struct engine_stat st;
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), 0);
	assert_int_equal(engine_lookup(b->engine, "y.h5", &st, NULL), 0);
	const uint64_t looked_up = bucket_requests(b);
	const struct engine_stat x2 = stat_of(b, "x.h5"), y2 = stat_of(b, "y.h5");
	assert_int_equal(bucket_requests(b), looked_up + 3);
	assert_same(&x, &x2);
	assert_same(&y, &y2);
	/* Without the cache, the large domain has its estimate again. */
	open_as(b, ENGINE_STAT_AUTO, HOUR, NULL, NULL);
	const struct engine_stat x3 = stat_of(b, "x.h5");
	assert_same(&x, &x3);
	assert_int_equal(stat_of(b, "y.h5").size, 1001000);
	snprintf(command, sizeof(command), "rm -r %s", cache);
	assert_int_equal(system(command), 0);
}

/* A domain that was large and is not any more has its exact size, and no estimate. */
static void a_large_domain_becomes_small(void **state)
{
	struct test_bucket *b = *state;
	put_large(b, 1, "x.h5");
	put_summary(b, 1, summary);
	open_as(b, ENGINE_STAT_AUTO, 0, NULL, NULL);
	open_once(b, "x.h5");
	for (int i = 0; i <= 1000; i++) {
		char key[128];
		snprintf(key, sizeof(key), "db/00000001-00000000/d/1111-222222-000001/%d", i);
		bucket_remove(b, key);
	}
	bucket_put_root(b, 1, 9);
	put_summary(b, 1, "{\"lastModified\": 1720000007}");
	const struct engine_stat st = stat_of(b, "x.h5"), opened = open_once(b, "x.h5");
	assert_true(st.size_exact && st.version == 0);
	assert_same(&st, &opened);
}

static void exact_plans_everything(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "x.h5");
	put_large(b, 2, "y.h5");
	put_summary(b, 2, summary);
	open_as(b, ENGINE_STAT_EXACT, HOUR, NULL, NULL);
	const struct engine_stat x = stat_of(b, "x.h5"), y = stat_of(b, "y.h5");
	assert_true(x.size_exact && y.size_exact && y.size < 1001000);
	assert_int_equal(y.mtime_ns, INT64_C(1720000000) * 1000000000);
	const struct engine_stat x2 = open_once(b, "x.h5"), y2 = open_once(b, "y.h5");
	assert_same(&x, &x2);
	assert_same(&y, &y2);
}

static void an_estimate_costs_nothing(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "x.h5");
	put_large(b, 2, "y.h5");
	put_summary(b, 2, summary);
	open_as(b, ENGINE_STAT_ESTIMATE, HOUR, NULL, NULL);
	struct engine_stat st;
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), 0);
	assert_int_equal(engine_lookup(b->engine, "y.h5", &st, NULL), 0);
	const uint64_t looked_up = bucket_requests(b);
	static const char *const paths[] = {"x.h5", "y.h5"};
	for (size_t i = 0; i < 2; i++) {
		st = stat_of(b, paths[i]);
		assert_true(st.size == UNKNOWN && !st.size_exact);
		assert_int_equal(st.mtime_ns, INT64_C(1700000001) * 1000000000);
		assert_int_equal(bucket_requests(b), looked_up);
	}
	/* An open shows the size, and changes no time. */
	for (size_t i = 0; i < 2; i++) {
		const struct engine_stat opened = open_once(b, paths[i]);
		assert_true(opened.size_exact && !opened.unchecked);
		assert_int_equal(opened.mtime_ns, INT64_C(1700000001) * 1000000000);
		const uint64_t after = bucket_requests(b);
		st = stat_of(b, paths[i]);
		assert_same(&opened, &st);
		assert_int_equal(bucket_requests(b), after);
	}
}

enum { DOMAINS = 60 };

static void put_siblings(struct test_bucket *b)
{
	char path[32];
	bucket_folder(b, "d");
	for (unsigned int i = 1; i <= DOMAINS; i++) {
		snprintf(path, sizeof(path), "d/%02u.h5", i);
		bucket_domain(b, i, path);
	}
}

/* Opens the bucket with threads that find out sizes, and lists the siblings. */
static void open_for_walk(struct test_bucket *b, unsigned int threads)
{
	struct engine_options opt;
	engine_options_init(&opt);
	opt.workers = threads;
	opt.metadata_ttl = HOUR;
	bucket_open_as(b, opt);
	assert_int_equal(bucket_list(b, "d").code, 0);
}

static void walk(struct test_bucket *b)
{
	char path[32];
	for (unsigned int i = 1; i <= DOMAINS; i++) {
		snprintf(path, sizeof(path), "d/%02u.h5", i);
		assert_true(stat_of(b, path).size_exact);
	}
}

/* With threads, a walk finds out the sizes of all siblings, and each of them once. */
static void a_walk(void **state)
{
	struct test_bucket *b = *state;
	put_siblings(b);
	open_for_walk(b, 8);
	const struct bucket_counts listed = bucket_counts(b);
	walk(b);
	walk(b);
	const struct bucket_counts walked = bucket_counts(b);
	assert_int_equal(walked.lists - listed.lists, DOMAINS);
	assert_int_equal(walked.gets - listed.gets, DOMAINS);
}

/* A service lists many small domains of one schema at once. Only the engine's sizes believe here
 * that the bucket is one of S3. */
static void a_walk_of_a_service(void **state)
{
	struct test_bucket *b = *state;
	put_siblings(b);
	open_for_walk(b, 1);
	const struct bucket_counts listed = bucket_counts(b);
	b->engine->bucket.stack.s3 = b->engine->bucket.store;
	walk(b);
	b->engine->bucket.stack.s3 = NULL;
	const struct bucket_counts walked = bucket_counts(b);
	assert_in_range(walked.lists - listed.lists, 2, 4);
	assert_int_equal(walked.gets - listed.gets, DOMAINS);
}

/* ---- the order of a walk ---- */

/* Listings of domains, one of which stops until it may go on or is cancelled. */
struct listings {
	unsigned int stop; /* its number, from 1 */
	atomic_uint n;
	atomic_bool has_stopped, goes_on, was_cancelled;
	char second[64]; /* the prefix of the second one */
};

struct front {
	struct store base;
	struct listings *listings;
};

static void front_submit(struct store *s, struct store_request *req)
{
	struct listings *l = ((struct front *)s)->listings;
	const unsigned int n = req->op == STORE_LIST ? atomic_fetch_add(&l->n, 1) + 1 : 0;
	if (n == 2)
		snprintf(l->second, sizeof(l->second), "%s", req->key);
	if (n && n == l->stop) {
		atomic_store(&l->has_stopped, true);
		for (int ms = 0; ms < 10000 && !atomic_load(&l->goes_on); ms++) {
			usleep(1000);
			if (is_cancelled(&req->cancelled))
				atomic_store(&l->was_cancelled, true);
			if (atomic_load(&l->was_cancelled))
				break;
		}
	}
	store_pass(s, req);
}

static const struct store_ops front_ops = {.name = "front",
					   .submit = front_submit,
					   .completed = store_complete,
					   .free = store_wrapper_free};

/* From now on, listings of domains are seen. */
static void watch(struct test_bucket *b, struct listings *l)
{
	struct bucket *bucket = &b->engine->bucket;
	struct front *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	f->listings = l;
	store_wrap(&f->base, &front_ops, bucket->store, 0, 0);
	bucket->store = bucket->domains.store = &f->base;
}

static void wait_for(const atomic_bool *flag)
{
	for (int ms = 0; ms < 10000 && !atomic_load(flag); ms++)
		usleep(1000);
	assert_true(atomic_load(flag));
}

struct caller {
	struct test_bucket *b;
	const char *path;
	struct engine_stat st;
	int rc;
	pthread_t thread;
};

static void *find_out(void *arg)
{
	struct caller *c = arg;
	c->rc = engine_getattr(c->b->engine, c->path, &c->st, NULL);
	return NULL;
}

/* A program that waits for the size of a file is served before a walk through a directory. */
static void a_program_that_waits_comes_first(void **state)
{
	struct test_bucket *b = *state;
	struct listings l = {.stop = 1};
	struct caller walker = {.b = b, .path = "d/01.h5"}, other = {.b = b, .path = "z.h5"};
	struct names_node *z;
	put_siblings(b);
	bucket_domain(b, DOMAINS + 1, "z.h5");
	open_for_walk(b, 1);
	assert_int_equal(names_resolve(b->engine->bucket.names, "z.h5", &z, NULL), 0);
	watch(b, &l);
	assert_int_equal(pthread_create(&walker.thread, NULL, find_out, &walker), 0);
	wait_for(&l.has_stopped);
	assert_int_equal(pthread_create(&other.thread, NULL, find_out, &other), 0);
	wait_for(&z->is_sized);
	atomic_store(&l.goes_on, true);
	pthread_join(walker.thread, NULL);
	pthread_join(other.thread, NULL);
	names_node_unref(z);
	/* The rest of the walk uses l. */
	engine_close(b->engine);
	b->engine = NULL;
	assert_true(walker.rc == 0 && walker.st.size_exact);
	assert_true(other.rc == 0 && other.st.size_exact);
	assert_string_equal(l.second, "db/0000003d-00000000/");
}

static void the_end_of_a_mount_ends_a_walk(void **state)
{
	struct test_bucket *b = *state;
	struct listings l = {.stop = 2};
	put_siblings(b);
	open_for_walk(b, 1);
	watch(b, &l);
	assert_true(stat_of(b, "d/01.h5").size_exact);
	wait_for(&l.has_stopped);
	engine_close(b->engine);
	b->engine = NULL;
	assert_true(atomic_load(&l.was_cancelled));
	assert_int_equal(atomic_load(&l.n), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_open_changes_nothing),
		TEST(requests_of_a_small_domain),
		TEST(a_change_is_seen_without_an_open),
		TEST(a_change_of_an_opened_domain_is_cheap),
		TEST(a_damaged_domain),
		TEST(a_failure_is_not_remembered),
		TEST(a_large_domain),
		TEST(a_summary_that_could_not_be_read_is_requested_again),
		TEST(later_mounts_remember),
		TEST(a_large_domain_becomes_small),
		TEST(exact_plans_everything),
		TEST(an_estimate_costs_nothing),
		TEST(a_walk),
		TEST(a_walk_of_a_service),
		TEST(a_program_that_waits_comes_first),
		TEST(the_end_of_a_mount_ends_a_walk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
