/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of paths that were looked up or listed, and the entries of directories. A node that is
 * not valid any more stays in the cache: its document's ETag makes the next request conditional.
 * Nodes are constant once they are in the cache, except for the size, the note and the members of
 * the cache. Any thread.
 *
 * The cache takes a share of the memory for metadata. If that is full, the oldest nodes are
 * evicted. But a node that a walk has not reached yet stays, and newer ones are not kept: otherwise
 * the listing of a very large directory would evict its own beginning, and then nothing of it would
 * be known when it is needed.
 *
 * A node is valid until its time, and longer while its directory is being walked: a listing begins
 * a walk, and the nodes that it shows belong to it. A walk is active for `ttl` and as long as the
 * listing took after the listing, because a program sorts many names before it asks for the first
 * one; for `ttl` after each first look-up of one of its nodes; and for NAMES_WALK_MAX_S at most.
 * While it is active, a node of it that was not looked up since the listing is valid, and stays
 * valid for `ttl` after this look-up. So while a program goes through a large directory, the daemon
 * does not request again what the listing has shown. A program that looks up the same name
 * repeatedly gets a new node after `ttl`.
 */
#ifndef NAMES_NAME_CACHE_H
#define NAMES_NAME_CACHE_H

#include <base/budget.h>
#include <names/names.h>

enum {
	NAMES_CACHE_PARTS = 4,		  /* the cache takes one of so many parts of the metadata */
	NAMES_CACHE_LISTS_MAX = 16 << 20, /* bytes of lists of directories */
	NAMES_WALKS = 64,		  /* latest listings that have a walk */
	NAMES_ABSENT = 64,		  /* names that were absent; newer ones displace others */
	NAMES_WALK_MAX_S = 600,
};

/* What was found since `seen` was read from *changes is kept only if *changes is still the same:
 * this mount may have changed the name meanwhile. Who changes a name increments *changes, and then
 * drops the node. NULL: it is kept in any case. */
struct names_since {
	const atomic_uint_fast64_t *changes;
	uint64_t seen;
};

struct names_cache;
struct names_cache *names_cache_new(struct budget *budget); /* NULL if out of memory */
void names_cache_free(struct names_cache *c);

/* Returns the node if its own time has not passed at `now`, otherwise NULL. The caller unrefs it.
 */
struct names_node *names_cache_get(struct names_cache *c, const char *mount_path, uint64_t now);
/* The same for a look-up, for which the node is also valid while its directory is being walked. */
struct names_node *names_cache_look_up(struct names_cache *c, const char *mount_path, uint64_t now);
/* Returns the node, valid or stale, or NULL if there is none. The caller unrefs it. */
struct names_node *names_cache_recall(struct names_cache *c, const char *mount_path);
/* Replaces the node of this path. The cache takes another reference, if there is room. */
void names_cache_put(struct names_cache *c, struct names_node *node, uint64_t now, uint64_t expires,
		     const struct names_since *since);
void names_cache_drop(struct names_cache *c, const char *mount_path);

/* Begins a walk and returns its number. took is the duration of the listing in ns. */
uint64_t names_cache_begin_walk(struct names_cache *c, uint64_t now, uint64_t ttl, uint64_t took);
/* Adds a node to a walk. Nothing happens if the cache has another node for this path by now. */
void names_cache_join_walk(struct names_cache *c, struct names_node *node, uint64_t walk);
/* Keeps the walk of a node active: a request for a node of it has just ended. */
void names_cache_continue_walk(struct names_cache *c, struct names_node *node, uint64_t now);

/* Records that nothing has this name, for names_cache_is_absent(). names_cache_put(),
 * names_cache_drop() and names_cache_end_absence() end that. */
void names_cache_put_absent(struct names_cache *c, const char *mount_path, uint64_t until,
			    const struct names_since *since);
void names_cache_end_absence(struct names_cache *c, const char *mount_path);
bool names_cache_is_absent(struct names_cache *c, const char *mount_path, uint64_t now);

/* The entries of a directory, in the caller's format. The list is transferred. It is not kept
 * if the directory has no node or the lists of all directories become too long. */
void names_cache_put_list(struct names_cache *c, const char *mount_path, struct bytes *list,
			  uint64_t expires, const struct names_since *since);
/* Copies the list. Returns false if there is none, if it is stale, or if out of memory. */
bool names_cache_get_list(struct names_cache *c, const char *mount_path, uint64_t now,
			  struct bytes *list);

/* The number of keys below a directory in all levels, if they are few; 0 if it is not known, or if
 * they are many. A new node of a directory keeps the number. */
void names_cache_put_flat(struct names_cache *c, const char *mount_path, uint32_t keys);
uint32_t names_cache_get_flat(struct names_cache *c, const char *mount_path);

/* Records that a request for this path has failed with `code`. Nothing is recorded for a
 * path without a node. */
void names_cache_put_failure(struct names_cache *c, const char *mount_path, int code,
			     uint64_t until);
/* Returns the recorded error code, or 0 if there is none at `now`. */
int names_cache_get_failure(struct names_cache *c, const char *mount_path, uint64_t now);

/* Says of how many nodes a property that costs requests may be found out in advance. */
struct names_ahead {
	size_t for_first; /* if the node is the first of its kind in a listing that was just made */
	size_t for_each;  /* for each node before it of which the property is known without a gap */
	size_t max;
};
/* If a program is probably going through the directory, finds the nodes of the same kind after this
 * one of which the property is not known. The caller unrefs them. Returns their number. */
size_t names_cache_unknown(struct names_cache *c, struct names_node *node,
			   bool (*is_known)(const struct names_node *node),
			   const struct names_ahead *ahead, struct names_node **out, uint64_t now);

#endif
