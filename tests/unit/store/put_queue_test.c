/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of puts: everything is put once, within its bounds, and the first error stops it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <base/source.h>
#include <store/implement.h>

#include <store/put_queue.h>
#include "mem_store.h"
#include "store_calls.h"

enum { BODY = 1000, MANY = 300, LARGE = 256 << 10 };

/* ---- a wrapper that counts the requests that are with the store ---- */

struct watch_store {
	struct store base;
	atomic_uint now, most, all, large, most_large, parts;
	uint64_t part_min; /* 0: no parts */
	atomic_bool holds;
	struct store_request *held[MANY];
	atomic_uint next_held, n_held; /* the second one counts what is in the array */
};

static void count_one(atomic_uint *now, atomic_uint *most)
{
	const unsigned int n = atomic_fetch_add(now, 1) + 1;
	unsigned int before = atomic_load(most);
	while (n > before && !atomic_compare_exchange_weak(most, &before, n))
		;
}

static void watch_submit(struct store *s, struct store_request *req)
{
	struct watch_store *w = (struct watch_store *)s;
	count_one(&w->now, &w->most);
	if (store_body_size(req) >= LARGE)
		count_one(&w->large, &w->most_large);
	atomic_fetch_add(&w->all, 1);
	if (req->part)
		atomic_fetch_add(&w->parts, 1);
	if (atomic_load(&w->holds)) {
		w->held[atomic_fetch_add(&w->next_held, 1)] = req;
		atomic_fetch_add(&w->n_held, 1);
	} else {
		store_pass(s, req);
	}
}

static void watch_completed(struct store *s, struct store_request *req)
{
	struct watch_store *w = (struct watch_store *)s;
	atomic_fetch_sub(&w->now, 1);
	if (store_body_size(req) >= LARGE)
		atomic_fetch_sub(&w->large, 1);
	store_complete(s, req);
}

static uint64_t watch_part_min(struct store *s)
{
	const struct watch_store *w = (const struct watch_store *)s;
	return w->part_min ? w->part_min : UINT64_MAX;
}

static const struct store_ops watch_ops = {
	.name = "watch",
	.submit = watch_submit,
	.completed = watch_completed,
	.part_min = watch_part_min,
	.free = store_wrapper_free,
};

struct world {
	struct env env;
	struct watch_store *watch;
	struct store *store;
	struct put_queue *q;
	atomic_uint made, released, explained;
	atomic_uint_fast64_t largest; /* bytes of the budget that were in use */
	atomic_bool cancelled;
	unsigned int cancel_after; /* makes; 0: never */
};

static void open_world(struct world *w, unsigned int workers, unsigned int puts, const char *faults)
{
	*w = (struct world){.env = env_real(NULL, pool_new(workers))};
	struct store *s = store_mem_new(&w->env, NULL);
	if (faults)
		s = store_fault_new(s, faults, NULL);
	w->watch = calloc(1, sizeof(*w->watch));
	store_wrap(&w->watch->base, &watch_ops, s, 0, 0);
	w->store = &w->watch->base;
	w->q = put_queue_new(&w->env, w->store, puts, &w->cancelled);
	assert_non_null(w->q);
}

static void close_world(struct world *w)
{
	put_queue_free(w->q);
	store_free(w->store);
	pool_free(w->env.pool);
	if (w->env.budget)
		budget_free(w->env.budget); /* asserts that nothing is charged */
}

struct job {
	struct world *w;
	unsigned int n;
	int result; /* of make() */
};

