/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See complete_dirs.h. Of each name there is a hash of 64 bits. If two names have the same one, the
 * bucket is asked about a name that is absent, which does no harm. So the memory is limited: 64 KiB
 * for each of a few directories; the one that was not used for the longest time is replaced.
 *
 *   state of a directory   meaning                               next
 *   EMPTY                  nothing is known; no listing is made  LISTING
 *                          before rest_ns
 *   LISTING                a listing is being made; an earlier   LISTED, EMPTY after a failure or
 *                          one may be valid                      if the directory is too large
 *   LISTED                 the listing began at listed_ns        LISTING
 *
 * The names of an earlier listing stay when a new one arrives: what this mount has made while the
 * new one was on its way is not in it.
 *
 * Threads: a lock guards everything. A listing arrives in a worker of the store.
 */
#include "complete_dirs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/repeat_time.h>

#include "name_cache.h"
#include "rules.h"

enum {
	DIRS = 32,
	LISTED_MAX = 4000, /* entries of a directory that is listed */
	NAMES = 6000,	   /* at most, with those that this mount has made */
	FIRST_CELLS = 64,
	REST_S = 10, /* after a failure */
};

enum state { EMPTY, LISTING, LISTED };

struct complete_dir {
	char *path; /* NULL if unused */
	enum state state;
	uint64_t used_ns;
	uint64_t began_ns;  /* of the listing that is being made */
	uint64_t listed_ns; /* when the listing began that `cells` has; 0 if there is none */
	uint64_t rest_ns;
	bool is_spoiled; /* a name could not be added since the listing began */
	uint64_t *cells; /* a table with open addressing; 0 if unused */
	size_t n, size;	 /* size is a power of two */
};

struct names_complete {
	pthread_mutex_t lock;
	pthread_cond_t arrived;
	unsigned int active; /* listings that are being made */
	atomic_bool closing; /* cancels them */
	struct complete_dir v[DIRS];
};

struct listing {
	struct names *ns;
	struct complete_dir *dir; /* does not change while it is LISTING */
};

struct names_complete *names_complete_new(void)
{
	struct names_complete *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->arrived, NULL);
	return c;
}

static void forget(struct complete_dir *d)
{
	free(d->cells);
	d->cells = NULL;
	d->n = d->size = 0;
	d->listed_ns = 0;
}

