/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal directory with the drafts of all its buckets. See hsmount/recover.h.
 */
#ifndef RECOVER_LEFT_DRAFTS_H
#define RECOVER_LEFT_DRAFTS_H

#include <hsmount/recover.h>

#include <base/env.h>
#include <base/str.h>
#include <overlay/draft.h>

struct engine_drafts {
	char *path;
	struct env env; /* with a budget of its own */
};

/* A draft in one of the buckets. */
struct recover_found {
	struct journal *journal; /* of the bucket */
	char id[JOURNAL_ID];
	char digits[JOURNAL_DIGITS];
	/* See struct journal_bucket. Both are "" if they are not known. */
	struct str name, identity;
};
/* Finds a draft by its id, or the beginning of it, and opens the journal of its bucket. */
int recover_find(struct engine_drafts *s, const char *id, struct recover_found *out,
		 struct err *err);
/* Also zeroes *f. */
void recover_found_release(struct recover_found *f);
#define auto_found __attribute__((cleanup(recover_found_release)))

/* A draft that can be read, or the reason why it cannot. */
struct recover_item {
	struct engine_draft_item item; /* its texts, except for `bucket`, are those below */
	enum draft_kind kind;	       /* 0 if it is not known */
	uint64_t mark;
	bool has_other_layout; /* see base_reader_has_other_layout() */
	bool has_plan; /* the commit of a domain that was changed in place was interrupted … */
	uint32_t operations, done; /* … and these of its operations were done */
	char id[JOURNAL_ID];
	struct str name, path, version, why;
};
void recover_item_release(struct recover_item *i);

/* Calls fn for each draft of a journal, in no order. fn releases the item, or keeps it. */
int recover_each(struct journal *j, int (*fn)(void *ctx, struct recover_item *item), void *ctx,
		 struct err *err);

/* ---- draft_bucket.c ---- */

/* Opens the bucket of a draft. The name of the bucket is that of the options, or else the one that
 * the journal has. For writing, `journal` is the path of the journal, which notes what is to be
 * deleted; for reading, it is NULL. Fails with -EINVAL if the name is not known, or names another
 * bucket. */
int recover_open_bucket(const struct recover_found *f, const struct engine_options *options,
			const char *journal, struct engine **out, struct err *err);

/* ---- read_draft.c ---- */

/* Says what can be done with a draft that cannot be opened. rc is the result of draft_open().
 * Returns rc, or -EBADMSG instead of -ENOENT. */
int recover_explain(const struct engine_drafts *s, const struct recover_found *f, int rc,
		    struct err *err);
/* Says the same of a draft if what lies beneath it has changed. Returns -ESTALE. */
int recover_explain_stale(const struct engine_drafts *s, const struct recover_found *f,
			  struct draft *d, struct err *err);

#endif
