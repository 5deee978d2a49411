/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of one draft in the journal, and its lock.
 *
 *   ID.new      is being made: without the guard of the bucket's directory, it is a leftover
 *   ID          holds a draft; a lock on its file `draft` says that a process has it open
 *   ID.dropped  is being deleted
 */
#ifndef OVERLAY_PLACE_H
#define OVERLAY_PLACE_H

#include <stdatomic.h>

#include <overlay/journal.h>

#include "header.h"
#include "spool.h"

#define PLACE_NEW     ".new"
#define PLACE_DROPPED ".dropped"
#define PLACE_ASIDE   "unreadable"
#define PLACE_WHY     "why" /* a file: why a draft is still there, or was set aside */

struct journal {
	const struct env *env;
	struct spool_room room;
	int root, version, dir; /* PATH, PATH/1, PATH/1/BUCKET */
	uint8_t boot[JOURNAL_BOOT];
	atomic_uint_fast64_t set_aside;
};

struct place {
	struct journal *j;
	char id[JOURNAL_ID];
	int dir, lock;
	int guard; /* from place_begin() to place_publish() */
};

/* A descriptor that keeps other processes and threads from making and listing drafts, until it is
 * closed; or a negative errno. */
int place_guard(const struct journal *j);
bool place_is_id(const char *name);

/* Makes ID.new with its description, and locks it. */
int place_begin(struct journal *j, const struct draft_about *about, struct place *p,
		struct err *err);
/* Gives ID.new its name. */
int place_publish(struct place *p, struct err *err);
/* Deletes ID.new instead. The caller closes p. */
void place_abandon(struct place *p);
/* Opens and locks ID. `bytes` holds the description, to which h points. -ENOENT; -EBUSY: it is
 * locked. -EBADMSG and -ENOTSUP as draft_header_decode(): p is open and locked. */
int place_open(struct journal *j, const char *id, struct place *p, uint8_t bytes[HEADER_SIZE],
	       struct header *h, struct err *err);
/* Replaces the description; durable: it survives a crash of the machine. */
int place_describe(struct place *p, const struct draft_about *about, bool durable, struct err *err);
/* Makes the names of the draft durable. */
int place_sync(const struct place *p, struct err *err);
/* Makes the names of files durable that the draft has got since. */
int place_sync_files(const struct place *p, struct err *err);
/* Notes a reason in the directory of an open place; NULL: there is none. A failure is ignored. */
void place_note_why(const struct place *p, const char *why);
/* Moves the directory of an open place to those that are unreadable, with a note why. */
int place_set_aside(struct place *p, const char *why, struct err *err);
/* Deletes the directory of an open place. */
int place_remove(struct place *p, struct err *err);
/* The same of a draft that an earlier process has left: its room is given back. */
int place_remove_left(struct place *p, struct err *err);
void place_close(struct place *p);

/* Deletes a directory and the files in it. 0 or a negative errno. */
int place_delete(int parent, const char *name);

#endif
