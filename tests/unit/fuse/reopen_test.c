/* SPDX-License-Identifier: Apache-2.0 */
/* Who finds which file, and what becomes of those that nobody comes for. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "reopen.h"

#define BORN	UINT64_C(5000000000)
#define EXPIRED (BORN + (uint64_t)REOPEN_SECONDS * 1000000000 + 1)

enum { ME = 7, OTHER = 8 };

/* The engine's, as far as files are kept. */
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
	*state = reopen_new();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	reopen_free(*state);
	return 0;
}

/* The version that waits; 0: none. */
static uint64_t waiting(struct reopen *t, pid_t thread, const char *path, uint64_t now)
{
	struct engine_stat st;
	return reopen_stat(t, thread, path, now, &st) ? st.version : 0;
}

static void a_file_is_found_by_thread_path_and_version(void **state)
{
	struct reopen *t = *state;
	struct engine_file f = {.version = 3};
	assert_null(reopen_take(t, ME, "a", 3, BORN));
	reopen_put(t, ME, "a", &f, BORN);
	assert_int_equal(waiting(t, ME, "a", BORN), 3);
	assert_int_equal(waiting(t, ME, "b", BORN), 0);
	assert_int_equal(waiting(t, OTHER, "a", BORN), 0);
	assert_null(reopen_take(t, ME, "b", 3, BORN));
	assert_null(reopen_take(t, OTHER, "a", 3, BORN));
	assert_ptr_equal(reopen_take(t, ME, "a", 3, BORN), &f);
	assert_null(reopen_take(t, ME, "a", 3, BORN));
	assert_int_equal(f.closed, 0);
}

static void another_version_is_closed(void **state)
{
	struct reopen *t = *state;
	struct engine_file f = {.version = 3};
	reopen_put(t, ME, "a", &f, BORN);
	assert_null(reopen_take(t, ME, "a", 4, BORN));
	assert_int_equal(f.closed, 1);
	assert_int_equal(waiting(t, ME, "a", BORN), 0);
}

static void the_last_of_a_thread_counts(void **state)
{
	struct reopen *t = *state;
	struct engine_file first = {.version = 3}, second = {.version = 4};
	reopen_put(t, ME, "a", &first, BORN);
	reopen_put(t, ME, "a", &second, BORN);
	assert_int_equal(first.closed, 1);
	assert_ptr_equal(reopen_take(t, ME, "a", 4, BORN), &second);
}

static void a_thread_without_a_name_has_no_place(void **state)
{
	struct reopen *t = *state;
	struct engine_file f = {.version = 3};
	reopen_put(t, 0, "a", &f, BORN);
	assert_int_equal(f.closed, 1);
	assert_int_equal(waiting(t, 0, "a", BORN), 0);
}

/* Any search closes them: they need not wait for the next file that is kept. */
static void what_nobody_came_for_is_closed_in_time(void **state)
{
	struct reopen *t = *state;
	struct engine_file f = {.version = 3}, g = {.version = 4};
	reopen_put(t, ME, "a", &f, BORN);
	reopen_put(t, OTHER, "b", &g, BORN + 1);
	assert_int_equal(waiting(t, ME, "a", EXPIRED - 1), 3);
	assert_int_equal(waiting(t, OTHER, "b", EXPIRED), 4);
	assert_int_equal(f.closed, 1);
	assert_null(reopen_take(t, ME, "c", 3, EXPIRED + 1));
	assert_int_equal(g.closed, 1);
}

/* Two threads park at once: who read the clock first may get the lock last. */
static void a_clock_that_was_read_before_is_no_age(void **state)
{
	struct reopen *t = *state;
	struct engine_file mine = {.version = 3}, other = {.version = 3};
	reopen_put(t, ME, "a", &mine, BORN);
	reopen_put(t, OTHER, "a", &other, BORN - 1);
	assert_int_equal(waiting(t, ME, "a", BORN - 1), 3);
	assert_ptr_equal(reopen_take(t, ME, "a", 3, BORN - 1), &mine);
	assert_ptr_equal(reopen_take(t, OTHER, "a", 3, BORN), &other);
}

static void a_call_that_ended_leaves_nothing_to_the_next(void **state)
{
	struct reopen *t = *state;
	struct engine_file mine = {.version = 3}, other = {.version = 4};
	reopen_end(t, ME);
	reopen_put(t, ME, "a", &mine, BORN);
	reopen_put(t, OTHER, "a", &other, BORN);
	reopen_end(t, ME);
	assert_int_equal(mine.closed, 0); /* whoever ends it may hold locks */
	assert_null(reopen_take(t, ME, "a", 3, BORN));
	assert_int_equal(mine.closed, 1);
	assert_ptr_equal(reopen_take(t, OTHER, "a", 4, BORN), &other);
}

static void the_oldest_makes_room(void **state)
{
	struct reopen *t = *state;
	static struct engine_file files[REOPEN_MAX + 1];
	for (int i = 0; i <= REOPEN_MAX; i++) {
		files[i].version = (uint64_t)i + 1;
		reopen_put(t, i + 1, "a", &files[i], BORN);
	}
	assert_int_equal(files[0].closed, 1);
	assert_int_equal(waiting(t, 1, "a", BORN), 0);
	for (int i = 1; i <= REOPEN_MAX; i++)
		assert_ptr_equal(reopen_take(t, i + 1, "a", (uint64_t)i + 1, BORN), &files[i]);
}

static void what_is_left_is_closed_with_the_table(void **state)
{
	struct engine_file files[3] = {{.version = 1}, {.version = 2}, {.version = 3}};
	struct reopen *t = reopen_new();
	for (int i = 0; i < 3; i++)
		reopen_put(t, ME + i, "a", &files[i], BORN);
	reopen_free(t);
	for (int i = 0; i < 3; i++)
		assert_int_equal(files[i].closed, 1);
}

struct opener {
	struct reopen *t;
	pid_t thread;
	atomic_uint_fast64_t *clock;
	unsigned int lost;
};

static void *open_often(void *arg)
{
	struct opener *o = arg;
	struct engine_file f = {.version = (uint64_t)o->thread};
	for (int i = 0; i < 2000; i++) {
		reopen_put(o->t, o->thread, "a", &f, atomic_fetch_add(o->clock, 1));
		o->lost += waiting(o->t, o->thread, "a", atomic_fetch_add(o->clock, 1)) == 0;
		o->lost += !reopen_take(o->t, o->thread, "a", f.version,
					atomic_fetch_add(o->clock, 1));
	}
	o->lost += f.closed;
	return NULL;
}

static void no_thread_loses_its_file_to_another(void **state)
{
	enum { THREADS = 8 };
	pthread_t threads[THREADS];
	struct opener openers[THREADS];
	atomic_uint_fast64_t clock = BORN;
	for (int i = 0; i < THREADS; i++) {
		openers[i] = (struct opener){.t = *state, .thread = i + 1, .clock = &clock};
		assert_int_equal(pthread_create(&threads[i], NULL, open_often, &openers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(openers[i].lost, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_found_by_thread_path_and_version),
		TEST(another_version_is_closed),
		TEST(the_last_of_a_thread_counts),
		TEST(a_thread_without_a_name_has_no_place),
		TEST(what_nobody_came_for_is_closed_in_time),
		TEST(a_clock_that_was_read_before_is_no_age),
		TEST(a_call_that_ended_leaves_nothing_to_the_next),
		TEST(the_oldest_makes_room),
		TEST(what_is_left_is_closed_with_the_table),
		TEST(no_thread_loses_its_file_to_another),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
