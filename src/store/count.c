/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts requests, for metrics and for tests that promise a number of requests. At the log level
 * debug it also logs each request. All counters are separate atomics: a reader may see a request
 * counted before its bytes are.
 */
#include <store/implement.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>

typedef atomic_uint_fast64_t counter;

struct count_store {
	struct store base;
	counter calls[STORE_OPS], range_gets;
	counter bytes_in, bytes_out, failures;
	counter in_flight, in_flight_max;
	counter moves;
	counter results[STORE_OPS][STORE_RESULTS];
	struct histogram seconds[STORE_OPS];
};

enum { ABSENT = 1 }; /* a result besides 0 and negative errnos */

/* The results that store_ops promises, and other errors of system calls. */
static const struct {
	int code;
	const char *name;
} results[STORE_RESULTS] = {
	{0, "ok"},
	{ABSENT, "absent"},
	{-EALREADY, "unchanged"},
	{-EACCES, "EACCES"},
	{-ESTALE, "ESTALE"},
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
	{-EMFILE, "EMFILE"},
	{INT_MIN, "other"}, /* any other code; must be last */
};

/* The private memory of a request. */
struct timing {
	uint64_t started_ns;
};

static struct count_store *count_of(struct store *s)
{
	return (struct count_store *)s;
}

static void add(counter *c, uint64_t n)
{
	atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

static uint64_t get(const counter *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

static void raise_to(counter *max, uint_fast64_t v)
{
	uint_fast64_t seen = get(max);
	while (seen < v && !atomic_compare_exchange_weak(max, &seen, v))
		;
}

static uint64_t now(const struct count_store *c)
{
	return c->base.env->now(c->base.env);
}

static void submit(struct store *s, struct store_request *req)
{
	struct count_store *c = count_of(s);
	struct timing *timing = store_private(s, req);
	timing->started_ns = now(c);
	add(&c->calls[req->op], 1);
	if (req->op == STORE_GET) {
		if (req->range.first != 0 || req->range.length != STORE_TO_END)
			add(&c->range_gets, 1);
		raise_to(&c->in_flight_max, atomic_fetch_add(&c->in_flight, 1) + 1);
	}
	store_pass(s, req);
}

/* ABSENT is the success of a DELETE. */
static int result_of(const struct store_request *req)
{
	const struct store_answer *a = &req->answer;
	if (a->state == STORE_UNKNOWN)
		return a->err.code;
	if (a->state == STORE_ABSENT)
		return req->op == STORE_DELETE ? 0 : ABSENT;
	return a->unchanged ? -EALREADY : 0;
}

/* Logs "get home/x/data.bin, bytes 100-199: ok, 100 bytes, 12.3 ms". */
static void log_request(struct store *s, const struct store_request *req, const char *result,
			uint64_t ns)
{
	char range[64] = "";
	const struct store_range *r = &req->range;
	if (req->op == STORE_GET && r->from_end)
		snprintf(range, sizeof(range), ", last %" PRIu64 " bytes", r->length);
	else if (req->op == STORE_GET && r->length != STORE_TO_END)
		snprintf(range, sizeof(range), ", bytes %" PRIu64 "-%" PRIu64, r->first,
			 r->first + r->length - 1);
	else if (req->op == STORE_GET && r->first)
		snprintf(range, sizeof(range), ", bytes %" PRIu64 "-", r->first);
	const bool failed = req->answer.state == STORE_UNKNOWN;
	log_debug(s->env->log, "%s %s%s: %s, %zu bytes, %.1f ms%s%s", store_op_name(req->op),
		  req->key, range, result, req->answer.body.len, (double)ns / 1e6,
		  failed ? ": " : "", failed ? req->answer.err.msg : "");
}

static unsigned int row_of(int result)
{
	unsigned int i = 0;
	while (i < STORE_RESULTS - 1 && results[i].code != result)
		i++;
	return i;
}

static void completed(struct store *s, struct store_request *req)
{
	struct count_store *c = count_of(s);
	const struct timing *timing = store_private(s, req);
	const uint64_t took = now(c) - timing->started_ns;
	const int result = result_of(req);
	const unsigned int i = row_of(result);
	add(&c->results[req->op][i], 1);
	histogram_record(&c->seconds[req->op], took);
	if (log_get_level(s->env->log) == LOG_LEVEL_DEBUG)
		log_request(s, req, results[i].name, took);
	if (result && result != -EALREADY)
		add(&c->failures, 1);
	if (req->op == STORE_GET)
		atomic_fetch_sub(&c->in_flight, 1);
	add(&c->bytes_in, req->answer.body.len);
	if (result == 0 && req->op == STORE_PUT)
		add(&c->bytes_out, store_body_size(req));
	store_complete(s, req);
}

static int move(struct store *s, const char *from, const char *from_version, const char *to,
		const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	struct count_store *c = count_of(s);
	const uint64_t started = now(c);
	const int rc = store_move(s->inner, from, from_version, to, cond, meta, err);
	add(&c->moves, 1);
	if (rc)
		add(&c->failures, 1);
	log_debug(s->env->log, "move %s to %s: %s, %.1f ms%s%s", from, to, results[row_of(rc)].name,
		  (double)(now(c) - started) / 1e6, rc && err ? ": " : "",
		  rc && err ? err->msg : "");
	return rc;
}

static const struct store_ops count_ops = {
	.name = "count",
	.submit = submit,
	.completed = completed,
	.move = move,
	.free = store_wrapper_free,
};

struct store *store_count_new(struct store *inner, struct err *err)
{
	return store_wrap_new(sizeof(struct count_store), &count_ops, inner, sizeof(struct timing),
			      err);
}

void store_count_read(struct store *counting, struct store_counts *out)
{
	assert(counting->ops == &count_ops);
	struct count_store *c = count_of(counting);
	*out = (struct store_counts){
		.range_gets = get(&c->range_gets),
		.bytes_in = get(&c->bytes_in),
		.bytes_out = get(&c->bytes_out),
		.failures = get(&c->failures),
		.in_flight_max = get(&c->in_flight_max),
		.moves = get(&c->moves),
	};
	for (int op = 0; op < STORE_OPS; op++) {
		out->calls[op] = get(&c->calls[op]);
		for (int i = 0; i < STORE_RESULTS; i++)
			out->results[op][i] = get(&c->results[op][i]);
		histogram_read(&c->seconds[op], &out->seconds[op]);
	}
}

const char *store_result_name(unsigned int result)
{
	return results[result].name;
}
