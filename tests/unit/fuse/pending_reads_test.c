/* SPDX-License-Identifier: Apache-2.0 */
/* Who is called off when, by a clock of the test's own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "pending_reads.h"

#define BORN	UINT64_C(1000)
#define EXPIRED (BORN + WAITS_PATIENCE_NS)

static int setup(void **state)
{
	*state = waits_new();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	waits_free(*state);
	return 0;
}

static void impatient_reads_are_called_off_in_time(void **state)
{
	struct waits *t = *state;
	struct wait old, young, patient;
	assert_true(waits_begin(t, &old, false, BORN));
	assert_false(waits_begin(t, &young, false, BORN + 1)); /* one clock is enough */
	assert_false(waits_begin(t, &patient, true, BORN));
	assert_true(waits_expire(t, EXPIRED - 1));
	assert_false(cancel_is_fired(&old.cancel));
	assert_true(waits_expire(t, EXPIRED));
	assert_true(cancel_is_fired(&old.cancel) && old.expired);
	assert_false(cancel_is_fired(&young.cancel));
	assert_false(waits_expire(t, EXPIRED + 1)); /* those who are left are patient */
	assert_true(young.expired);
	assert_false(cancel_is_fired(&patient.cancel) || patient.expired);
	waits_end(t, &old);
	waits_end(t, &young);
	waits_end(t, &patient);
}

static void the_clock_is_asked_for_again_after_a_rest(void **state)
{
	struct waits *t = *state;
	struct wait w;
	assert_true(waits_begin(t, &w, false, BORN));
	waits_end(t, &w);
	assert_false(waits_begin(t, &w, false, BORN)); /* nobody has looked since */
	waits_end(t, &w);
	assert_false(waits_expire(t, BORN));
	assert_true(waits_begin(t, &w, false, BORN));
	waits_end(t, &w);
}

static void a_clock_that_was_read_before_is_no_age(void **state)
{
	struct waits *t = *state;
	struct wait w;
	waits_begin(t, &w, false, EXPIRED);
	assert_true(waits_expire(t, BORN));
	assert_false(w.expired);
	waits_end(t, &w);
}

static void the_end_calls_off_all_and_all_that_come(void **state)
{
	struct waits *t = *state;
	struct wait patient, late;
	waits_begin(t, &patient, true, BORN);
	waits_stop(t);
	waits_begin(t, &late, true, BORN);
	assert_true(cancel_is_fired(&patient.cancel) && cancel_is_fired(&late.cancel));
	assert_false(patient.expired || late.expired);
	waits_end(t, &patient);
	waits_end(t, &late);
}

enum { ROUNDS = 2000, READERS = 4 };

static void *read_often(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct wait w;
		waits_begin(arg, &w, i % 2, (uint64_t)i);
		waits_end(arg, &w);
	}
	return NULL;
}

static void reads_end_while_others_are_called_off(void **state)
{
	pthread_t threads[READERS];
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_often, *state), 0);
	for (int i = 0; i < ROUNDS; i++)
		waits_expire(*state, UINT64_MAX);
	waits_stop(*state);
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	assert_false(waits_expire(*state, UINT64_MAX));
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
