/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live images of a mount, by domain. A snapshot is one image of one version of a domain; it
 * lives as long as somebody has it open, whatever becomes of the domain meanwhile. The newest one
 * of each domain is the current one, and stays for a while after its last close, so that opening
 * again costs one check and no rebuilding. Any thread.
 */
#ifndef ENGINE_SNAPSHOTS_H
#define ENGINE_SNAPSHOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hsmount/engine.h>
#include <hsmount/err.h>
#include <image/image.h>
#include <domain/domain.h>
#include <schema/schema.h>

enum {
	SNAPSHOTS_IDLE = 64,		/* snapshots kept that nobody has open */
	SNAPSHOTS_REMEMBERED = 1 << 14, /* domains whose last size is remembered */
};

struct snapshots;

/* How a snapshot is used by open files: counted by them, read by reports. */
struct snapshot_use {
	atomic_uint_fast64_t open, opens, reads, bytes_read;
};

/* Constant, but for its counters and what its table owns. */
struct snapshot {
	struct domain *domain;
	struct image *image; /* of the domain */
	uint64_t version;    /* never 0 */
	bool sees_chunks;    /* the version covers all data */
	uint64_t memory;     /* bytes of the image and its domain */
	struct engine_stat st;
	struct snapshot_use use;
	/* The table's own, under its lock. */
	struct snapshots *owner;
	unsigned int refs;
	struct slot *slot;     /* NULL: not the current one of its domain any more */
	struct snapshot *next; /* among those to be freed */
	struct snapshot *live_prev, *live_next;
};

/* idle_limit: bytes of images and domains that nobody has open. They are dropped, too, when the
 * budget has no room for others. */
struct snapshots *snapshots_new(struct budget *budget, uint64_t idle_limit);
void snapshots_free(struct snapshots *t); /* no snapshot is open */

/* A point in time, before or after others of the same table. */
struct snapshot_time {
	uint64_t tick; /* never 0 */
	uint64_t ns;   /* by the clock of the environment */
};
struct snapshot_time snapshots_time(struct engine *e);

/* Which domain, and what its looking up told. */
struct snapshot_domain {
	const char *path;		  /* in the bucket */
	const char *mount_dir;		  /* of its file, in the mount */
	struct schema_document *document; /* NULL unknown; borrowed */
	/* The document was asked for after that, for this very opening. Zero: it may be older. */
	struct snapshot_time asked;
};

/* The current snapshot of a domain as the bucket has it now, that is: asked for after the call (the
 * document: after domain->asked), or within the time for which an open is valid. Of several callers
 * at once, one asks and builds, the others wait for it and get what it got. -ENOENT, -EISDIR; -EIO
 * with key and cause. Closed by snapshot_close(). */
int snapshots_open(struct engine *e, const struct snapshot_domain *domain, struct snapshot **out,
		   struct err *err);
void snapshot_close(struct snapshot *s);
/* A reader has found that the bucket has something else: where s is current, the next open asks,
 * however long opens are valid. */
void snapshot_mark_stale(struct snapshot *s);

/* What the last image of a domain looked like: size, blocks, times, mode, version. False when
 * there was none. */
bool snapshots_recall(struct snapshots *t, const char *path, struct engine_stat *st);
uint64_t snapshots_live(struct snapshots *t);

/* Calls fn for each live snapshot, without a lock; non-zero ends it and is returned. -ENOMEM. */
typedef int (*snapshots_fn)(void *arg, struct snapshot *s);
int snapshots_each(struct snapshots *t, snapshots_fn fn, void *arg);

#endif
