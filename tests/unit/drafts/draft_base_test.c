/* SPDX-License-Identifier: Apache-2.0 */
/* What lies beneath a draft: reads of one version, and of the one that replaces it. */
#include "drafts_fixture.h"

#include <pthread.h>

#include "drafts/draft_base.h"
#include <snapshots/snapshots.h>
#include <bucket/schemas.h>

#include "draft_files.h"

static struct draft_base *base_of(struct world *w, const char *key, const char *text)
{
	struct draft_base *b;
	struct call_result res;
	struct err err = ERR_INIT;
	world_put(w, key, text, strlen(text));
	assert_int_equal(call_get(w->gate->base.inner, key, 0, STORE_TO_END, 0, NULL, &res, NULL),
			 0);
	bytes_release(&res.body);
	if (draft_base_new(w->e->bucket.store, w->e->bucket.cache, key, &res.meta, &b, &err))
		fail_msg("%s", err.msg);
	return b;
}

static void replace(struct world *w, struct draft_base *b, const char *key)
{
	struct call_result res;
	assert_int_equal(call_get(w->gate->base.inner, key, 0, STORE_TO_END, 0, NULL, &res, NULL),
			 0);
	bytes_release(&res.body);
	assert_int_equal(draft_base_replace(b, key, &res.meta, NULL), 0);
}

static int read_code(struct draft_base *b, uint64_t offset, size_t n, const char *expected)
{
	char buf[64] = "";
	const int rc = draft_base_read(b, offset, buf, n, NULL);
	if (rc == 0)
		assert_memory_equal(buf, expected, n);
	return rc;
}

static void reads_use_the_newest_object(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	struct draft_base *b = base_of(&w, "a", "0123456789");
	assert_int_equal(draft_base_size(b), 10);
	assert_int_equal(read_code(b, 2, 4, "2345"), 0);
	assert_int_equal(read_code(b, 8, 4, ""), -EIO);
	world_put(&w, "b", "abcdef", 6);
	replace(&w, b, "b");
	assert_int_equal(read_code(b, 2, 4, "cdef"), 0);
	/* The size is that of the file when it was opened. */
	assert_int_equal(draft_base_size(b), 10);
	draft_base_free(b);
	draft_base_free(NULL);
	table_end(&w);
}

static void another_version_is_not_read(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	struct draft_base *b = base_of(&w, "a", "0123456789");
	world_put(&w, "a", "others", 6);
	assert_int_equal(read_code(b, 0, 4, ""), -ESTALE);
	draft_base_free(b);
	b = base_of(&w, "b", "0123456789");
	assert_int_equal(engine_unlink(w.e, "b", NULL), 0);
	assert_int_not_equal(read_code(b, 0, 4, ""), 0);
	draft_base_free(b);
	table_end(&w);
}

enum { READS = 2000 };

static void *read_often(void *arg)
{
	for (int i = 0; i < READS; i++)
		assert_int_equal(read_code(arg, 3, 4, "same"), 0);
	return NULL;
}

static void it_is_replaced_while_it_is_read(void **state)
{
	struct world w;
	pthread_t threads[4];
	table_begin(&w, false, 4);
	struct draft_base *b = base_of(&w, "a", "A--same");
	world_put(&w, "b", "B--same", 7);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_often, b), 0);
	for (int i = 0; i < 100; i++)
		replace(&w, b, i % 2 ? "a" : "b");
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	draft_base_free(b);
	table_end(&w);
}

/* ---- the image of a domain ---- */

static int add_open(void *arg, struct snapshot *s)
{
	*(int *)arg += (int)atomic_load(&s->use.open);
	return 0;
}

/* Holds on the storage of a domain: as long as there is one, nothing of it is deleted. */
static int count_holds(struct world *w)
{
	int n = 0;
	assert_int_equal(snapshots_each(w->e->bucket.snapshots, add_open, &n), 0);
	return n;
}

static void each_open_file_holds_the_domain(void **state)
{
	struct world w;
	struct engine_file *reader;
	struct err err = ERR_INIT;
	table_begin(&w, false, 0);
	w.e->bucket.domains = (struct domain_bucket){
		.env = &w.e->bucket.env, .store = w.e->bucket.store, .schemas = schema_all()};
	world_draft(&w, "a.h5");
	world_write_file(&w, ONE);
	world_must_commit(&w, COMMIT_DOMAIN);
	if (engine_file_open(w.e, "a.h5", &reader, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(count_holds(&w), 1);
	struct engine_file *writer = open_write(&w, "a.h5", 0);
	assert_int_equal(count_holds(&w), 2);
	engine_file_close(writer);
	assert_int_equal(count_holds(&w), 1);
	writer = open_write(&w, "a.h5", 0);
	engine_file_close(reader);
	assert_int_equal(count_holds(&w), 1);
	engine_file_close(writer);
	assert_int_equal(count_holds(&w), 0);
	snapshots_free(w.e->bucket.snapshots); /* before the cache */
	w.e->bucket.snapshots = NULL;
	table_end(&w);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reads_use_the_newest_object),
		TEST(another_version_is_not_read),
		TEST(it_is_replaced_while_it_is_read),
		TEST(each_open_file_holds_the_domain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
