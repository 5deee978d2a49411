/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which conditions of writes the service supports, and whether it compares CRCs. Services differ:
 * AWS requires the ETag of an If-Match in quotes, some versions of Ceph require it without. Older
 * servers ignore conditions or refuse requests that have one. Ceph 16 answers 412 to a current ETag
 * if the bucket has versions.
 *
 * The store does not guess from the answers to the caller's own requests: a 412 may be the conflict
 * that the condition is for. So the first put with a condition waits for a probe
 * (probe_conditions.c), and all later ones wait for the same probe. A condition that the service
 * does not check is replaced by comparisons before and after the request.
 *
 *   probe        the first operation that needs it          next state
 *   not done     starts it, and waits                       running
 *   running      waits                                      done; or, after a failure, not done:
 *                                                           those that wait fail with its reason
 *   done         goes on at once                            -; if the service has refused the
 *                                                           probe: a minute later not done, because
 *                                                           credentials and policies change
 *
 * Threads: a lock guards the states and the lists of waiting operations. The features are atomic;
 * each is set before its probe is done, and later by s3_set_missing(), or when a probe that was
 * refused is repeated.
 */
#include "s3_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define AGAIN_NS (UINT64_C(60) * 1000 * 1000 * 1000)

static const char *const feature_names[S3_FEATURES] = {
	[S3_PUT_ABSENT] = "put_if_none_match", [S3_PUT_MATCH] = "put_if_match",
	[S3_DELETE_MATCH] = "delete_if_match", [S3_PARTS_ABSENT] = "parts_if_none_match",
	[S3_PARTS_MATCH] = "parts_if_match",   [S3_MARKS] = "marks",
	[S3_PUT_CRC] = "put_crc32c",
};

static const char *const support_names[] = {
	[S3_UNKNOWN] = "unknown", [S3_UNTESTED] = "untested", [S3_WORKS] = "works",
	[S3_BARE] = "bare",	  [S3_IGNORED] = "ignored",   [S3_BROKEN] = "broken",
	[S3_MISSING] = "missing",
};

_Static_assert((int)STORE_S3_FEATURES == (int)S3_FEATURES, "store_s3_features() has each feature");

void s3_conditions_init(struct s3_conditions *c)
{
	pthread_mutex_init(&c->lock, NULL);
}

void s3_conditions_release(struct s3_conditions *c)
{
	pthread_mutex_destroy(&c->lock);
}

enum s3_support s3_support(const struct s3_store *s, enum s3_feature feature)
{
	return (enum s3_support)atomic_load(&s->conditions.support[feature]);
}

bool s3_drops_marks(const struct s3_store *s)
{
	return s3_support(s, S3_MARKS) == S3_IGNORED;
}

void store_s3_features(struct store *store, struct store_s3_feature out[STORE_S3_FEATURES])
{
	const struct s3_store *s = s3_store_of(store);
	for (int i = 0; i < S3_FEATURES; i++)
		out[i] = (struct store_s3_feature){
			.name = feature_names[i],
			.support = support_names[s3_support(s, (enum s3_feature)i)],
		};
}

/* ---- reports ---- */

/* Returns what the log says about a condition that the service does not check, or NULL if it does,
 * or if that is unknown. */
static const char *fault_of(enum s3_support support)
{
	switch (support) {
	case S3_IGNORED:
		return "ignored";
	case S3_BROKEN:
		return "fails although it holds";
	case S3_MISSING:
		return "refused";
	default:
		return NULL;
	}
}

static void add_fault(struct str *text, const char *what, enum s3_support support)
{
	const char *fault = fault_of(support);
	if (fault)
		str_addf(text, "%s%s (%s)", text->b.len ? ", " : "", what, fault);
}

static void warn(const struct s3_store *s, const char *of, const struct str *faults)
{
	if (faults->b.len)
		log_warning(s->base.env->log,
			    "%s does not check the conditions of %s: %s; objects are compared "
			    "before and after each write instead, and a change by another writer "
			    "between the two may be lost",
			    str_text(&s->endpoint.host), of, str_text(faults));
}

