/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of one draft in the journal, and its lock.
 *
 *   ID.new is being made; it is a leftover if nobody holds the guard of the bucket's directory
 *   ID          holds a draft; a lock on its file `draft` says that a process has it open
 *   ID.dropped  is being deleted
 */
#ifndef JOURNAL_DRAFT_DIR_H
#define JOURNAL_DRAFT_DIR_H

#include <stdatomic.h>

#include <journal/journal.h>

#include <journal/draft_header.h>
#include <journal/room.h>

#define DRAFT_DIR_NEW	  ".new"
#define DRAFT_DIR_DROPPED ".dropped"
#define DRAFT_DIR_ASIDE	  "unreadable"
#define DRAFT_DIR_WHY	  "why" /* a file: why a draft is still there, or was set aside */

struct journal {
	const struct env *env;
	struct room room;
	int root, version, dir;	     /* PATH, PATH/2, PATH/2/BUCKET */
	char digits[JOURNAL_DIGITS]; /* BUCKET */
	uint8_t boot[JOURNAL_BOOT];
	atomic_uint_fast64_t set_aside;
};

struct draft_dir {
	struct journal *j;
	char id[JOURNAL_ID];
	int fd, lock; /* the directory, and its file `draft` */
	int guard;    /* from draft_dir_begin() to draft_dir_publish() */
};

/* Returns a descriptor that keeps other processes and threads from making and listing drafts in the
 * directory of a bucket until it is closed, or a negative errno. */
int draft_dir_guard(int dir);
bool draft_dir_is_id(const char *name);
/* Makes a random id. */
void draft_dir_new_id(const struct env *env, char id[JOURNAL_ID]);

/* Makes ID.new with its description, and locks it. */
int draft_dir_begin(struct journal *j, const struct draft_about *about, struct draft_dir *p,
		    struct err *err);
/* Gives ID.new its name. */
int draft_dir_publish(struct draft_dir *p, struct err *err);
/* Deletes ID.new instead. The caller closes p. */
void draft_dir_abandon(struct draft_dir *p);
/* Opens and locks ID. `bytes` holds the description, to which h points. Fails with -ENOENT, or with
 * -EBUSY if ID is locked. After -EBADMSG and -ENOTSUP of draft_header_decode(), p is open and
 * locked all the same. */
int draft_dir_open(struct journal *j, const char *id, struct draft_dir *p,
		   uint8_t bytes[HEADER_SIZE], struct header *h, struct err *err);
/* Replaces the description. If `durable` is set, the new one survives a crash of the machine. */
int draft_dir_describe(struct draft_dir *p, const struct draft_about *about, bool durable,
		       struct err *err);
/* Makes the names of the draft durable. */
int draft_dir_sync(const struct draft_dir *p, struct err *err);
/* Makes the names of the files durable that the draft has got since. */
int draft_dir_sync_files(const struct draft_dir *p, struct err *err);
/* Notes in the directory of an open draft why the draft is still there. If `why` is NULL, an
 * earlier note is removed. A failure is ignored. */
void draft_dir_note_why(const struct draft_dir *p, const char *why);
/* Moves the directory of an open draft to those that are unreadable, and notes why. */
int draft_dir_set_aside(struct draft_dir *p, const char *why, struct err *err);
/* Deletes the directory of an open draft. */
int draft_dir_remove(struct draft_dir *p, struct err *err);
/* Does the same for a draft that an earlier process has left, and gives its room back. */
int draft_dir_remove_left(struct draft_dir *p, struct err *err);
void draft_dir_close(struct draft_dir *p);

/* Deletes a directory and the files in it. Returns 0 or a negative errno. */
int draft_dir_delete(int parent, const char *name);

#endif
