/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Garbage: the storage of domains that were removed or replaced, and objects that were removed from
 * a domain. It is deleted when no file reads it any more, and not earlier than a delay after the
 * change, because programs on other machines may be about to open what they have just looked up,
 * and because a user may want a removed domain back. A thread does this. It starts with the first
 * garbage, so an engine may be made before a daemon forks. Any thread.
 *
 * It also finishes renames that an earlier process has left half done.
 *
 * All of this is noted in the journal (journal/gc_log.h), before the name is removed from the
 * bucket, until it has been deleted. The next process takes over what is left, with the time of the
 * change.
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

#define GARBAGE_DELAY_NS UINT64_C(30000000000) /* the default */
#define GARBAGE_CLOSE_NS UINT64_C(15000000000) /* how long garbage_free() deletes */

enum garbage_verdict {
	GARBAGE_STAYS = 0, /* the name still leads to the storage */
	GARBAGE_REMOVED,   /* by the process that has noted this */
	GARBAGE_UNCLEAR,   /* another program may have renamed the domain */
};

/* What the journal keeps of storage until it has been deleted: as struct gc_event. */
struct garbage_note {
	enum gc_type state;
	int64_t since_ns;
	struct storage storage;
	/* With GC_EXPECTED: the storage to which the name leads afterwards; none if the name
	 * vanishes. */
	struct storage next;
	const char *path;
	const char *document;
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
struct garbage_entry;

struct garbage_options {
	uint64_t delay_ns;
	bool all_at_end; /* garbage_free() does not wait for the delay */
	bool threaded;	 /* false for tests, which call garbage_collect() themselves */
};

/* Borrows env. Returns NULL if out of memory. */
struct garbage *garbage_new(const struct env *env, const struct garbage_ops *ops,
			    const struct garbage_options *opt);
/* Deletes what is due and what the journal does not have, if no file reads it. Logs what remains.
 * q may be NULL. */
void garbage_free(struct garbage *q);
/* Adds the storage of what had this path. Nothing is added if g is empty. */
void garbage_add(struct garbage *q, const char *path, const struct change_garbage *g);
/* Adds objects that the domain with this storage has lost. `number` is that of the entry in the log
 * that lists them; GC_NONE adds nothing. */
void garbage_add_objects(struct garbage *q, const char *path, const struct storage *storage,
			 uint32_t number);
/* Notes that a path is about to lose the domain with this document. `next` is the storage that the
 * path gets instead, or none. Returns an entry for garbage_settle(), or NULL if the domain has no
 * storage of its own, or if `next` is its storage. */
struct garbage_entry *garbage_expect(struct garbage *q, const char *path,
				     const struct schema_document *lost,
				     const struct storage *next);
/* Says what has become of it. If is_lost is not set, the path has kept its storage, and the note is
 * forgotten. e may be NULL. */
void garbage_settle(struct garbage *q, struct garbage_entry *e, bool is_lost);
/* Adds the storage of a domain that its path is about to lose, or may have lost already, because
 * the answer to a request was lost. `next` is as for garbage_expect(). */
void garbage_add_early(struct garbage *q, const char *path, const struct schema_document *lost,
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

/* A domain that was removed or replaced, and can be brought back. */
struct garbage_removed {
	const char *path;     /* in the bucket */
	const char *document; /* what is put to bring it back */
	const struct storage *storage;
	int64_t since_ns; /* since the epoch; 0 if unknown */
	uint64_t left_ns; /* until the storage may be deleted */
};
/* Calls fn with each of them, in the order in which they are due, while the lock is held: fn must
 * not call functions of this header, and must not block. Ends if fn returns non-zero, and returns
 * that. */
int garbage_each_removed(struct garbage *q, int (*fn)(void *ctx, const struct garbage_removed *r),
			 void *ctx);
/* Takes the one out that has lost the path last. It is not deleted until garbage_restore() gets it.
 * Returns NULL if there is none, or if it is just being deleted. *out points into the entry. */
struct garbage_entry *garbage_take_removed(struct garbage *q, const char *path,
					   struct garbage_removed *out);
/* Ends garbage_take_removed(). If is_back is not set, the storage is still garbage. */
void garbage_restore(struct garbage *q, struct garbage_entry *e, bool is_back);

/* Deletes what is due at this time. Returns the time at which to call it again, or UINT64_MAX if
 * there is none. Blocks. */
uint64_t garbage_collect(struct garbage *q, uint64_t now);

#endif
