/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What earlier versions of the program have left in PATH/1. This version neither changes nor
 * finishes it, and never deletes it: it tells a person what is there. A mount of the version that
 * has written it finishes it.
 */
#ifndef JOURNAL_EARLIER_H
#define JOURNAL_EARLIER_H

#include <journal/journal.h>

#define EARLIER_DRAFT                                                                              \
	"an earlier version of hsmount has written it, and only that version can commit it"
#define EARLIER_NOTES                                                                              \
	"notes of an earlier version of hsmount: what is to be deleted from the bucket when that " \
	"version mounts it"

struct journal_earlier {
	const struct journal_bucket *bucket;
	char id[JOURNAL_ID];
	bool is_draft; /* otherwise a file of notes about what is to be deleted */
	/* Of a draft, "" and 0 if they are not known. */
	const char *name;
	int64_t created_ns;
};
/* Calls fn for each draft, and for each file of notes, that no process has open. A result of fn
 * that is not 0 ends the list and is returned. */
typedef int journal_earlier_fn(void *ctx, const struct journal_earlier *item);
int journal_each_earlier(const char *path, journal_earlier_fn *fn, void *ctx, struct err *err);
/* The same for one bucket. Returns 0 or a negative errno. */
int journal_list_earlier(const struct journal *j, journal_earlier_fn *fn, void *ctx);

#endif
