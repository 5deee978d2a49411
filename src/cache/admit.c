/* SPDX-License-Identifier: Apache-2.0 */
/* See admit.h. The history is a direct-mapped table: a name may push out another one that is still
 * worth knowing, which then costs one more load before its chunk is main. */
#include "admit.h"

#include <stdlib.h>

bool admit_init(struct admit *a, uint64_t budget)
{
	*a = (struct admit){.budget = budget};
	a->history = calloc(ADMIT_HISTORY, sizeof(*a->history));
	return a->history;
}

void admit_release(struct admit *a)
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

uint64_t admit_hash(uint64_t owner, uint64_t dataset, uint64_t slot)
{
	return mix(mix(mix(owner) + dataset) + slot) | 1;
}

/* The low bit of a hash is always set. */
static struct admit_name *place_of(const struct admit *a, uint64_t hash)
{
	return &a->history[(hash >> 1) % ADMIT_HISTORY];
}

struct admit_use admit_loaded(struct admit *a, uint64_t hash, uint64_t bytes)
{
	struct admit_name *name = place_of(a, hash);
	bool known = name->hash == hash && a->clock - name->gone <= a->budget;
	a->clock += bytes;
	if (name->hash == hash)
		name->hash = 0;
	return (struct admit_use){.main = known, .loaded = a->clock, .used = a->clock};
}

void admit_first_used(struct admit *a, struct admit_use *use)
{
	use->loaded = use->used = a->clock;
}

void admit_used(struct admit *a, struct admit_use *use)
{
	use->main |= a->clock - use->loaded > a->budget / ADMIT_PERIOD_SHARE;
	use->used = a->clock;
}

void admit_gone(struct admit *a, uint64_t hash, const struct admit_use *use)
{
	if (!use->main)
		*place_of(a, hash) = (struct admit_name){.hash = hash, .gone = a->clock};
}

bool admit_is_stale(const struct admit *a, const struct admit_use *use)
{
	return (a->clock - use->used) / ADMIT_STALE > a->budget;
}

bool admit_new_gives_way(const struct admit *a, uint64_t new_bytes)
{
	return new_bytes > a->budget / ADMIT_NEW_SHARE;
}
