/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that list, look up and read what other programs have put into the bucket: Zarr stores of
 * both versions, with and without consolidated metadata, domains, folders and plain objects. A
 * foreign writer makes, changes and removes them key by key, without conditions. Because there is
 * one writer, it is known what was there at each moment. So all that a program sees is judged by
 * itself: it must have been so at a moment of the call, or of an earlier call whose answer the
 * engine may have kept (DETAILS.md, "Freshness").
 *
 * Beside these there are many stores and domains that never change, and objects of schema v1 in the
 * root, so that engines list all keys, or ranges of them. The pages of some services are short.
 *
 * To some engines the bucket refuses what is below the keys of the folder `vault`, or only to list
 * it (DETAILS.md, "Names").
 */
#ifndef SIM_STORES_H
#define SIM_STORES_H

#include <base/str.h>

#include "player.h"
#include "stores_keys.h"

enum { STORES_PERIODS = 64, STORES_CALLS = 1024 };

/* What was so, and when. The periods are in order, and two of them meet in a change. */
struct stores_fact {
	struct {
		uint16_t value;
		uint64_t from, until;
	} periods[STORES_PERIODS];
	unsigned int n;
};

struct stores_call {
	unsigned int engine;
	const char *listed; /* a directory; or NULL */
	uint64_t begin, begin_ns, end_ns;
	bool has_ended;
};

struct stores {
	struct store *bucket;
	uint64_t seed;
	bool has_short_pages; /* so the root is listed in ranges */
	pthread_mutex_t lock; /* of the writer */
	bool is_set_up;
	unsigned int keys[STORES_PLACES]; /* bit i: the i-th key is there */
	uint16_t values[STORES_PLACES][STORES_KEYS];
	uint16_t nvalues;
	unsigned int changes[STORES_PLACES]; /* begun and ended */
	struct stores_fact facts[STORES_PLACES][STORES_FACTS];
	struct stores_call calls[STORES_CALLS]; /* the latest ones */
	unsigned int ncalls;
	struct {
		unsigned int faults; /* requests that have failed */
		uint64_t at_ns;	     /* when that was seen */
	} engines[ENGINES_MAX];
	/* Of the files that never change: of stores, and of domains; 0: not known yet. */
	uint64_t sizes[2];
	unsigned int acts; /* of the last part that was judged */
	struct str faults; /* what is wrong, a line each */
};

struct stores *stores_new(struct store *bucket, uint64_t seed, bool has_short_pages);
void stores_free(struct stores *p); /* p may be NULL */
/* Runs the foreign writer, or a program of an engine. Returns the first error that does not tell
 * what others have done. */
int stores_run(struct stores *p, struct player *by, struct err *err);
/* Judges the end of a part of a history, and begins the next one. e: an engine that has seen
 * nothing of it. */
void stores_check(struct stores *p, struct engine *e, struct scheduler *s);

#endif