static int make(void *arg, struct bytes *body, struct err *err)
{
	struct job *job = arg;
	struct world *w = job->w;
	if (w->env.budget) {
		struct budget_stats stats;
		budget_get_stats(w->env.budget, &stats);
		uint64_t largest = atomic_load(&w->largest);
		while (stats.used[BUDGET_LOADS] > largest &&
		       !atomic_compare_exchange_weak(&w->largest, &largest,
						     stats.used[BUDGET_LOADS]))
			;
	}
	if (atomic_fetch_add(&w->made, 1) + 1 == w->cancel_after)
		atomic_store(&w->cancelled, true);
	if (job->result < 0)
		return err_set(err, job->result, "cannot be made");
	if (job->result)
		return job->result;
	assert_int_equal(bytes_append_zero(body, BODY), 0);
	memcpy(body->data, &job->n, sizeof(job->n));
	return 0;
}

static void explain(void *arg, struct err *err)
{
	struct job *job = arg;
	atomic_fetch_add(&job->w->explained, 1);
	err_wrap(err, err->code, "job %u", job->n);
}

static void release(void *arg)
{
	struct job *job = arg;
	atomic_fetch_add(&job->w->released, 1);
	free(job);
}

static int add(struct world *w, unsigned int n, int result, uint64_t memory, struct err *err)
{
	char key[32];
	struct job *job = malloc(sizeof(*job));
	*job = (struct job){w, n, result};
	snprintf(key, sizeof(key), "k%04u", n);
	return put_queue_add(w->q,
			     &(struct put){.key = key,
					   .make = make,
					   .explain = explain,
					   .release = release,
					   .arg = job,
					   .memory = memory,
					   .weight = 10},
			     err);
}

static uint64_t stored(struct world *w)
{
	auto_page struct store_page page = {0};
	assert_int_equal(call_list_all(w->store, "", false, UINT32_MAX, &page, NULL), 0);
	return page.n;
}

/* ---- tests ---- */

/* operations: the most that the queue may hold. */
static void check_all_put(unsigned int workers, unsigned int puts, unsigned int operations)
{
	struct world w;
	struct err err = ERR_INIT;
	struct put_queue_counts counts;
	open_world(&w, workers, puts, NULL);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(add(&w, i, i % 3 == 2 ? PUT_NOTHING : 0, BODY, &err), 0);
	assert_int_equal(put_queue_flush(w.q, &err), 0);
	put_queue_counts(w.q, &counts);
	assert_int_equal(w.released, MANY);
	assert_int_equal(counts.puts, MANY / 3 * 2);
	assert_int_equal(counts.bytes, MANY / 3 * 2 * BODY);
	assert_int_equal(counts.weight, MANY * 10);
	assert_int_equal(w.watch->all, MANY / 3 * 2);
	assert_true(w.watch->most <= puts && counts.in_flight <= puts);
	assert_true(counts.operations <= operations);
	assert_int_equal(stored(&w), MANY / 3 * 2);
	for (unsigned int i = 0; i < MANY; i++) {
		char key[32];
		snprintf(key, sizeof(key), "k%04u", i);
		assert_int_equal(put_queue_add(w.q, &(struct put){.key = key}, &err), 0);
	}
	assert_int_equal(put_queue_flush(w.q, &err), 0);
	put_queue_counts(w.q, &counts);
	assert_int_equal(counts.deletes, MANY);
	assert_int_equal(stored(&w), 0);
	close_world(&w);
}

static void test_all_put(void **state)
{
	check_all_put(0, 3, 6);
	check_all_put(1, 3, 6);
	check_all_put(4, 3, 6);
	check_all_put(4, 40, 56);
}

static int make_large(void *arg, struct bytes *body, struct err *err)
{
	return bytes_append_zero(body, *(const size_t *)arg);
}

static void add_large(struct world *w, unsigned int n, size_t *size)
{
	for (unsigned int i = 0; i < n; i++) {
		char key[32];
		snprintf(key, sizeof(key), "l%04u", i);
		const struct put put = {
			.key = key, .make = make_large, .arg = size, .memory = *size};
		assert_int_equal(put_queue_add(w->q, &put, NULL), 0);
	}
}

/* ---- bodies that are not in memory ---- */

enum { PART_MIN = 1000 };

static int read_number(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	memset(buf, (int)offset / PART_MIN, n);
	return 0;
}

