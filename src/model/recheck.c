/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a dataset's document is still the one that the snapshot was made of. In a domain whose
 * chunks were not listed, a chunk that the store proves absent may have been deleted together with
 * its dataset, or by a program that changed its shape. Its value in this snapshot is unknown then,
 * and must not be shown as the fill value.
 *
 * One HEAD for each dataset and second, whoever asks. Those who ask while it is under way wait for
 * it. That the document has changed is remembered for the snapshot's life; a failure is not
 * remembered.
 *
 * Threads: the lock guards all entries. No request is made and no callback is called under it.
 */
/* A failed insertion must not end the process: the entry's handle then has no table. */
#define HASH_NONFATAL_OOM 1
#include <model/model.h>

#include <errno.h>

#include "model_internal.h"

static const uint64_t valid_ns = UINT64_C(1000000000);

struct rechecked {
	struct model *m;
	uint32_t number;
	bool asking, valid, stale;
	uint64_t asked_ns;	       /* when the last HEAD began that found no change */
	uint64_t began_ns;	       /* when the HEAD under way began */
	struct model_recheck *waiting; /* the first one's `unwanted` is that of the HEAD */
	UT_hash_handle hh;
};

void model_rechecks_init(struct model *m)
{
	pthread_mutex_init(&m->rechecks.lock, NULL);
}

void model_rechecks_release(struct model *m)
{
	struct rechecked *e, *next;

	HASH_ITER (hh, m->rechecks.datasets, e, next) {
		HASH_DEL(m->rechecks.datasets, e);
		free(e);
	}
	pthread_mutex_destroy(&m->rechecks.lock);
}

static struct rechecked *find_locked(struct model *m, uint32_t dataset)
{
	struct rechecked *e = NULL;

	HASH_FIND(hh, m->rechecks.datasets, &dataset, sizeof(dataset), e);
	return e;
}

static struct rechecked *find_or_add_locked(struct model *m, uint32_t dataset)
{
	struct rechecked *e = find_locked(m, dataset);

	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->m = m;
	e->number = dataset;
	HASH_ADD(hh, m->rechecks.datasets, number, sizeof(e->number), e);
	if (e->hh.tbl)
		return e;
	free(e);
	return NULL;
}

bool model_is_stale(struct model *m, uint32_t dataset)
{
	pthread_mutex_lock(&m->rechecks.lock);
	const struct rechecked *e = find_locked(m, dataset);
	const bool stale = e && e->stale;
	pthread_mutex_unlock(&m->rechecks.lock);
	return stale;
}

static int say_stale(struct err *err)
{
	return err_set(err, -ESTALE, "the dataset has changed since the file was opened");
}

static void ask(struct rechecked *e, const atomic_bool *unwanted);

/* 0, -ESTALE, or why the document could not be looked at. */
static int compare_locked(struct rechecked *e, struct store_get_result *res, struct err *err)
{
	const char *etag = e->m->entries[e->number].etag;

	if (res->code && res->code != -ENOENT) {
		err_copy(err, &res->err);
		return err_wrap(err, res->code, "the document of its dataset");
	}
	/* Where the store knows no versions, it is enough that the document is there. */
	e->stale = res->code == -ENOENT ||
		   (etag[0] && res->meta.etag[0] && strcmp(etag, res->meta.etag) != 0);
	e->valid = true;
	e->asked_ns = e->began_ns;
	return e->stale ? say_stale(err) : 0;
}

/* Takes the requests that are answered: all, or, after a HEAD that was cancelled, those that
 * nobody wants. *again: one that still waits. */
static struct model_recheck *take_locked(struct rechecked *e, int code,
					 struct model_recheck **again)
{
	struct model_recheck *taken = NULL, **kept = &e->waiting;

	while (*kept) {
		struct model_recheck *r = *kept;

		if (code == -ECANCELED && !(r->unwanted && atomic_load(r->unwanted))) {
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

static void answered(void *arg, struct store_get_result *res)
{
	struct rechecked *e = arg;
	struct model_rechecks *all = &e->m->rechecks;
	struct err err = ERR_INIT;
	struct model_recheck *again;

	pthread_mutex_lock(&all->lock);
	const int code = compare_locked(e, res, &err);
	struct model_recheck *r = take_locked(e, code, &again);
	const atomic_bool *unwanted = again ? again->unwanted : NULL;
	e->asking = again != NULL;
	e->began_ns = e->m->env->now(e->m->env);
	pthread_mutex_unlock(&all->lock);
	if (again)
		ask(e, unwanted);
	while (r) {
		struct model_recheck *next = r->next;

		r->done(r->arg, code, &err);
		r = next;
	}
}

static void ask(struct rechecked *e, const atomic_bool *unwanted)
{
	const struct model *m = e->m;
	char key[SCHEMA_KEY_MAX + 1];

	if (m->schema->object_key(&m->entries[e->number].id, key, sizeof(key)) < 0)
		key[0] = '\0'; /* it was read once, so it has one; else the store refuses it */
	store_get_async(m->store, &(struct store_get){.op = STORE_HEAD,
						      .key = key,
						      .unwanted = unwanted,
						      .done = answered,
						      .arg = e});
}

void model_recheck(struct model *m, uint32_t dataset, struct model_recheck *r)
{
	const uint64_t now = m->env->now(m->env);
	struct err err = ERR_INIT;
	bool first = false, waits = false;
	int code = 0;

	pthread_mutex_lock(&m->rechecks.lock);
	struct rechecked *e = find_or_add_locked(m, dataset);
	if (!e) {
		code = err_set(&err, -ENOMEM, "no memory");
	} else if (e->stale) {
		code = say_stale(&err);
	} else if (!e->valid || now - e->asked_ns >= valid_ns) {
		struct model_recheck **end = &e->waiting;

		while (*end)
			end = &(*end)->next;
		r->next = NULL;
		*end = r;
		waits = true;
		first = !e->asking;
		e->asking = true;
		if (first)
			e->began_ns = now;
	}
	pthread_mutex_unlock(&m->rechecks.lock);
	if (first)
		ask(e, r->unwanted);
	else if (!waits)
		r->done(r->arg, code, &err);
}
