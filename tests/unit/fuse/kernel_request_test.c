/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of interrupted requests and of read-ahead. The clock and libfuse are fakes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>

#include <base/cancel.h>

#include "fuse/reopen.h"
#include "fuse/kernel_request.h"

#define BORN UINT64_C(5000000000)
#define MS   UINT64_C(1000000)
/* Until the next look at the connection. */
#define LOOK_MS ((int)(REQUEST_LOOK_NS / MS) + 1)

/* ---- libfuse: a request ends with its reply ---- */

struct fuse_req {
	pthread_mutex_t lock;
	struct fuse_ctx ctx;
	fuse_interrupt_func_t func;
	void *arg;
	bool interrupted;
	atomic_int reply; /* an errno; 0: none */
	atomic_int replies;
};

void fuse_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t func, void *arg)
{
	pthread_mutex_lock(&req->lock);
	req->func = func;
	req->arg = arg;
	if (req->interrupted && func)
		func(req, arg);
	pthread_mutex_unlock(&req->lock);
}

const struct fuse_ctx *fuse_req_ctx(fuse_req_t req)
{
	return &req->ctx;
}

int fuse_reply_err(fuse_req_t req, int code)
{
	req->reply = code;
	req->replies++;
	return 0;
}

static void interrupt(fuse_req_t req)
{
	pthread_mutex_lock(&req->lock);
	req->interrupted = true;
	if (req->func)
		req->func(req, req->arg);
	pthread_mutex_unlock(&req->lock);
}

#define FUSE_REQ                                                                                   \
	{                                                                                          \
		.lock = PTHREAD_MUTEX_INITIALIZER, .ctx = {.pid = 7 }                              \
	}

/* ---- the engine's files, as far as reopen.c needs them ---- */

struct engine_file {
	unsigned int closed;
};

void engine_file_close(struct engine_file *f)
{
	f->closed++;
}

void engine_file_stat(struct engine_file *f, struct engine_stat *st)
{
	*st = (struct engine_stat){.version = 3};
}

/* ---- fixture ---- */

static atomic_uint_fast64_t now_ns;

static uint64_t fake_clock(void)
{
	return now_ns;
}

struct fixture {
	struct reopen *reopen;
	struct requests *t;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	now_ns = BORN;
	f->reopen = reopen_new(fake_clock);
	f->t = requests_new(fake_clock, f->reopen);
	*state = f;
	return f->reopen && f->t ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	requests_free(f->t);
	reopen_free(f->reopen);
	free(f);
	return 0;
}

static bool woken(struct requests *t)
{
	struct pollfd fd = {.fd = requests_fd(t), .events = POLLIN};
	uint64_t count;
	if (poll(&fd, 1, 0) == 0)
		return false;
	assert_int_equal(read(requests_fd(t), &count, sizeof(count)), sizeof(count));
	return true;
}

/* ---- requests that cannot be cancelled ---- */

static void a_request_that_nothing_interrupts_has_no_deadline(void **state)
{
	struct requests *t = ((struct fixture *)*state)->t;
	struct fuse_req req = FUSE_REQ;
	struct request r;
	request_begin(t, &r, &req, 0);
	assert_true(woken(t));
	now_ns += UINT64_C(3600000) * MS;
	assert_int_equal(requests_expire(t), LOOK_MS);
	assert_false(woken(t));
	assert_true(request_end(&r));
	assert_int_equal(req.replies, 0);
	assert_null(req.func);
}

static void short_requests_wake_the_watchdog_once_a_second(void **state)
{
	struct requests *t = ((struct fixture *)*state)->t;
	for (int second = 0; second < 3; second++) {
		for (int i = 0; i < 1000; i++, now_ns += MS) {
			struct fuse_req req = FUSE_REQ;
			struct request r;
			request_begin(t, &r, &req, 0);
			assert_int_equal(woken(t), i == 0);
			if (i == 0)
				assert_int_equal(requests_expire(t), LOOK_MS);
			assert_true(request_end(&r));
		}
		assert_int_equal(requests_expire(t), -1);
	}
}

static void an_interrupted_request_has_its_patience_to_finish(void **state)
{
	struct requests *t = ((struct fixture *)*state)->t;
	struct fuse_req req = FUSE_REQ;
	struct request r;
	request_begin(t, &r, &req, 0);
	interrupt(&req);
	assert_true(woken(t));
	now_ns += REQUEST_PATIENCE_NS - 1;
	assert_int_equal(requests_expire(t), 1);
	assert_int_equal(req.replies, 0);
	assert_true(request_end(&r));
	now_ns += 1;
	assert_int_equal(requests_expire(t), -1);
	assert_int_equal(req.replies, 0);
}

