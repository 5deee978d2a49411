/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of a call share the time that repetitions take (base/repeat_time.h, retry.c,
 * put_queue.c). Time passes only while something sleeps.
 */
#include "mem_store.h"
#include "store_fixture.h"

#include <base/repeat_time.h>
#include <store/put_queue.h>

#define S UINT64_C(1000000000)

static const struct store_retry_options thirty_s = {
	.attempts = 1000, .base_ms = 100, .cap_ms = 5000, .budget_ms = 30000};

static uint64_t clock_of_sleep(const struct env *env)
{
	const struct fixture *f = env->ctx;
	return S + atomic_load(&f->slept_ns);
}

static int setup(void **state)
{
	struct fixture *f = fixture_new(2);
	f->env.now = clock_of_sleep;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	fixture_free(*state);
	return 0;
}

/* Keys that begin with "bad" cannot be read or written. */
static struct store *make(struct fixture *f, const char *faults, struct store **counting)
{
	struct store *s = store_mem_new(&f->env, NULL);
	put_text(s, "good", "1");
	s = store_fault_new(s, faults, NULL);
	assert_non_null(s);
	*counting = store_count_new(s, NULL);
	return store_retry_new(*counting, &thirty_s, NULL);
}

static uint64_t attempts(struct store *counting)
{
	struct store_counts n;
	uint64_t all = 0;
	store_count_read(counting, &n);
	for (int op = 0; op < STORE_OPS; op++)
		all += n.calls[op];
	return all;
}

struct cost {
	int code;
	uint64_t attempts, ns;
};

static struct cost head(struct fixture *f, struct store *s, struct store *counting, const char *key)
{
	const uint64_t before = attempts(counting), slept = atomic_load(&f->slept_ns);
	const int code = call_head(s, key, NULL, NULL);
	return (struct cost){code, attempts(counting) - before, atomic_load(&f->slept_ns) - slept};
}

static void assert_whole(const struct cost *c)
{
	assert_int_equal(c->code, -EIO);
	assert_in_range(c->ns, 24 * S, 30 * S);
}

static void assert_least(const struct cost *c)
{
	assert_int_equal(c->code, -EIO);
	assert_int_equal(c->attempts, 3);
	assert_in_range(c->ns, 1, S);
}

/* Loses all time of the current call. One request leaves a rest that is too short for its next
 * pause. */
static void lose_all(struct fixture *f, struct store *s, struct store *counting)
{
	const uint64_t before = atomic_load(&f->slept_ns);
	struct cost c;
	unsigned int n = 0;
	do
		c = head(f, s, counting, "bad");
	while (c.attempts > 3 && ++n < 10);
	assert_in_range(atomic_load(&f->slept_ns) - before, 27 * S, 32 * S);
}

/* A call that has waited for one object does not wait as long for another one, and it still gets
 * what can be read. Other calls, and what several callers share, have their own time. */
static void test_requests_of_a_call_share_its_time(void **state)
{
	struct fixture *f = *state;
	struct store *counting, *s = make(f, "fail:1+:EAGAIN@bad*", &counting);
	struct repeat_scope call, part, other;
	struct cost c;
	repeat_begin(&call);
	lose_all(f, s, counting);
	repeat_begin(&part);
	c = head(f, s, counting, "bad2");
	assert_least(&c);
	repeat_end(&part);
	assert_int_equal(call_head(s, "good", NULL, NULL), 0);
	for (int shared = 0; shared < 2; shared++) {
		if (shared)
			repeat_begin_shared(&other);
		else
			repeat_use(&other, NULL);
		c = head(f, s, counting, "bad3");
		assert_whole(&c);
		repeat_end(&other);
	}
	c = head(f, s, counting, "bad4");
	assert_least(&c);
	repeat_end(&call);
	for (int i = 0; i < 2; i++) {
		c = head(f, s, counting, "bad5");
		assert_whole(&c);
	}
	store_free(s);
}

