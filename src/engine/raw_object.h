/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain object that is open: one version of its bytes, as a row of blocks in the chunk cache. So
 * reading ahead, single flight, the budget and interrupts are those of chunks. Any thread.
 *
 * Blocks live as long as the open file: what is read again later comes from the kernel's page
 * cache, which keeps an object's version over opens and shares it among all who have it open.
 */
#ifndef ENGINE_RAW_OBJECT_H
#define ENGINE_RAW_OBJECT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <hsmount/err.h>
#include <base/cancel.h>
#include <cache/cache.h>
#include <store/store.h>

enum { RAW_OBJECT_BLOCK = 1 << 20 /* bytes of one request; the last block is shorter */ };

struct raw_object;

/* meta: the version, with the size. The store and the cache are borrowed. -ENOMEM. */
int raw_object_open(struct store *store, struct cache *cache, const char *path,
		    const struct store_meta *meta, struct raw_object **out, struct err *err);
void raw_object_close(struct raw_object *p); /* NULL is fine; waits for requests under way */
const char *raw_object_path(const struct raw_object *p);

/* As pread(2). -ESTALE when the object is not that version any more, -ENOENT when it is gone;
 * -EINTR when cancel (which may be NULL) said so. */
ssize_t raw_object_read(struct raw_object *p, void *buf, size_t n, uint64_t offset,
			struct cancel *cancel, struct err *err);

#endif
