/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table of nodes by path in the mount, in order of insertion. A listing inserts its nodes
 * one after the other, so this is also the order in which a program goes through the directory. The
 * lock guards everything.
 */
/* A failed insertion must not end the process: the entry's handle then has no table. */
#define HASH_NONFATAL_OOM 1
#include "name_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"
#include "rules.h"

struct walk {
	uint64_t number; /* 0 if unused */
	uint64_t ttl, active_until, ends;
};

struct absence {
	char *path; /* NULL if unused */
	uint64_t until;
};

struct names_cache {
	pthread_mutex_t lock;
	struct names_node *table;
	struct budget_share share;
	size_t lists; /* bytes of all lists */
	struct walk walks[NAMES_WALKS];
	uint64_t last_walk;
	struct absence absent[NAMES_ABSENT]; /* by hash */
};

static struct names_node *find_locked(struct names_cache *c, const char *mount_path)
{
	struct names_node *node = NULL;
	HASH_FIND_STR(c->table, mount_path, node);
	return node;
}

static void forget_list_locked(struct names_cache *c, struct names_node *node)
{
	c->lists -= node->list.len;
	bytes_release(&node->list);
}

/* The cache's reference becomes the caller's. */
static void remove_locked(struct names_cache *c, struct names_node *node)
{
	forget_list_locked(c, node);
	HASH_DEL(c->table, node);
	budget_share_return(&c->share, node->charged);
}

static void evict_locked(struct names_cache *c, struct names_node *node)
{
	remove_locked(c, node);
	names_node_unref(node);
}

/* Called when the budget needs memory. Evicts some of the oldest nodes. */
static bool evict_some(void *ctx)
{
	struct names_cache *c = ctx;
	pthread_mutex_lock(&c->lock);
	const uint64_t kept = budget_share_less(&c->share);
	const bool any = c->table;
	while (c->table && c->share.used > kept)
		evict_locked(c, c->table);
	pthread_mutex_unlock(&c->lock);
	return any;
}

struct names_cache *names_cache_new(struct budget *budget)
{
	struct names_cache *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	c->share = budget_share_of(budget, NAMES_CACHE_PARTS);
	if (budget)
		budget_add_holder(budget,
				  &(struct budget_holder){.free_metadata = evict_some, .ctx = c});
	return c;
}

