/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A draft, for draft.c (its life), draft_write.c (writes and other changes), draft_layers.c (what
 * changes need), draft_read.c (reads) and draft_seal.c (snapshots and generations).
 *
 * Locks, in the order in which they are taken:
 *  - changes: held for reading by a write, for writing by every other change, by draft_seal() and
 *    draft_sync(). It is held during I/O. So the records of the map have an order in which the
 *    changes can be repeated, and nothing is removed while it is written. Reads do not take it.
 *  - charging: held while the budget is asked.
 *  - lock: guards the layers. It is never held during I/O or a callback.
 */
#ifndef OVERLAY_DRAFT_INTERNAL_H
#define OVERLAY_DRAFT_INTERNAL_H

#include <overlay/draft.h>

#include "bodies.h"
#include "map.h"
#include <journal/draft_dir.h>

struct draft {
	struct draft_dir dir;
	struct draft_about about;
	char *strings; /* of about */
	struct draft_beneath beneath;
	bool recovered;	  /* its bytes cannot be changed … */
	bool resumed;	  /* … but commits of it are noted: see draft_resume() */
	uint32_t records; /* of its map that count */

	pthread_rwlock_t changes;
	/* Guarded by changes: */
	struct draft_snapshot *snapshot;
	bool sealed;	    /* the snapshot has the top layer: a change begins a new one */
	bool keeps;	    /* there may be a plan, so the layer of its snapshot must not change */
	bool synced;	    /* some state of the draft is durable */
	bool has_new_spool; /* its name is not durable yet */
	/* `changed` at that time. UINT64_MAX in the first means that the map has a new record that
	 * is no change */
	uint64_t synced_changes, sealed_changes;
	uint64_t durable_changes; /* `changed` at that time: the spools are durable */
	bool is_at_mark; /* the last mark is of a commit that has not ended, and no change follows
			  */
	int sync_failed; /* the error of a sync: the disk may have lost something, so
			  * nothing is durable any more */

	/* The snapshot for which there is a plan, also after it was closed. `planned` is its top
	 * layer, or NULL if there is no plan. */
	struct layer *planned;
	uint64_t planned_size, planned_changes;
	struct changes *planned_since;
	uint64_t plan_number; /* of the plan that draft_note_operation() means */
	bool done_is_named;   /* the name of the file `done` is durable */
	struct bodies bodies;

	struct map_file map;
	atomic_uint_fast64_t changed; /* number of changes */
	atomic_bool noted;	      /* the map has a change after the last seal */
	atomic_bool is_marked;	      /* draft_stat.is_marked */
	atomic_bool is_appended;      /* draft_is_appended() */
	bool was_sealed;	      /* draft_stat.is_sealed; set once */
	atomic_uint_fast64_t mark;

	pthread_mutex_t charging; /* guards charge */
	struct budget_charge charge;

	pthread_mutex_t lock;
	/* Guarded by lock; the top layer and the list of layers change only while `changes` is held
	 * for writing. */
	struct layers layers;
	struct frames_memory memory;
};

struct draft_snapshot {
	struct draft *draft;
	struct layers layers; /* constant while the snapshot is open */
	struct source source;
	uint64_t changes;
	struct changes *since; /* all before it; constant, owned by the set of the draft */
};

/* Changes the layers, and takes the memory for it. */
int draft_change_layers(struct draft *d, enum layers_change change, uint64_t start, uint64_t end,
			uint64_t *added, struct err *err);
/* Gives the memory back to the budget that the layers do not use any more. */
void draft_trim_memory(struct draft *d);

/* Takes `changes` for a write, or for another change. On success, the top layer may be changed, and
 * the caller unlocks `changes`. */
int draft_begin_write(struct draft *d, struct err *err);
int draft_begin_change(struct draft *d, struct err *err);
/* Returns whether nothing may be noted in the journal. */
bool draft_is_read_only(const struct draft *d);
/* To be called before something is noted about a draft of draft_resume(): opens its map, and notes
 * that nothing has changed since. `changes` is held for writing. */
int draft_note_resumed(struct draft *d, struct err *err);
/* Makes the draft durable; `changes` is held for writing. */
int draft_sync_held(struct draft *d, struct err *err);
/* Finds the layer for which the plan of a recovered draft was made. */
int draft_find_planned(struct draft *d, struct err *err);
/* The read_at of a snapshot's source. */
int draft_snapshot_read(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err);
/* Its `prepare`. Fails with -ENOTSUP if not all bytes are in one spool. */
int draft_snapshot_prepare(void *ctx, uint64_t offset, uint64_t n, struct source_part *part,
			   struct err *err);

#endif