/* Returns a store in which one of four attempts reaches the object, and takes `ms`. */
static struct store *make_busy(struct fixture *f, unsigned int ms)
{
	struct store *s = store_mem_new(&f->env, NULL);
	char delay[32];
	put_text(s, "good", "1");
	snprintf(delay, sizeof(delay), "delay:1+:%u", ms);
	s = store_fault_new(s, delay, NULL);
	for (int i = 0; i < 2; i++)
		s = store_fault_new(s, "fail:*2:EAGAIN", NULL);
	return store_retry_new(s, &thirty_s, NULL);
}

/* Sends requests in turn until one fails. */
static unsigned int send_in_turn(struct store *s, unsigned int most)
{
	unsigned int n = 0;
	struct repeat_scope call;
	repeat_begin(&call);
	while (n < most && call_head(s, "good", NULL, NULL) == 0)
		n++;
	repeat_end(&call);
	return n;
}

/* Three attempts of each request fail, which takes half a second. After 30 s the call does not go
 * on like this, although each request would succeed. */
static void test_requests_that_wait_in_turn(void **state)
{
	struct fixture *f = *state;
	struct store *s = make_busy(f, 1);
	const unsigned int n = send_in_turn(s, 10000);
	assert_in_range(n, 40, 100);
	assert_in_range(atomic_load(&f->slept_ns), 28 * S, 32 * S);
	store_free(s);
}

/* The same, but the service needs a second for what it does: the call goes on. */
static void test_success_wins_time_back(void **state)
{
	struct fixture *f = *state;
	struct store *s = make_busy(f, 1000);
	assert_int_equal(send_in_turn(s, 1000), 1000);
	assert_true(atomic_load(&f->slept_ns) > 1400 * S);
	store_free(s);
}

struct waiting {
	atomic_uint done;
};

static void note_done(struct store_request *req)
{
	struct waiting *w = req->arg;
	assert_int_equal(req->answer.err.code, -EIO);
	atomic_fetch_add(&w->done, 1);
}

/* Requests that fail side by side lose the time once: each of them has all of it. */
static void test_side_by_side(void **state)
{
	enum { N = 8 };
	struct fixture *f = *state;
	struct store *counting, *s = make(f, "fail:1+:EAGAIN@bad*", &counting);
	struct store_request *all[N];
	struct waiting w = {0};
	struct repeat_scope call;
	repeat_begin(&call);
	for (int i = 0; i < N; i++) {
		all[i] = store_request_new(s, STORE_HEAD);
		store_request_key(all[i], "bad");
		all[i]->done = note_done;
		all[i]->arg = &w;
		store_submit(s, all[i]);
	}
	while (atomic_load(&w.done) < N)
		usleep(1000);
	/* One after the other, only the first one would have more than the least. The clock goes on
	 * while the threads work, so the number differs. */
	assert_true(attempts(counting) >= N * 5);
	assert_in_range(atomic_load(&f->slept_ns), 24 * S, 32 * S);
	repeat_end(&call);
	for (int i = 0; i < N; i++)
		store_request_free(all[i]);
	store_free(s);
}

/* The requests of a queue belong to the call that has made it, whichever thread sends them. */
static void test_queue(void **state)
{
	struct fixture *f = *state;
	struct store *counting, *s = make(f, "fail:1+:EAGAIN@bad*", &counting);
	struct repeat_scope call;
	repeat_begin(&call);
	struct put_queue *q = put_queue_new(&f->env, s, 2, NULL);
	lose_all(f, s, counting);
	const uint64_t before = attempts(counting);
	put_queue_add(q, &(struct put){.key = "bad"}, NULL);
	assert_int_equal(put_queue_flush(q, NULL), -EIO);
	assert_int_equal(attempts(counting) - before, 3);
	put_queue_free(q);
	repeat_end(&call);
	q = put_queue_new(&f->env, s, 2, NULL);
	put_queue_add(q, &(struct put){.key = "bad"}, NULL);
	assert_int_equal(put_queue_flush(q, NULL), -EIO);
	assert_true(attempts(counting) - before >= 3 + 10);
	put_queue_free(q);
	store_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_requests_of_a_call_share_its_time, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_success_wins_time_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_requests_that_wait_in_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(test_side_by_side, setup, teardown),
		cmocka_unit_test_setup_teardown(test_queue, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
