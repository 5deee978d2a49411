/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Garbage: the storage of domains that were removed or replaced, and objects that were removed from
 * a domain. It is deleted when no file reads it any more, and not earlier than GARBAGE_DELAY_NS
 * after the change, because programs on other machines may be about to open what they have just
 * looked up. A thread does this. It starts with the first garbage, so an engine may be made before
 * a daemon forks. Any thread.
 *
 * It also finishes renames that an earlier process has left half done.
 *
 * All of this is noted in the journal (journal/gc_log.h), before the name is removed from the
 * bucket, until it has been deleted. After a crash the next process takes the notes over.
 */
#ifndef STORAGE_GARBAGE_H
#define STORAGE_GARBAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/env.h>
#include <storage/change.h>
#include <hsmount/err.h>
#include <journal/gc_log.h>

#define GARBAGE_DELAY_NS UINT64_C(30000000000)
#define GARBAGE_CLOSE_NS UINT64_C(15000000000) /* how long garbage_free() deletes */

enum garbage_verdict {
	GARBAGE_STAYS = 0, /* the name still leads to the storage */
	GARBAGE_REMOVED,   /* by the process that has noted this */
	GARBAGE_UNCLEAR,   /* another program may have renamed the domain */
};

/* What the journal keeps of storage until it has been deleted: as struct gc_event. */
struct garbage_note {
	enum gc_type state;
	struct storage storage;
	/* With GC_EXPECTED: the storage to which the name leads afterwards; none if the name
	 * vanishes. */
	struct storage next;
	const char *path;
};

struct garbage_ops {
	const struct schema_ops *schema; /* whose storage becomes garbage */
	/* Returns whether an open file reads the storage. */
	bool (*is_read)(void *ctx, const struct storage *storage);
	/* Deletes the storage of what had this path. Stops when *cancelled becomes true. Fails with
	 * -EBUSY if it may be deleted later. Blocks. */
	int (*collect)(void *ctx, const char *path, const struct change_garbage *g,
		       const atomic_bool *cancelled, struct err *err);
	/* Does the same with the objects of the domain at the path that the entry with this number
	 * of the log lists. */
	int (*collect_objects)(void *ctx, uint32_t number, const atomic_bool *cancelled,
			       struct err *err);
	/* Finds out what has become of a name whose removal was noted and may not have happened.
	 * Returns an enum garbage_verdict or a negative errno. Blocks. */
	int (*judge)(void *ctx, const struct garbage_note *expected, const atomic_bool *cancelled,
		     struct err *err);
	/* Finishes a rename that may be half done. If `is_ours` is set, the rename is of this
	 * process, or of an earlier one with the same journal, so it is not running any more.
	 * Otherwise it fails with -EBUSY if the rename may be running. Blocks. */
	int (*finish_rename)(void *ctx, const struct storage *storage, bool is_ours,
			     const atomic_bool *cancelled, struct err *err);
	/* Keep notes as gc_log_put() and gc_log_clear() do. `note` is NULL if there are none. */
	int (*note)(void *ctx, uint32_t *record, const struct garbage_note *note, struct err *err);
	void (*forget)(void *ctx, uint32_t *record);
	void *ctx;
};

struct garbage;

/* Borrows env. `threaded` is false for tests, which call garbage_collect() themselves. Returns NULL
 * if out of memory. */
struct garbage *garbage_new(const struct env *env, const struct garbage_ops *ops, bool threaded);
/* Deletes all storage that no file reads, without a delay. Logs what remains. q may be NULL. */
void garbage_free(struct garbage *q);
/* Adds the storage of what had this path. Nothing is added if g is empty. */
void garbage_add(struct garbage *q, const char *path, const struct change_garbage *g);
/* Adds objects that the domain with this storage has lost. `number` is that of the entry in the log
 * that lists them; GC_NONE adds nothing. */
void garbage_add_objects(struct garbage *q, const char *path, const struct storage *storage,
			 uint32_t number);
/* Notes that a path is about to lose its storage. *record is that of the note, or GC_NONE if there
 * is none. `next` is the storage that the path gets instead, or none. garbage_settle() follows. */
void garbage_expect(struct garbage *q, const char *path, const struct storage *storage,
		    const struct storage *next, uint32_t *record);
/* As garbage_add(), but after garbage_expect(). If g is empty, the path has kept its storage, and
 * the note is forgotten. */
void garbage_settle(struct garbage *q, const char *path, const struct change_garbage *g,
		    uint32_t record);
/* Adds the storage of a path that is about to lose it, or may have lost it already, because the
 * answer to a request was lost. `next` is as for garbage_expect(). */
void garbage_add_early(struct garbage *q, const char *path, const struct change_garbage *g,
		       const struct storage *next);
/* To be called after a rename of the domain with this storage. If the rename may be half done, it
 * is finished later; otherwise its note, which has this record, is forgotten. */
void garbage_settle_rename(struct garbage *q, const char *path, const struct storage *storage,
			   bool half_done, uint32_t record);
/* To be called when an open has seen a list of names: another process may have left a rename in it
 * half done. */
void garbage_add_names(struct garbage *q, const char *path, const struct storage *storage);
/* To be called when the paths of garbage_add_early() with this `next` have lost their storage. */
void garbage_confirm(struct garbage *q, const struct storage *next);
/* Adds what an earlier process has noted. `record` is that of its note, which was taken over. */
void garbage_inherit(struct garbage *q, const struct garbage_note *note, uint32_t record);
/* To be called when the storage has another name: drops what was added for it. */
void garbage_rescue(struct garbage *q, const struct storage *storage);
/* Deletes what is due at this time. Returns the time at which to call it again, or UINT64_MAX if
 * there is none. Blocks. */
uint64_t garbage_collect(struct garbage *q, uint64_t now);

#endif