void names_cache_free(struct names_cache *c)
{
	if (!c)
		return;
	if (c->share.budget)
		budget_remove_holder(c->share.budget, c);
	while (c->table)
		evict_locked(c, c->table);
	for (size_t i = 0; i < NAMES_ABSENT; i++)
		free(c->absent[i].path);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* ---- walks ---- */

/* Returns the walk of a node, or NULL if the node belongs to none or the walk has ended. */
static struct walk *walk_of_locked(struct names_cache *c, const struct names_node *node,
				   uint64_t now)
{
	struct walk *w = &c->walks[node->walk % NAMES_WALKS];
	return node->walk && w->number == node->walk && now < w->ends ? w : NULL;
}

/* Records the look-up of a node. Returns true if its walk makes it valid. */
static bool walk_locked(struct names_cache *c, struct names_node *node, uint64_t now)
{
	struct walk *w = walk_of_locked(c, node, now);
	if (w && !node->walked && now < w->active_until) {
		node->walked = true;
		node->walked_until = w->active_until = now + w->ttl;
	}
	return w && now < node->walked_until;
}

uint64_t names_cache_begin_walk(struct names_cache *c, uint64_t now, uint64_t ttl, uint64_t took)
{
	const uint64_t longest = NAMES_WALK_MAX_S * UINT64_C(1000000000);
	pthread_mutex_lock(&c->lock);
	const uint64_t number = ++c->last_walk;
	c->walks[number % NAMES_WALKS] = (struct walk){
		.number = number,
		.ttl = ttl,
		.active_until = now + took + ttl,
		.ends = now + longest,
	};
	pthread_mutex_unlock(&c->lock);
	return number;
}

void names_cache_join_walk(struct names_cache *c, struct names_node *node, uint64_t walk)
{
	pthread_mutex_lock(&c->lock);
	if (find_locked(c, node->name) == node) {
		node->walk = walk;
		node->walked = false;
		node->walked_until = 0;
	}
	pthread_mutex_unlock(&c->lock);
}

void names_cache_continue_walk(struct names_cache *c, struct names_node *node, uint64_t now)
{
	pthread_mutex_lock(&c->lock);
	struct walk *w = walk_of_locked(c, node, now);
	if (w)
		node->walked_until = w->active_until = now + w->ttl;
	pthread_mutex_unlock(&c->lock);
}

/* ---- names that were absent ---- */

static struct absence *absence_of(struct names_cache *c, const char *mount_path)
{
	unsigned int hash;
	HASH_JEN(mount_path, strlen(mount_path), hash);
	return &c->absent[hash % NAMES_ABSENT];
}

static void end_absence_locked(struct names_cache *c, const char *mount_path)
{
	struct absence *a = absence_of(c, mount_path);
	if (a->path && strcmp(a->path, mount_path) == 0) {
		free(a->path);
		a->path = NULL;
	}
}

/* To be called with the lock, so that the change drops what was put before it. */
static bool is_old_locked(const struct names_since *since)
{
	return since && atomic_load(since->changes) != since->seen;
}

void names_cache_put_absent(struct names_cache *c, const char *mount_path, uint64_t until,
			    const struct names_since *since)
{
	char *displaced = strdup(mount_path);
	pthread_mutex_lock(&c->lock);
	if (!is_old_locked(since)) {
		struct absence *a = absence_of(c, mount_path);
		char *copy = displaced;
		displaced = a->path;
		*a = (struct absence){.path = copy, .until = until};
	}
	pthread_mutex_unlock(&c->lock);
	free(displaced);
}

void names_cache_end_absence(struct names_cache *c, const char *mount_path)
{
	pthread_mutex_lock(&c->lock);
	end_absence_locked(c, mount_path);
	pthread_mutex_unlock(&c->lock);
}

bool names_cache_is_absent(struct names_cache *c, const char *mount_path, uint64_t now)
{
	pthread_mutex_lock(&c->lock);
	const struct absence *a = absence_of(c, mount_path);
	const bool absent = a->path && now < a->until && strcmp(a->path, mount_path) == 0;
	pthread_mutex_unlock(&c->lock);
	return absent;
}

/* ---- nodes ---- */

struct names_node *names_cache_get(struct names_cache *c, const char *mount_path, uint64_t now)
{
	pthread_mutex_lock(&c->lock);
	struct names_node *node = find_locked(c, mount_path);
	node = node && node->expires > now ? names_node_ref(node) : NULL;
	pthread_mutex_unlock(&c->lock);
	return node;
}

struct names_node *names_cache_look_up(struct names_cache *c, const char *mount_path, uint64_t now)
{
	pthread_mutex_lock(&c->lock);
	struct names_node *node = find_locked(c, mount_path);
	const bool walked = node && walk_locked(c, node, now);
	node = node && (walked || node->expires > now) ? names_node_ref(node) : NULL;
	pthread_mutex_unlock(&c->lock);
	return node;
}

struct names_node *names_cache_recall(struct names_cache *c, const char *mount_path)
{
	pthread_mutex_lock(&c->lock);
	struct names_node *node = find_locked(c, mount_path);
	if (node)
		names_node_ref(node);
	pthread_mutex_unlock(&c->lock);
	return node;
}

/* The note belongs to the version. */
static void inherit_note(struct names_node *node, const struct names_node *old)
{
	const char *note = atomic_load(&old->note);
	if (note && node->kind == NAMES_OBJECT && node->meta.etag[0] &&
	    strcmp(node->meta.etag, old->meta.etag) == 0)
		names_node_set_note(node, note);
}

/* An estimate of the memory of a node in the cache, with what becomes known of it later. */
static uint32_t memory_of(const struct names_node *node)
{
	enum { BLOCK = 16 /* what malloc() adds */, TABLE = 32, LATER = 96 };
	const struct names_doc *doc = &node->doc;
	const size_t n = sizeof(*node) + strlen(node->name) + strlen(node->path) + 2 * BLOCK +
			 TABLE + LATER + (doc->why ? strlen(doc->why) : 0);
	const struct bytes *keys = atomic_load(&node->keys);
	return (uint32_t)(n + (keys ? keys->cap + sizeof(*keys) : 0)) +
	       (doc->document ? doc->document->memory + BLOCK : 0);
}

/* A program that goes through the directory has not reached the node yet. */
static bool is_awaited_locked(struct names_cache *c, const struct names_node *node, uint64_t now)
{
	const struct walk *w = walk_of_locked(c, node, now);
	return w && !node->walked && now < w->active_until;
}

/* Evicts the oldest nodes until this one fits. Returns false if it does not fit. */
static bool make_room_locked(struct names_cache *c, const struct names_node *node, uint64_t now)
{
	while (!budget_share_take(&c->share, node->charged)) {
		if (!c->table || is_awaited_locked(c, c->table, now))
			return false;
		evict_locked(c, c->table);
	}
	return true;
}

static void put_locked(struct names_cache *c, struct names_node *node, struct names_node *old,
		       uint64_t now, uint64_t expires)
{
	if (old) {
		inherit_note(node, old);
		node->flat_keys = old->flat_keys;
		remove_locked(c, old);
	}
	end_absence_locked(c, node->name);
	node->expires = expires;
	node->charged = memory_of(node);
	if (make_room_locked(c, node, now)) {
		HASH_ADD_STR(c->table, name, node);
		if (node->hh.tbl)
			names_node_ref(node);
		else
			budget_share_return(&c->share, node->charged);
	}
}

void names_cache_put(struct names_cache *c, struct names_node *node, uint64_t now, uint64_t expires,
		     const struct names_since *since)
{
	pthread_mutex_lock(&c->lock);
	const uint64_t charged = c->share.charged;
	const bool is_old = is_old_locked(since);
	struct names_node *old = is_old ? NULL : find_locked(c, node->name);
	if (!is_old)
		put_locked(c, node, old, now, expires);
	const bool has_grown = c->share.charged > charged;
	pthread_mutex_unlock(&c->lock);
	names_node_unref(old);
	if (has_grown && c->share.budget)
		budget_trim(c->share.budget);
}

void names_cache_drop(struct names_cache *c, const char *mount_path)
{
	pthread_mutex_lock(&c->lock);
	struct names_node *node = find_locked(c, mount_path);
	if (node)
		remove_locked(c, node);
	end_absence_locked(c, mount_path);
	pthread_mutex_unlock(&c->lock);
	names_node_unref(node);
}

/* ---- lists of directories ---- */

void names_cache_put_list(struct names_cache *c, const char *mount_path, struct bytes *list,
			  uint64_t expires, const struct names_since *since)
{
	pthread_mutex_lock(&c->lock);
	struct names_node *node = is_old_locked(since) ? NULL : find_locked(c, mount_path);
	if (node)
		forget_list_locked(c, node);
	if (node && list->len <= NAMES_CACHE_LISTS_MAX - c->lists) {
		node->list = *list;
		node->list_expires = expires;
		c->lists += list->len;
		*list = (struct bytes){0};
	}
	pthread_mutex_unlock(&c->lock);
	bytes_release(list);
}

bool names_cache_get_list(struct names_cache *c, const char *mount_path, uint64_t now,
			  struct bytes *list)
{
	bool known = false;
	*list = (struct bytes){0};
	pthread_mutex_lock(&c->lock);
	const struct names_node *node = find_locked(c, mount_path);
	if (node && node->list.len && node->list_expires > now)
		known = bytes_append(list, node->list.data, node->list.len) == 0;
	pthread_mutex_unlock(&c->lock);
	return known;
}

void names_cache_put_flat(struct names_cache *c, const char *mount_path, uint32_t keys)
{
	pthread_mutex_lock(&c->lock);
	struct names_node *node = find_locked(c, mount_path);
	if (node)
		node->flat_keys = keys;
	pthread_mutex_unlock(&c->lock);
}

uint32_t names_cache_get_flat(struct names_cache *c, const char *mount_path)
{
	pthread_mutex_lock(&c->lock);
	const struct names_node *node = find_locked(c, mount_path);
	const uint32_t keys = node ? node->flat_keys : 0;
	pthread_mutex_unlock(&c->lock);
	return keys;
}

/* ---- failures ---- */

void names_cache_put_failure(struct names_cache *c, const char *mount_path, int code,
			     uint64_t until)
{
	pthread_mutex_lock(&c->lock);
	struct names_node *node = find_locked(c, mount_path);
	if (node) {
		node->failure = code;
		node->failure_until = until;
	}
	pthread_mutex_unlock(&c->lock);
}

int names_cache_get_failure(struct names_cache *c, const char *mount_path, uint64_t now)
{
	pthread_mutex_lock(&c->lock);
	const struct names_node *node = find_locked(c, mount_path);
	const int code = node && now < node->failure_until ? node->failure : 0;
	pthread_mutex_unlock(&c->lock);
	return code;
}

/* ---- properties that cost a request ---- */

static bool is_sibling(const struct names_node *a, const struct names_node *b)
{
	size_t n = names_parent_len(a->name);
	return b->kind == a->kind && names_parent_len(b->name) == n &&
	       strncmp(a->name, b->name, n) == 0;
}

/* How many nodes after this one a program will probably ask for. */
static size_t ahead_locked(struct names_cache *c, const struct names_node *node,
			   bool (*is_known)(const struct names_node *node),
			   const struct names_ahead *ahead, uint64_t now)
{
	const struct names_node *before = node->hh.prev;
	const bool is_first = !before || !is_sibling(node, before) || before->walk != node->walk;
	const struct walk *w = is_first ? walk_of_locked(c, node, now) : NULL;
	size_t n = w && now < w->active_until ? ahead->for_first : 0;
	for (; before && n < ahead->max && is_sibling(node, before) && is_known(before);
	     before = before->hh.prev)
		n += ahead->for_each;
	return n < ahead->max ? n : ahead->max;
}

size_t names_cache_unknown(struct names_cache *c, struct names_node *node,
			   bool (*is_known)(const struct names_node *node),
			   const struct names_ahead *ahead, struct names_node **out, uint64_t now)
{
	size_t count = 0, limit = 0;
	pthread_mutex_lock(&c->lock);
	if (find_locked(c, node->name) == node)
		limit = ahead_locked(c, node, is_known, ahead, now);
	struct names_node *next = limit ? node->hh.next : NULL;
	for (; next && count < limit && is_sibling(node, next); next = next->hh.next)
		if (!is_known(next))
			out[count++] = names_node_ref(next);
	pthread_mutex_unlock(&c->lock);
	return count;
}
