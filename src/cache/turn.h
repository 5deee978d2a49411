/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn it is to load, and what makes room for it. Room is made when a load begins, for its
 * peak, so that what is loaded and what is under way never exceed the budget together.
 *
 * Readers' loads begin in the order in which they were asked for; while the first one does not
 * fit, none begins: a large chunk must not wait for ever behind small ones. One that is larger
 * than all the room there is begins when nothing else is under way and no chunk is held. (Where
 * others hold chunks without a break, it waits for TURN_PATIENCE of them and then begins.) Loads
 * ahead begin when no reader's load waits, as many side by side as the store takes.
 */
#ifndef CACHE_TURN_H
#define CACHE_TURN_H

#include "entry.h"

enum { TURN_PATIENCE = 64 };

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
/* One thing less that an owner has to wait for; the owner may be gone once the lock is free. */
void turn_rest_locked(struct cache_owner *o);
/* A reader has put a chunk back. */
void turn_unheld_locked(struct cache *c);
/* Makes what is idle give way until the budget is kept. */
void turn_trim_locked(struct cache *c, struct todo *todo);
/* Bytes that loads ahead may take in all, read or not yet: half of what chunks have. */
uint64_t turn_ahead_share(const struct cache *c);

#endif
