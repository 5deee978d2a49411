/* SPDX-License-Identifier: Apache-2.0 */
/* The wrapper that repeats requests after temporary failures. Sleeping is faked, so no time passes.
 */
#include "mem_store.h"
#include "store_contract.h"

#include <dirent.h>
#include <time.h>

#include <store/implement.h>

static const struct store_retry_options quick = {
	.attempts = 5, .base_ms = 100, .cap_ms = 1000, .budget_ms = 60000};

static int harmless(void **state)
{
	struct fixture *f = fixture_new(3);
	f->s = store_retry_new(store_mem_new(&f->env, NULL), NULL, NULL);
	*state = f;
	return f->s ? 0 : -1;
}

/* Every third request fails with -EAGAIN and succeeds when it is repeated. */
static int shaky(void **state)
{
	struct fixture *f = fixture_new(3);
	f->s = store_fault_new(store_mem_new(&f->env, NULL), "fail:*3:EAGAIN", NULL);
	f->s = store_retry_new(f->s, NULL, NULL);
	*state = f;
	return f->s ? 0 : -1;
}

static int bare(void **state)
{
	*state = fixture_new(2);
	return 0;
}

static struct store *over(struct fixture *f, const char *faults,
			  const struct store_retry_options *opt, struct store **counting)
{
	struct store *s = store_mem_new(&f->env, NULL);
	put_text(s, "x", "1");
	s = store_fault_new(s, faults, NULL);
	assert_non_null(s);
	*counting = store_count_new(s, NULL);
	return store_retry_new(*counting, opt, NULL);
}

/* Whether an attempt before the answer may have stored the object. */
static void test_the_answer_tells_of_attempts(void **state)
{
	static const struct store_cond absent = {.if_none_match = "*"};
	const struct piece piece = {"2", 1};
	for (int repeated = 0; repeated < 2; repeated++) {
		struct store *counting,
			*s = over(*state, repeated ? "fail:1:EAGAIN" : "", &quick, &counting);
		auto_request struct store_request *req = store_request_new(s, STORE_PUT);
		for (int again = 0; again < 2; again++) {
			store_request_key(req, "x");
			req->pieces = &piece;
			req->n_pieces = 1;
			req->cond = absent;
			store_run(s, req);
			assert_int_equal(req->answer.err.code, -EEXIST);
			assert_int_equal(req->answer.repeated, repeated && !again);
		}
		store_free(s);
	}
}

