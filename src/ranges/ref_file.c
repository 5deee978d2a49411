/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that a domain refers to, and reads of their ranges. A snapshot reads one version of each
 * file: the one that the domain records, or else the one that answered first. If the domain records
 * only the size, it is the first version of this size. Every later request is conditional on its
 * ETag, and each answer is compared with it. If the file has another version, the read fails with
 * -EIO, and the next open of the domain loads it again. See references.h for threading.
 */
#include <ranges/references.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ref_internal.h"

void ranges_init(struct ranges *all, const struct env *env, const struct file_finder *finder,
		 const struct tree *tree)
{
	all->env = env;
	all->finder = finder;
	all->tree = tree;
	pthread_mutex_init(&all->lock, NULL);
}

static void free_file(struct ref_file *f)
{
	if (f->release_index)
		f->release_index(f);
	budget_set(&f->charge, 0, NULL);
	free(f->uri);
	free(f);
}

void ranges_release(struct ranges *all)
{
	struct ref_file *f, *next;
	HASH_ITER (hh, all->files, f, next) {
		HASH_DEL(all->files, f);
		free_file(f);
	}
	pthread_mutex_destroy(&all->lock);
}

/* ---- versions ---- */

/* If recorded is true, the file is not in the version that the domain records; otherwise not in
 * that of an earlier read. */
static int set_changed(struct ref_file *f, bool recorded, struct err *err)
{
	atomic_store(&f->all->changed, true);
	return err_set(err, -EIO,
		       recorded ? "the file is not the version that the domain was made from"
				: "the file has changed since the domain was opened");
}

static bool is_etag(const char *recorded)
{
	return recorded && recorded[0] && strlen(recorded) < STORE_ETAG_MAX;
}

static bool is_other_size(uint64_t a, uint64_t b)
{
	return a != UINT64_MAX && b != UINT64_MAX && a != b;
}

static bool is_other(const struct ref_file *f, const char *etag, uint64_t size)
{
	return (f->etag[0] && etag[0] && strcmp(f->etag, etag) != 0) ||
	       is_other_size(f->size, size);
}

static void pin_locked(struct ref_file *f, const char *etag, uint64_t size)
{
	snprintf(f->etag, sizeof(f->etag), "%s", etag);
	f->size = size;
	atomic_store(&f->pinned, true);
}

/* A file with a recorded ETag or size is read in that version only. What is not recorded is taken
 * from the first answer. */
static int pin_recorded(struct ref_file *f, const struct reference_file *recorded, struct err *err)
{
	const char *etag = is_etag(recorded->etag) && !f->found.local_etags ? recorded->etag : "";
	bool other;
	if (!etag[0] && recorded->size == UINT64_MAX)
		return 0;
	pthread_mutex_lock(&f->all->lock);
	other = is_other_size(f->recorded_size, recorded->size);
	if (atomic_load(&f->pinned))
		other = other || is_other(f, etag, recorded->size);
	if (!other && recorded->size != UINT64_MAX)
		f->recorded_size = recorded->size;
	if (!other && etag[0] && !atomic_load(&f->pinned)) {
		f->recorded = true;
		pin_locked(f, etag, f->recorded_size);
	}
	pthread_mutex_unlock(&f->all->lock);
	return other ? err_wrap(err, set_changed(f, true, err), "%s", f->uri) : 0;
}

/* Compares the version of an answer. */
static int check_version(struct ref_file *f, const struct store_meta *meta, struct err *err)
{
	pthread_mutex_lock(&f->all->lock);
	const bool wrong_size = is_other_size(f->recorded_size, meta->size);
	if (!wrong_size && !atomic_load(&f->pinned))
		pin_locked(f, meta->etag, meta->size);
	const bool other = wrong_size || is_other(f, meta->etag, meta->size);
	const bool recorded = wrong_size || f->recorded;
	pthread_mutex_unlock(&f->all->lock);
	return other ? set_changed(f, recorded, err) : 0;
}

/* ---- files ---- */

int ref_file_charge(struct ref_file *f, uint64_t n, struct err *err)
{
	return budget_set(&f->charge, f->charge.bytes + n, err);
}

static struct ref_file *find_locked(struct ranges *all, const char *uri)
{
	struct ref_file *f = NULL;
	HASH_FIND_STR(all->files, uri, f);
	return f;
}

static struct ref_file *new_file(struct ranges *all, const char *uri, struct err *err)
{
	const struct file_finder *finder = all->finder;
	struct ref_file *f = calloc(1, sizeof(*f));
	int rc = -ENOMEM;
	if (!f) {
		err_set(err, rc, "out of memory");
		return NULL;
	}
	f->all = all;
	f->size = UINT64_MAX;
	f->recorded_size = UINT64_MAX;
	f->charge = (struct budget_charge){.budget = all->env->budget, .use = BUDGET_TREES};
	f->uri = strdup(uri);
	if (!f->uri)
		err_set(err, rc, "out of memory");
	else if (!finder)
		rc = err_set(err, -EOPNOTSUPP, "%s: files outside of the domain are not read here",
			     uri);
	else
		rc = finder->resolve(finder->ctx, uri, &f->found, err);
	/* A URI that cannot be right is a defect of the domain. */
	if (rc == -EINVAL || rc == -ENAMETOOLONG)
		rc = err->code = -EIO;
	/* A chunk table may name any number of files. */
	if (!rc)
		rc = ref_file_charge(f, sizeof(*f) + strlen(uri) + 1, err);
	if (!rc)
		return f;
	free_file(f);
	return NULL;
}

