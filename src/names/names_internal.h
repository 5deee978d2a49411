/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of names/. */
#ifndef NAMES_INTERNAL_H
#define NAMES_INTERNAL_H

#include <names/names.h>

struct names_cache;
struct names_complete;

/* Constant, except for the atomic members; the cache and the listings guard themselves. */
struct names {
	const struct env *env;
	struct store *store, *disk;
	const struct schema_ops *const *schemas;
	uint64_t ttl_ns, list_ttl_ns;
	bool prefixes_have_objects;
	const char *const *roots; /* as in the options */
	struct names_cache *cache;
	struct names_complete *complete;
	atomic_uint_fast64_t changes; /* calls of names_changed() */
	atomic_bool left_out;	      /* a listing has left something out */
	atomic_bool has_marks;	      /* a listing has shown a mark: see the options */
};

enum {
	NAMES_AT_ONCE = 256, /* requests in one round */
};

/* Something has the name. An earlier listing or answer does not prove any more that it is absent.
 */
void names_found(struct names *ns, const char *path);

static inline uint64_t names_now(const struct names *ns)
{
	return ns->env->now(ns->env);
}

/* Returns when a node that was read just now becomes stale. A directory that cannot be listed is
 * valid for at most a second, because access to it may be granted at any time. */
static inline uint64_t names_valid_until(const struct names *ns, const struct names_node *node)
{
	const uint64_t second = UINT64_C(1000000000);
	const bool unlistable = node->doc.kind == NAMES_DOC_UNLISTABLE;
	return names_now(ns) + (unlistable ? min_u64(ns->ttl_ns, second) : ns->ttl_ns);
}

#endif
