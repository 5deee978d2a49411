/* SPDX-License-Identifier: Apache-2.0 */
/* Who has written to a file since the last flush, and who sees its draft. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fuse/writers.h"

/* Threads 10 to 19 belong to process 10, and so on; 0 is of another namespace. */
enum { ME = 10, MY_THREAD = 11, CHILD = 20, OTHER = 30, DRAFT = 5, ANOTHER = 6 };

static atomic_uint looked; /* calls of fake_process_of() */

static pid_t fake_process_of(pid_t thread)
{
	looked++;
	return thread / 10 * 10;
}

static int setup(void **state)
{
	looked = 0;
	*state = writers_new(fake_process_of);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	writers_free(*state);
	return 0;
}

/* A flush, as the front does it. Returns whether it waits for a commit. */
static bool flush(struct writers *w, struct writers_file *f, pid_t thread)
{
	struct writers_process *p = writers_flush_begin(w, f, thread);
	if (p)
		writers_flush_end(w, f, p);
	return p;
}

static void only_who_has_written_flushes(void **state)
{
	struct writers *w = *state;
	struct writers_file *f = writers_open(w, DRAFT, ME);
	assert_false(flush(w, f, ME)); /* dd(1) does this before it writes */
	writers_wrote(w, f, MY_THREAD);
	assert_false(flush(w, f, CHILD)); /* a child closes what it has inherited */
	assert_true(flush(w, f, ME));
	assert_false(flush(w, f, ME));
	writers_wrote(w, f, CHILD);
	assert_false(flush(w, f, ME));
	assert_true(flush(w, f, CHILD + 1));
	writers_close(w, f);
}

static void a_process_sees_its_draft_until_it_has_flushed(void **state)
{
	struct writers *w = *state;
	struct writers_file *f = writers_open(w, DRAFT, ME);
	assert_true(writers_has(w, DRAFT, MY_THREAD));
	assert_false(writers_has(w, DRAFT, OTHER));
	assert_false(writers_has(w, ANOTHER, ME));
	flush(w, f, ME);
	assert_true(writers_has(w, DRAFT, ME));
	writers_wrote(w, f, ME);
	struct writers_process *p = writers_flush_begin(w, f, ME);
	assert_non_null(p);
	assert_true(writers_has(w, DRAFT, ME)); /* while the draft is committed */
	writers_flush_end(w, f, p);
	assert_false(writers_has(w, DRAFT, ME));
	writers_wrote(w, f, ME);
	assert_true(writers_has(w, DRAFT, ME));
	writers_close(w, f);
	assert_false(writers_has(w, DRAFT, ME));
}

static void each_open_file_counts(void **state)
{
	struct writers *w = *state;
	struct writers_file *f = writers_open(w, DRAFT, ME), *g = writers_open(w, DRAFT, ME);
	writers_wrote(w, f, ME);
	assert_false(flush(w, g, ME));
	assert_true(flush(w, f, ME));
	assert_true(writers_has(w, DRAFT, ME));
	writers_close(w, g);
	assert_false(writers_has(w, DRAFT, ME));
	writers_close(w, f);
}

static void a_write_during_a_flush_needs_another_flush(void **state)
{
	struct writers *w = *state;
	struct writers_file *f = writers_open(w, DRAFT, ME);
	writers_wrote(w, f, ME);
	struct writers_process *first = writers_flush_begin(w, f, ME);
	writers_wrote(w, f, MY_THREAD);
	struct writers_process *second = writers_flush_begin(w, f, MY_THREAD);
	assert_ptr_equal(first, second);
	writers_flush_end(w, f, first);
	assert_true(writers_has(w, DRAFT, ME));
	writers_wrote(w, f, ME);
	writers_flush_end(w, f, second);
	assert_true(writers_has(w, DRAFT, ME));
	assert_true(flush(w, f, ME));
	writers_close(w, f);
}

