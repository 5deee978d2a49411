/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one gate for memory. Everything that holds memory for long charges it here, by what it is:
 *
 *   metadata   trees (with the values of attributes) and plans of open files. They may take half of
 *              the budget, or `metadata_min` bytes where that is more. A charge beyond that is
 *              refused, after whoever can give memory back was asked to.
 *   chunks     chunks that are held, and loads under way at their peak. They get what metadata
 *              leaves of the budget, at least half of it. The cache decides what is loaded and what
 *              is evicted; the budget counts and says whether a load fits.
 *
 * The owner of metadata keeps a struct budget_charge beside it, and calls budget_set() before it
 * allocates more, after it has freed some, and with 0 at the end. The owner of chunks asks
 * budget_fits(), calls budget_take(), and later budget_return() with the same numbers.
 *
 * So all together never take more than the larger of the budget and metadata_min plus half of the
 * budget, but for a single load that is larger than all that chunks may take.
 *
 * Any thread. The lock is held for arithmetic only, and callers may hold locks of their own; the
 * callbacks of a holder run without it.
 */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include <hsmount/err.h>

enum budget_use {
	BUDGET_TREES,
	BUDGET_PLANS,
	BUDGET_CHUNKS,
	BUDGET_LOADS,
	BUDGET_USES,
};

struct budget_limits {
	uint64_t bytes;
	uint64_t metadata_min;
	const char *option; /* what sets `bytes`, for messages; borrowed */
};

struct budget;
struct budget *budget_new(const struct budget_limits *limits); /* NULL without memory */
void budget_free(struct budget *b);			       /* nothing is charged any more */

/* ---- metadata ---- */

/* What one tree or plan is charged for. `budget` NULL: without limit. */
struct budget_charge {
	struct budget *budget;
	enum budget_use use; /* BUDGET_TREES or BUDGET_PLANS */
	uint64_t bytes;
};
/* Sets the charge to `bytes`, of what c->budget counts. -ENOMEM: more than before does not fit, the
 * charge is what it was, and err says how much there is; less always fits. Calls the holders, so
 * not under a lock that they take. */
int budget_set(struct budget_charge *c, uint64_t bytes, struct err *err);

/* Somebody with memory to give. Added and removed while nobody else uses the budget. Either
 * function may be NULL. Both are called by budget_set(), without the budget's lock. */
struct budget_holder {
	/* Called before a charge of metadata is refused, again and again while it returns true: it
	 * has given metadata back. False: there is nothing that could be. */
	bool (*give)(void *ctx);
	/* Called after the charge of metadata has changed: chunks may take more or less. */
	void (*room_changed)(void *ctx);
	void *ctx;
};
enum { BUDGET_HOLDERS = 4 };
void budget_add_holder(struct budget *b, const struct budget_holder *h);
void budget_remove_holder(struct budget *b, const void *ctx);

/* ---- chunks ---- */

/* What chunks and loads may take now. */
uint64_t budget_room(struct budget *b);
/* Chunks and loads, and n bytes more, are within their room. */
bool budget_fits(struct budget *b, uint64_t n);
/* n bytes more, or less, of BUDGET_CHUNKS or BUDGET_LOADS. Takes them whether they fit or not: that
 * is for the caller to decide. */
void budget_take(struct budget *b, enum budget_use use, uint64_t n);
void budget_return(struct budget *b, enum budget_use use, uint64_t n);

/* ---- reports ---- */

struct budget_stats {
	uint64_t limit, metadata_limit;
	uint64_t used[BUDGET_USES];
};
void budget_get_stats(struct budget *b, struct budget_stats *out);

#endif
