/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads of ranges of an object. A snapshot reads one version of each object: the one that the user
 * requires, or else the one that answered first. If only the size is required, it is the first
 * version of this size. Every later request is conditional on its ETag, and each answer is compared
 * with it. If the object has another version, the read fails with -EIO, or with -ESTALE if it is an
 * object of the domain itself, and the next open of the domain loads it again. See ranges/ranges.h
 * for threading.
 */
#include <ranges/ranges.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <base/env.h>

/* ---- versions ---- */

/* If required is true, the object is not in the version that is required; otherwise not in that of
 * an earlier read. */
static int set_changed(struct range_object *o, bool required, struct err *err)
{
	atomic_store(&o->all->changed, true);
	atomic_store(&o->is_lost, true);
	if (o->is_own)
		return err_set(err, -ESTALE, "changed since %s",
			       required ? "the domain was opened" : "it was read first");
	return err_set(err, -EIO,
		       required ? "the file is not the version that the domain was made from"
				: "the file has changed since the domain was opened");
}

static bool is_other_size(uint64_t a, uint64_t b)
{
	return a != UINT64_MAX && b != UINT64_MAX && a != b;
}

static bool is_other(const struct range_object *o, const char *etag, uint64_t size)
{
	return (o->etag[0] && etag[0] && strcmp(o->etag, etag) != 0) ||
	       is_other_size(o->size, size);
}

static void pin_locked(struct range_object *o, const char *etag, uint64_t size)
{
	snprintf(o->etag, sizeof(o->etag), "%s", etag);
	o->size = size;
	atomic_store(&o->pinned, true);
}

int range_require(struct range_object *o, const char *etag, uint64_t size, struct err *err)
{
	if (!etag[0] && size == UINT64_MAX)
		return 0;
	pthread_mutex_lock(&o->all->lock);
	bool other = is_other_size(o->required_size, size);
	if (atomic_load(&o->pinned))
		other = other || is_other(o, etag, size);
	if (!other && size != UINT64_MAX)
		o->required_size = size;
	if (!other && etag[0] && !atomic_load(&o->pinned)) {
		o->required = true;
		pin_locked(o, etag, o->required_size);
	}
	pthread_mutex_unlock(&o->all->lock);
	return other ? err_wrap(err, set_changed(o, true, err), "%s", o->name) : 0;
}

static int check_version(struct range_object *o, const struct store_meta *meta, struct err *err)
{
	pthread_mutex_lock(&o->all->lock);
	const bool wrong_size = is_other_size(o->required_size, meta->size);
	if (!wrong_size && !atomic_load(&o->pinned))
		pin_locked(o, meta->etag, meta->size);
	const bool other = wrong_size || is_other(o, meta->etag, meta->size);
	const bool required = wrong_size || o->required;
	pthread_mutex_unlock(&o->all->lock);
	return other ? set_changed(o, required, err) : 0;
}

uint64_t range_object_size(const struct range_object *o)
{
	return atomic_load(&o->pinned) ? o->size : UINT64_MAX;
}

/* ---- speed ---- */

enum { SPEED_WINDOW = 64, GAP_MIN = 4 << 10, GAP_MAX = 1 << 20 };

static void record_speed(struct ranges *all, uint64_t ns, uint64_t bytes)
{
	const double rate = (double)bytes * 1e9 / (double)max_u64(ns, 1);
	pthread_mutex_lock(&all->lock);
	if (!all->now.latency_ns || ns < all->now.latency_ns)
		all->now.latency_ns = max_u64(ns, 1);
	all->now.rate = max_u64(all->now.rate, (uint64_t)rate);
	if (++all->answers == SPEED_WINDOW) {
		all->before = all->now;
		all->now = (struct range_speed){0};
		all->answers = 0;
	}
	pthread_mutex_unlock(&all->lock);
}

uint64_t range_gap(struct ranges *all)
{
	pthread_mutex_lock(&all->lock);
	const struct range_speed now = all->now, before = all->before;
	pthread_mutex_unlock(&all->lock);
	const uint64_t latency = now.latency_ns && before.latency_ns
					 ? min_u64(now.latency_ns, before.latency_ns)
					 : now.latency_ns + before.latency_ns;
	const double gap = (double)latency * (double)max_u64(now.rate, before.rate) / 1e9;
	return gap < GAP_MIN ? GAP_MIN : gap > GAP_MAX ? GAP_MAX : (uint64_t)gap;
}

