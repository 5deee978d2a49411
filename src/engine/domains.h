/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live images of a mount, by domain. A snapshot is one image of one version of a domain; it
 * lives as long as somebody has it open, whatever becomes of the domain meanwhile. The newest one
 * of each domain is the current one, and stays for a while after its last close, so that opening
 * again costs one check and no rebuilding. Any thread.
 */
#ifndef ENGINE_DOMAINS_H
#define ENGINE_DOMAINS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/err.h>
#include <hsmount/engine.h>
#include <image/image.h>
#include <schema/schema.h>

enum {
	DOMAINS_IDLE = 64,	      /* snapshots kept that nobody has open */
	DOMAINS_REMEMBERED = 1 << 14, /* domains whose last size is remembered */
};

struct domains;

/* How a snapshot is used by open files: counted by them, read by reports. */
struct snapshot_use {
	atomic_uint_fast64_t open, opens, reads, bytes_read;
};

/* Constant, but for its counters and what its table owns. */
struct snapshot {
	struct image *image;
	uint64_t version; /* never 0 */
	bool sees_chunks; /* the version covers all data */
	uint64_t memory;  /* bytes of the image and its model */
	struct engine_stat st;
	struct snapshot_use use;
	/* The table's own, under its lock. */
	struct domains *owner;
	unsigned int refs;
	struct slot *slot;     /* NULL: not the current one of its domain any more */
	struct snapshot *next; /* among those to be freed */
	struct snapshot *live_prev, *live_next;
};

/* idle_limit: bytes of images and models that nobody has open. They go, too, when the budget has no
 * room for others. */
struct domains *domains_new(struct budget *budget, uint64_t idle_limit);
void domains_free(struct domains *t); /* no snapshot is open */

/* Which domain, and what its looking up told. */
struct domain_place {
	const char *path;	      /* in the bucket */
	const char *mount_dir;	      /* of its file, in the mount */
	const struct schema_id *root; /* its root group of a moment ago, NULL unknown */
};

/* The current snapshot of a domain as the bucket has it now, that is: asked for after the call, or
 * within the time that an open is believed. Of several callers at once, one asks and builds, the
 * others wait for it and get what it got. -ENOENT, -EISDIR; -EIO with key and
 * cause. Closed by snapshot_close(). */
int domains_open(struct engine *e, const struct domain_place *place, struct snapshot **out,
		 struct err *err);
void snapshot_close(struct snapshot *s);
/* A reader has found that the bucket has something else: where s is current, the next open asks,
 * however long opens are believed. */
void snapshot_doubt(struct snapshot *s);

/* What the last image of a domain looked like: size, blocks, times, mode, version. False when
 * there was none. */
bool domains_recall(struct domains *t, const char *path, struct engine_stat *st);
uint64_t domains_live(struct domains *t);

/* Calls fn for each live snapshot, without a lock; non-zero ends it and is returned. -ENOMEM. */
typedef int (*domains_fn)(void *arg, struct snapshot *s);
int domains_each(struct domains *t, domains_fn fn, void *arg);

#endif
