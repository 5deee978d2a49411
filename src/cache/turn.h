/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn it is to load, and what makes room for it. Room is made when a load begins, for its
 * peak, so that what is loaded and what is under way never exceed what the budget leaves to chunks.
 *
 * Readers' loads begin in the order in which they were asked for; while the first one does not
 * fit, none begins: a large chunk must not wait for ever behind small ones. One that is larger
 * than all the room there is begins when nothing else is under way and no chunk is held. (Where
 * others hold chunks without a break, it waits for TURN_PATIENCE of them and then begins.) Loads
 * ahead begin when no reader's load waits, as many side by side as the store takes.
 *
 * A chunk arrives in its reader's hands piece by piece. Where chunks are large, readers of several
 * would drive out each other's before the next piece is read, and load them again for each. So a
 * large load does not take the place of a chunk that was read a moment ago and not to its end; for
 * some time at most, after which it is the next one's turn. Who waits looks again by and by.
 */
#ifndef CACHE_TURN_H
#define CACHE_TURN_H

#include "entry.h"

enum {
	TURN_PATIENCE = 64,
	TURN_LARGE = 32,	  /* parts of the budget: a load of one is large */
	TURN_LOOK_NS = 25000000,  /* a reader whose load waits its turn */
	TURN_KEPT_NS = 100000000, /* after a read that did not come to the chunk's end */
};
#define TURN_KEPT_MAX_NS UINT64_C(2000000000) /* after it was loaded */

/* A call's time, and what it decides under the lock and does after it. */
struct todo {
	uint64_t now;
	struct cache_fill *first, **end; /* loads to start, in order */
	struct entry *victims;
};

void todo_init(struct todo *todo, const struct cache *c);
/* Without the lock: starts the loads and frees the victims. A load may complete before it returns
 * from its source, in this thread; what that makes room for is started here too, not within it. */
void todo_do(struct todo *todo, struct cache *c);

/* Begins what may begin. To be called when something was asked for, and when room came. */
void turn_locked(struct cache *c, struct todo *todo);
/* A load that its source gave up begins anew; it keeps its room. */
void turn_again_locked(struct cache *c, struct entry *e, struct todo *todo);
/* One thing less that an owner has to wait for; the owner may be gone once the lock is free. */
void turn_rest_locked(struct cache_owner *o);
/* A reader puts a chunk back, and has or has not come to its end. */
void turn_unheld_locked(struct cache *c, struct entry *e, bool done, uint64_t now);
/* Makes what is idle give way until the budget is kept. */
void turn_trim_locked(struct cache *c, struct todo *todo);
/* Bytes that loads ahead may take in all, read or not yet: half of what chunks have. */
uint64_t turn_ahead_share(const struct cache *c);

#endif
