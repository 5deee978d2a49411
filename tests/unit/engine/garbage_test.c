/* SPDX-License-Identifier: Apache-2.0 */
/* The storage of removed domains: when it is deleted, with a clock that the test moves. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "garbage.h"

#define SECOND UINT64_C(1000000000)

struct world {
	struct env env;
	uint64_t now;
	uint64_t read; /* the storage that a file reads, or 0 */
	int code;      /* of deletions */
	char deleted[256];
	struct garbage *q;
};

static uint64_t now(const struct env *env)
{
	return ((const struct world *)env->ctx)->now;
}

static bool is_read(void *ctx, uint64_t storage)
{
	return ((const struct world *)ctx)->read == storage;
}

static int collect(void *ctx, const char *path, const struct change_garbage *g,
		   const atomic_bool *cancelled, struct err *err)
{
	struct world *w = ctx;
	const size_t n = strlen(w->deleted);
	if (w->code)
		return err_set(err, w->code, "refused");
	snprintf(w->deleted + n, sizeof(w->deleted) - n, "%s=%u ", path, (unsigned int)g->storage);
	return 0;
}

static void setup(struct world *w, bool threaded)
{
	*w = (struct world){.now = 100 * SECOND, .env = {.now = now, .ctx = w}};
	const struct garbage_ops ops = {.is_read = is_read, .collect = collect, .ctx = w};
	w->q = garbage_new(&w->env, &ops, threaded);
	assert_non_null(w->q);
}

static void add(struct world *w, const char *path, uint64_t storage)
{
	const struct change_garbage g = {.any = storage != 0, .storage = storage};
	garbage_add(w->q, path, &g);
}

/* Moves the clock and deletes what is due. Returns the seconds until something else is due. */
static uint64_t after(struct world *w, uint64_t seconds)
{
	w->now += seconds * SECOND;
	const uint64_t next = garbage_collect(w->q, w->now);
	return next == UINT64_MAX ? UINT64_MAX : (next - w->now) / SECOND;
}

static void test_delay(void **state)
{
	struct world w;
	setup(&w, false);
	assert_int_equal(after(&w, 0), UINT64_MAX);
	add(&w, "none", 0);
	assert_int_equal(after(&w, 0), UINT64_MAX);
	add(&w, "a", 1);
	assert_int_equal(after(&w, 10), 20);
	add(&w, "b", 2);
	assert_int_equal(after(&w, 19), 1);
	assert_string_equal(w.deleted, "");
	assert_int_equal(after(&w, 1), 10);
	assert_string_equal(w.deleted, "a=1 ");
	assert_int_equal(after(&w, 10), UINT64_MAX);
	assert_string_equal(w.deleted, "a=1 b=2 ");
	garbage_free(w.q);
	assert_string_equal(w.deleted, "a=1 b=2 ");
}

/* Storage that a file reads waits for the last reader, also if the delay is over. */
static void test_readers(void **state)
{
	struct world w;
	setup(&w, false);
	add(&w, "a", 1);
	w.read = 1;
	assert_int_equal(after(&w, 30), 5);
	assert_int_equal(after(&w, 1000), 5);
	assert_string_equal(w.deleted, "");
	w.read = 0;
	assert_int_equal(after(&w, 5), UINT64_MAX);
	assert_string_equal(w.deleted, "a=1 ");
	add(&w, "b", 2);
	w.read = 2;
	garbage_free(w.q);
	assert_string_equal(w.deleted, "a=1 ");
}

static void test_failures(void **state)
{
	struct world w;
	setup(&w, false);
	add(&w, "a", 1);
	w.code = -EACCES;
	assert_int_equal(after(&w, 30), 5);
	w.code = 0;
	assert_int_equal(after(&w, 5), UINT64_MAX);
	assert_string_equal(w.deleted, "a=1 ");
	/* At the end nothing is tried twice. */
	add(&w, "b", 2);
	w.code = -EIO;
	garbage_free(w.q);
}

static void test_other_names(void **state)
{
	struct world w;
	setup(&w, false);
	add(&w, "a", 1);
	add(&w, "b", 2);
	garbage_rescue(w.q, 1);
	assert_int_equal(garbage_keep(w.q, 2), 0);
	assert_int_equal(after(&w, 30), UINT64_MAX);
	assert_string_equal(w.deleted, "");
	/* What was rescued can be removed again, what is kept cannot. */
	add(&w, "c", 1);
	add(&w, "b", 2);
	garbage_free(w.q);
	assert_string_equal(w.deleted, "c=1 ");
}

/* The thread deletes everything at the end, without the delay. */
static void test_thread(void **state)
{
	struct world w;
	setup(&w, true);
	add(&w, "a", 1);
	garbage_free(w.q);
	assert_string_equal(w.deleted, "a=1 ");
	setup(&w, true);
	garbage_free(w.q);
	assert_string_equal(w.deleted, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_delay),	 cmocka_unit_test(test_readers),
		cmocka_unit_test(test_failures), cmocka_unit_test(test_other_names),
		cmocka_unit_test(test_thread),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
