/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of names in the mount, believed for a while: one node for each path that was
 * looked up or listed. A node is constant once it has been put, except for its estimate, which any
 * thread may set. Any thread.
 */
#ifndef ENGINE_NODES_H
#define ENGINE_NODES_H

#include <stdatomic.h>
#include <stdint.h>
#include <uthash.h>

#include <base/mem.h>
#include <hsmount/engine.h>
#include <store/store.h>

#include "doc.h"

enum {
	NODES_MAX = 1 << 16,	   /* remembered; the oldest go first */
	NODES_AHEAD = 32,	   /* siblings whose sizes are asked for together */
	NODES_NAMES_MAX = 16 << 20 /* bytes of names of directories that are remembered */
};

struct node {
	atomic_uint refs;
	enum engine_kind kind;
	char *path;		   /* in the bucket: of the domain, the prefix or the object */
	struct doc doc;		   /* of a domain, or of a directory that has one */
	struct store_meta meta;	   /* of a plain object */
	_Atomic uint64_t estimate; /* of a domain's size in bytes; 0: nobody asked yet */
	/* The table's own, under its lock. */
	uint64_t expires, names_expire;
	struct bytes names; /* of what a directory holds; empty: not known */
	UT_hash_handle hh;
	char name[]; /* path in the mount */
};

/* Takes doc over (always). NULL without memory. */
struct node *node_new(const char *mount_path, enum engine_kind kind, const char *path,
		      struct doc *doc);
struct node *node_ref(struct node *n);
void node_unref(struct node *n);
static inline void cleanup_node(struct node **n)
{
	node_unref(*n);
}
#define auto_node __attribute__((cleanup(cleanup_node)))

struct nodes;
struct nodes *nodes_new(void);
void nodes_free(struct nodes *t);
/* NULL when there is none that is still believed at time now. The caller unrefs. */
struct node *nodes_get(struct nodes *t, const char *mount_path, uint64_t now);
/* The same, whether it is still believed or not: what to ask for first. */
struct node *nodes_recall(struct nodes *t, const char *mount_path);
/* Replaces what was known of this path; the table takes a reference of its own. */
void nodes_put(struct nodes *t, struct node *n, uint64_t expires);
/* The bucket is not as this path was remembered. */
void nodes_drop(struct nodes *t, const char *mount_path);
/* What a directory holds, for a while; the bytes mean something to the caller only. Names are taken
 * over, and not kept when the directory is not remembered or there are too many of them. */
void nodes_put_names(struct nodes *t, const char *mount_path, struct bytes *names,
		     uint64_t expires);
/* A copy; false when they are not known, not believed, or without memory. */
bool nodes_get_names(struct nodes *t, const char *mount_path, uint64_t now, struct bytes *names);
/* Domains that were listed next after n and whose size nobody has asked for; n itself is the
 * first. More than one only when it looks as if somebody goes through the directory. The caller
 * unrefs them. */
size_t nodes_unsized(struct nodes *t, struct node *n, struct node *out[NODES_AHEAD]);

#endif