/* ---- reads ---- */

int range_past_end(uint64_t size, struct err *err)
{
	return err_set(err, -EIO,
		       "the range is past the end of the file, which has %" PRIu64 " bytes", size);
}

void range_explain(const struct range_read *r, struct err *err)
{
	if (atomic_load(&r->object->is_lost))
		err_wrap(err, err->code, "%s", r->object->name);
	else if (r->from_end)
		err_wrap(err, err->code, "%s, the last %" PRIu64 " bytes", r->object->name,
			 r->length);
	else
		err_wrap(err, err->code, "%s, bytes %" PRIu64 "-%" PRIu64, r->object->name,
			 r->offset, r->offset + r->length - 1);
}

/* An object of the domain that was read before has been deleted. */
static int check_absence(struct range_read *r, const struct store_absence *proof, struct err *err)
{
	struct range_object *o = r->object;
	if (r->absent_ok && (o->required || !atomic_load(&o->pinned))) {
		r->absence = *proof;
		return 0;
	}
	atomic_store(&o->is_lost, true);
	if (!o->is_own)
		return err_set(err, -EIO, "the file does not exist");
	atomic_store(&o->all->changed, true);
	return err_set(err, -ESTALE, "deleted since it was read first");
}

static int check_answer(struct range_read *r, struct err *err)
{
	const struct store_answer *a = &r->req->answer;
	int rc = store_failure(a, err);
	if (rc == -ESTALE)
		return set_changed(r->object, r->object->required, err);
	if (rc)
		return rc;
	if (store_absence(a))
		return check_absence(r, store_absence(a), err);
	rc = check_version(r->object, &a->meta, err);
	if (!rc && a->body.len < r->length && !r->short_ok)
		rc = range_past_end(a->meta.size, err);
	return rc;
}

static void finish(struct range_read *r, int code, struct err *err)
{
	struct bytes body auto_bytes = {0};
	if (!code) {
		body = r->req->answer.body;
		r->req->answer.body = (struct bytes){0};
	} else {
		range_explain(r, err);
	}
	store_request_free(r->req);
	r->done(r, code, &body, err);
}

static void answered(struct store_request *req)
{
	struct range_read *r = req->arg;
	struct ranges *all = r->object->all;
	struct err err = ERR_INIT;
	const int code = check_answer(r, &err);
	if (!code)
		record_speed(all, all->env->now(all->env) - r->began_ns, req->answer.body.len);
	finish(r, code, &err);
}

void range_read(struct range_read *r)
{
	struct range_object *o = r->object;
	const uint64_t size = range_object_size(o);
	struct err err = ERR_INIT;
	int rc = 0;
	r->req = NULL;
	r->absence = (struct store_absence){0};
	if (r->from_end && size != UINT64_MAX) {
		r->from_end = false;
		r->offset = size - min_u64(size, r->length);
	}
	if (r->batch) {
		r->next = r->batch->first;
		r->batch->first = r;
		r->batch->n++;
		return;
	}
	if (size != UINT64_MAX && !r->short_ok &&
	    (r->offset > size || r->length > size - r->offset))
		rc = range_past_end(size, &err);
	if (!rc)
		r->req = store_request_new(o->store, STORE_GET);
	if (!rc && !r->req)
		rc = err_no_memory(&err);
	if (rc) {
		finish(r, rc, &err);
		return;
	}
	store_request_key(r->req, o->key);
	r->req->range = (struct store_range){
		.first = r->offset, .length = r->length, .from_end = r->from_end};
	r->req->max = r->req->expected = r->length;
	r->req->keep_range = o->is_own;
	r->req->parts = r->parts;
	r->req->n_parts = r->n_parts;
	r->req->cond.if_match = atomic_load(&o->pinned) && o->etag[0] ? o->etag : NULL;
	r->req->priority = r->prefetch ? STORE_PREFETCH : STORE_READER;
	r->req->cancelled = r->cancelled;
	r->began_ns = o->all->env->now(o->all->env);
	r->req->done = answered;
	r->req->arg = r;
	store_submit(o->store, r->req);
}