/* Only attempts that were really repeated are counted. */
static void test_repeated_requests_are_counted(void **state)
{
	static const struct {
		const char *faults;
		int code;
		uint64_t retries;
	} cases[] = {
		{"", 0, 0},
		{"fail:1:EAGAIN", 0, 1},
		{"fail:1+:EAGAIN", -EIO, 4},
		{"fail:1+:ENOENT", -ENOENT, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct store *counting;
		struct store *s = over(*state, cases[i].faults, &quick, &counting);
		assert_int_equal(call_head(s, "x", NULL, NULL), cases[i].code);
		assert_int_equal(store_retry_count(s), cases[i].retries);
		store_free(s);
	}
}

/* The reasons of failed attempts do not remain in the answer of the attempt that succeeds. */
static void test_success_has_no_reason(void **state)
{
	struct store *counting,
		*s = over(*state, "fail:1:EAGAIN,fail:3:EAGAIN,fail:5:EAGAIN", &quick, &counting);
	struct store_counts n;
	struct store_page page;
	struct err err = ERR_INIT;
	assert_int_equal(call_list_all(s, "", false, 10, &page, &err), 0);
	store_page_release(&page);
	assert_int_equal(call_put(s, "x", "2", 1, NULL, NULL, &err), 0);
	assert_int_equal(call_delete(s, "x", NULL, &err), 0);
	store_count_read(counting, &n);
	assert_int_equal(n.failures, 3);
	assert_int_equal(err.code, 0);
	assert_string_equal(err.msg, "");
	store_free(s);
}

static void test_attempts_are_limited(void **state)
{
	struct fixture *f = *state;
	struct store *counting, *s = over(f, "fail:1+:EAGAIN", &quick, &counting);
	struct call_result res;
	struct store_counts n;
	struct store_page page;
	struct err err = ERR_INIT;
	assert_int_equal(call_get(s, "x", 0, UINT64_MAX, 0, NULL, &res, &err), -EIO);
	assert_non_null(strstr(err.msg, "5 attempts"));
	assert_non_null(strstr(err.msg, "x"));
	store_count_read(counting, &n);
	assert_int_equal(n.calls[STORE_GET], 5);
	assert_int_equal(call_put(s, "x", "2", 1, NULL, NULL, &err), -EIO);
	assert_int_equal(call_delete(s, "x", NULL, &err), -EIO);
	assert_int_equal(call_list_all(s, "", false, 10, &page, &err), -EIO);
	store_count_read(counting, &n);
	assert_int_equal(n.calls[STORE_PUT], 5);
	assert_int_equal(n.calls[STORE_DELETE], 5);
	assert_int_equal(n.calls[STORE_LIST], 5);
	store_free(s);
}

/* A permanent failure after temporary ones. */
static void test_a_failure_names_its_attempt(void **state)
{
	static const struct {
		const char *faults, *words;
	} cases[] = {
		{"fail:1+:EACCES", ""},
		{"fail:1:EAGAIN,fail:2+:EACCES", "attempt 2: "},
		{"fail:1:EAGAIN,fail:2:EAGAIN,fail:3+:EACCES", "attempt 3: "},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err[3] = {ERR_INIT, ERR_INIT, ERR_INIT};
		struct store_page page;
		for (size_t call = 0; call < 3; call++) {
			struct store *counting,
				*s = over(*state, cases[i].faults, &quick, &counting);
			struct store_meta meta;
			assert_int_equal(call == 0 ? call_head(s, "x", &meta, &err[0])
					 : call == 1
						 ? call_delete(s, "x", NULL, &err[1])
						 : call_list_all(s, "", false, 10, &page, &err[2]),
					 -EACCES);
			store_free(s);
			assert_int_equal(
				strncmp(err[call].msg, cases[i].words, strlen(cases[i].words)), 0);
			assert_int_equal(strstr(err[call].msg, "attempt") != NULL,
					 cases[i].words[0] != '\0');
		}
	}
}

/* Four pauses: 50 to 100 % of 100, 200, 400 and 800 ms. */
static void test_pauses_grow(void **state)
{
	struct fixture *f = *state;
	struct store *counting, *s = over(f, "fail:1+:EAGAIN", &quick, &counting);
	assert_int_equal(call_delete(s, "x", NULL, NULL), -EIO);
	assert_in_range(f->slept_ns, 750000000, 1500000000);
	f->slept_ns = 0;
	assert_code(s, "x", -EIO);
	assert_in_range(f->slept_ns, 750000000, 1500000000);
	store_free(s);
}

/* Clients that fail at the same time must not repeat at the same time: few of 64 pauses are equal,
 * and both halves of the allowed range occur. */
static void test_pauses_differ(void **state)
{
	enum { N = 64 };
	struct fixture *f = *state;
	unsigned int early = 0, alike = 0;
	uint64_t last = 0;
	for (int i = 0; i < N; i++) {
		struct store *counting, *s = over(f, "fail:1:EAGAIN", &quick, &counting);
		f->slept_ns = 0;
		assert_int_equal(call_delete(s, "x", NULL, NULL), 0);
		const uint64_t slept = f->slept_ns;
		assert_in_range(slept, 50000000, 100000000);
		early += slept < 75000000;
		alike += slept == last;
		last = slept;
		store_free(s);
	}
	assert_in_range(early, 8, N - 8);
	assert_true(alike < N / 8);
}

static void test_budget(void **state)
{
	struct fixture *f = *state;
	const struct store_retry_options opt = {
		.attempts = 1000, .base_ms = 100, .cap_ms = 5000, .budget_ms = 30000};
	struct store *counting, *s = over(f, "fail:1+:EAGAIN", &opt, &counting);
	assert_code(s, "x", -EIO);
	assert_in_range(f->slept_ns, UINT64_C(24) * 1000000000, UINT64_C(30) * 1000000000);
	store_free(s);
}

/* A clock that advances by 20 s each time that it is read. */
static uint64_t slow_clock(const struct env *env)
{
	static _Atomic uint64_t reads;
	return ++reads * UINT64_C(20) * 1000000000;
}

/* The time that attempts take counts, not only the pauses: with 60 s there is no fourth attempt. */
static void test_slow_attempts_use_up_the_budget(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	f->env.now = slow_clock;
	struct store *s = store_mem_new(&f->env, NULL);
	s = store_retry_new(store_fault_new(s, "fail:1+:EAGAIN", NULL), &quick, NULL);
	assert_int_equal(call_head(s, "x", NULL, &err), -EIO);
	assert_non_null(strstr(err.msg, "3 attempts"));
	store_free(s);
}

static uint64_t slept_ns;

/* A machine that falls asleep while it waits for the answer. */
static uint64_t sleepy_clock(const struct env *env)
{
	static _Atomic uint64_t reads;
	return env->now(env) + (reads++ ? slept_ns : 0) * reads;
}

/* A DELETE must not remove what others have put while the machine was asleep. */
static void test_no_delete_is_repeated_after_a_sleep(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	for (int sleeps = 0; sleeps < 2; sleeps++) {
		struct store *counting, *s = over(f, "fail:1:EAGAIN", &quick, &counting);
		f->env.boot = sleepy_clock;
		slept_ns = sleeps ? UINT64_C(301) * 1000000000 : 0;
		assert_int_equal(call_delete(s, "x", NULL, &err), sleeps ? -EIO : 0);
		assert_int_equal(store_retry_count(s), !sleeps);
		store_free(s);
		s = over(f, "fail:1:EAGAIN", &quick, &counting);
		assert_int_equal(call_head(s, "x", NULL, &err), 0);
		store_free(s);
		f->env.boot = NULL;
	}
}

/* Each page of a whole listing has its own attempts: three pages, two of them repeated once. */
static void test_pages_have_their_own_attempts(void **state)
{
	struct fixture *f = *state;
	const struct store_retry_options two = {.attempts = 2};
	struct store *s = store_mem_new(&f->env, NULL);
	struct store_page page;
	for (int i = 0; i < 2500; i++) {
		char key[16];
		snprintf(key, sizeof(key), "%d", i);
		put_text(s, key, "");
	}
	s = store_retry_new(store_fault_new(s, "fail:*2:EAGAIN", NULL), &two, NULL);
	assert_int_equal(call_list_all(s, "", false, 3000, &page, NULL), 0);
	assert_int_equal(page.n, 2500);
	assert_int_equal(store_retry_count(s), 2);
	store_page_release(&page);
	store_free(s);
}

/* With the default policy a request survives a server that is unreachable for 30 s, for every
 * random number. */
static void test_default_policy(void **state)
{
	struct fixture *f = *state;
	struct store *counting, *s = over(f, "fail:1+:EAGAIN", NULL, &counting);
	assert_code(s, "x", -EIO);
	assert_in_range(f->slept_ns, UINT64_C(31) * 1000000000, UINT64_C(60) * 1000000000);
	store_free(s);
}

static void test_permanent_failures_are_not_repeated(void **state)
{
	static const char *const faults[] = {"fail:1:EIO", "fail:1:ENOENT", "fail:1:EACCES",
					     "fail:1:ESTALE"};
	static const int codes[] = {-EIO, -ENOENT, -EACCES, -ESTALE};
	for (size_t i = 0; i < 4; i++) {
		struct fixture *f = *state;
		struct store *counting, *s = over(f, faults[i], &quick, &counting);
		assert_code(s, "x", codes[i]);
		assert_object(s, "x", "1");
		store_free(s);
	}
	assert_int_equal(((struct fixture *)*state)->slept_ns, 0);
}

/* ---- the store below learns of earlier attempts ---- */

struct seen {
	struct store base;
	unsigned int puts;
	bool refuses; /* the first put, instead of being late */
	bool retried[8];
	char mark[8][STORE_MARK_MAX + 1];
};

static void put_late(struct store *s, struct store_request *req)
{
	struct seen *seen = (struct seen *)s;
	strcpy(seen->mark[seen->puts], req->mark ? req->mark : "");
	req->answer.refused = seen->puts == 0 && seen->refuses;
	seen->retried[seen->puts++] = req->cond.retried;
	if (seen->puts < 3)
		store_fail(s, req, -EAGAIN, "late");
	else
		store_present(s, req);
}

static void free_nothing(struct store *s)
{
	(void)s;
}

static void test_repeated_put_is_marked(void **state)
{
	static const struct store_ops ops = {
		.name = "seen", .submit = put_late, .free = free_nothing};
	struct fixture *f = *state;
	const struct store_cond absent = {.if_none_match = "*"};
	/* An attempt that the service has refused has put nothing. */
	for (int refuses = 0; refuses < 2; refuses++) {
		struct seen seen = {.refuses = refuses};
		store_init(&seen.base, &ops, &f->env, 0);
		struct store *s = store_retry_new(&seen.base, &quick, NULL);
		assert_int_equal(call_put(s, "x", "1", 1, &absent, NULL, NULL), 0);
		assert_int_equal(seen.puts, 3);
		assert_false(seen.retried[0]);
		assert_int_equal(seen.retried[1], !refuses);
		assert_true(seen.retried[2]);
		store_free(s);
	}
}

/* A conditional put has a mark, which is the same in all of its attempts. */
static void test_marks_of_puts(void **state)
{
	static const struct store_ops ops = {
		.name = "seen", .submit = put_late, .free = free_nothing};
	static const struct {
		struct store_cond cond;
		const char *mark;
	} cases[] = {
		{{.if_none_match = "*"}, NULL},
		{{.if_match = "v"}, NULL},
		{{0}, NULL},
		{{.if_none_match = "*"}, "own-1"},
		{{0}, "own-1"},
	};
	struct fixture *f = *state;
	char last[STORE_MARK_MAX + 1] = "";
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const bool is_random = i < 2;
		struct seen seen = {0};
		store_init(&seen.base, &ops, &f->env, 0);
		struct store *s = store_retry_new(&seen.base, &quick, NULL);
		auto_request struct store_request *req = store_request_new(s, STORE_PUT);
		store_request_key(req, "x");
		req->cond = cases[i].cond;
		req->mark = cases[i].mark;
		store_run(s, req);
		assert_int_equal(req->answer.state, STORE_PRESENT);
		assert_ptr_equal(req->mark, cases[i].mark);
		assert_int_equal(seen.puts, 3);
		for (int k = 0; k < 3; k++)
			assert_string_equal(seen.mark[k], seen.mark[0]);
		if (is_random) {
			assert_true(store_mark_ok(seen.mark[0]));
			assert_string_not_equal(seen.mark[0], last);
			strcpy(last, seen.mark[0]);
		} else {
			assert_string_equal(seen.mark[0], cases[i].mark ? cases[i].mark : "");
		}
		store_free(s);
	}
}

