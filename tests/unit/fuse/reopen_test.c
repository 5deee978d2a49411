/* SPDX-License-Identifier: Apache-2.0 */
/* An open gets the file that is kept for its thread and path; other files are closed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "fuse/reopen.h"

#define MAX_AGE ((uint64_t)REOPEN_SECONDS * 1000000000)

enum { ME = 7, OTHER = 8 };

static atomic_uint_fast64_t now_ns;

static uint64_t fake_clock(void)
{
	return now_ns;
}

/* ---- fakes of the engine ---- */

struct engine_file {
	uint64_t version;
	atomic_uint closed;
};

void engine_file_close(struct engine_file *f)
{
	f->closed++;
}

void engine_file_stat(struct engine_file *f, struct engine_stat *st)
{
	*st = (struct engine_stat){.kind = ENGINE_DOMAIN, .version = f->version};
}

static int setup(void **state)
{
	now_ns = 5000000000;
	*state = reopen_new(fake_clock);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	reopen_free(*state);
	return 0;
}

/* The version of the file that is kept; 0: none. */
static uint64_t kept_version(struct reopen *t, pid_t thread, const char *path)
{
	struct engine_stat st;
	return reopen_stat(t, thread, path, &st) ? st.version : 0;
}

static void a_file_is_found_by_thread_path_and_version(void **state)
{
	struct reopen *t = *state;
	struct engine_file f = {.version = 3};
	assert_null(reopen_take(t, ME, "a", 3, false));
	reopen_put(t, ME, "a", &f, false);
	assert_int_equal(kept_version(t, ME, "a"), 3);
	assert_int_equal(kept_version(t, ME, "b"), 0);
	assert_int_equal(kept_version(t, OTHER, "a"), 0);
	assert_null(reopen_take(t, ME, "b", 3, false));
	assert_null(reopen_take(t, OTHER, "a", 3, false));
	assert_ptr_equal(reopen_take(t, ME, "a", 3, false), &f);
	assert_null(reopen_take(t, ME, "a", 3, false));
	assert_int_equal(f.closed, 0);
}

static void another_version_is_closed(void **state)
{
	struct reopen *t = *state;
	struct engine_file f = {.version = 3};
	reopen_put(t, ME, "a", &f, false);
	assert_null(reopen_take(t, ME, "a", 4, false));
	assert_int_equal(f.closed, 1);
	assert_int_equal(kept_version(t, ME, "a"), 0);
}

static void a_second_file_of_a_thread_replaces_the_first(void **state)
{
	struct reopen *t = *state;
	struct engine_file first = {.version = 3}, second = {.version = 4};
	reopen_put(t, ME, "a", &first, false);
	reopen_put(t, ME, "a", &second, false);
	assert_int_equal(first.closed, 1);
	assert_ptr_equal(reopen_take(t, ME, "a", 4, false), &second);
}

static void nothing_is_kept_for_a_thread_without_id(void **state)
{
	struct reopen *t = *state;
	struct engine_file f = {.version = 3};
	reopen_put(t, 0, "a", &f, false);
	assert_int_equal(f.closed, 1);
	assert_int_equal(kept_version(t, 0, "a"), 0);
}

static void files_for_writing_are_kept_apart(void **state)
{
	struct reopen *t = *state;
	struct engine_file f = {.version = 3}, g = {.version = 3}, h = {.version = 4};
	reopen_put(t, ME, "a", &f, true);
	assert_null(reopen_take(t, ME, "a", 3, false));
	assert_int_equal(f.closed, 1);
	reopen_put(t, ME, "a", &g, false);
	assert_null(reopen_take(t, ME, "a", 3, true));
	assert_int_equal(g.closed, 1);
	g.closed = 0;
	reopen_put(t, ME, "a", &g, true);
	assert_null(reopen_take(t, ME, "b", 3, false));
	assert_null(reopen_take(t, OTHER, "b", 3, true));
	assert_ptr_equal(reopen_take(t, ME, "b", 3, true), &g); /* renamed */
	reopen_put(t, 0, "a", &h, true);
	assert_int_equal(kept_version(t, 0, "a"), 4);
	assert_ptr_equal(reopen_take(t, 0, "a", 4, true), &h);
}

static void an_expired_file_is_closed_by_the_next_search(void **state)
{
	struct reopen *t = *state;
	struct engine_file mine = {.version = 3}, other = {.version = 4};
	reopen_put(t, ME, "a", &mine, true);
	reopen_put(t, OTHER, "a", &other, true);
	reopen_expire(t, ME);
	assert_int_equal(mine.closed, 0);
	assert_null(reopen_take(t, ME, "a", 3, true));
	assert_int_equal(mine.closed, 1);
	assert_ptr_equal(reopen_take(t, OTHER, "a", 4, true), &other);
}

