/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks whether a dataset's document is still the version from which the snapshot was made. In a
 * domain whose chunks were not listed, an absent chunk may have been deleted together with its
 * dataset, or by a program that changed the dataset's shape. Its value in this snapshot is then
 * unknown, and must not be shown as the fill value.
 *
 * At most one HEAD a second is sent for each dataset, unless this process changes a domain.
 * Rechecks that arrive while a HEAD is in flight wait for its answer. A change is recorded for the
 * lifetime of the snapshot. A failure is not recorded.
 *
 * If this process changes a domain (struct domain_changes), it first puts documents, and then
 * deletes chunks. So if a chunk is found to be absent during such a change or after it, only a HEAD
 * that begins later shows why. The answers of earlier HEADs do not count.
 *
 * Threads: the lock guards all entries. No request is made and no callback is called under it.
 */
/* A failed insertion must not end the process. The handle of the entry then has no table. */
#define HASH_NONFATAL_OOM 1
#include <domain/domain.h>

#include <errno.h>

#include <uthash.h>

#include "domain_internal.h"

static const uint64_t validity_ns = UINT64_C(1000000000);

struct rechecked {
	struct domain *d;
	uint32_t number;
	const char *etag;	      /* of the document in the snapshot; only check() writes it */
	bool in_flight, valid, stale; /* in_flight means a HEAD */
	uint64_t valid_ns;	      /* when the last HEAD began that found no change */
	uint64_t began_ns;	      /* when the HEAD in flight began */
	uint64_t heads;		      /* number of HEADs that have begun */
	uint64_t ended;		      /* domain_changes.ended when the last HEAD began */
	struct domain_recheck *waiting; /* the HEAD has `cancelled` of the first one */
	UT_hash_handle hh;
};

void domain_rechecks_init(struct domain *d)
{
	pthread_mutex_init(&d->rechecks.lock, NULL);
}

void domain_rechecks_release(struct domain *d)
{
	struct rechecked *e, *next;
	HASH_ITER (hh, d->rechecks.datasets, e, next) {
		HASH_DEL(d->rechecks.datasets, e);
		free(e);
	}
	pthread_mutex_destroy(&d->rechecks.lock);
}

static struct rechecked *find_locked(struct domain *d, uint32_t dataset)
{
	struct rechecked *e = NULL;
	HASH_FIND(hh, d->rechecks.datasets, &dataset, sizeof(dataset), e);
	return e;
}

static struct rechecked *find_or_add_locked(struct domain *d, uint32_t dataset)
{
	struct rechecked *e = find_locked(d, dataset);
	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->d = d;
	e->number = dataset;
	HASH_ADD(hh, d->rechecks.datasets, number, sizeof(e->number), e);
	if (e->hh.tbl)
		return e;
	free(e);
	return NULL;
}

bool domain_is_stale(struct domain *d, uint32_t dataset)
{
	pthread_mutex_lock(&d->rechecks.lock);
	const struct rechecked *e = find_locked(d, dataset);
	const bool stale = e && e->stale;
	pthread_mutex_unlock(&d->rechecks.lock);
	return stale;
}

static int set_stale(struct err *err)
{
	return err_set(err, -ESTALE, "the dataset has changed since the file was opened");
}

static void check(struct rechecked *e, const atomic_bool *cancelled);

/* Returns true if no change of this process is running, and none has ended since the last HEAD
 * began. */
static bool is_recent_locked(const struct rechecked *e)
{
	const struct domain_changes *c = e->d->changes;
	/* The order matters: a change that ends increments `ended` before it decrements `running`.
	 */
	return !c || (!atomic_load(&c->running) && e->ended == atomic_load(&c->ended));
}

static void begin_locked(struct rechecked *e, uint64_t now)
{
	const struct domain_changes *c = e->d->changes;
	e->in_flight = true;
	e->valid = false;
	e->began_ns = now;
	e->heads++;
	e->ended = c ? atomic_load(&c->ended) : 0;
}

static void finish(struct domain_recheck *r, int code, const struct err *err)
{
	while (r) {
		struct domain_recheck *next = r->next;
		r->done(r->arg, code, err);
		r = next;
	}
}

/* Compares the document's version with that of the snapshot. Fails with -ESTALE if they differ or
 * there is no document any more, and with the error of the request. */
