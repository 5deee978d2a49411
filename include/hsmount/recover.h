/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drafts in a journal directory (doc/JOURNAL.md): files that programs wrote to a mount and that
 * the bucket does not have. A draft can be listed, described, read, committed and deleted, but not
 * changed. The bucket is needed only for bytes that no program has written, to commit a draft, and
 * to delete what a commit has stored.
 *
 * The beginning of an id is enough if no other draft's id begins in the same way.
 *
 * One thread at a time may use a struct. A function returns 0 or a count, or a negative errno with
 * the reason in *err, unless err is NULL.
 */
#ifndef HSMOUNT_RECOVER_H
#define HSMOUNT_RECOVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/engine.h>
#include <hsmount/err.h>

struct engine_drafts;

/* Opens a journal directory. Fails with -ENOENT if it does not exist, and with -EPERM if it belongs
 * to another user or if others have access to it. */
int engine_drafts_open(const char *journal_dir, struct engine_drafts **out, struct err *err);
void engine_drafts_close(struct engine_drafts *s); /* s may be NULL */

enum engine_draft_state {
	ENGINE_DRAFT_WAITING,	 /* no process has it open */
	ENGINE_DRAFT_IN_USE,	 /* a mount, or another process, has it open */
	ENGINE_DRAFT_LATER,	 /* a later version of this program has written it */
	ENGINE_DRAFT_UNREADABLE, /* it is damaged, and was set aside */
	/* An earlier version has written it, and only that one can use it. It can only be listed.
	 * Such an item may also be notes of that version about what is to be deleted. */
	ENGINE_DRAFT_EARLIER,
	ENGINE_DRAFT_STATES
};
/* Returns "waiting", "in use", "later version", "unreadable" or "earlier version". */
const char *engine_draft_state_name(enum engine_draft_state state);

/* One draft of a list. Strings are valid during the call that receives them, and "" if they are not
 * known. */
struct engine_draft_item {
	const char *id;
	enum engine_draft_state state;
	bool has_size;	     /* whether the size is known */
	uint64_t size;	     /* the size of the file, bytes */
	int64_t created_ns;  /* ns since the epoch; 0 if it is not known */
	const char *bucket;  /* the name of the bucket, as a command line takes it */
	const char *path;    /* the path of the file in the mount */
	bool changes_domain; /* programs have changed a domain in place */
	const char *why;     /* why the draft is in the journal, or cannot be read */
};
/* Calls fn for each draft, the oldest of each bucket first. If bucket is not NULL, only its drafts
 * are listed. If fn returns non-zero, the list ends and the function returns that. */
int engine_drafts_list(struct engine_drafts *s, const char *bucket,
		       int (*fn)(void *arg, const struct engine_draft_item *item), void *arg,
		       struct err *err);

/* Describes a draft for a person: calls `line` for each fact. Fails with -ENOENT if there is no
 * such draft, and with -EINVAL if the text is no id or is the beginning of several ids. */
int engine_drafts_show(struct engine_drafts *s, const char *id,
		       int (*line)(void *arg, const char *line), void *arg, struct err *err);

/* ---- reading ---- */

struct engine_draft;

/* Opens a draft for reading. Until the caller closes it, no other process can use it. If the draft
 * has only a part of the bytes, the function opens the bucket with the options `bucket`; if
 * bucket->bucket is NULL, it takes the name from the journal. Fails like engine_drafts_show(), with
 * -EBUSY if the draft is in use, with -ENOTSUP if a later version has written it, with -EBADMSG or
 * -ENODATA if it cannot be read, and with errors of the bucket. */
int engine_draft_open(struct engine_drafts *s, const char *id, const struct engine_options *bucket,
		      struct engine_draft **out, struct err *err);
void engine_draft_close(struct engine_draft *d); /* d may be NULL */
/* Returns the size of the file, bytes. */
uint64_t engine_draft_size(struct engine_draft *d);
/* Finds the next range that is not a hole, from *end on. Returns false if there is none. */
bool engine_draft_next(struct engine_draft *d, uint64_t *start, uint64_t *end);
/* Reads n bytes, which must be in the file. */
int engine_draft_read(struct engine_draft *d, void *buf, size_t n, uint64_t offset,
		      struct err *err);

/* ---- committing ---- */

struct engine_draft_commit {
	/* How the bucket is opened, as for engine_draft_open(). The member user is required. */
	const struct engine_options *bucket;
	/* When this becomes true, the commit fails with -ECANCELED. It may be NULL. */
	const atomic_bool *cancelled;
	/* Is called with what is unexpected about the result. It may be NULL. */
	void (*line)(void *arg, const char *line);
	void *arg;
};
/* Stores a draft in the bucket as a mount does when the file is closed, and deletes it. A domain
 * that was changed in place is committed although its program had not closed it, if all structures
 * of the file can be read; its data may be wrong nevertheless. After an error the draft is still
 * there. If the bucket may have changed by then, the next mount or the next call completes the
 * commit. Fails with -ESTALE if the bucket has something else than when the file was opened, with
 * -EIO if the file is damaged or not complete, with -EOPNOTSUPP if a domain cannot hold it, like
 * engine_draft_open(), and with errors of the bucket. */
int engine_drafts_commit(struct engine_drafts *s, const char *id,
			 const struct engine_draft_commit *opt, struct err *err);

/* ---- deleting ---- */

/* Deletes a draft, also one that cannot be read. If a commit of the draft had begun, the function
 * opens the bucket and deletes what the commit has stored, except objects that a domain may have.
 * It calls `line`, which may be NULL, with what was deleted and what is left, and with errors of
 * the bucket. Otherwise it fails like engine_draft_open(). */
int engine_drafts_drop(struct engine_drafts *s, const char *id, const struct engine_options *bucket,
		       void (*line)(void *arg, const char *line), void *arg, struct err *err);

#endif
