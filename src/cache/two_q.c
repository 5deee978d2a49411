/* SPDX-License-Identifier: Apache-2.0 */
/* See two_q.h. The history is a direct-mapped table: a name may replace another one. The chunk of
 * the replaced name is not recognised when it is loaded again, so it becomes main later. */
#include "two_q.h"

#include <stdlib.h>

bool two_q_init(struct two_q *a, uint64_t budget)
{
	*a = (struct two_q){.budget = budget};
	a->history = calloc(TWO_Q_HISTORY, sizeof(*a->history));
	return a->history;
}

void two_q_release(struct two_q *a)
{
	free(a->history);
	a->history = NULL;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

uint64_t two_q_hash(uint64_t owner, uint64_t dataset, uint64_t slot)
{
	return mix(mix(mix(owner) + dataset) + slot) | 1;
}

/* The low bit of a hash is always set. */
static struct two_q_name *name_at(const struct two_q *a, uint64_t hash)
{
	return &a->history[(hash >> 1) % TWO_Q_HISTORY];
}

struct two_q_use two_q_loaded(struct two_q *a, uint64_t hash, uint64_t bytes)
{
	struct two_q_name *name = name_at(a, hash);
	bool known = name->hash == hash && a->clock - name->gone <= a->budget;
	a->clock += bytes;
	if (name->hash == hash)
		name->hash = 0;
	return (struct two_q_use){.main = known, .loaded = a->clock, .used = a->clock};
}

void two_q_first_used(struct two_q *a, struct two_q_use *use)
{
	use->loaded = use->used = a->clock;
}

void two_q_used(struct two_q *a, struct two_q_use *use)
{
	use->main |= a->clock - use->loaded > a->budget / TWO_Q_PERIOD_SHARE;
	use->used = a->clock;
}

void two_q_gone(struct two_q *a, uint64_t hash, const struct two_q_use *use)
{
	if (!use->main)
		*name_at(a, hash) = (struct two_q_name){.hash = hash, .gone = a->clock};
}

bool two_q_is_stale(const struct two_q *a, const struct two_q_use *use)
{
	return (a->clock - use->used) / TWO_Q_STALE > a->budget;
}

bool two_q_evicts_new(const struct two_q *a, uint64_t new_bytes)
{
	return new_bytes > a->budget / TWO_Q_NEW_SHARE;
}
