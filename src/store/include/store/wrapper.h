/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stores that stand in front of another store have in common: they own it, share its
 * environment and hand on what they have no say in. A wrapper embeds struct wrapper first; its ops
 * name wrapper_space() and wrapper_free().
 *
 * Threads: inner is set once, by the constructor.
 */
#ifndef STORE_WRAPPER_H
#define STORE_WRAPPER_H

#include <stdlib.h>

#include <store/store.h>

struct wrapper {
	struct store base;
	struct store *inner; /* owned */
};

static inline void wrapper_init(struct wrapper *w, const struct store_ops *ops, struct store *inner)
{
	w->base.ops = ops;
	w->base.env = inner->env;
	w->inner = inner;
}

static inline struct store *inner_of(struct store *s)
{
	return ((struct wrapper *)s)->inner;
}

static inline int wrapper_space(struct store *s, uint64_t *free_bytes, uint64_t *total_bytes)
{
	return store_space(inner_of(s), free_bytes, total_bytes);
}

static inline void wrapper_free(struct store *s)
{
	store_free(inner_of(s));
	free(s);
}

#endif
