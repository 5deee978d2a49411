/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of names in the mount, for a while: one node for each path that was looked up or
 * listed, what directories hold, and look-ups that have just failed after a long wait. A node is
 * constant once it has been put, except for its estimate. Any thread.
 */
#ifndef NAMES_NAME_CACHE_H
#define NAMES_NAME_CACHE_H

#include <names/names.h>

enum {
	NAMES_CACHE_MAX = 1 << 16,	  /* nodes; the oldest are evicted first */
	NAMES_CACHE_LISTS_MAX = 16 << 20, /* bytes of lists of directories */
	NAMES_CACHE_FAILURES = 16,
	NAMES_CACHE_SIBLINGS = 32, /* whose sizes are asked for together */
};

struct names_cache;
struct names_cache *names_cache_new(void); /* NULL without memory */
void names_cache_free(struct names_cache *c);

/* NULL when there is none that is valid at time now. The caller unrefs. */
struct names_node *names_cache_get(struct names_cache *c, const char *mount_path, uint64_t now);
/* The same, valid or stale: what to ask for first. */
struct names_node *names_cache_recall(struct names_cache *c, const char *mount_path);
/* Replaces what was known of this path; the cache takes a reference of its own. */
void names_cache_put(struct names_cache *c, struct names_node *node, uint64_t expires);
/* The bucket is not as this path was remembered. */
void names_cache_drop(struct names_cache *c, const char *mount_path);

/* What a directory holds; the bytes mean something to the caller only. A list is taken over, and
 * not kept when the directory is not remembered or the lists are too long. */
void names_cache_put_list(struct names_cache *c, const char *mount_path, struct bytes *list,
			  uint64_t expires);
/* A copy; false when it is not known, stale, or without memory. */
bool names_cache_get_list(struct names_cache *c, const char *mount_path, uint64_t now,
			  struct bytes *list);

/* Until that time a look-up of this path fails like this: the kernel looks a name up once more when
 * that fails, and its caller would wait twice. Evicts the oldest failure; without memory, this one
 * is not kept. */
void names_cache_put_failure(struct names_cache *c, const char *mount_path, const struct err *why,
			     uint64_t until);
/* The failure that is remembered at time now, 0 when there is none. */
int names_cache_get_failure(struct names_cache *c, const char *mount_path, uint64_t now,
			    struct err *err);

/* Domains that were listed next after a node and whose size nobody has asked for; the node itself
 * is the first. More than one only when it looks as if a program goes through the directory. The
 * caller unrefs them. */
size_t names_cache_unsized(struct names_cache *c, struct names_node *node,
			   struct names_node *out[NAMES_CACHE_SIBLINGS]);

#endif
