/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses a sample of chunks. Each chunk has a rank, which is a hash of its dataset and number. So
 * the same domain always has the same sample, and every part of a dataset has the same chance. The
 * chunks with the lowest ranks are chosen. The ranks of the first and the last chunk of a dataset
 * are lower than those of the others. The memory does not depend on the number of chunks. The
 * functions are pure.
 */
#include "check.h"

#include <stdlib.h>

enum { PREFERRED = 32 /* bits by which the rank of a first or last chunk is lower */ };

/* The finalizer of MurmurHash3 distributes numbers evenly over 64 bits. */
static uint64_t rank_of(const struct check_chunk *chunk)
{
	uint64_t h = chunk->number * UINT64_C(0x9e3779b97f4a7c15) + chunk->dataset + 1;
	h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
	h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return h ^ h >> 33;
}

static int by_rank(const void *x, const void *y)
{
	const struct check_ranked *a = x, *b = y;
	return (a->rank > b->rank) - (a->rank < b->rank);
}

static int by_number(const void *x, const void *y)
{
	const struct check_chunk *a = x, *b = y;
	if (a->dataset != b->dataset)
		return a->dataset < b->dataset ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

static void keep_lowest(struct check_sample *s)
{
	qsort(s->chosen, s->n, sizeof(s->chosen[0]), by_rank);
	if (s->n > CHECK_SAMPLE)
		s->n = CHECK_SAMPLE;
}

static void end_dataset(struct check_sample *s)
{
	for (uint32_t i = 0; i < s->neach; i++) {
		struct check_ranked *r = &s->each[i];
		const uint64_t number = r->chunk.number;
		if (number == s->first.number || number == s->last.number)
			r->rank >>= PREFERRED;
		s->chosen[s->n++] = *r;
	}
	s->neach = 0;
	s->seen = 0;
	if (s->n >= 2 * CHECK_SAMPLE)
		keep_lowest(s);
}

/* Returns the index of the chunk with the highest rank that is neither the first nor the last one.
 */
static uint32_t worst(const struct check_sample *s)
{
	uint32_t found = 0;
	uint64_t rank = 0;
	for (uint32_t i = 0; i < s->neach; i++) {
		const uint64_t number = s->each[i].chunk.number;
		if (number == s->first.number || number == s->last.number || s->each[i].rank < rank)
			continue;
		found = i;
		rank = s->each[i].rank;
	}
	return found;
}

void check_sample_add(struct check_sample *s, const struct check_chunk *chunk)
{
	const struct check_ranked ranked = {.chunk = *chunk, .rank = rank_of(chunk)};
	if (s->seen && s->first.dataset != chunk->dataset)
		end_dataset(s);
	const bool is_end =
		s->seen == 0 || chunk->number < s->first.number || chunk->number > s->last.number;
	if (s->seen == 0 || chunk->number < s->first.number)
		s->first = *chunk;
	if (s->seen == 0 || chunk->number > s->last.number)
		s->last = *chunk;
	s->seen++;
	if (s->neach < CHECK_SAMPLE_EACH) {
		s->each[s->neach++] = ranked;
		return;
	}
	const uint32_t at = worst(s);
	if (is_end || ranked.rank < s->each[at].rank)
		s->each[at] = ranked;
}

uint32_t check_sample_take(struct check_sample *s, struct check_chunk *out)
{
	end_dataset(s);
	keep_lowest(s);
	for (uint32_t i = 0; i < s->n; i++)
		out[i] = s->chosen[i].chunk;
	qsort(out, s->n, sizeof(*out), by_number);
	return s->n;
}
