/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognising progressions: next in row order (stride 1), next plane, a time series at one point,
 * backwards. A stride has to be kept once before anything is loaded ahead (three chunks in
 * progression), so random access loads nothing in vain; only a reader that starts with chunks 0
 * and 1 is taken at its word. The depth then doubles with every step.
 *
 * Several threads read for one stream, so chunks arrive a little out of order, and rows of a
 * chunk grid are read many times over: going back a few steps of the progression changes nothing,
 * and skipping forward into what was already asked for is progress.
 */
#include "pattern.h"

#include <stddef.h>

enum {
	STEPS_BACK = 4, /* late arrivals, rows read again */
	DEPTH_MAX = 64,
	RUN_NEEDED = 2,
	RECENT = 4 * PATTERN_TRACKS, /* a track without a step for so long has ended */
};

static struct track *find(struct pattern *p, uint32_t dataset)
{
	struct track *oldest = &p->tracks[0];
	for (size_t i = 0; i < PATTERN_TRACKS; i++) {
		struct track *t = &p->tracks[i];
		if (t->used && t->dataset == dataset)
			return t;
		if (t->used < oldest->used)
			oldest = t;
	}
	*oldest = (struct track){.dataset = dataset};
	return oldest;
}

/* Chunk numbers are below 2^62, so their differences fit. */
static int64_t distance(uint64_t from, uint64_t to)
{
	return (int64_t)(to - from);
}

/* Steps of the progression from t->last to chunk, or 0 with *off when it does not lie on it. */
static int64_t steps(const struct track *t, uint64_t chunk, bool *off)
{
	int64_t d = distance(t->last, chunk);
	*off = d != 0 && (t->stride == 0 || d % t->stride != 0);
	return *off || d == 0 ? 0 : d / t->stride;
}

static void restart(struct track *t, uint64_t chunk)
{
	t->stride = distance(t->last, chunk);
	t->run = 1;
	t->depth = 0;
	t->ahead = 0;
	if (t->stride == 1 && t->last == 0)
		t->run = RUN_NEEDED;
}

static void advance(struct track *t, uint64_t n)
{
	t->run += t->run < RUN_NEEDED;
	t->ahead -= t->ahead < n ? t->ahead : n;
}

struct track *pattern_touch(struct pattern *p, uint32_t dataset, uint64_t chunk)
{
	struct track *t = find(p, dataset);
	if (t->used == 0) {
		t->used = ++p->clock;
		t->last = chunk;
		return NULL;
	}
	bool off = false;
	int64_t n = steps(t, chunk, &off);
	if (!off && n <= 0 && n >= -STEPS_BACK)
		return NULL;
	if (!off && n > 0 && (uint64_t)n <= t->ahead + 1)
		advance(t, (uint64_t)n);
	else
		restart(t, chunk);
	t->used = ++p->clock;
	t->last = chunk;
	if (t->run < RUN_NEEDED)
		return NULL;
	t->depth = t->depth ? t->depth * 2 : 1;
	if (t->depth > DEPTH_MAX)
		t->depth = DEPTH_MAX;
	return t;
}

uint64_t pattern_active(const struct pattern *p)
{
	uint64_t n = 0;
	for (size_t i = 0; i < PATTERN_TRACKS; i++) {
		const struct track *t = &p->tracks[i];
		n += t->used && t->run >= RUN_NEEDED && p->clock - t->used < RECENT;
	}
	return n ? n : 1;
}

bool pattern_next(const struct track *t, uint64_t nchunks, uint64_t limit, uint64_t *chunk)
{
	int64_t offset = 0;
	if (t->ahead >= t->depth || t->ahead >= limit ||
	    __builtin_mul_overflow(t->stride, (int64_t)t->ahead + 1, &offset))
		return false;
	*chunk = t->last + (uint64_t)offset;
	return offset < 0 ? *chunk < t->last : *chunk > t->last && *chunk < nchunks;
}

void pattern_asked(struct track *t)
{
	t->ahead++;
}
