/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The versions of chunks. A listing names the versions for the snapshot. Without a listing, the
 * version of the first load of a chunk is kept, and a later load of another version fails with
 * -ESTALE. So as long as a version is kept, all loads of the chunk have returned it.
 *
 * At most VERSIONS_MAX versions are kept, each of which is charged to the budget. When there is no
 * room, the versions of further chunks are not known. No version is evicted in favour of another
 * one.
 *
 * A version is kept only for a load that began after the last domain_forget_chunks().
 *
 * Threads: the lock guards the table. The budget is not called under it.
 */
/* A failed insertion must not end the process. The handle of the entry then has no table. */
#define HASH_NONFATAL_OOM 1
#include <domain/domain.h>

#include <errno.h>
#include <stdlib.h>

#include <uthash.h>

#include "domain_internal.h"

enum { VERSIONS_MAX = 1 << 16, TABLE_BYTES = 32 /* of the hash table, for each entry */ };

struct version_key {
	uint64_t dataset, chunk;
};

struct chunk_version {
	struct version_key key;
	struct budget_charge charge;
	UT_hash_handle hh;
	char etag[];
};

static void version_free(struct chunk_version *v)
{
	if (!v)
		return;
	budget_set(&v->charge, 0, NULL);
	free(v);
}

static void free_all(struct chunk_version *all)
{
	struct chunk_version *v, *next;
	HASH_ITER (hh, all, v, next) {
		HASH_DEL(all, v);
		version_free(v);
	}
}

void domain_versions_init(struct domain *d)
{
	pthread_mutex_init(&d->versions.lock, NULL);
	atomic_init(&d->versions.changed, false);
}

void domain_versions_release(struct domain *d)
{
	free_all(d->versions.chunks);
	pthread_mutex_destroy(&d->versions.lock);
}

void domain_forget_chunks(struct domain *d)
{
	struct domain_versions *all = &d->versions;
	pthread_mutex_lock(&all->lock);
	struct chunk_version *dropped = all->chunks;
	all->chunks = NULL;
	all->began++;
	pthread_mutex_unlock(&all->lock);
	free_all(dropped);
	places_forget(&d->ranges);
	shards_forget(&d->ranges);
}

uint64_t domain_versions_begin(struct domain *d)
{
	pthread_mutex_lock(&d->versions.lock);
	const uint64_t began = d->versions.began;
	pthread_mutex_unlock(&d->versions.lock);
	return began;
}

static struct chunk_version *find_locked(struct domain *d, const struct version_key *key)
{
	struct chunk_version *v = NULL;
	HASH_FIND(hh, d->versions.chunks, key, sizeof(*key), v);
	return v;
}

/* Returns NULL if memory or the budget is short. */
static struct chunk_version *version_new(struct domain *d, const struct version_key *key,
					 const char *etag)
{
	const size_t size = sizeof(struct chunk_version) + strlen(etag) + 1;
	struct chunk_version *v = calloc(1, size);
	if (!v)
		return NULL;
	v->key = *key;
	v->charge = (struct budget_charge){.budget = d->env->budget, .use = BUDGET_TREES};
	strcpy(v->etag, etag);
	if (!budget_set(&v->charge, size + TABLE_BYTES, NULL))
		return v;
	free(v);
	return NULL;
}

/* Looks up a chunk. *known becomes true if its version is kept. Returns true if that is another
 * version than etag. */
static bool differs_locked(struct domain *d, const struct version_key *key, const char *etag,
			   bool *known)
{
	const struct chunk_version *v = find_locked(d, key);
	*known = v != NULL;
	return v && strcmp(v->etag, etag) != 0;
}

/* Keeps the version, unless another thread has done so. Returns the entry that the caller frees, or
 * NULL. *differs becomes true if another version is kept. */
static struct chunk_version *add_locked(struct domain *d, uint64_t began, struct chunk_version *v,
					bool *differs)
{
	bool known;
	*differs = false;
	if (d->versions.began != began)
		return v;
	*differs = differs_locked(d, &v->key, v->etag, &known);
	if (known)
		return v;
	HASH_ADD(hh, d->versions.chunks, key, sizeof(v->key), v);
	return v->hh.tbl ? NULL : v;
}

int domain_versions_note(struct domain *d, uint64_t began, uint32_t dataset, uint64_t chunk,
			 const char *etag, struct err *err)
{
	struct domain_versions *all = &d->versions;
	struct version_key key = {.dataset = dataset, .chunk = chunk};
	bool known = false, differs = false;
	if (!etag[0])
		return 0;
	pthread_mutex_lock(&all->lock);
	const bool is_old = all->began != began;
	if (!is_old)
		differs = differs_locked(d, &key, etag, &known);
	const bool is_full = HASH_COUNT(all->chunks) >= VERSIONS_MAX;
	pthread_mutex_unlock(&all->lock);
	struct chunk_version *v = is_old || known || is_full ? NULL : version_new(d, &key, etag);
	if (v) {
		pthread_mutex_lock(&all->lock);
		v = add_locked(d, began, v, &differs);
		pthread_mutex_unlock(&all->lock);
		version_free(v);
	}
	if (!differs)
		return 0;
	atomic_store(&all->changed, true);
	return err_set(err, -ESTALE, "changed since it was read first");
}

bool domain_versions_lost(struct domain *d, uint32_t dataset, uint64_t chunk)
{
	char etag[STORE_ETAG_MAX];
	domain_versions_get(d, dataset, chunk, etag);
	if (etag[0])
		atomic_store(&d->versions.changed, true);
	return etag[0];
}

bool domain_versions_lost_any(struct domain *d, uint32_t dataset, const struct chunk_list *stored)
{
	const struct dataset *ds = &tree_object(d->tree, dataset)->o.dataset;
	struct chunk_version *v, *next;
	bool lost = false;
	if (ds->shard) /* the versions are those of shards */
		return false;
	pthread_mutex_lock(&d->versions.lock);
	HASH_ITER (hh, d->versions.chunks, v, next)
		lost |= v->key.dataset == dataset &&
			chunk_list_find(stored, v->key.chunk) == stored->n;
	pthread_mutex_unlock(&d->versions.lock);
	if (lost)
		atomic_store(&d->versions.changed, true);
	return lost;
}

void domain_versions_get(struct domain *d, uint32_t dataset, uint64_t chunk,
			 char etag[STORE_ETAG_MAX])
{
	const struct version_key key = {.dataset = dataset, .chunk = chunk};
	pthread_mutex_lock(&d->versions.lock);
	const struct chunk_version *v = find_locked(d, &key);
	strcpy(etag, v ? v->etag : "");
	pthread_mutex_unlock(&d->versions.lock);
}
