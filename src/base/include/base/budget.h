/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounts for all memory that is kept for a long time. There are two kinds of it.
 *
 * Metadata: trees (with the values of attributes) and plans of open files, the written ranges of
 * drafts, and what is known of names. Metadata may take half of the budget, or `metadata_min` bytes
 * if that is more. If a charge does not fit, the budget calls the holders to free metadata. If they
 * cannot free enough, the charge is refused. What is known of names may always be forgotten.
 *
 * Chunks: cached chunks, and chunks that are being loaded, at their peak. They may take what
 * metadata leaves of the budget, at least half of it. The cache decides what to load and what to
 * evict; the budget counts, and reports whether a load fits.
 *
 * The owner of metadata keeps a struct budget_charge with it. It calls budget_set() before it
 * allocates more, after it has freed some, and with 0 at the end. The owner of chunks calls
 * budget_fits(), then budget_take(), and later budget_return() with the same numbers.
 *
 * The total therefore never exceeds the larger of the budget and metadata_min plus half of the
 * budget, except for a single load that is larger than all that chunks may take.
 *
 * Any thread. The lock is held for arithmetic only, so callers may hold their own locks. The
 * holders' callbacks run without it.
 */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include <hsmount/err.h>

enum budget_use {
	BUDGET_TREES,
	BUDGET_PLANS,
	BUDGET_DRAFTS,
	BUDGET_NAMES,
	BUDGET_CHUNKS,
	BUDGET_LOADS,
	BUDGET_USES,
};

struct budget_limits {
	uint64_t bytes;
	uint64_t metadata_min;
	const char *option; /* name of the option that sets `bytes`, for messages; borrowed */
};

struct budget;
struct budget *budget_new(const struct budget_limits *limits); /* NULL if out of memory */
void budget_free(struct budget *b);			       /* all charges must be zero */

/* ---- metadata ---- */

/* The charge of one tree, plan or draft. It is unlimited if budget is NULL. */
struct budget_charge {
	struct budget *budget;
	enum budget_use use; /* BUDGET_TREES, BUDGET_PLANS or BUDGET_DRAFTS */
	uint64_t bytes;
};
/* Changes the charge to `bytes`. Fails with -ENOMEM if the increase does not fit; then the charge
 * is unchanged. A decrease never fails. Calls the holders, so the caller must not hold a lock that
 * they take. */
int budget_set(struct budget_charge *c, uint64_t bytes, struct err *err);
/* Returns how many more bytes of metadata fit, without a call of the holders. */
uint64_t budget_spare(struct budget *b);

/* Callbacks of a user of the budget. Either may be NULL. budget_set() calls them without the
 * budget's lock. No other thread may use the budget while a holder is added or removed. */
struct budget_holder {
	/* Called before a charge of metadata is refused, again and again while it returns true.
	 * Returns false if there is nothing to free. */
	bool (*free_metadata)(void *ctx);
	/* Called after the charge of metadata has changed, and with it the room for chunks; and by
	 * budget_trim(). */
	void (*room_changed)(void *ctx);
	void *ctx;
};
enum { BUDGET_HOLDERS = 6 };
void budget_add_holder(struct budget *b, const struct budget_holder *h);
void budget_remove_holder(struct budget *b, const void *ctx);

/* What a cache takes that can forget its oldest things at any time. The cache's lock guards it. The
 * budget is charged in steps, and no holder is called, so all calls are quick. */
struct budget_share {
	struct budget *budget; /* NULL if there is no limit */
	uint64_t limit, used;  /* bytes */
	uint64_t charged;      /* to BUDGET_NAMES, at least `used` */
};
/* Returns a share, which is one of so many parts of what metadata may take. */
struct budget_share budget_share_of(struct budget *b, unsigned int parts);
/* Adds n bytes. Returns false if they do not fit. The cache then forgets something and tries again,
 * or it forgets the new thing. */
bool budget_share_take(struct budget_share *s, uint64_t n);
void budget_share_return(struct budget_share *s, uint64_t n);
/* Returns how much the cache should keep, so that others get some room. For
 * budget_holder.free_metadata. */
uint64_t budget_share_less(const struct budget_share *s);

/* ---- chunks ---- */

/* Returns the bytes that chunks and loads may take now. */
uint64_t budget_room(struct budget *b);
/* Returns true if chunks and loads may take n more bytes. */
bool budget_fits(struct budget *b, uint64_t n);
/* Returns true if loads may take n more bytes: what chunks leave, or half of the room. In the
 * latter case chunks give way when the caller calls budget_trim() after budget_take(). */
bool budget_fits_loads(struct budget *b, uint64_t n);
/* Lets the holders give back what does not fit any more. The caller holds no lock that they take.
 */
void budget_trim(struct budget *b);
/* Adds or removes n bytes of BUDGET_CHUNKS or BUDGET_LOADS. budget_take() does not check whether
 * they fit: the caller decides. */
void budget_take(struct budget *b, enum budget_use use, uint64_t n);
void budget_return(struct budget *b, enum budget_use use, uint64_t n);

/* ---- reports ---- */

struct budget_stats {
	uint64_t limit, metadata_limit;
	uint64_t used[BUDGET_USES];
};
void budget_get_stats(struct budget *b, struct budget_stats *out);

#endif