/* Another thread may have added the file meanwhile. */
static struct ref_file *add_file(struct ranges *all, struct ref_file *f, struct err *err)
{
	pthread_mutex_lock(&all->lock);
	struct ref_file *known = find_locked(all, f->uri);
	if (!known) {
		HASH_ADD_KEYPTR(hh, all->files, f->uri, strlen(f->uri), f);
		known = f->hh.tbl ? f : NULL;
	}
	pthread_mutex_unlock(&all->lock);
	if (known != f)
		free_file(f);
	if (!known)
		err_no_memory(err);
	return known;
}

struct ref_file *ref_file_find(struct ranges *all, const struct reference_file *recorded,
			       struct err *err)
{
	pthread_mutex_lock(&all->lock);
	struct ref_file *f = find_locked(all, recorded->uri);
	pthread_mutex_unlock(&all->lock);
	if (!f) {
		f = new_file(all, recorded->uri, err);
		f = f ? add_file(all, f, err) : NULL;
	}
	return f && pin_recorded(f, recorded, err) ? NULL : f;
}

const char *ref_file_uri(const struct ref_file *f)
{
	return f->uri;
}

uint64_t ref_file_size(const struct ref_file *f)
{
	return atomic_load(&f->pinned) ? f->size : UINT64_MAX;
}

/* ---- speed ---- */

enum { SPEED_WINDOW = 64, GAP_MIN = 4 << 10, GAP_MAX = 1 << 20 };

static void record_speed(struct ref_file *f, uint64_t ns, uint64_t bytes)
{
	struct ranges *all = f->all;
	const double rate = (double)bytes * 1e9 / (double)max_u64(ns, 1);
	pthread_mutex_lock(&all->lock);
	if (!all->now.latency_ns || ns < all->now.latency_ns)
		all->now.latency_ns = max_u64(ns, 1);
	all->now.rate = max_u64(all->now.rate, (uint64_t)rate);
	if (++all->answers == SPEED_WINDOW) {
		all->before = all->now;
		all->now = (struct ref_speed){0};
		all->answers = 0;
	}
	pthread_mutex_unlock(&all->lock);
}

uint64_t ref_gap(struct ref_file *f)
{
	struct ranges *all = f->all;
	pthread_mutex_lock(&all->lock);
	const struct ref_speed now = all->now, before = all->before;
	pthread_mutex_unlock(&all->lock);
	const uint64_t latency = now.latency_ns && before.latency_ns
					 ? min_u64(now.latency_ns, before.latency_ns)
					 : now.latency_ns + before.latency_ns;
	const double gap = (double)latency * (double)max_u64(now.rate, before.rate) / 1e9;
	return gap < GAP_MIN ? GAP_MIN : gap > GAP_MAX ? GAP_MAX : (uint64_t)gap;
}

/* ---- reads ---- */

static int past_the_end(const struct ref_read *r, uint64_t size, struct err *err)
{
	return err_set(err, -EIO,
		       "the range is past the end of the file, which has %" PRIu64 " bytes", size);
}

static int check_answer(struct ref_read *r, struct err *err)
{
	const struct store_answer *a = &r->req->answer;
	int rc = store_failure(a, err);
	if (rc == -ESTALE)
		return set_changed(r->file, r->file->recorded, err);
	if (rc)
		return rc;
	if (store_absence(a))
		return err_set(err, -EIO, "the file does not exist");
	rc = check_version(r->file, &a->meta, err);
	if (!rc && a->body.len < r->length && !r->short_ok)
		rc = past_the_end(r, a->meta.size, err);
	return rc;
}

static void finish(struct ref_read *r, int code, struct err *err)
{
	struct bytes body auto_bytes = {0};
	if (!code) {
		body = r->req->answer.body;
		r->req->answer.body = (struct bytes){0};
	} else {
		err_wrap(err, code, "%s, bytes %" PRIu64 "-%" PRIu64, r->file->uri, r->offset,
			 r->offset + r->length - 1);
	}
	store_request_free(r->req);
	r->done(r, code, &body, err);
}

static void answered(struct store_request *req)
{
	struct ref_read *r = req->arg;
	const struct env *env = r->file->all->env;
	struct err err = ERR_INIT;
	const int code = check_answer(r, &err);
	if (!code)
		record_speed(r->file, env->now(env) - r->began_ns, req->answer.body.len);
	finish(r, code, &err);
}

void ref_read(struct ref_read *r)
{
	struct ref_file *f = r->file;
	const bool pinned = atomic_load(&f->pinned);
	const uint64_t size = pinned ? f->size : UINT64_MAX;
	struct err err = ERR_INIT;
	int rc = 0;
	r->req = NULL;
	if (r->batch) {
		r->next = r->batch->first;
		r->batch->first = r;
		r->batch->n++;
		return;
	}
	if (size != UINT64_MAX && !r->short_ok &&
	    (r->offset > size || r->length > size - r->offset))
		rc = past_the_end(r, size, &err);
	if (!rc)
		r->req = store_request_new(f->found.store, STORE_GET);
	if (!rc && !r->req)
		rc = err_no_memory(&err);
	if (rc) {
		finish(r, rc, &err);
		return;
	}
	store_request_key(r->req, f->found.key);
	r->req->range = (struct store_range){.first = r->offset, .length = r->length};
	r->req->max = r->req->expected = r->length;
	r->req->cond.if_match = pinned && f->etag[0] ? f->etag : NULL;
	r->req->priority = r->prefetch ? STORE_PREFETCH : STORE_READER;
	r->req->cancelled = r->cancelled;
	r->began_ns = f->all->env->now(f->all->env);
	r->req->done = answered;
	r->req->arg = r;
	store_submit(f->found.store, r->req);
}
