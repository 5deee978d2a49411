/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The snapshots of a mount, by domain. A snapshot is the image of one version of a domain. It lives
 * as long as it is open, whatever happens to the domain meanwhile. The newest snapshot of a domain
 * is its current one. It is kept for a while after its last close, so that the next open only has
 * to check that it is still valid. Any thread.
 */
#ifndef SNAPSHOTS_SNAPSHOTS_H
#define SNAPSHOTS_SNAPSHOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hsmount/engine.h>
#include <hsmount/err.h>
#include <image/image.h>
#include <domain/domain.h>
#include <domain/puts.h>
#include <names/names.h>
#include <schema/schema.h>

enum {
	SNAPSHOTS_IDLE = 64,		/* snapshots kept that are not open */
	SNAPSHOTS_REMEMBERED = 1 << 14, /* domains whose last size is remembered */
	SNAPSHOTS_PUTS = 16,		/* domains of which it is known what commits have put */
};

struct bucket;
struct snapshots;

/* Use of a snapshot: open files count it, reports show it. */
struct snapshot_use {
	atomic_uint_fast64_t open, opens, reads, bytes_read;
};

/* Constant, except for its counters and the fields of the table. */
struct snapshot {
	struct domain *domain;
	struct image *image;
	uint64_t version; /* never 0 */
	bool sees_chunks; /* a change of any chunk makes another version */
	bool is_torn;	  /* the domain changed during each of its loads */
	/* schema_listed.version if it sees chunks. Otherwise 0, and `summary` is set if it was read
	 * during the open. */
	uint64_t listed;
	struct names_summary summary;
	bool has_summary;
	uint64_t memory; /* bytes of the image and its domain */
	struct engine_stat st;
	struct snapshot_use use;
	/* The table's fields, under its lock. */
	struct snapshots *owner;
	unsigned int refs;
	struct snapshot_entry *entry; /* of its domain while it is current, else NULL */
	struct snapshot *next;	      /* in a list of snapshots to free */
	struct snapshot *live_prev, *live_next;
};

/* The table borrows the bucket, and uses its parts when domains are opened. `idle_limit` is the
 * limit for the bytes of images and domains that are not open. The one that was used last is kept
 * even if it is larger. The table also drops them when the budget needs memory. Returns NULL if out
 * of memory. */
struct snapshots *snapshots_new(struct bucket *bucket, uint64_t idle_limit);
void snapshots_free(struct snapshots *t); /* all snapshots must be closed; t may be NULL */

/* A point in time, ordered among those of the same table. A zeroed struct is no point in time. */
struct snapshot_time {
	uint64_t tick; /* counts up from 1 */
	uint64_t ns;   /* of the environment's clock */
};
struct snapshot_time snapshots_time(struct snapshots *t);

/* A domain to open, and the result of its look-up. */
struct snapshot_domain {
	const char *path;		  /* in the bucket */
	const char *mount_dir;		  /* directory of its file in the mount */
	const struct names_node *node;	  /* borrowed; if it is NULL, the summary is not read */
	struct schema_document *document; /* borrowed; NULL if it is not known */
	bool is_stat;	/* no program opens it, so snapshots_recall() does not return it */
	bool *may_pass; /* may be NULL; set to true if a failure has a reason that may pass */
	const atomic_bool *cancelled; /* as in struct store_request; may be NULL */
	/* The document was requested after this time, for this open. If it is zeroed, the document
	 * may be older. */
	struct snapshot_time requested;
};

/* Opens the current snapshot of a domain. It shows the bucket as it was after the call began (its
 * document: after domain->requested) or, if open_ttl is set, at most so long before. If several
 * threads call at once, one of them builds the snapshot and the others wait for its result. Fails
 * with -ENOENT, -EISDIR, or -EIO with key and cause. The caller closes the snapshot with
 * snapshot_close(). */
int snapshots_open(struct snapshots *t, const struct snapshot_domain *domain, struct snapshot **out,
		   struct err *err);
void snapshot_close(struct snapshot *s);
/* Records that a read found another version in the bucket. If s is current, the next open checks
 * the bucket, whatever open_ttl is. */
void snapshot_mark_stale(struct snapshot *s);

/* To be called when another domain has this path now, or the domain was removed: the next open asks
 * the bucket, whatever open_ttl is. Open files are not affected. */
void snapshots_forget(struct snapshots *t, const char *path);
/* To be called when parts of the domain were changed: the next open checks the bucket, too, and
 * reads only what differs from the current snapshot and from what was put. `puts` is what was put
 * (domain/puts.h), or NULL. The table takes it over, and keeps it until the next open. */
void snapshots_outdate(struct snapshots *t, const char *path, struct domain_puts *puts);

/* Gets the attributes of the last image of a domain, and its snapshot.listed. Returns false if the
 * table remembers none. */
bool snapshots_recall(struct snapshots *t, const char *path, struct engine_stat *st,
		      uint64_t *listed);

/* To be called if the domain has changed since it was opened with this version: the table forgets
 * the attributes, and the next open checks the domain. */
void snapshots_forget_last(struct snapshots *t, const char *path, uint64_t version);
/* To be called after image_find() with the image of an open snapshot: the attributes that the table
 * remembers get the blocks that are known now. */
void snapshots_note_blocks(struct snapshots *t, const struct snapshot *s);
/* Sets the numbers of bytes and blocks of the snapshot that are known now. */
void snapshot_blocks(const struct snapshot *s, struct engine_stat *st);
/* To be called if a newer summary of a domain whose keys are not all listed was read, which gives
 * its file this time. */
void snapshots_set_time(struct snapshots *t, const char *path, int64_t mtime_ns);

/* Returns whether the table has a snapshot of a domain, or knows what was put, so that an open
 * reads only what has changed. */
bool snapshots_has(struct snapshots *t, const char *path);

/* Keeps a domain that was opened for a stat, which began at that time, as its current snapshot,
 * unless the table has another one. The next open checks it. Takes the image over. */
void snapshots_keep(struct snapshots *t, const char *path, const struct snapshot_time *began,
		    struct domain *domain, struct image *image);

/* Returns the number of snapshots, including old ones that are still open. */
uint64_t snapshots_live(struct snapshots *t);

/* Calls fn for each snapshot, without a lock. A result that is not 0 ends the walk and is returned.
 * Fails with -ENOMEM. */
typedef int (*snapshots_fn)(void *arg, struct snapshot *s);
int snapshots_each(struct snapshots *t, snapshots_fn fn, void *arg);

#endif