static void an_interrupted_request_that_takes_longer_is_answered_once(void **state)
{
	struct fixture *f = *state;
	struct fuse_req req = FUSE_REQ, other = FUSE_REQ;
	struct engine_file file = {0};
	struct engine_stat st;
	struct request r, o;
	reopen_put(f->reopen, 7, "a", &file, false);
	request_begin(f->t, &r, &req, 0);
	request_begin(f->t, &o, &other, 0);
	interrupt(&req);
	now_ns += REQUEST_PATIENCE_NS;
	assert_int_equal(requests_expire(f->t), LOOK_MS);
	assert_int_equal(requests_expire(f->t), LOOK_MS);
	assert_int_equal(req.reply, EINTR);
	assert_int_equal(req.replies, 1);
	/* The program's call has ended, so its next call must not get this file. */
	assert_false(reopen_stat(f->reopen, 7, "a", &st));
	assert_int_equal(file.closed, 1);
	assert_false(request_end(&r));
	assert_true(request_end(&o));
	assert_int_equal(other.replies, 0);
}

static void an_interrupt_that_came_before_the_request_began_counts_from_its_beginning(void **state)
{
	struct requests *t = ((struct fixture *)*state)->t;
	struct fuse_req req = FUSE_REQ;
	struct request r;
	interrupt(&req);
	request_begin(t, &r, &req, 0);
	assert_true(woken(t));
	assert_int_equal(requests_expire(t), REQUEST_PATIENCE_NS / MS + 1);
	now_ns += REQUEST_PATIENCE_NS;
	requests_expire(t);
	assert_int_equal(req.reply, EINTR);
	assert_false(request_end(&r));
}

/* ---- reads ---- */

static void an_interrupted_read_is_cancelled_and_replies_itself(void **state)
{
	struct requests *t = ((struct fixture *)*state)->t;
	struct fuse_req req = FUSE_REQ;
	struct cancel cancel;
	struct request r;
	cancel_init(&cancel);
	request_begin_read(t, &r, &req, 1, &cancel, false);
	assert_true(woken(t));
	interrupt(&req);
	assert_true(woken(t));
	now_ns += REQUEST_READ_PATIENCE_NS - 1;
	requests_expire(t);
	assert_false(cancel_is_fired(&cancel));
	now_ns += 1;
	assert_int_equal(requests_expire(t), LOOK_MS - REQUEST_READ_PATIENCE_NS / MS);
	assert_true(cancel_is_fired(&cancel));
	assert_int_equal(req.replies, 0);
	assert_true(request_end(&r));
	cancel_release(&cancel);
}

static void read_ahead_is_cancelled_without_an_interrupt(void **state)
{
	struct requests *t = ((struct fixture *)*state)->t;
	struct fuse_req req = FUSE_REQ;
	struct cancel old, young, patient;
	struct request r[3];
	cancel_init(&old);
	cancel_init(&young);
	cancel_init(&patient);
	request_begin_read(t, &r[0], &req, 1, &old, true);
	assert_true(woken(t));
	now_ns += 100 * MS;
	request_begin_read(t, &r[1], &req, 1, &young, true);
	request_begin_read(t, &r[2], &req, 1, &patient, false);
	assert_false(woken(t)); /* the watchdog wakes up earlier, for the first request */
	now_ns += REQUEST_READ_PATIENCE_NS - 100 * MS;
	assert_int_equal(requests_expire(t), 101);
	assert_true(cancel_is_fired(&old) && !cancel_is_fired(&young));
	now_ns += 100 * MS;
	assert_int_equal(requests_expire(t), LOOK_MS - 100 - REQUEST_READ_PATIENCE_NS / MS);
	assert_true(cancel_is_fired(&young) && !cancel_is_fired(&patient));
	for (int i = 0; i < 3; i++)
		assert_true(request_end(&r[i]));
}

/* A read has less patience than an open, so its deadline may be earlier than the earliest one. */
static void an_earlier_deadline_wakes_the_watchdog_again(void **state)
{
	struct requests *t = ((struct fixture *)*state)->t;
	struct fuse_req open = FUSE_REQ, read = FUSE_REQ;
	struct cancel cancel;
	struct request r[2];
	cancel_init(&cancel);
	request_begin(t, &r[0], &open, 0);
	request_begin_read(t, &r[1], &read, 1, &cancel, false);
	interrupt(&open);
	assert_true(woken(t));
	assert_int_equal(requests_expire(t), REQUEST_PATIENCE_NS / MS + 1);
	interrupt(&read);
	assert_true(woken(t));
	assert_int_equal(requests_expire(t), REQUEST_READ_PATIENCE_NS / MS + 1);
	/* Without requests the watchdog has no deadline. */
	assert_true(request_end(&r[0]) && request_end(&r[1]));
	now_ns += REQUEST_LOOK_NS;
	assert_int_equal(requests_expire(t), -1);
	request_begin_read(t, &r[1], &read, 1, &cancel, true);
	assert_true(woken(t));
	assert_true(request_end(&r[1]));
}