static void test_moves_are_repeated(void **state)
{
	static const struct {
		const char *faults;
		int code;
		uint64_t attempts;
	} cases[] = {
		{"fail:1:EAGAIN,fail:2:EAGAIN", 0, 3}, {"fail:1+:EAGAIN", -EIO, 5},
		{"fail:1:EACCES", -EACCES, 1},	       {"fail:1:EAGAIN@x", 0, 2},
		{"fail:1:EACCES@y", -EACCES, 1},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct store *counting, *s = over(*state, cases[i].faults, &quick, &counting);
		struct store_counts n;
		struct err err = ERR_INIT;
		assert_int_equal(store_move(s, "x", "", "y", NULL, NULL, &err), cases[i].code);
		assert_int_equal(err.code, cases[i].code);
		store_count_read(counting, &n);
		assert_int_equal(n.moves, cases[i].attempts);
		store_free(s);
	}
}

/* ---- a server that says how long to wait ---- */

struct busy {
	struct store base;
	unsigned int left, retry_after_ms;
};

static void busy(struct store *s, struct store_request *req)
{
	struct busy *b = (struct busy *)s;
	if (b->left == 0) {
		if (req->op == STORE_DELETE)
			store_absent(s, req, STORE_BY_SERVICE);
		else
			store_present(s, req);
		return;
	}
	b->left--;
	err_set(&req->answer.err, -EAGAIN, "busy");
	req->answer.err.retry_after_ms = b->retry_after_ms;
	store_fail(s, req, -EAGAIN, NULL);
}