/* Logs one warning for each probe. Most services do not check the condition of a DELETE. */
static void report(const struct s3_store *s, enum s3_probe probe,
		   const enum s3_support support[S3_FEATURES])
{
	const bool single = probe == S3_PROBE_SINGLE;
	auto_str struct str faults = {0};
	if (probe == S3_PROBE_CRC) {
		log_info(s->base.env->log, "%s %s the CRC-32C of what is written",
			 str_text(&s->endpoint.host),
			 support[S3_PUT_CRC] == S3_WORKS ? "compares" : "does not compare");
		return;
	}
	add_fault(&faults, "If-None-Match", support[single ? S3_PUT_ABSENT : S3_PARTS_ABSENT]);
	add_fault(&faults, "If-Match", support[single ? S3_PUT_MATCH : S3_PARTS_MATCH]);
	warn(s, single ? "writes" : "uploads in parts", &faults);
	if (single && support[S3_MARKS] == S3_IGNORED)
		log_info(s->base.env->log, "%s does not keep the metadata of objects",
			 str_text(&s->endpoint.host));
}

void s3_set_missing(struct s3_store *s, enum s3_feature feature)
{
	auto_str struct str faults = {0};
	if (atomic_exchange(&s->conditions.support[feature], S3_MISSING) == S3_MISSING ||
	    feature == S3_PUT_CRC)
		return;
	add_fault(&faults, feature == S3_PUT_MATCH ? "If-Match" : "If-None-Match", S3_MISSING);
	warn(s, "writes", &faults);
}

/* ---- waiting ---- */

static bool is_of(enum s3_feature feature, enum s3_probe probe)
{
	switch (feature) {
	case S3_PARTS_ABSENT:
	case S3_PARTS_MATCH:
		return probe == S3_PROBE_PARTS;
	case S3_PUT_CRC:
		return probe == S3_PROBE_CRC;
	default:
		return probe == S3_PROBE_SINGLE;
	}
}

static void go_on(void *arg)
{
	struct store_request *req = arg;
	struct s3_operation *op = store_private(store_working(req), req);
	if (op->req->answer.err.code)
		s3_fail(op, op->req->answer.err.code);
	else
		op->then(op);
}

/* The service has refused the probe. */
static bool is_refused(const enum s3_support support[S3_FEATURES], enum s3_probe probe)
{
	static const enum s3_feature first[S3_PROBES] = {
		[S3_PROBE_SINGLE] = S3_PUT_ABSENT,
		[S3_PROBE_PARTS] = S3_PARTS_ABSENT,
		[S3_PROBE_CRC] = S3_PUT_CRC,
	};
	return support[first[probe]] == S3_UNTESTED;
}

/* Notes what a probe has found out. One that was refused forgets nothing. */
static void enter(struct s3_store *s, enum s3_probe probe,
		  const enum s3_support support[S3_FEATURES])
{
	const bool refused = is_refused(support, probe);
	for (int i = 0; i < S3_FEATURES; i++) {
		int unknown = S3_UNKNOWN;
		if (!is_of((enum s3_feature)i, probe))
			continue;
		if (refused)
			atomic_compare_exchange_strong(&s->conditions.support[i], &unknown,
						       S3_UNTESTED);
		else
			atomic_store(&s->conditions.support[i], support[i]);
	}
	pthread_mutex_lock(&s->conditions.lock);
	s->conditions.probe[probe].again = refused ? env_now(s->base.env) + AGAIN_NS : 0;
	pthread_mutex_unlock(&s->conditions.lock);
}

/* Ends the probe. own is the operation that runs it. It goes on in this thread, and last, because
 * the store and its pool may be freed as soon as no operation is in progress. */
