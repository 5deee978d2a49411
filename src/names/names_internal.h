/* SPDX-License-Identifier: Apache-2.0 */
/* The room's own view of itself. */
#ifndef NAMES_INTERNAL_H
#define NAMES_INTERNAL_H

#include <names/names.h>

struct names_cache;

/* Constant; the cache guards itself. */
struct names {
	const struct env *env;
	struct store *store;
	const struct schema_ops *const *schemas;
	uint64_t ttl_ns, list_ttl_ns;
	struct names_cache *cache;
};

static inline uint64_t names_now(const struct names *ns)
{
	return ns->env->now(ns->env);
}

/* Until when a node is valid that is known from now on. A directory that cannot be listed is so for
 * a second at most: it may be opened meanwhile. */
static inline uint64_t names_valid_until(const struct names *ns, const struct names_node *node)
{
	const uint64_t second = UINT64_C(1000000000);
	const bool closed = node->doc.kind == NAMES_DOC_CLOSED;
	return names_now(ns) + (closed ? min_u64(ns->ttl_ns, second) : ns->ttl_ns);
}

#endif
