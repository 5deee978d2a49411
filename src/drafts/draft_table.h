/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of drafts, for drafts.c (opening and names), draft_file.c (bytes) and draft_save.c
 * (commits).
 *
 *   enum draft_life  name  writers  what happens
 *   DRAFT_NAMED      yes   some     a flush commits it
 *                    yes   0        its last writer commits it, or that has failed; an open for
 *                                   writing takes part in it
 *   DRAFT_ENDING     yes   0        its last writer commits it; an open waits for the end of that
 *   DRAFT_ASIDE      no    any      the bucket has got something else under its name; the table
 *                                   keeps it, then the journal
 *   DRAFT_LEFT       no    0        it could not be committed; the journal keeps it
 *   DRAFT_DETACHED   no    any      it has no name yet, or its name was removed, replaced, or
 *                                   committed; goes with the last file
 *
 * A function that changes what a name means holds the name meanwhile: one that makes a new draft,
 * commits, removes or renames. It does not hold a lock, because all of these send requests. A draft
 * that exists is opened and closed without holding its name.
 *
 * Locks, in the order in which they are taken: file_draft.making, drafts.lock. The second one is
 * never held during I/O.
 */
#ifndef DRAFTS_DRAFT_TABLE_H
#define DRAFTS_DRAFT_TABLE_H

#include <pthread.h>
#include <stdatomic.h>

#include <overlay/draft.h>
#include <uthash.h>

#include "draft_base.h"
#include "draft_change.h"
#include <drafts/drafts.h>

struct bucket;

#define NOTHING_LOST UINT64_MAX

enum draft_life { DRAFT_DETACHED, DRAFT_NAMED, DRAFT_ENDING, DRAFT_ASIDE, DRAFT_LEFT };

struct file_draft {
	struct drafts *t;
	uint64_t version;
	enum draft_kind kind;
	int64_t created_ns;
	struct draft_base *base;     /* of DRAFT_CHANGE; else NULL */
	struct draft_change *change; /* of a domain that is changed in place; else NULL */
	atomic_int_fast64_t mtime_ns;
	/* Where a write has failed whose bytes nobody has written since, or NOTHING_LOST; and the
	 * error code of that write. */
	atomic_uint_fast64_t lost_at;
	atomic_int lost_code;

	pthread_mutex_t making;	       /* held while `bytes` is made, and while it is described */
	_Atomic(struct draft *) bytes; /* NULL until something is changed; set once */

	/* Used by the function that holds the name, and by the one that frees the draft. The values
	 * of draft_stat.changes that belong to what the bucket has, to the last commit that failed,
	 * and to the last one that found the draft incomplete; UINT64_MAX if there is none. */
	uint64_t saved, tried, waited;
	uint32_t number;   /* of the last commit */
	uint64_t numbered; /* draft_stat.changes of what it has committed */
	struct failed_commits left;
	struct storage_sum stored; /* by the last commit */

	/* Guarded by the table's lock. The texts change only while the name is held, too. */
	char *name; /* in the mount */
	char *path; /* in the bucket */
	char *seen; /* what the bucket has: draft_about.version */
	/* The access control list that the next commit gives to the domain, or NULL if none was
	 * set. Changes only while the name is held, too. */
	struct schema_document *acls;
	unsigned int refs, writers;
	unsigned int closing; /* threads that have closed the last file that writes, and commit */
	enum draft_life life; /* by_name and the list `aside` count as references */
	bool alone;	      /* nothing else has the name */
	/* A program has truncated the file of a domain to 0 bytes. What programs write after that
	 * replaces the domain. */
	atomic_bool is_emptied;
	enum commit_state committed; /* how the last commit has ended */
	int failure;		     /* its error; 0 if it has not failed */
	char *why;
	struct file_draft *next; /* in `aside` or `leaving` */
	UT_hash_handle by_name, by_version;
};

struct drafts {
	struct bucket *bucket;
	struct journal *journal;
	atomic_uint_fast64_t commits, commit_failures, scanned_objects, scanned_nodes;
	atomic_uint_fast64_t bytes_written, left;
	atomic_bool cancelled; /* commits stop */
	pthread_t recovery;    /* finishes the commits of earlier processes */
	bool is_recovering;    /* the thread exists; of the owner */
	atomic_bool recovery_stops;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a name is not held any more; the end of drafts_free() */
	/* Guarded by lock: */
	struct file_draft *by_name, *by_version, *aside;
	struct file_draft *leaving; /* left, but the journal still has them open */
	struct draft_hold *holds;
};

/* Holds the name of a draft. Returns false if it has none. */
bool draft_table_hold_draft(struct file_draft *d, struct draft_hold *h);

/* The texts of a draft under a name, on the heap. n is what the bucket has, or NULL. After an
 * error, the caller frees those that are set. */
struct draft_texts {
	char *name, *path, *seen;
};
struct names_node;
int draft_table_texts(struct draft_texts *x, const char *name, const struct names_node *n,
		      struct err *err);
/* Makes a draft with one reference and no texts. Returns NULL if out of memory. */
struct file_draft *file_draft_new(struct drafts *t, enum draft_kind kind);
/* Ends a reference. The last one drops the draft from the journal, unless it is left there. */
void file_draft_unref(struct file_draft *d);

struct file_draft *draft_table_find_locked(struct drafts *t, const char *name);
struct file_draft *draft_table_find_version_locked(struct drafts *t, uint64_t version);
/* Enters a draft with its name, and chooses its version. The table gets a reference. Fails with
 * -ENOMEM. */
int draft_table_add_locked(struct file_draft *d);
/* Takes the name from the draft. The caller ends the reference of the table. */
void draft_table_unname_locked(struct file_draft *d);
/* Does the same, but the table keeps the draft until the end. */
void draft_table_set_aside_locked(struct file_draft *d);
/* Leaves a draft without a name in the journal, when its last reference ends. */
void draft_table_leave_locked(struct file_draft *d);
/* Changes the name, which it takes over. Returns false if there was no memory, and the draft has no
 * name now. */
bool draft_table_rename_locked(struct file_draft *d, char *name);
/* Drops the drafts that were set aside under this name. */
void draft_table_drop_aside(struct drafts *t, const char *name);

/* Makes its bytes, which it has, durable. Logs an error. */
void file_draft_sync(struct file_draft *d);
/* Finds a draft of this name that the journal keeps for `hsimage recover` or, if is_change is set,
 * one that changes the domain with this path in the bucket. Returns 1, 0, or a negative errno. */
int draft_table_find_left(struct drafts *t, const char *path, bool is_change,
			  char id[static JOURNAL_ID], struct err *err);
void file_draft_stat(struct file_draft *d, struct engine_stat *st);
/* Returns draft_stat.changes, or 0 if there are no bytes yet. */
uint64_t file_draft_changes(const struct file_draft *d);

#endif
