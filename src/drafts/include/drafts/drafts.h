/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drafts of a mount, by name: files that programs write (see hsmount/engine.h). This table
 * knows names, open files and the life of a draft; overlay/draft.h keeps the bytes, and
 * draft_commit.h brings them into the bucket.
 *
 *   path ---> struct file_draft <--- struct draft_file (one for each open file)
 *                    |
 *                    +---> struct draft (overlay)
 *
 * A draft loses its name when the name is removed, or given to another file. Then it is not
 * committed any more, and vanishes with its last open file.
 *
 * Locks: the lock of the table guards names, counts and states, and is never held during I/O. One
 * commit at a time for each draft. Any thread.
 */
#ifndef DRAFTS_DRAFTS_H
#define DRAFTS_DRAFTS_H

#include <hsmount/engine.h>
#include <journal/journal.h>

struct bucket;
struct drafts;
struct draft_file;

/* Opens the journal. */
int drafts_new(struct bucket *bucket, const struct engine_options *opt, struct drafts **out,
	       struct err *err);
/* All files must be closed. Commits what is left, also what has failed before, for at most 15
 * seconds. t may be NULL. */
void drafts_free(struct drafts *t);
struct journal *drafts_journal(struct drafts *t);
/* Finishes the commits of earlier processes, in a thread. At most once. */
void drafts_start(struct drafts *t);

/* See engine_open_write() and engine_open_draft(). */
int drafts_open_write(struct drafts *t, const char *path, unsigned int flags,
		      struct draft_file **out, struct err *err);
int drafts_open_read(struct drafts *t, uint64_t version, struct draft_file **out, struct err *err);
/* Opens a draft that is alone under its name. Fails with -ENOENT if there is none. */
int drafts_open_alone(struct drafts *t, const char *path, struct draft_file **out, struct err *err);
/* Closes a file. Commits what is left if it is the last one that writes. f may be NULL. */
void draft_file_close(struct draft_file *f);

bool drafts_stat(struct drafts *t, const char *path, struct engine_stat *st, bool *alone);
bool drafts_stat_version(struct drafts *t, uint64_t version, struct engine_stat *st);
void draft_file_stat(struct draft_file *f, struct engine_stat *st);

ssize_t draft_file_read(struct draft_file *f, void *buf, size_t n, uint64_t offset,
			struct err *err);
ssize_t draft_file_write(struct draft_file *f, const void *buf, size_t n, uint64_t offset,
			 struct err *err);
int draft_file_resize(struct draft_file *f, uint64_t size, struct err *err);
int draft_file_allocate(struct draft_file *f, int mode, uint64_t offset, uint64_t n,
			struct err *err);
int64_t draft_file_seek(struct draft_file *f, uint64_t offset, int whence);
/* See engine_flush() and engine_sync(). */
int draft_file_flush(struct draft_file *f, struct err *err);
int draft_file_sync(struct draft_file *f, struct err *err);

/* ---- names. Without a table (t is NULL) there are no drafts. ---- */

/* Calls fn, without a lock, with the names in a directory that only drafts have, in byte order. A
 * result of fn that is not 0 ends the list and is returned. Fails with -ENOMEM. */
int drafts_list(struct drafts *t, const char *dir, engine_list_fn fn, void *arg);
bool drafts_has_entries(struct drafts *t, const char *dir);
/* Returns whether a draft has this name and nothing else has it. */
bool drafts_is_alone(struct drafts *t, const char *path);
/* Returns a reference to the access control list that was set for a draft that is alone, or
 * NULL. */
struct schema_document;
struct schema_document *drafts_acls(struct drafts *t, const char *path);
/* Checks that the bucket can have a new file of this name. Fails with -ENAMETOOLONG, with -EINVAL,
 * with -ENOTDIR, and with -ENOENT if there is no such directory. */
int drafts_check_new(struct drafts *t, const char *path, struct err *err);

/* A function that changes what a name means holds the name. As long as it does, no new draft of the
 * name is made, and no commit of the name runs. */
struct draft_hold {
	const char *names[2]; /* borrowed; the second one may be NULL */
	struct draft_hold *next;
};
/* Waits until nobody holds the names, and holds them. */
void draft_table_hold(struct drafts *t, struct draft_hold *h, const char *a, const char *b);
void draft_table_release(struct drafts *t, struct draft_hold *h);

/* For the functions below, the caller holds the names. */
/* Returns whether the commit of a draft that is alone has failed. Then the bucket may have the file
 * all the same, because an answer may have been lost. If it has, the caller calls
 * drafts_is_found(). */
bool drafts_is_doubtful(struct drafts *t, const char *path);
void drafts_is_found(struct drafts *t, const char *path);
/* To be called when the path has been removed: the draft loses its name. Returns whether there was
 * one. */
bool drafts_detach(struct drafts *t, const char *path);
/* Drops the draft of this path whose commit has failed, and those that were set aside. Fails with
 * -ENODATA if there is none, and with -EBUSY while a program has one of them open. */
int drafts_drop_failed(struct drafts *t, const char *path, struct err *err);
/* To be called when the file has another path: its draft follows. A draft that has the new path
 * loses it. n is what the bucket has at the new path now, or NULL: for a draft that is alone, what
 * it replaces; otherwise the file itself, and `was` is what the bucket had at the old path, else
 * NULL. If that is not what the draft is based on, because another program has replaced the file,
 * the next commit is a conflict, as without the rename. Fails with -ENOENT if there is no draft,
 * and with errors of the journal; then nothing has changed. */
struct names_node;
int drafts_rename(struct drafts *t, const char *from, const char *to, const struct names_node *was,
		  const struct names_node *n, struct err *err);
/* Sets the access control list of the domain that a draft will be, instead of an earlier one. Takes
 * the list over; NULL removes it. Without a draft, nothing happens. */
void drafts_set_acls(struct drafts *t, const char *path, struct schema_document *list);
/* To be called when this program has replaced the document of a domain by another one of the same
 * file. If the first one, which has the ETag `from`, is the one that the draft of the path has
 * seen, its commit is no conflict. */
void drafts_new_version(struct drafts *t, const char *path, const char *from, const char *to);

/* ---- attributes ---- */

/* Returns the text of user.hsds.error, on the heap, which says why the last commit of this path has
 * failed. Returns NULL if it has not failed, or if out of memory. */
char *drafts_error(struct drafts *t, const char *path);
/* Writes the text of user.hsds.unfinished: the id of a draft of this path that the journal keeps
 * for `hsimage recover`, or "" if there is none. */
void drafts_unfinished(struct drafts *t, const char *path, char id[static JOURNAL_ID]);

/* Fills in the counts of drafts and commits. */
void drafts_get_counts(struct drafts *t, struct engine_counts *out);

#endif
