/* SPDX-License-Identifier: Apache-2.0 */
/* Which reads are cancelled when, by a clock of the test's own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "pending_reads.h"

#define BORN	UINT64_C(1000)
#define EXPIRED (BORN + PENDING_READS_PATIENCE_NS)

static int setup(void **state)
{
	*state = pending_reads_new();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	pending_reads_free(*state);
	return 0;
}

static void impatient_reads_are_called_off_in_time(void **state)
{
	struct pending_reads *t = *state;
	struct pending_read old, young, patient;
	assert_true(pending_reads_begin(t, &old, false, BORN));
	assert_false(pending_reads_begin(t, &young, false, BORN + 1)); /* one clock is enough */
	assert_false(pending_reads_begin(t, &patient, true, BORN));
	assert_true(pending_reads_expire(t, EXPIRED - 1));
	assert_false(cancel_is_fired(&old.cancel));
	assert_true(pending_reads_expire(t, EXPIRED));
	assert_true(cancel_is_fired(&old.cancel) && old.expired);
	assert_false(cancel_is_fired(&young.cancel));
	assert_false(pending_reads_expire(t, EXPIRED + 1)); /* those who are left are patient */
	assert_true(young.expired);
	assert_false(cancel_is_fired(&patient.cancel) || patient.expired);
	pending_reads_end(t, &old);
	pending_reads_end(t, &young);
	pending_reads_end(t, &patient);
}

static void the_clock_is_asked_for_again_after_a_rest(void **state)
{
	struct pending_reads *t = *state;
	struct pending_read w;
	assert_true(pending_reads_begin(t, &w, false, BORN));
	pending_reads_end(t, &w);
	assert_false(pending_reads_begin(t, &w, false, BORN)); /* nobody has looked since */
	pending_reads_end(t, &w);
	assert_false(pending_reads_expire(t, BORN));
	assert_true(pending_reads_begin(t, &w, false, BORN));
	pending_reads_end(t, &w);
}

static void a_clock_that_was_read_before_is_no_age(void **state)
{
	struct pending_reads *t = *state;
	struct pending_read w;
	pending_reads_begin(t, &w, false, EXPIRED);
	assert_true(pending_reads_expire(t, BORN));
	assert_false(w.expired);
	pending_reads_end(t, &w);
}

static void the_end_calls_off_all_and_all_that_come(void **state)
{
	struct pending_reads *t = *state;
	struct pending_read patient, late;
	pending_reads_begin(t, &patient, true, BORN);
	pending_reads_stop(t);
	pending_reads_begin(t, &late, true, BORN);
	assert_true(cancel_is_fired(&patient.cancel) && cancel_is_fired(&late.cancel));
	assert_false(patient.expired || late.expired);
	pending_reads_end(t, &patient);
	pending_reads_end(t, &late);
}

enum { ROUNDS = 2000, READERS = 4 };

static void *read_often(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct pending_read w;
		pending_reads_begin(arg, &w, i % 2, (uint64_t)i);
		pending_reads_end(arg, &w);
	}
	return NULL;
}

static void reads_end_while_others_are_called_off(void **state)
{
	pthread_t threads[READERS];
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_often, *state), 0);
	for (int i = 0; i < ROUNDS; i++)
		pending_reads_expire(*state, UINT64_MAX);
	pending_reads_stop(*state);
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	assert_false(pending_reads_expire(*state, UINT64_MAX));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(impatient_reads_are_called_off_in_time),
		TEST(the_clock_is_asked_for_again_after_a_rest),
		TEST(a_clock_that_was_read_before_is_no_age),
		TEST(the_end_calls_off_all_and_all_that_come),
		TEST(reads_end_while_others_are_called_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
