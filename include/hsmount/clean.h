/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deletes what was left behind in a bucket: storage to which no domain leads, uploads in parts that
 * were never finished, and temporary files. For errors and threads, see engine.h.
 */
#ifndef HSMOUNT_CLEAN_H
#define HSMOUNT_CLEAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hsmount/engine.h>
#include <hsmount/err.h>

enum engine_clean_kind {
	ENGINE_CLEAN_STORAGE, /* of a domain that is gone, or of a commit that has failed */
	ENGINE_CLEAN_UPLOAD,  /* an upload in parts */
	ENGINE_CLEAN_TEMP,    /* a temporary file of a directory bucket */
	ENGINE_CLEAN_KINDS
};

struct engine_clean_item {
	enum engine_clean_kind kind;
	const char *key;	 /* of a storage: its prefix */
	uint64_t objects, bytes; /* of an upload: 1 and 0 */
	int64_t newest_ns;	 /* since the epoch; 0 if unknown */
	/* NULL if it is old enough to be deleted; otherwise why it stays. */
	const char *stays;
};

struct engine_clean_totals {
	uint64_t items[ENGINE_CLEAN_KINDS];
	uint64_t objects, bytes;
	uint64_t kept; /* that stay, or have been kept in the end */
};

/* No age is less than this: a commit that takes longer looks after its storage (import/import.h).
 */
#define ENGINE_CLEAN_AGE_MIN_S 3600

struct engine_clean {
	const char *prefix;	      /* only keys that begin with this; NULL or "" for all */
	uint64_t age_s;		      /* of the newest object, at least ENGINE_CLEAN_AGE_MIN_S */
	bool dry_run;		      /* nothing is written */
	const atomic_bool *cancelled; /* may be NULL; if true, stops with -ECANCELED */
	/* Called for all that was left behind. A result that is not 0 ends the call. */
	int (*item)(void *arg, const struct engine_clean_item *item);
	/* Called after all items, unless nothing is to be deleted, or with dry_run. Returns 1 if
	 * all of that is to be deleted, 0 if not, or a negative errno. */
	int (*ask)(void *arg, const struct engine_clean_totals *totals);
	/* Takes a line about something that is kept in the end. */
	void (*line)(void *arg, const char *line);
	/* Takes the number of names that were read, or of objects that were deleted; `total` is 0
	 * if it is not known. May be NULL. */
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};

/* Finds and deletes. *out says what was deleted; with dry_run, or without consent, what would be.
 * Nothing is deleted unless all names of the bucket could be read: fails with -EIO if one is
 * damaged, with -EACCES if one may not be read, and with other errors of the bucket. */
int engine_clean(struct engine *e, const struct engine_clean *opt, struct engine_clean_totals *out,
		 struct err *err);

#endif