static const struct store_ops busy_ops = {.name = "busy", .submit = busy, .free = free_nothing};

/* The pause is the server's time plus the usual pause, within the budget. */
static void test_the_servers_time_is_added(void **state)
{
	static const struct {
		unsigned int times, retry_after_ms;
		int code;
		uint64_t from_ms, to_ms;
	} cases[] = {
		{1, 0, 0, 50, 100},
		{1, 5000, 0, 5050, 5100},
		{2, 20000, 0, 40150, 40300},
		{3, 20000, -EIO, 40150, 40300},
	};
	struct fixture *f = *state;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		struct busy b = {.left = cases[i / 2].times,
				 .retry_after_ms = cases[i / 2].retry_after_ms};
		store_init(&b.base, &busy_ops, &f->env, 0);
		struct store *s = store_retry_new(&b.base, NULL, NULL);
		f->slept_ns = 0;
		if (i % 2)
			assert_code(s, "x", cases[i / 2].code);
		else
			assert_int_equal(call_delete(s, "x", NULL, NULL), cases[i / 2].code);
		assert_in_range(f->slept_ns, cases[i / 2].from_ms * 1000000,
				cases[i / 2].to_ms * 1000000 + 20000000);
		store_free(s);
	}
}

struct reader {
	atomic_bool gone;
	uint64_t leaves_ns, returns_ns; /* of the time slept */
	uint64_t period_ns;		/* 0, or leaves and returns again in each period */
};