static struct source numbers = {.size = (uint64_t)MANY * PART_MIN, .read_at = read_number};

/* Every third body is not found, and must be made. */
static bool find_number(void *arg, uint64_t min, struct source_part *part)
{
	const struct job *job = arg;
	assert_int_equal(min, PART_MIN);
	*part = (struct source_part){&numbers, (uint64_t)job->n * PART_MIN, PART_MIN, 0};
	return job->n % 3;
}

static void check_parts(uint64_t part_min)
{
	enum { JOBS = 30 };
	static struct job jobs[JOBS];
	struct world w;
	struct put_queue_counts counts;
	struct call_result res;
	open_world(&w, 2, 4, NULL);
	w.watch->part_min = part_min;
	for (unsigned int i = 0; i < JOBS; i++) {
		char key[32];
		jobs[i] = (struct job){.w = &w, .n = i};
		snprintf(key, sizeof(key), "k%04u", i);
		const struct put put = {.key = key,
					.make = make,
					.find = find_number,
					.arg = &jobs[i],
					.memory = BODY};
		assert_int_equal(put_queue_add(w.q, &put, NULL), 0);
	}
	assert_int_equal(put_queue_flush(w.q, NULL), 0);
	put_queue_counts(w.q, &counts);
	assert_int_equal(counts.puts, JOBS);
	assert_int_equal(counts.bytes, JOBS * BODY);
	assert_int_equal(w.watch->parts, part_min ? JOBS * 2 / 3 : 0);
	assert_int_equal(w.made, part_min ? JOBS / 3 : JOBS);
	assert_int_equal(call_get(w.store, "k0007", 0, UINT64_MAX, 0, NULL, &res, NULL), 0);
	assert_int_equal(res.body.len, BODY);
	assert_int_equal(res.body.data[BODY - 1], part_min ? 7 : 0);
	bytes_release(&res.body);
	close_world(&w);
}

static void test_parts(void **state)
{
	check_parts(0);
	check_parts(PART_MIN);
}

static atomic_uint_fast64_t clock_ns;

static uint64_t fake_clock(const struct env *env)
{
	return atomic_load(&clock_ns);
}

