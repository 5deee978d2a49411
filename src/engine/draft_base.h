/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain object that lies beneath a draft, in the version that was opened. When a draft is
 * committed, or renamed, while programs have it open, the object is replaced by what has its bytes
 * now. Any thread.
 */
#ifndef ENGINE_DRAFT_BASE_H
#define ENGINE_DRAFT_BASE_H

#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <cache/cache.h>
#include <store/store.h>

struct draft_base;

/* store and cache are borrowed. -ENOMEM. */
int draft_base_new(struct store *store, struct cache *cache, const char *path,
		   const struct store_meta *meta, struct draft_base **out, struct err *err);
void draft_base_free(struct draft_base *b); /* NULL is fine */
/* The size of the first version. */
uint64_t draft_base_size(const struct draft_base *b);
/* draft_beneath.read() */
int draft_base_read(void *base, uint64_t offset, void *buf, size_t n, struct err *err);
/* From now on, reads use this object. -ENOMEM: they use the old one. */
int draft_base_replace(struct draft_base *b, const char *path, const struct store_meta *meta,
		       struct err *err);

#endif