static void any_search_closes_expired_files(void **state)
{
	struct reopen *t = *state;
	struct engine_file f = {.version = 3}, g = {.version = 4};
	reopen_put(t, ME, "a", &f, false);
	now_ns++;
	reopen_put(t, OTHER, "b", &g, false);
	now_ns += MAX_AGE - 1;
	assert_int_equal(kept_version(t, ME, "a"), 3);
	now_ns++;
	assert_int_equal(kept_version(t, OTHER, "b"), 4);
	assert_int_equal(f.closed, 1);
	now_ns++;
	assert_null(reopen_take(t, ME, "c", 3, false));
	assert_int_equal(g.closed, 1);
}

static void a_call_that_has_ended_leaves_no_file_for_the_next_one(void **state)
{
	struct reopen *t = *state;
	struct engine_file mine = {.version = 3}, other = {.version = 4};
	reopen_end(t, ME);
	reopen_put(t, ME, "a", &mine, false);
	reopen_put(t, OTHER, "a", &other, false);
	reopen_end(t, ME);
	assert_int_equal(mine.closed, 1);
	assert_null(reopen_take(t, ME, "a", 3, false));
	assert_ptr_equal(reopen_take(t, OTHER, "a", 4, false), &other);
}

static void one_file_too_many_closes_the_oldest(void **state)
{
	struct reopen *t = *state;
	static struct engine_file files[REOPEN_MAX + 1];
	for (int i = 0; i <= REOPEN_MAX; i++) {
		files[i].version = (uint64_t)i + 1;
		reopen_put(t, i + 1, "a", &files[i], false);
	}
	assert_int_equal(files[0].closed, 1);
	assert_int_equal(kept_version(t, 1, "a"), 0);
	for (int i = 1; i <= REOPEN_MAX; i++)
		assert_ptr_equal(reopen_take(t, i + 1, "a", (uint64_t)i + 1, false), &files[i]);
}

static void freeing_the_table_closes_its_files(void **state)
{
	struct engine_file files[3] = {{.version = 1}, {.version = 2}, {.version = 3}};
	struct reopen *t = reopen_new(fake_clock);
	for (int i = 0; i < 3; i++)
		reopen_put(t, ME + i, "a", &files[i], false);
	reopen_free(t);
	for (int i = 0; i < 3; i++)
		assert_int_equal(files[i].closed, 1);
}

struct opener {
	struct reopen *t;
	pid_t thread;
	unsigned int lost;
};

static void *open_often(void *arg)
{
	struct opener *o = arg;
	struct engine_file f = {.version = (uint64_t)o->thread};
	for (int i = 0; i < 2000; i++) {
		reopen_put(o->t, o->thread, "a", &f, false);
		now_ns++;
		o->lost += kept_version(o->t, o->thread, "a") == 0;
		o->lost += !reopen_take(o->t, o->thread, "a", f.version, false);
	}
	o->lost += f.closed;
	return NULL;
}

static void no_thread_loses_its_file_to_another(void **state)
{
	enum { THREADS = 8 };
	pthread_t threads[THREADS];
	struct opener openers[THREADS];
	for (int i = 0; i < THREADS; i++) {
		openers[i] = (struct opener){.t = *state, .thread = i + 1};
		assert_int_equal(pthread_create(&threads[i], NULL, open_often, &openers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(openers[i].lost, 0);
}

static void a_directory_above_a_file_is_known(void **state)
{
	struct reopen *t = *state;
	struct engine_file f = {.version = 3};
	reopen_put(t, ME, "a/bc/d", &f, false);
	assert_true(reopen_is_below(t, ME, "a"));
	assert_true(reopen_is_below(t, ME, "a/bc"));
	assert_false(reopen_is_below(t, ME, "a/b"));
	assert_false(reopen_is_below(t, ME, "a/bc/d"));
	assert_false(reopen_is_below(t, ME, "bc"));
	assert_false(reopen_is_below(t, OTHER, "a"));
	reopen_expire(t, ME);
	assert_false(reopen_is_below(t, ME, "a"));
	assert_int_equal(kept_version(t, ME, "a/bc/d"), 0);
	assert_int_equal(f.closed, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_found_by_thread_path_and_version),
		TEST(another_version_is_closed),
		TEST(a_second_file_of_a_thread_replaces_the_first),
		TEST(nothing_is_kept_for_a_thread_without_id),
		TEST(files_for_writing_are_kept_apart),
		TEST(an_expired_file_is_closed_by_the_next_search),
		TEST(any_search_closes_expired_files),
		TEST(a_call_that_has_ended_leaves_no_file_for_the_next_one),
		TEST(one_file_too_many_closes_the_oldest),
		TEST(freeing_the_table_closes_its_files),
		TEST(no_thread_loses_its_file_to_another),
		TEST(a_directory_above_a_file_is_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