static void pages_of_a_mapping_are_written_by_who_has_opened_the_file(void **state)
{
	struct writers *w = *state;
	struct writers_file *f = writers_open(w, DRAFT, ME);
	writers_wrote(w, f, 0);
	assert_false(flush(w, f, OTHER));
	assert_true(flush(w, f, ME));
	writers_wrote(w, f, 0); /* nobody has it open any more, as far as is known */
	assert_false(flush(w, f, ME));
	assert_true(flush(w, f, 0));
	writers_close(w, f);
}

static void another_namespace_is_one_process(void **state)
{
	struct writers *w = *state;
	struct writers_file *f = writers_open(w, DRAFT, 0);
	writers_wrote(w, f, 0);
	assert_true(writers_has(w, DRAFT, 0));
	assert_true(flush(w, f, 0));
	writers_close(w, f);
}

static void a_thread_that_goes_on_writing_is_looked_up_once(void **state)
{
	struct writers *w = *state;
	struct writers_file *f = writers_open(w, DRAFT, ME);
	looked = 0;
	for (int i = 0; i < 100; i++)
		writers_wrote(w, f, ME);
	assert_int_equal(looked, 1);
	assert_true(flush(w, f, ME));
	looked = 0;
	writers_wrote(w, f, ME); /* its number may be that of another process by now */
	assert_int_equal(looked, 1);
	writers_close(w, f);
}

static void no_file_no_writer(void **state)
{
	struct writers *w = *state;
	writers_wrote(w, NULL, ME);
	assert_null(writers_flush_begin(w, NULL, ME));
	writers_close(w, NULL);
}

static void *thread_id(void *arg)
{
	*(pid_t *)arg = writers_process_of((pid_t)syscall(SYS_gettid));
	return NULL;
}

static void proc_knows_the_process_of_a_thread(void **state)
{
	pthread_t thread;
	pid_t id = 0;
	assert_int_equal(pthread_create(&thread, NULL, thread_id, &id), 0);
	pthread_join(thread, NULL);
	assert_int_equal(id, getpid());
	assert_int_equal(writers_process_of(0), 0);
	assert_int_equal(writers_process_of(INT32_MAX), INT32_MAX);
}

struct user {
	struct writers *w;
	struct writers_file *shared;
	pid_t thread;
	unsigned int wrong;
};

static void *write_often(void *arg)
{
	struct user *u = arg;
	for (int i = 0; i < 2000; i++) {
		struct writers_file *f = writers_open(u->w, DRAFT, u->thread);
		writers_wrote(u->w, u->shared, u->thread);
		writers_wrote(u->w, f, u->thread);
		u->wrong += !writers_has(u->w, DRAFT, u->thread);
		u->wrong += !flush(u->w, u->shared, u->thread);
		writers_close(u->w, f);
		u->wrong += writers_has(u->w, DRAFT, u->thread);
	}
	return NULL;
}

static void processes_do_not_disturb_each_other(void **state)
{
	enum { USERS = 4 };
	struct writers_file *shared = writers_open(*state, DRAFT, ME);
	pthread_t threads[USERS];
	struct user users[USERS];
	for (int i = 0; i < USERS; i++) {
		users[i] = (struct user){.w = *state, .shared = shared, .thread = CHILD + 10 * i};
		assert_int_equal(pthread_create(&threads[i], NULL, write_often, &users[i]), 0);
	}
	for (int i = 0; i < USERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < USERS; i++)
		assert_int_equal(users[i].wrong, 0);
	writers_close(*state, shared);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_who_has_written_flushes),
		TEST(a_process_sees_its_draft_until_it_has_flushed),
		TEST(each_open_file_counts),
		TEST(a_write_during_a_flush_needs_another_flush),
		TEST(pages_of_a_mapping_are_written_by_who_has_opened_the_file),
		TEST(another_namespace_is_one_process),
		TEST(a_thread_that_goes_on_writing_is_looked_up_once),
		TEST(no_file_no_writer),
		TEST(proc_knows_the_process_of_a_thread),
		TEST(processes_do_not_disturb_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
