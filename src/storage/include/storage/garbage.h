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
 * Storage is noted in the journal, before the name is removed from the bucket, until the storage
 * has been deleted. After a crash the next process takes the notes over. Of objects, the journal
 * has a list (journal/gc_objects.h), also until they have been deleted.
 */
#ifndef STORAGE_GARBAGE_H
#define STORAGE_GARBAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/env.h>
#include <storage/change.h>
#include <hsmount/err.h>
#include <journal/gc_objects.h>

#define GARBAGE_DELAY_NS UINT64_C(30000000000)
#define GARBAGE_CLOSE_NS UINT64_C(15000000000) /* how long garbage_free() deletes */

enum garbage_verdict {
	GARBAGE_STAYS = 0, /* the name still leads to the storage */
	GARBAGE_REMOVED,   /* by the process that has noted this */
	GARBAGE_UNCLEAR,   /* another program may have renamed the domain */
};

struct garbage_ops {
	const struct schema_ops *schema; /* whose storage becomes garbage */
	/* Whether an open file reads the storage. */
	bool (*is_read)(void *ctx, uint64_t storage);
	/* Deletes the storage of what had this path. Stops when *cancelled becomes true. -EBUSY: it
	 * may be deleted later. Blocks. */
	int (*collect)(void *ctx, const char *path, const struct change_garbage *g,
		       const atomic_bool *cancelled, struct err *err);
	/* What has become of a name whose removal was noted and may not have happened: an enum
	 * garbage_verdict, or negative. Blocks. */
	int (*judge)(void *ctx, const struct gc_entry *expected, const atomic_bool *cancelled,
		     struct err *err);
	/* Finishes a rename that may be half done. is_ours: of this process, or of an earlier one
	 * with the same journal, so it is not running any more. -EBUSY: it may be. Blocks. */
	int (*finish_rename)(void *ctx, uint64_t storage, bool is_ours,
			     const atomic_bool *cancelled, struct err *err);
	/* Notes: as gc_log_put() and gc_log_clear(). NULL: there are none. */
	int (*note)(void *ctx, uint32_t *record, const struct gc_entry *entry, struct err *err);
	void (*forget)(void *ctx, uint32_t *record);
	/* Deletes the list of objects that were deleted from the journal, and frees it. */
	void (*forget_objects)(void *ctx, struct gc_objects *objects);
	void *ctx;
};

struct garbage;

/* env: borrowed. threaded: false for tests, which call garbage_collect() themselves. NULL: out of
 * memory. */
struct garbage *garbage_new(const struct env *env, const struct garbage_ops *ops, bool threaded);
/* Deletes all storage that no file reads, without a delay. Logs what remains. NULL is fine. */
void garbage_free(struct garbage *q);
/* Adds the storage of what had this path. Nothing is added if g is empty. */
void garbage_add(struct garbage *q, const char *path, const struct change_garbage *g);
/* Adds objects that a domain has lost. Takes the list over. NULL: nothing is added. */
void garbage_add_objects(struct garbage *q, struct gc_objects *objects);
/* Notes that a path is about to lose its storage; *record: GC_NONE if it is not noted. next:
 * the storage that it gets instead; 0: none. garbage_settle() follows. */
void garbage_expect(struct garbage *q, const char *path, uint64_t storage, uint64_t next,
		    uint32_t *record);
/* garbage_add(), after garbage_expect(). If g is empty, the path has kept its storage. */
void garbage_settle(struct garbage *q, const char *path, const struct change_garbage *g,
		    uint32_t record);
/* Adds the storage of a path that is about to lose it, or may have lost it already, because the
 * answer to a request was lost. next: as for garbage_expect(), or another number for
 * garbage_confirm(). */
void garbage_add_early(struct garbage *q, const char *path, const struct change_garbage *g,
		       uint64_t next);
/* After a rename of the domain with this storage. half_done: it may be, so it is finished later;
 * otherwise its note is forgotten. record: of the note. */
void garbage_settle_rename(struct garbage *q, const char *path, uint64_t storage, bool half_done,
			   uint32_t record);
/* An open has seen a list of names that may have a rename that another process has left half done.
 */
void garbage_add_names(struct garbage *q, const char *path, uint64_t storage);
/* The paths have lost the storage of garbage_add_early() with this number. */
void garbage_confirm(struct garbage *q, uint64_t next);
/* Adds what an earlier process has noted. Returns an error if it cannot be noted again. */
int garbage_inherit(struct garbage *q, const struct gc_entry *entry, struct err *err);
/* The storage has another name: what was added for it is dropped. */
void garbage_rescue(struct garbage *q, uint64_t storage);
/* Deletes what is due at this time. Returns the time at which to call it again, or UINT64_MAX.
 * Blocks.
 */
uint64_t garbage_collect(struct garbage *q, uint64_t now);

#endif
