/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that are read from a source: the thread that reads them, and repeated attempts. The
 * contract of all stores (store_contract.h) tests their bytes and their errors. */
#include "mem_store.h"
#include "store_fixture.h"

#include "patterned_source.h"

#include <pthread.h>

#include <store/implement.h>

/* ---- a source that needs the store ---- */

struct waiting {
	struct source source;
	struct store *s;
	pthread_t reader;
};

/* The pool has one worker, and the request needs it. */
static int read_through_store(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct waiting *w = ctx;
	struct call_result res;
	w->reader = pthread_self();
	if (call_get(w->s, "beneath", offset, n, 0, NULL, &res, err))
		return err->code;
	assert_int_equal(res.body.len, n);
	memcpy(buf, res.body.data, n);
	bytes_release(&res.body);
	return 0;
}

static void put_what_lies_beneath(struct fixture *f, struct store *s)
{
	struct waiting w = {.source = {.size = 5, .read_at = read_through_store, .ctx = &w},
			    .s = s};
	struct err err = ERR_INIT;
	put_text(s, "beneath", "12345");
	if (call_put_source(s, "above", &w.source, false, NULL, NULL, &err))
		fail_msg("%s", err.msg);
	assert_object(s, "above", "12345");
	assert_false(pthread_equal(w.reader, pthread_self()));
	(void)f;
}

static void test_source_may_wait_for_the_store(void **state)
{
	struct fixture *f = *state;
	fixture_dir(f);
	put_what_lies_beneath(f, f->s);
	struct store *mem = store_mem_new(&f->env, NULL);
	put_what_lies_beneath(f, mem);
	store_free(mem);
}

/* ---- repeated attempts ---- */

struct late {
	struct store base;
	unsigned int attempts;
	uint8_t bytes[2][5];
};

/* The answer of the first attempt is lost after its body was read. */
static void put_late(void *arg)
{
	struct store_request *req = arg;
	struct late *l = (struct late *)store_working(req);
	assert_int_equal(store_body_size(req), 5);
	assert_int_equal(store_body_read(req, 0, l->bytes[l->attempts++], 5), 0);
	if (l->attempts == 1)
		store_fail(&l->base, req, -EAGAIN, "late");
	else
		store_present(&l->base, req);
}

static void submit_late(struct store *s, struct store_request *req)
{
	store_work_apart(s, req, put_late);
}

static void free_nothing(struct store *s)
{
	(void)s;
}

static void test_body_is_read_again(void **state)
{
	static const struct store_ops ops = {
		.name = "late", .submit = submit_late, .free = free_nothing};
	struct fixture *f = *state;
	struct late late = {0};
	struct patterned p;
	patterned_init(&p, 5);
	store_init(&late.base, &ops, &f->env, 0);
	struct store *s = store_retry_new(&late.base, NULL, NULL);
	assert_int_equal(call_put_source(s, "x", &p.source, false, NULL, NULL, NULL), 0);
	assert_int_equal(late.attempts, 2);
	patterned_assert(late.bytes[0], 5, 5);
	patterned_assert(late.bytes[1], 5, 5);
	store_free(s);
}

static void test_bytes_are_counted(void **state)
{
	struct fixture *f = *state;
	struct patterned p;
	struct store_counts counts;
	f->s = store_count_new(store_mem_new(&f->env, NULL), NULL);
	patterned_init(&p, 12345);
	assert_int_equal(call_put_source(f->s, "x", &p.source, false, NULL, NULL, NULL), 0);
	store_count_read(f->s, &counts);
	assert_int_equal(counts.bytes_out, 12345);
}

/* A source that says nothing about its error. */
static int read_nothing(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	return -EBADMSG;
}

static void test_silent_error(void **state)
{
	struct fixture *f = *state;
	struct source source = {.size = 5, .read_at = read_nothing};
	struct err err = ERR_INIT;
	f->s = store_mem_new(&f->env, NULL);
	assert_int_equal(call_put_source(f->s, "x", &source, false, NULL, NULL, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "object x: "));
	assert_non_null(strstr(err.msg, strerror(EBADMSG)));
}

static int setup(void **state)
{
	*state = fixture_new(1);
	return 0;
}

static int teardown(void **state)
{
	fixture_free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_source_may_wait_for_the_store, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_body_is_read_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bytes_are_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silent_error, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