void names_complete_free(struct names_complete *c)
{
	if (!c)
		return;
	atomic_store(&c->closing, true);
	pthread_mutex_lock(&c->lock);
	while (c->active)
		pthread_cond_wait(&c->arrived, &c->lock);
	pthread_mutex_unlock(&c->lock);
	for (size_t i = 0; i < DIRS; i++) {
		forget(&c->v[i]);
		free(c->v[i].path);
	}
	pthread_cond_destroy(&c->arrived);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* ---- names ---- */

/* FNV-1a. */
static uint64_t hash(const char *name, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
	h ^= h >> 32;
	return h ? h : 1;
}

/* Returns the cell of a hash, or the empty one where it belongs. */
static uint64_t *cell_of(uint64_t *cells, size_t size, uint64_t h)
{
	size_t i = (size_t)h & (size - 1);
	while (cells[i] && cells[i] != h)
		i = (i + 1) & (size - 1);
	return &cells[i];
}

static bool has(const struct complete_dir *d, const char *name)
{
	return d->size && *cell_of(d->cells, d->size, hash(name, strlen(name)));
}

static bool grow(struct complete_dir *d)
{
	const size_t size = d->size ? 2 * d->size : FIRST_CELLS;
	uint64_t *cells = calloc(size, sizeof(*cells));
	for (size_t i = 0; cells && i < d->size; i++)
		if (d->cells[i])
			*cell_of(cells, size, d->cells[i]) = d->cells[i];
	if (!cells)
		return false;
	free(d->cells);
	d->cells = cells;
	d->size = size;
	return true;
}

/* Returns false if the name could not be added. Then the listing proves nothing. */
static bool add(struct complete_dir *d, const char *name, size_t n)
{
	if (d->n >= NAMES || (d->n >= d->size / 4 * 3 && !grow(d)))
		return false;
	uint64_t *cell = cell_of(d->cells, d->size, hash(name, n));
	d->n += !*cell;
	*cell = hash(name, n);
	return true;
}

/* ---- directories ---- */

static struct complete_dir *find_locked(struct names_complete *c, const char *path, size_t n)
{
	for (size_t i = 0; i < DIRS; i++)
		if (c->v[i].path && strncmp(c->v[i].path, path, n) == 0 && !c->v[i].path[n])
			return &c->v[i];
	return NULL;
}

/* Returns the place for a new directory, or NULL if none is free. */
static struct complete_dir *replace_locked(struct names_complete *c, const char *path, size_t n)
{
	struct complete_dir *oldest = NULL;
	for (size_t i = 0; i < DIRS; i++)
		if (c->v[i].state != LISTING && (!oldest || c->v[i].used_ns < oldest->used_ns))
			oldest = &c->v[i];
	char *copy = oldest ? strndup(path, n) : NULL;
	if (!copy)
		return NULL;
	forget(oldest);
	free(oldest->path);
	*oldest = (struct complete_dir){.path = copy};
	return oldest;
}

bool names_complete_lacks(struct names *ns, const char *path)
{
	struct names_complete *c = ns->complete;
	auto_free char *bare = NULL, *marked = NULL;
	const uint64_t now = names_now(ns);
	if (store_checks_absence(ns->store) != STORE_ABSENCE_CHECKED ||
	    names_bare(ns->schemas, path, &bare) || names_marked(ns->schemas, path, &marked))
		return false;
	pthread_mutex_lock(&c->lock);
	struct complete_dir *d = find_locked(c, path, names_parent_len(path));
	const bool lacks = d && d->listed_ns && now - d->listed_ns < ns->ttl_ns &&
			   !has(d, names_last(path)) && !(bare && has(d, names_last(bare))) &&
			   !(marked && has(d, names_last(marked)));
	if (lacks)
		d->used_ns = now;
	pthread_mutex_unlock(&c->lock);
	return lacks;
}

void names_complete_add(struct names *ns, const char *path)
{
	struct names_complete *c = ns->complete;
	size_t end = strlen(path);
	pthread_mutex_lock(&c->lock);
	while (end) {
		size_t n = end;
		while (n && path[n - 1] != '/')
			n--;
		struct complete_dir *d = find_locked(c, path, n ? n - 1 : 0);
		if (d && d->state != EMPTY && !add(d, path + n, end - n)) {
			forget(d);
			d->is_spoiled = true;
		}
		end = n ? n - 1 : 0;
	}
	pthread_mutex_unlock(&c->lock);
}

/* ---- listings ---- */

static bool take_page_locked(struct complete_dir *d, const struct store_page *page)
{
	const size_t skip = d->path[0] ? strlen(d->path) + 1 : 0;
	for (size_t i = 0; i < page->n; i++) {
		const struct store_item *item = &page->items[i];
		const size_t n = strlen(item->key) - (item->is_prefix ? 1 : 0);
		if (n > skip && !add(d, item->key + skip, n - skip))
			return false;
	}
	return true;
}

static void arrive(struct store_request *req)
{
	struct listing *l = req->arg;
	struct names_complete *c = l->ns->complete;
	struct complete_dir *d = l->dir;
	pthread_mutex_lock(&c->lock);
	const bool whole = store_failure(&req->answer, NULL) == 0 && !d->is_spoiled &&
			   take_page_locked(d, &req->answer.page);
	if (whole) {
		d->state = LISTED;
		d->listed_ns = d->began_ns;
	} else {
		forget(d);
		d->state = EMPTY;
		d->rest_ns = names_now(l->ns) + REST_S * UINT64_C(1000000000);
	}
	pthread_mutex_unlock(&c->lock);
	store_request_free(req);
	free(l);
	pthread_mutex_lock(&c->lock);
	c->active--;
	pthread_cond_broadcast(&c->arrived);
	pthread_mutex_unlock(&c->lock);
}

/* Returns the directory if a listing of it has to be made now. It is LISTING then. */
static struct complete_dir *begin_locked(struct names *ns, const char *path, uint64_t now)
{
	struct names_complete *c = ns->complete;
	const size_t n = names_parent_len(path);
	struct complete_dir *d = find_locked(c, path, n);
	if (!d)
		d = replace_locked(c, path, n);
	if (!d || d->state == LISTING || now < d->rest_ns ||
	    (d->state == LISTED && now - d->listed_ns < ns->ttl_ns / 2))
		return NULL;
	d->state = LISTING;
	d->is_spoiled = false;
	d->began_ns = d->used_ns = now;
	c->active++;
	return d;
}

void names_will_create(struct names *ns, const char *path)
{
	struct names_complete *c = ns->complete;
	if (ns->ttl_ns == 0 || ns->roots ||
	    store_checks_absence(ns->store) == STORE_ABSENCE_IGNORED)
		return;
	struct store_request *req = store_request_new(ns->store, STORE_LIST);
	struct listing *l = malloc(sizeof(*l));
	pthread_mutex_lock(&c->lock);
	struct complete_dir *d = req && l ? begin_locked(ns, path, names_now(ns)) : NULL;
	pthread_mutex_unlock(&c->lock);
	if (!d) {
		store_request_free(req);
		free(l);
		return;
	}
	*l = (struct listing){.ns = ns, .dir = d};
	snprintf(req->key, req->room, "%s%s", d->path, d->path[0] ? "/" : "");
	req->list.delimit = req->list.complete = req->list.whole = true;
	req->list.limit = LISTED_MAX;
	req->cancelled = cancelled_by(&c->closing);
	req->done = arrive;
	req->arg = l;
	/* No call waits for it. */
	struct repeat_scope scope;
	repeat_use(&scope, NULL);
	store_submit(ns->store, req);
	repeat_end(&scope);
}
