/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open plain object: one version of its bytes, in blocks that the chunk cache holds.
 * Prefetching, shared loads, the memory budget and interrupts work as for chunks. Any thread.
 *
 * The cache drops the blocks when the file is closed. The kernel's page cache keeps them for later
 * opens of the same version.
 */
#ifndef SNAPSHOTS_RAW_OBJECT_H
#define SNAPSHOTS_RAW_OBJECT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <hsmount/err.h>
#include <base/cancel.h>
#include <cache/cache.h>
#include <store/store.h>

enum { RAW_OBJECT_BLOCK = 1 << 20 /* bytes of one request; the last block is shorter */ };

struct raw_object;

/* `meta` has the version and its size. Borrows the store and the cache. Fails with -ENOMEM. */
int raw_object_open(struct store *store, struct cache *cache, const char *path,
		    const struct store_meta *meta, struct raw_object **out, struct err *err);
void raw_object_close(struct raw_object *p); /* waits for running requests; p may be NULL */
const char *raw_object_path(const struct raw_object *p);

/* Reads as pread(2) does. `cancel` may be NULL. Fails with -ESTALE if the object has another
 * version now or was deleted, with -EINTR if `cancel` was triggered, and with errors of the
 * store. */
ssize_t raw_object_read(struct raw_object *p, void *buf, size_t n, uint64_t offset,
			struct cancel *cancel, struct err *err);

#endif
