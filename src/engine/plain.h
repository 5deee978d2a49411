/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain object that is open: one version of its bytes, as a row of blocks in the chunk cache. So
 * reading ahead, single flight, the budget and interrupts are those of chunks. Any thread.
 *
 * Blocks live as long as the open file: what is read again later comes from the kernel's page
 * cache, which keeps an object's version over opens and shares it among all who have it open.
 */
#ifndef ENGINE_PLAIN_H
#define ENGINE_PLAIN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <hsmount/err.h>
#include <base/cancel.h>
#include <cache/cache.h>
#include <store/store.h>

enum { PLAIN_BLOCK = 1 << 20 /* bytes of one request; the last block is shorter */ };

struct plain;

/* meta: the version, with the size. The store and the cache are borrowed. -ENOMEM. */
int plain_open(struct store *store, struct cache *cache, const char *path,
	       const struct store_meta *meta, struct plain **out, struct err *err);
void plain_close(struct plain *p); /* NULL is fine; waits for requests under way */
const char *plain_path(const struct plain *p);

/* As pread(2). -ESTALE when the object is not that version any more, -ENOENT when it is gone;
 * -EINTR when cancel (which may be NULL) said so. */
ssize_t plain_read(struct plain *p, void *buf, size_t n, uint64_t offset, struct cancel *cancel,
		   struct err *err);

#endif