static void end_probe(struct s3_operation *own, enum s3_probe probe, const struct err *err)
{
	struct s3_store *s = own->s;
	struct s3_conditions *c = &s->conditions;
	pthread_mutex_lock(&c->lock);
	struct s3_operation *op = c->probe[probe].waiting;
	c->probe[probe].waiting = NULL;
	c->probe[probe].running = false;
	c->probe[probe].done = err->code == 0;
	pthread_mutex_unlock(&c->lock);
	while (op) {
		struct s3_operation *next = op->waiting;
		op->req->answer.err = *err;
		if (op != own)
			store_work(&s->base, op->req, go_on);
		op = next;
	}
	go_on(own->req);
}

/* Runs in a thread of its own. */
static void run_probe(struct store_request *req, enum s3_probe probe)
{
	struct s3_operation *op = store_private(store_working(req), req);
	struct s3_store *s = op->s;
	enum s3_support support[S3_FEATURES] = {S3_UNKNOWN};
	struct err err = ERR_INIT;
	int rc = s3_probe_run(s, probe, support, &err);
	/* No write has to wait for an answer about CRCs, which only save processor time. */
	if (rc && rc != -ECANCELED && probe == S3_PROBE_CRC) {
		log_info(s->base.env->log, "bodies are sent with their SHA-256: %s", err.msg);
		support[S3_PUT_CRC] = S3_UNTESTED;
		rc = 0;
	}
	if (rc == 0) {
		report(s, probe, support);
		enter(s, probe, support);
		err_clear(&err);
	}
	end_probe(op, probe, &err);
}

static void run_single(void *arg)
{
	run_probe(arg, S3_PROBE_SINGLE);
}

static void run_parts(void *arg)
{
	run_probe(arg, S3_PROBE_PARTS);
}

static void run_crc(void *arg)
{
	run_probe(arg, S3_PROBE_CRC);
}

void s3_await_probe(struct s3_operation *op, enum s3_probe probe,
		    void (*then)(struct s3_operation *op))
{
	static void (*const runs[S3_PROBES])(void *arg) = {
		[S3_PROBE_SINGLE] = run_single,
		[S3_PROBE_PARTS] = run_parts,
		[S3_PROBE_CRC] = run_crc,
	};
	struct s3_store *s = op->s;
	struct s3_conditions *c = &s->conditions;
	op->then = then;
	pthread_mutex_lock(&c->lock);
	const uint64_t again = c->probe[probe].again;
	const bool done = c->probe[probe].done && !(again && env_now(s->base.env) >= again);
	const bool starts = !done && !c->probe[probe].running;
	if (!done) {
		op->waiting = c->probe[probe].waiting;
		c->probe[probe].waiting = op;
		c->probe[probe].running = true;
	}
	pthread_mutex_unlock(&c->lock);
	if (done)
		then(op);
	else if (starts)
		store_work_apart(&s->base, op->req, runs[probe]);
}

/* ---- headers ---- */

size_t s3_cond_header(const struct s3_store *s, enum s3_feature feature, const char *etag,
		      char value[S3_QUOTED_MAX], struct sigv4_pair *header)
{
	const bool absent = feature == S3_PUT_ABSENT || feature == S3_PARTS_ABSENT;
	const bool single = feature == S3_PUT_ABSENT || feature == S3_PUT_MATCH;
	const enum s3_support support = s3_support(s, feature);
	if (support != S3_WORKS && support != S3_BARE && !(single && support == S3_UNTESTED))
		return 0;
	if (absent)
		strcpy(value, "*");
	else
		snprintf(value, S3_QUOTED_MAX, support == S3_BARE ? "%.*s" : "\"%.*s\"",
			 STORE_ETAG_MAX, etag);
	*header = (struct sigv4_pair){absent ? "if-none-match" : "if-match", value};
	return 1;
}

size_t s3_mark_header(const char *mark, struct sigv4_pair *header)
{
	if (!mark)
		return 0;
	*header = (struct sigv4_pair){S3_MARK_HEADER, mark};
	return 1;
}

bool s3_has_own_mark(const struct s3_operation *op)
{
	const char *mark = op->req->mark;
	return mark && strcmp(op->call.answer.mark, mark) == 0;
}
