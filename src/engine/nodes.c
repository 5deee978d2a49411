/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of nodes: a hash by path in the mount, in order of insertion. A listing puts its nodes
 * one after the other, so the order in the hash is also the order in which a program that goes
 * through a directory asks for them.
 */
/* A failed insertion must not end the process: the entry's handle then has no table. */
#define HASH_NONFATAL_OOM 1
#include "nodes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"

struct nodes {
	pthread_mutex_t lock;
	struct node *table;
	size_t names; /* bytes of all names */
};

struct node *node_new(const char *mount_path, enum engine_kind kind, const char *path,
		      struct doc *doc)
{
	size_t n = strlen(mount_path) + 1;
	struct node *node = calloc(1, sizeof(*node) + n);
	char *copy = strdup(path);
	if (!node || !copy) {
		free(node);
		free(copy);
		doc_release(doc);
		return NULL;
	}
	atomic_init(&node->refs, 1);
	node->kind = kind;
	node->path = copy;
	node->doc = *doc;
	*doc = (struct doc){0};
	memcpy(node->name, mount_path, n);
	return node;
}

struct node *node_ref(struct node *n)
{
	atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
	return n;
}

void node_unref(struct node *n)
{
	/* Acquire and release: whoever frees sees all that others did before they let go. */
	if (!n || atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1)
		return;
	doc_release(&n->doc);
	free(n->path);
	free(n);
}

static void forget_names_locked(struct nodes *t, struct node *n)
{
	t->names -= n->names.len;
	bytes_release(&n->names);
}

/* The table's reference becomes the caller's. */
static void remove_locked(struct nodes *t, struct node *n)
{
	forget_names_locked(t, n);
	HASH_DEL(t->table, n);
}

struct nodes *nodes_new(void)
{
	struct nodes *t = calloc(1, sizeof(*t));
	if (t)
		pthread_mutex_init(&t->lock, NULL);
	return t;
}

void nodes_free(struct nodes *t)
{
	if (!t)
		return;
	struct node *n, *next;
	HASH_ITER (hh, t->table, n, next) {
		remove_locked(t, n);
		node_unref(n);
	}
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* believed: one that has not expired by now; otherwise any. */
static struct node *find(struct nodes *t, const char *mount_path, bool believed, uint64_t now)
{
	struct node *n = NULL;
	pthread_mutex_lock(&t->lock);
	HASH_FIND_STR(t->table, mount_path, n);
	n = n && (!believed || n->expires > now) ? node_ref(n) : NULL;
	pthread_mutex_unlock(&t->lock);
	return n;
}

struct node *nodes_get(struct nodes *t, const char *mount_path, uint64_t now)
{
	return find(t, mount_path, true, now);
}

struct node *nodes_recall(struct nodes *t, const char *mount_path)
{
	return find(t, mount_path, false, 0);
}

/* An estimate does not age: it saves a request, and an open replaces it by the truth. */
static void inherit_estimate(struct node *n, const struct node *old)
{
	if (n->kind == ENGINE_DOMAIN && old->kind == ENGINE_DOMAIN &&
	    atomic_load(&n->estimate) == 0 && schema_id_equal(&n->doc.root, &old->doc.root))
		atomic_store(&n->estimate, atomic_load(&old->estimate));
}

void nodes_put(struct nodes *t, struct node *n, uint64_t expires)
{
	struct node *gone[2] = {NULL, NULL};
	pthread_mutex_lock(&t->lock);
	HASH_FIND_STR(t->table, n->name, gone[0]);
	if (gone[0]) {
		inherit_estimate(n, gone[0]);
		remove_locked(t, gone[0]);
	}
	n->expires = expires;
	HASH_ADD_STR(t->table, name, n);
	if (n->hh.tbl)
		node_ref(n);
	if (HASH_COUNT(t->table) > NODES_MAX) {
		gone[1] = t->table;
		remove_locked(t, gone[1]);
	}
	pthread_mutex_unlock(&t->lock);
	node_unref(gone[0]);
	node_unref(gone[1]);
}

void nodes_drop(struct nodes *t, const char *mount_path)
{
	struct node *n = NULL;
	pthread_mutex_lock(&t->lock);
	HASH_FIND_STR(t->table, mount_path, n);
	if (n)
		remove_locked(t, n);
	pthread_mutex_unlock(&t->lock);
	node_unref(n);
}

void nodes_put_names(struct nodes *t, const char *mount_path, struct bytes *names, uint64_t expires)
{
	struct node *n = NULL;
	pthread_mutex_lock(&t->lock);
	HASH_FIND_STR(t->table, mount_path, n);
	if (n)
		forget_names_locked(t, n);
	if (n && names->len <= NODES_NAMES_MAX - t->names) {
		n->names = *names;
		n->names_expire = expires;
		t->names += names->len;
		*names = (struct bytes){0};
	}
	pthread_mutex_unlock(&t->lock);
	bytes_release(names);
}

bool nodes_get_names(struct nodes *t, const char *mount_path, uint64_t now, struct bytes *names)
{
	struct node *n = NULL;
	bool known = false;
	*names = (struct bytes){0};
	pthread_mutex_lock(&t->lock);
	HASH_FIND_STR(t->table, mount_path, n);
	if (n && n->names.len && n->names_expire > now)
		known = bytes_append(names, n->names.data, n->names.len) == 0;
	pthread_mutex_unlock(&t->lock);
	return known;
}

static bool is_sibling(const struct node *a, const struct node *b)
{
	size_t n = names_parent_len(a->name);
	return b->kind == ENGINE_DOMAIN && names_parent_len(b->name) == n &&
	       strncmp(a->name, b->name, n) == 0;
}

size_t nodes_unsized(struct nodes *t, struct node *n, struct node *out[NODES_AHEAD])
{
	size_t count = 0;
	out[count++] = node_ref(n);
	pthread_mutex_lock(&t->lock);
	struct node *known = NULL;
	HASH_FIND_STR(t->table, n->name, known);
	struct node *before = known == n ? n->hh.prev : NULL;
	if (before && is_sibling(n, before) && atomic_load(&before->estimate)) {
		struct node *next = n->hh.next;
		for (; next && count < NODES_AHEAD && is_sibling(n, next); next = next->hh.next)
			if (atomic_load(&next->estimate) == 0 && next->doc.kind == DOC_ROOT)
				out[count++] = node_ref(next);
	}
	pthread_mutex_unlock(&t->lock);
	return count;
}