static int compare_locked(struct rechecked *e, const struct store_answer *a, struct err *err)
{
	const char *etag = e->etag;
	const int rc = store_failure(a, err);
	if (rc)
		return err_wrap(err, rc, "the document of its dataset");
	/* If the store has no versions, it is enough that the document exists. */
	e->stale =
		store_absence(a) || (etag[0] && a->meta.etag[0] && strcmp(etag, a->meta.etag) != 0);
	e->valid = true;
	e->valid_ns = e->began_ns;
	return e->stale ? set_stale(err) : 0;
}

/* Removes the rechecks that can be completed: all that have waited for this HEAD, or, after a
 * cancelled HEAD, those that were cancelled themselves. *again becomes the first that remains,
 * which needs another HEAD, or NULL. */
static struct domain_recheck *take_locked(struct rechecked *e, int code,
					  struct domain_recheck **again)
{
	struct domain_recheck *taken = NULL, **kept = &e->waiting;
	while (*kept) {
		struct domain_recheck *r = *kept;
		const bool waits = r->head > e->heads && !e->stale;
		if (waits || (code == -ECANCELED && !(r->cancelled && atomic_load(r->cancelled)))) {
			kept = &r->next;
			continue;
		}
		*kept = r->next;
		r->next = taken;
		taken = r;
	}
	*again = e->waiting;
	return taken;
}

static void answered(struct store_request *req)
{
	struct rechecked *e = req->arg;
	struct domain_rechecks *all = &e->d->rechecks;
	struct err err = ERR_INIT;
	struct domain_recheck *again;
	pthread_mutex_lock(&all->lock);
	const int code = compare_locked(e, &req->answer, &err);
	struct domain_recheck *r = take_locked(e, code, &again);
	const atomic_bool *cancelled = again ? again->cancelled : NULL;
	e->in_flight = false;
	if (again)
		begin_locked(e, e->d->env->now(e->d->env));
	pthread_mutex_unlock(&all->lock);
	store_request_free(req);
	if (again)
		check(e, cancelled);
	finish(r, code, &err);
}

static void check(struct rechecked *e, const atomic_bool *cancelled)
{
	const struct domain *d = e->d;
	struct store_request *req = store_request_new(d->store, STORE_HEAD);
	if (!req) {
		struct err err = ERR_INIT;
		const int code = err_no_memory(&err);
		pthread_mutex_lock(&e->d->rechecks.lock);
		struct domain_recheck *r = e->waiting;
		e->waiting = NULL;
		e->in_flight = false;
		pthread_mutex_unlock(&e->d->rechecks.lock);
		finish(r, code, &err);
		return;
	}
	/* The document was read at the open, so it has a key. If the schema fails nevertheless, the
	 * store refuses the empty key. */
	if (d->schema->object_key(d->space, e->number, req->key, req->room, &e->etag) < 0)
		req->key[0] = '\0';
	req->cancelled = cancelled_by(cancelled);
	req->done = answered;
	req->arg = e;
	store_submit(d->store, req);
}

/* Returns whether the dataset has a document, which can change while that of the domain stays the
 * same. */
static bool has_document(const struct domain *d, uint32_t dataset)
{
	char key[SCHEMA_KEY_MAX + 1];
	const char *etag;
	return d->schema->object_key(d->space, dataset, key, sizeof(key), &etag) != 0;
}

void domain_recheck(struct domain *d, uint32_t dataset, struct domain_recheck *r)
{
	const uint64_t now = d->env->now(d->env);
	struct err err = ERR_INIT;
	bool first = false, waits = false;
	int code = 0;
	if (!has_document(d, dataset)) {
		r->done(r->arg, 0, &err);
		return;
	}
	pthread_mutex_lock(&d->rechecks.lock);
	struct rechecked *e = find_or_add_locked(d, dataset);
	if (!e) {
		code = err_no_memory(&err);
	} else if (e->stale) {
		code = set_stale(&err);
	} else if (!e->valid || !is_recent_locked(e) || now - e->valid_ns >= validity_ns) {
		struct domain_recheck **end = &e->waiting;
		while (*end)
			end = &(*end)->next;
		r->next = NULL;
		*end = r;
		waits = true;
		first = !e->in_flight;
		r->head = e->heads + (first || !is_recent_locked(e));
		if (first)
			begin_locked(e, now);
	}
	pthread_mutex_unlock(&d->rechecks.lock);
	if (first)
		check(e, r->cancelled);
	else if (!waits)
		r->done(r->arg, code, &err);
}