static void leave_and_return(struct fixture *f)
{
	struct reader *r = f->ctx;
	const uint64_t now = r->period_ns ? f->slept_ns % r->period_ns : f->slept_ns;
	atomic_store(&r->gone, now >= r->leaves_ns && now < r->returns_ns);
}

/* The reader cancels during a pause, permanently or for a moment. */
static void test_cancelling_ends_a_pause(void **state)
{
	static const struct {
		uint64_t leaves_ms, returns_ms, period_ms;
		int code;
		uint64_t from_ms, to_ms;
	} cases[] = {
		{1000, UINT32_MAX, 0, -ECANCELED, 1400, 1600},
		{1000, 1300, 0, 0, 20050, 20120},
		{100, 400, 1000, 0, 20050, 20120},
	};
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reader reader = {.leaves_ns = cases[i].leaves_ms * 1000000,
					.returns_ns = cases[i].returns_ms * 1000000,
					.period_ns = cases[i].period_ms * 1000000};
		struct busy b = {.left = 1, .retry_after_ms = 20000};
		store_init(&b.base, &busy_ops, &f->env, 0);
		struct store *s = store_retry_new(&b.base, NULL, NULL);
		struct call_get req = {.key = "x", .length = UINT64_MAX, .cancelled = &reader.gone};
		struct call_result res;
		f->slept_ns = 0;
		f->ctx = &reader;
		f->on_sleep = leave_and_return;
		assert_int_equal(call_get_many(s, &req, 1, &res), 0);
		assert_int_equal(res.code, cases[i].code);
		assert_in_range(f->slept_ns, cases[i].from_ms * 1000000, cases[i].to_ms * 1000000);
		f->on_sleep = NULL;
		store_free(s);
	}
}