/* If several programs need the same page, the kernel sends their requests one after the other. */
static void a_request_that_repeats_one_that_ended_early_has_no_patience(void **state)
{
	struct requests *t = ((struct fixture *)*state)->t;
	const uint64_t subjects[] = {11, 11, 11, 12, 11};
	for (int i = 0; i < 5; i++) {
		struct fuse_req req = FUSE_REQ;
		struct request r;
		request_begin(t, &r, &req, subjects[i]);
		requests_expire(t);
		assert_int_equal(req.replies, 0); /* only an interrupt ends the request */
		interrupt(&req);
		requests_expire(t);
		assert_int_equal(req.replies, i == 1 || i == 2);
		now_ns += REQUEST_PATIENCE_NS;
		requests_expire(t);
		assert_int_equal(req.replies, 1);
		assert_false(request_end(&r));
	}
}

static void read_ahead_that_repeats_it_has_no_patience_either(void **state)
{
	struct requests *t = ((struct fixture *)*state)->t;
	struct fuse_req req = FUSE_REQ;
	for (int i = 0; i < 2; i++) {
		struct cancel cancel;
		struct request r;
		cancel_init(&cancel);
		request_begin_read(t, &r, &req, 11, &cancel, true);
		requests_expire(t);
		assert_int_equal(cancel_is_fired(&cancel), i == 1);
		now_ns += REQUEST_READ_PATIENCE_NS;
		requests_expire(t);
		assert_true(cancel_is_fired(&cancel));
		assert_true(request_end(&r));
		cancel_release(&cancel);
	}
}

static void only_the_next_request_is_a_repetition(void **state)
{
	struct requests *t = ((struct fixture *)*state)->t;
	for (int i = 0; i < 3; i++) {
		struct fuse_req req = FUSE_REQ;
		struct request r;
		request_begin(t, &r, &req, 11);
		if (i != 1)
			interrupt(&req);
		requests_expire(t);
		assert_int_equal(req.replies, 0);
		now_ns += REQUEST_PATIENCE_NS;
		requests_expire(t);
		assert_int_equal(req.replies, i != 1);
		assert_int_equal(request_end(&r), i == 1);
	}
}

static void the_end_of_the_session_cancels_reads_and_nothing_else(void **state)
{
	struct requests *t = ((struct fixture *)*state)->t;
	struct fuse_req req = FUSE_REQ;
	struct cancel before, after;
	struct request r[3];
	cancel_init(&before);
	cancel_init(&after);
	request_begin(t, &r[0], &req, 0);
	request_begin_read(t, &r[1], &req, 1, &before, false);
	requests_stop(t);
	assert_int_equal(requests_expire(t), LOOK_MS);
	assert_true(cancel_is_fired(&before));
	request_begin_read(t, &r[2], &req, 1, &after, false);
	requests_expire(t);
	assert_true(cancel_is_fired(&after));
	for (int i = 0; i < 3; i++)
		assert_true(request_end(&r[i]));
	assert_int_equal(req.replies, 0);
}

/* ---- threads ---- */

enum { ROUNDS = 2000, THREADS = 4 };

static void *serve(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct fuse_req req = FUSE_REQ;
		struct cancel cancel;
		struct request r;
		const bool is_read = i % 2;
		cancel_init(&cancel);
		if (is_read)
			request_begin_read(arg, &r, &req, 1, &cancel, i % 4 == 1);
		else
			request_begin(arg, &r, &req, 0);
		if (i % 3)
			interrupt(&req);
		now_ns += REQUEST_PATIENCE_NS / 3;
		/* The watchdog replies after it has released the lock. */
		if (!request_end(&r))
			while (!req.replies)
				;
		assert_true(req.replies <= !is_read);
		cancel_release(&cancel);
	}
	return NULL;
}

static void requests_end_while_others_expire(void **state)
{
	struct requests *t = ((struct fixture *)*state)->t;
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, serve, t), 0);
	for (int i = 0; i < ROUNDS; i++)
		requests_expire(t);
	requests_stop(t);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	now_ns += REQUEST_LOOK_NS;
	assert_int_equal(requests_expire(t), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_request_that_nothing_interrupts_has_no_deadline),
		TEST(short_requests_wake_the_watchdog_once_a_second),
		TEST(an_interrupted_request_has_its_patience_to_finish),
		TEST(an_interrupted_request_that_takes_longer_is_answered_once),
		TEST(an_interrupt_that_came_before_the_request_began_counts_from_its_beginning),
		TEST(an_interrupted_read_is_cancelled_and_replies_itself),
		TEST(read_ahead_is_cancelled_without_an_interrupt),
		TEST(an_earlier_deadline_wakes_the_watchdog_again),
		TEST(a_request_that_repeats_one_that_ended_early_has_no_patience),
		TEST(read_ahead_that_repeats_it_has_no_patience_either),
		TEST(only_the_next_request_is_a_repetition),
		TEST(the_end_of_the_session_cancels_reads_and_nothing_else),
		TEST(requests_end_while_others_expire),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
