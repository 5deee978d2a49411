/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory in which drafts survive the daemon: see doc/JOURNAL.md.
 *
 *   PATH/2/BUCKET/bucket      the name of the bucket, for people
 *   PATH/2/BUCKET/ID/         a draft: draft, map, spool.0, …
 *   PATH/2/BUCKET/unreadable/ drafts that cannot be read, as they were
 *
 * Several processes may use one directory. A lock on each draft says that a process has it open.
 *
 * Any thread.
 */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include <base/env.h>

#define JOURNAL_VERSION "2" /* of the files: the name of the directory that has them */
enum { JOURNAL_ID = 17, JOURNAL_BOOT = 16, JOURNAL_DIGITS = 65 /* with the NUL */ };

struct journal_settings {
	/* Made with mode 0700 if it is missing; its parent must exist. A symbolic link, a directory
	 * of another owner, and one that others can access are refused. */
	const char *path;
	const char *bucket; /* identifies the bucket among those that share the directory */
	const char *name;   /* of the bucket, as a user writes it. NULL means `bucket` */
	/* Identifies the bucket instead of `bucket`: see journal_bucket. Then no directory is made,
	 * and a missing one is the error -ENOENT. */
	const char *digits;
	uint64_t spool_size; /* limit for the bytes of open drafts. 0 means half of the free
			      * space */
	/* JOURNAL_BOOT bytes that differ after the machine was started again. NULL means those of
	 * the kernel. */
	const uint8_t *boot;
};

struct journal;
/* Copies the strings. Fails with -EPERM if the directory is not private, and with errors of the
 * disk. */
int journal_open(const struct journal_settings *settings, const struct env *env,
		 struct journal **out, struct err *err);
/* All drafts must be closed. */
void journal_close(struct journal *j);

/* A bucket that has a directory in the journal. */
struct journal_bucket {
	const char *digits; /* the name of its directory */
	/* As in journal_settings. Both are "" if an older version of the program has not noted
	 * them. */
	const char *name, *bucket;
};
/* Calls fn for each bucket, in no order. Makes no directory. Fails with -ENOENT if there is no
 * journal, and with -EPERM if it is not private. A result of fn that is not 0 ends the list and is
 * returned. */
int journal_buckets(const char *path, int (*fn)(void *ctx, const struct journal_bucket *b),
		    void *ctx, struct err *err);

/* Returns whether `digits` are those of the bucket that journal_settings.bucket identifies. */
bool journal_is_of(const char *digits, const char *bucket);

struct journal_stats {
	uint64_t spool_size, spool_used; /* bytes */
	uint64_t spool_left;		 /* of spool_used: drafts that no mount has open */
	uint64_t set_aside;		 /* drafts that this process found unreadable */
};
void journal_get_stats(struct journal *j, struct journal_stats *out);

/* What a draft is for. */
enum draft_kind {
	DRAFT_NEW = 1, /* a file that did not exist */
	DRAFT_REPLACE, /* a file whose old bytes do not matter: it was truncated to nothing */
	DRAFT_CHANGE,  /* a file whose old bytes lie beneath */
};

enum { DRAFT_BENEATH_ID = 32 };

struct draft_about {
	enum draft_kind kind;
	const char *path;    /* in the bucket */
	const char *name;    /* in the mount */
	const char *version; /* of what is replaced or lies beneath; "" if there is nothing */
	uint64_t beneath;    /* size of what lies beneath; 0 unless the kind is DRAFT_CHANGE */
	int64_t created_ns;  /* since the epoch */
	/* Identifies what lies beneath, together with the version: it differs between images of a
	 * domain. Zeros mean that it is not known, or that the version suffices. */
	uint8_t beneath_id[DRAFT_BENEATH_ID];
	/* With beneath_id: the revision of the layout of an image (image/image.h). 0 means that it
	 * is not known. */
	uint32_t layout;
};

enum journal_state {
	JOURNAL_LEFT,	    /* no process has it open: it may be opened or dropped */
	JOURNAL_IN_USE,	    /* a process has it open */
	JOURNAL_LATER,	    /* a later version of the program has written it */
	JOURNAL_UNREADABLE, /* set aside, now or earlier; or the disk has failed */
};

struct journal_item {
	const char *id;
	enum journal_state state;
	/* NULL for JOURNAL_LATER, and for JOURNAL_UNREADABLE if it is not known. */
	const struct draft_about *about;
	const char *why; /* why it was not committed, or cannot be read; "" if nothing is noted */
};

/* Calls fn for each draft of the bucket, in no order, without a lock. Removes what an interrupted
 * draft_create() or draft_drop() has left behind, and sets aside drafts whose description cannot be
 * read. draft_open() finds other damage. A result of fn that is not 0 ends the list and is
 * returned. */
int journal_list(struct journal *j, int (*fn)(void *ctx, const struct journal_item *item),
		 void *ctx, struct err *err);
/* Deletes a draft that is JOURNAL_LEFT or JOURNAL_UNREADABLE. Fails with -ENOENT if there is none,
 * and with -EBUSY if a process has it open. */
int journal_drop(struct journal *j, const char *id, struct err *err);

#endif
