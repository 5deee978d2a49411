/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of nodes: a hash by path in the mount, in order of insertion. A listing puts its nodes
 * one after the other, so the order in the hash is also the order in which a program that goes
 * through a directory asks for them. The lock guards everything.
 */
/* A failed insertion must not end the process: the entry's handle then has no table. */
#define HASH_NONFATAL_OOM 1
#include "name_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

struct failure {
	char *path; /* NULL: none */
	struct err why;
	uint64_t until;
};

struct names_cache {
	pthread_mutex_t lock;
	struct names_node *table;
	size_t lists; /* bytes of all lists */
	struct failure failures[NAMES_CACHE_FAILURES];
	unsigned int oldest_failure;
};

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
}

struct names_cache *names_cache_new(void)
{
	struct names_cache *c = calloc(1, sizeof(*c));
	if (c)
		pthread_mutex_init(&c->lock, NULL);
	return c;
}

void names_cache_free(struct names_cache *c)
{
	if (!c)
		return;
	struct names_node *node, *next;
	HASH_ITER (hh, c->table, node, next) {
		remove_locked(c, node);
		names_node_unref(node);
	}
	for (unsigned int i = 0; i < NAMES_CACHE_FAILURES; i++)
		free(c->failures[i].path);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* ---- nodes ---- */

/* valid: one that has not expired by now; otherwise any. */
static struct names_node *find(struct names_cache *c, const char *mount_path, bool valid,
			       uint64_t now)
{
	struct names_node *node = NULL;
	pthread_mutex_lock(&c->lock);
	HASH_FIND_STR(c->table, mount_path, node);
	node = node && (!valid || node->expires > now) ? names_node_ref(node) : NULL;
	pthread_mutex_unlock(&c->lock);
	return node;
}

struct names_node *names_cache_get(struct names_cache *c, const char *mount_path, uint64_t now)
{
	return find(c, mount_path, true, now);
}

struct names_node *names_cache_recall(struct names_cache *c, const char *mount_path)
{
	return find(c, mount_path, false, 0);
}

static bool same_root(const struct names_doc *a, const struct names_doc *b)
{
	return a->kind == NAMES_DOC_ROOT && b->kind == NAMES_DOC_ROOT &&
	       strcmp(a->document->info.root, b->document->info.root) == 0;
}

/* An estimate does not age: it saves a request, and an open replaces it by the truth. */
static void inherit_estimate(struct names_node *node, const struct names_node *old)
{
	if (node->kind == NAMES_DOMAIN && old->kind == NAMES_DOMAIN &&
	    atomic_load(&node->estimate) == 0 && same_root(&node->doc, &old->doc))
		atomic_store(&node->estimate, atomic_load(&old->estimate));
}

void names_cache_put(struct names_cache *c, struct names_node *node, uint64_t expires)
{
	struct names_node *gone[2] = {NULL, NULL};
	pthread_mutex_lock(&c->lock);
	HASH_FIND_STR(c->table, node->name, gone[0]);
	if (gone[0]) {
		inherit_estimate(node, gone[0]);
		remove_locked(c, gone[0]);
	}
	node->expires = expires;
	HASH_ADD_STR(c->table, name, node);
	if (node->hh.tbl)
		names_node_ref(node);
	if (HASH_COUNT(c->table) > NAMES_CACHE_MAX) {
		gone[1] = c->table;
		remove_locked(c, gone[1]);
	}
	pthread_mutex_unlock(&c->lock);
	names_node_unref(gone[0]);
	names_node_unref(gone[1]);
}

void names_cache_drop(struct names_cache *c, const char *mount_path)
{
	struct names_node *node = NULL;
	pthread_mutex_lock(&c->lock);
	HASH_FIND_STR(c->table, mount_path, node);
	if (node)
		remove_locked(c, node);
	pthread_mutex_unlock(&c->lock);
	names_node_unref(node);
}

/* ---- lists of directories ---- */

void names_cache_put_list(struct names_cache *c, const char *mount_path, struct bytes *list,
			  uint64_t expires)
{
	struct names_node *node = NULL;
	pthread_mutex_lock(&c->lock);
	HASH_FIND_STR(c->table, mount_path, node);
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
	struct names_node *node = NULL;
	bool known = false;
	*list = (struct bytes){0};
	pthread_mutex_lock(&c->lock);
	HASH_FIND_STR(c->table, mount_path, node);
	if (node && node->list.len && node->list_expires > now)
		known = bytes_append(list, node->list.data, node->list.len) == 0;
	pthread_mutex_unlock(&c->lock);
	return known;
}

/* ---- failures ---- */

void names_cache_put_failure(struct names_cache *c, const char *mount_path, const struct err *why,
			     uint64_t until)
{
	char *path = strdup(mount_path);
	pthread_mutex_lock(&c->lock);
	struct failure *f = &c->failures[c->oldest_failure++ % NAMES_CACHE_FAILURES];
	free(f->path);
	*f = (struct failure){.path = path, .why = *why, .until = until};
	pthread_mutex_unlock(&c->lock);
}

int names_cache_get_failure(struct names_cache *c, const char *mount_path, uint64_t now,
			    struct err *err)
{
	int rc = 0;
	pthread_mutex_lock(&c->lock);
	for (unsigned int i = 0; i < NAMES_CACHE_FAILURES && !rc; i++) {
		const struct failure *f = &c->failures[i];
		if (!f->path || now >= f->until || strcmp(f->path, mount_path) != 0)
			continue;
		rc = f->why.code;
		err_copy(err, &f->why);
	}
	pthread_mutex_unlock(&c->lock);
	return rc;
}

/* ---- sizes ---- */

static bool is_sibling(const struct names_node *a, const struct names_node *b)
{
	size_t n = names_parent_len(a->name);
	return b->kind == NAMES_DOMAIN && names_parent_len(b->name) == n &&
	       strncmp(a->name, b->name, n) == 0;
}

size_t names_cache_unsized(struct names_cache *c, struct names_node *node,
			   struct names_node *out[NAMES_CACHE_SIBLINGS])
{
	size_t count = 0;
	out[count++] = names_node_ref(node);
	pthread_mutex_lock(&c->lock);
	struct names_node *known = NULL;
	HASH_FIND_STR(c->table, node->name, known);
	struct names_node *before = known == node ? node->hh.prev : NULL;
	if (before && is_sibling(node, before) && atomic_load(&before->estimate)) {
		struct names_node *next = node->hh.next;
		for (; next && count < NAMES_CACHE_SIBLINGS && is_sibling(node, next);
		     next = next->hh.next)
			if (atomic_load(&next->estimate) == 0 && next->doc.kind == NAMES_DOC_ROOT)
				out[count++] = names_node_ref(next);
	}
	pthread_mutex_unlock(&c->lock);
	return count;
}