/* A cancelled request has no mark of its repetition. */
static void test_cancelled_request_is_restored(void **state)
{
	struct fixture *f = *state;
	const atomic_bool gone = true;
	struct busy b = {.left = 1, .retry_after_ms = 20000};
	store_init(&b.base, &busy_ops, &f->env, 0);
	struct store *s = store_retry_new(&b.base, NULL, NULL);
	auto_request struct store_request *req = store_request_new(s, STORE_GET);
	assert_non_null(req);
	store_request_key(req, "x");
	req->cancelled = cancelled_by(&gone);
	store_run(s, req);
	assert_int_equal(store_failure(&req->answer, NULL), -ECANCELED);
	assert_false(req->cond.retried);
	store_free(s);
}

/* More requests than workers wait at once: none of them waits in a worker. */
static void test_many_wait_side_by_side(void **state)
{
	enum { N = 200 };
	struct fixture *f = *state;
	struct store *counting, *s = over(f, "fail:*2:EAGAIN", NULL, &counting);
	struct call_get reqs[N];
	struct call_result results[N];
	for (int i = 0; i < N; i++)
		reqs[i] = (struct call_get){.key = "x", .length = UINT64_MAX};
	assert_int_equal(call_get_many(s, reqs, N, results), 0);
	for (int i = 0; i < N; i++) {
		assert_int_equal(results[i].code, 0);
		bytes_release(&results[i].body);
	}
	store_free(s);
}

static unsigned int count_threads(void)
{
	unsigned int n = 0;
	DIR *dir = opendir("/proc/self/task");
	assert_non_null(dir);
	for (const struct dirent *e; (e = readdir(dir));)
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

/* The thread ends, and starts again when a request has to wait. */
/* The kernel may list a thread for a moment after pthread_join() has returned. */
static void wait_for_threads(unsigned int n)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	for (int i = 0; i < 10000 && count_threads() > n; i++)
		nanosleep(&moment, NULL);
	assert_int_equal(count_threads(), n);
}

static void test_waits_after_the_thread_was_stopped(void **state)
{
	struct store *counting, *s = over(*state, "fail:*2:EAGAIN", NULL, &counting);
	for (uint64_t round = 1; round <= 3; round++) {
		for (int i = 0; i < 2; i++)
			assert_int_equal(call_head(s, "x", NULL, NULL), 0);
		assert_true(store_retry_count(s) >= round);
		const unsigned int threads = count_threads();
		store_retry_stop_thread(s);
		wait_for_threads(threads - 1);
	}
	store_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONTRACT_TESTS(harmless),
		CONTRACT_TESTS(shaky),
		CONTRACT_TEST(test_repeated_requests_are_counted, bare),
		CONTRACT_TEST(test_success_has_no_reason, bare),
		CONTRACT_TEST(test_attempts_are_limited, bare),
		CONTRACT_TEST(test_a_failure_names_its_attempt, bare),
		CONTRACT_TEST(test_pauses_grow, bare),
		CONTRACT_TEST(test_pauses_differ, bare),
		CONTRACT_TEST(test_budget, bare),
		CONTRACT_TEST(test_slow_attempts_use_up_the_budget, bare),
		CONTRACT_TEST(test_no_delete_is_repeated_after_a_sleep, bare),
		CONTRACT_TEST(test_pages_have_their_own_attempts, bare),
		CONTRACT_TEST(test_default_policy, bare),
		CONTRACT_TEST(test_permanent_failures_are_not_repeated, bare),
		CONTRACT_TEST(test_repeated_put_is_marked, bare),
		CONTRACT_TEST(test_marks_of_puts, bare),
		CONTRACT_TEST(test_moves_are_repeated, bare),
		CONTRACT_TEST(test_the_answer_tells_of_attempts, bare),
		CONTRACT_TEST(test_the_servers_time_is_added, bare),
		CONTRACT_TEST(test_cancelling_ends_a_pause, bare),
		CONTRACT_TEST(test_cancelled_request_is_restored, bare),
		CONTRACT_TEST(test_many_wait_side_by_side, bare),
		CONTRACT_TEST(test_waits_after_the_thread_was_stopped, bare),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