static void await_held(struct world *w, unsigned int n)
{
	while (atomic_load(&w->watch->n_held) < n)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* The first put of the queue takes `ms`. */
static void put_slowly(struct world *w, size_t *size, unsigned int ms)
{
	add_large(w, 1, size);
	await_held(w, 1);
	atomic_fetch_add(&clock_ns, (uint64_t)ms * 1000000);
	store_pass(&w->watch->base, w->watch->held[0]);
	assert_int_equal(put_queue_flush(w->q, NULL), 0);
	atomic_store(&w->watch->next_held, 0);
	atomic_store(&w->watch->n_held, 0);
}

/* Large bodies do not use all requests: small ones are sent nevertheless. */
static void check_large(unsigned int puts, size_t size, unsigned int ms, unsigned int large)
{
	enum { SMALL = 4, MORE = 5 };
	const unsigned int small = puts > large + SMALL ? SMALL : 0;
	struct world w;
	open_world(&w, 4, puts, NULL);
	w.env.now = fake_clock;
	atomic_store(&w.watch->holds, true);
	if (ms)
		put_slowly(&w, &size, ms);
	add_large(&w, large + MORE, &size);
	for (unsigned int i = 0; i < small; i++)
		assert_int_equal(add(&w, i, 0, BODY, NULL), 0);
	await_held(&w, large + small);
	atomic_store(&w.watch->holds, false);
	for (unsigned int i = 0; i < large + small; i++)
		store_pass(&w.watch->base, w.watch->held[i]);
	assert_int_equal(put_queue_flush(w.q, NULL), 0);
	assert_int_equal(w.watch->most_large, large);
	assert_int_equal(stored(&w), large + MORE + small);
	close_world(&w);
}

static void test_large(void **state)
{
	check_large(8, LARGE, 0, 8);
	check_large(64, LARGE, 0, 32);
	check_large(100, LARGE, 0, 50);
	check_large(64, 1 << 20, 25, 32);
	check_large(64, 1 << 20, 50, 51);
	check_large(64, 1 << 20, 80, 64);
	check_large(64, LARGE, 80, 64);
}

/* The first error stops the queue. Every job is released, and nothing is put after the caller has
 * seen the error. */
static void check_failure(unsigned int workers, const char *faults, int result, int code,
			  const char *words)
{
	struct world w;
	struct err err = ERR_INIT;
	unsigned int n = 0;
	int rc = 0;
	open_world(&w, workers, 3, faults);
	while (!rc && n < MANY) {
		rc = add(&w, n, n == 7 ? result : 0, BODY, &err);
		n++;
	}
	if (!rc)
		rc = put_queue_flush(w.q, &err);
	assert_int_equal(rc, code);
	assert_int_equal(err.code, code);
	assert_non_null(strstr(err.msg, words));
	assert_int_equal(put_queue_flush(w.q, &err), code);
	const unsigned int all = w.watch->all;
	assert_int_equal(add(&w, MANY, 0, BODY, &err), code);
	assert_int_equal(w.watch->all, all);
	assert_int_equal(w.released, n + 1);
	close_world(&w);
}

static void test_failures(void **state)
{
	static const unsigned int workers[] = {0, 1, 4};
	for (size_t i = 0; i < 3; i++) {
		check_failure(workers[i], "fail:8:EACCES", 0, -EACCES, "injected failure");
		check_failure(workers[i], "fail:1+:EIO@k0007", 0, -EIO, "job 7: object k0007");
		check_failure(workers[i], "fail:1:ENOSPC", 0, -ENOSPC, "job ");
		check_failure(workers[i], NULL, -EILSEQ, -EILSEQ, "job 7: cannot be made");
	}
}

/* The last operations fail when the caller only waits. */
static void test_failure_at_the_end(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	open_world(&w, 2, 4, "fail:1:EIO@k0003");
	for (unsigned int i = 0; i < 4; i++)
		(void)add(&w, i, 0, BODY, NULL);
	assert_int_equal(put_queue_flush(w.q, &err), -EIO);
	assert_int_equal(w.explained, 1);
	assert_int_equal(w.released, 4);
	close_world(&w);
}

static void test_cancelled(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	unsigned int n = 0;
	int rc = 0;
	open_world(&w, 2, 3, NULL);
	w.cancel_after = 20;
	while (!rc && n < MANY)
		rc = add(&w, n++, 0, BODY, &err);
	assert_int_equal(rc, -ECANCELED);
	assert_true(n < 40);
	assert_string_equal(err.msg, "interrupted");
	assert_int_equal(put_queue_flush(w.q, &err), -ECANCELED);
	assert_int_equal(w.released, n);
	close_world(&w);
}

/* Bodies and what they are made of stay within the budget, except for one that is larger than it.
 */
static void check_budget(uint64_t memory, uint64_t limit)
{
	struct world w;
	struct err err = ERR_INIT;
	struct budget_stats stats;
	open_world(&w, 4, 8, NULL);
	w.env.budget = budget_new(&(struct budget_limits){.bytes = 10 * BODY});
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(add(&w, i, 0, memory, &err), 0);
	assert_int_equal(put_queue_flush(w.q, &err), 0);
	assert_true(w.largest <= limit);
	assert_true(w.largest > 0);
	budget_get_stats(w.env.budget, &stats);
	assert_int_equal(stats.used[BUDGET_LOADS], 0);
	assert_int_equal(stored(&w), MANY);
	close_world(&w);
}

static void test_budget(void **state)
{
	check_budget(3 * BODY, 10 * BODY);
	check_budget(50 * BODY, 50 * BODY);
}

/* The cache has kept chunks in all of the room. They give way. */
static void test_full_cache(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	struct put_queue_counts counts;
	open_world(&w, 4, 8, NULL);
	w.env.budget = budget_new(&(struct budget_limits){.bytes = 20 * BODY});
	budget_take(w.env.budget, BUDGET_CHUNKS, 20 * BODY);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(add(&w, i, 0, 2 * BODY, &err), 0);
	assert_int_equal(put_queue_flush(w.q, &err), 0);
	put_queue_counts(w.q, &counts);
	assert_true(counts.operations > 1);
	assert_true(w.largest <= 30 * BODY);
	budget_return(w.env.budget, BUDGET_CHUNKS, 20 * BODY);
	assert_int_equal(stored(&w), MANY);
	close_world(&w);
}

/* ---- answers that lead to another request ---- */

struct talk {
	struct world *w;
	atomic_uint refused, compared, over;
	int end; /* result of the last answer */
};

static int make_text(void *arg, struct bytes *body, struct err *err)
{
	return bytes_append(body, "ours", 4);
}

/* A put that is refused: looks at the object, and puts again without a condition. */
static int judge(void *arg, struct store_request *req, struct err *err)
{
	struct talk *t = arg;
	char key[STORE_KEY_MAX + 1];
	snprintf(key, sizeof(key), "%s", req->key);
	if (req->op == STORE_PUT && req->answer.state == STORE_UNKNOWN) {
		assert_int_equal(req->answer.err.code, -EEXIST);
		atomic_fetch_add(&t->refused, 1);
		store_request_reset(req, STORE_GET);
		req->max = 6;
	} else if (req->op == STORE_GET) {
		assert_memory_equal(req->answer.body.data, "theirs", 6);
		atomic_fetch_add(&t->compared, 1);
		store_request_reset(req, STORE_PUT);
	} else {
		atomic_fetch_add(&t->over, 1);
		return t->end ? err_set(err, t->end, "judged") : 0;
	}
	store_request_key(req, key);
	return PUT_AGAIN;
}

static void talk(int end)
{
	enum { TALKS = 50 };
	struct world w;
	struct put_queue_counts counts;
	struct err err = ERR_INIT;
	char key[32];
	open_world(&w, 4, 8, NULL);
	w.env.budget = budget_new(&(struct budget_limits){.bytes = 1 << 20, .option = "b"});
	struct talk t = {.w = &w, .end = end};
	for (unsigned int i = 0; i < TALKS; i++) {
		snprintf(key, sizeof(key), "k%02u", i);
		assert_int_equal(call_put(w.store, key, "theirs", 6, NULL, NULL, NULL), 0);
	}
	for (unsigned int i = 0; i < TALKS; i++) {
		snprintf(key, sizeof(key), "k%02u", i);
		const struct put put = {.key = key,
					.cond = {.if_none_match = "*"},
					.make = make_text,
					.answered = judge,
					.arg = &t,
					.memory = 4};
		if (put_queue_add(w.q, &put, NULL))
			break;
	}
	assert_int_equal(put_queue_flush(w.q, &err), end);
	put_queue_counts(w.q, &counts);
	assert_int_equal(counts.puts, end ? 0 : TALKS);
	assert_int_equal(counts.bytes, 4 * counts.puts);
	assert_int_equal(counts.deletes, 0);
	assert_in_range(counts.in_flight, 1, 8);
	assert_in_range(atomic_load(&w.watch->most), 1, 8);
	/* What has begun is finished. */
	assert_int_equal(atomic_load(&t.refused), atomic_load(&t.over));
	assert_int_equal(atomic_load(&t.compared), atomic_load(&t.over));
	if (end)
		assert_string_equal(err.msg, "judged");
	close_world(&w);
}

static void test_answers(void **state)
{
	talk(0);
	talk(-EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_put),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_failure_at_the_end),
		cmocka_unit_test(test_cancelled),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_full_cache),
		cmocka_unit_test(test_answers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
