/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies beneath a draft, in the version that was opened: a plain object, or the image of a
 * domain. If the draft of a plain object is committed or renamed while programs have it open, later
 * reads use the object that has these bytes then. Any thread.
 */
#ifndef DRAFTS_DRAFT_BASE_H
#define DRAFTS_DRAFT_BASE_H

#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <cache/cache.h>
#include <store/store.h>

struct draft_base;
struct snapshot;

/* Borrows store and cache. Fails with -ENOMEM. */
int draft_base_new(struct store *store, struct cache *cache, const char *path,
		   const struct store_meta *meta, struct draft_base **out, struct err *err);
/* Makes a base of the image of a domain. On success, takes the snapshot over. Fails with
 * -ENOMEM. */
int draft_base_of_image(struct snapshot *s, struct draft_base **out, struct err *err);
void draft_base_free(struct draft_base *b); /* b may be NULL */
/* Returns the snapshot of the domain, or NULL if the base is a plain object. */
struct snapshot *draft_base_snapshot(const struct draft_base *b);
/* Returns the size of the version that was opened, or 0 if b is NULL. */
uint64_t draft_base_size(const struct draft_base *b);
/* For draft_beneath.read. */
int draft_base_read(void *base, uint64_t offset, void *buf, size_t n, struct err *err);
/* Makes later reads use this object instead of the old one. An image stays. After -ENOMEM, they use
 * the old one. */
int draft_base_replace(struct draft_base *b, const char *path, const struct store_meta *meta,
		       struct err *err);

#endif
