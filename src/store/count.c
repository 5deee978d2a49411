/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts what passes, for tests that promise "three requests" and for statistics. All counters are
 * atomics of their own: a reader may see one request counted and its bytes not yet.
 */
#include <store/store.h>

#include <store/job.h>
#include <store/wrapper.h>

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

typedef atomic_uint_fast64_t counter;

struct count_store {
	struct wrapper w;
	counter gets, range_gets, heads, lists, puts, deletes;
	counter bytes_in, bytes_out, failures;
	counter in_flight, in_flight_max;
	counter results[STORE_CALLS][STORE_RESULTS];
	struct histogram seconds[STORE_CALLS];
};

/* The results that ops promise, and what else a system call may give. */
static const struct {
	int code;
	const char *name;
} results[STORE_RESULTS] = {
	{0, "ok"},
	{-ENOENT, "ENOENT"},
	{-EACCES, "EACCES"},
	{-ESTALE, "ESTALE"},
	{-EALREADY, "EALREADY"},
	{-EEXIST, "EEXIST"},
	{-EFBIG, "EFBIG"},
	{-E2BIG, "E2BIG"},
	{-EIO, "EIO"},
	{-EAGAIN, "EAGAIN"},
	{-EINTR, "EINTR"},
	{-EINVAL, "EINVAL"},
	{-ENOMEM, "ENOMEM"},
	{-ENOSPC, "ENOSPC"},
	{-EISDIR, "EISDIR"},
	{-ENOTDIR, "ENOTDIR"},
	{-EOPNOTSUPP, "EOPNOTSUPP"},
	{-ETIMEDOUT, "ETIMEDOUT"},
	{-ECANCELED, "ECANCELED"},
	{INT_MIN, "other"}, /* last: whatever is not above */
};

/* One get between its submission and its completion. */
struct pass {
	struct count_store *counting;
	enum store_op op;
	uint64_t started_ns;
	store_get_done done;
	void *arg;
};

static struct count_store *count_of(struct store *s)
{
	return (struct count_store *)s;
}

static void raise_to(counter *max, uint_fast64_t v)
{
	uint_fast64_t seen = atomic_load(max);
	while (seen < v && !atomic_compare_exchange_weak(max, &seen, v))
		;
}

static uint64_t now(const struct count_store *c)
{
	return c->w.base.env->now(c->w.base.env);
}

/* A call has ended. Returns rc. */
static int ended(struct count_store *c, enum store_call call, uint64_t started_ns, int rc)
{
	unsigned int i = 0;
	while (i < STORE_RESULTS - 1 && results[i].code != rc)
		i++;
	atomic_fetch_add(&c->results[call][i], 1);
	histogram_record(&c->seconds[call], now(c) - started_ns);
	if (rc)
		atomic_fetch_add(&c->failures, 1);
	return rc;
}

static void passed(void *arg, struct store_get_result *res)
{
	struct pass pass = *(struct pass *)arg;
	struct count_store *c = pass.counting;
	free(arg);
	if (pass.op == STORE_GET)
		atomic_fetch_sub(&c->in_flight, 1);
	ended(c, pass.op == STORE_GET ? STORE_CALL_GET : STORE_CALL_HEAD, pass.started_ns,
	      res->code);
	atomic_fetch_add(&c->bytes_in, res->body.len);
	pass.done(pass.arg, res);
}

static void get(struct store *s, const struct store_get *req)
{
	struct count_store *c = count_of(s);
	struct pass *pass = malloc(sizeof(*pass));
	if (!pass) {
		job_fail(req, -ENOMEM, "object %s: no memory", req->key);
		return;
	}
	*pass = (struct pass){.counting = c,
			      .op = req->op,
			      .started_ns = now(c),
			      .done = req->done,
			      .arg = req->arg};
	if (req->op == STORE_HEAD) {
		atomic_fetch_add(&c->heads, 1);
	} else {
		atomic_fetch_add(&c->gets, 1);
		if (req->offset != 0 || req->length != UINT64_MAX)
			atomic_fetch_add(&c->range_gets, 1);
		raise_to(&c->in_flight_max, atomic_fetch_add(&c->in_flight, 1) + 1);
	}
	struct store_get counted = *req;
	counted.done = passed;
	counted.arg = pass;
	store_get_async(c->w.inner, &counted);
}

static int list(struct store *s, const struct store_list *req, struct store_page *page,
		struct err *err)
{
	struct count_store *c = count_of(s);
	const uint64_t started = now(c);
	atomic_fetch_add(&c->lists, 1);
	return ended(c, STORE_CALL_LIST, started, store_list_page(c->w.inner, req, page, err));
}

static int put(struct store *s, const char *key, const void *body, size_t n,
	       const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	struct count_store *c = count_of(s);
	const uint64_t started = now(c);
	atomic_fetch_add(&c->puts, 1);
	int rc = store_put(c->w.inner, key, body, n, cond, meta, err);
	if (rc == 0)
		atomic_fetch_add(&c->bytes_out, n);
	return ended(c, STORE_CALL_PUT, started, rc);
}

static int del(struct store *s, const char *key, const struct store_cond *cond, struct err *err)
{
	struct count_store *c = count_of(s);
	const uint64_t started = now(c);
	atomic_fetch_add(&c->deletes, 1);
	return ended(c, STORE_CALL_DELETE, started, store_delete(c->w.inner, key, cond, err));
}

static const struct store_ops count_ops = {
	.name = "count",
	.get = get,
	.list = list,
	.put = put,
	.del = del,
	.space = wrapper_space,
	.free = wrapper_free,
};

struct store *store_count_new(struct store *inner, struct err *err)
{
	struct count_store *c = calloc(1, sizeof(*c));
	if (!c) {
		err_set(err, -ENOMEM, "counting store: no memory");
		return NULL;
	}
	wrapper_init(&c->w, &count_ops, inner);
	return &c->w.base;
}

void store_count_read(struct store *counting, struct store_counts *out)
{
	assert(counting->ops == &count_ops);
	struct count_store *c = count_of(counting);
	*out = (struct store_counts){
		.gets = atomic_load(&c->gets),
		.range_gets = atomic_load(&c->range_gets),
		.heads = atomic_load(&c->heads),
		.lists = atomic_load(&c->lists),
		.puts = atomic_load(&c->puts),
		.deletes = atomic_load(&c->deletes),
		.bytes_in = atomic_load(&c->bytes_in),
		.bytes_out = atomic_load(&c->bytes_out),
		.failures = atomic_load(&c->failures),
		.in_flight_max = atomic_load(&c->in_flight_max),
	};
	for (int call = 0; call < STORE_CALLS; call++) {
		for (int i = 0; i < STORE_RESULTS; i++)
			out->results[call][i] = atomic_load(&c->results[call][i]);
		histogram_read(&c->seconds[call], &out->seconds[call]);
	}
}

const char *store_call_name(enum store_call call)
{
	static const char *const names[STORE_CALLS] = {
		[STORE_CALL_GET] = "get",	[STORE_CALL_HEAD] = "head",
		[STORE_CALL_LIST] = "list",	[STORE_CALL_PUT] = "put",
		[STORE_CALL_DELETE] = "delete",
	};
	return names[call];
}

const char *store_result_name(unsigned int result)
{
	return results[result].name;
}
