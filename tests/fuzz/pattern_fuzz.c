/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: the number of grids less one (2 bits of a byte). For each grid: its rank (1 byte); for
 * each dimension, the logarithm of its count and an addend (1 byte each). Then touches of chunks: a
 * byte that selects the grid (2 bits) and how the operand after it selects the chunk. The operand
 * is the number of the chunk (8 bytes), its distance from the last chunk (1 byte), or n for the
 * n-th expected chunk (1 byte).
 *
 * Properties: no chunk outside the grid is expected; a track is returned if and only if the event
 * has one; after the next expected chunk is touched, the track continues as it predicted.
 */
#include <stdlib.h>

#include <base/cursor.h>

#include "prefetch/pattern.h"

enum { GRIDS = 4, RANK = 5, LOOK = 12 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

struct dataset {
	struct chunk_grid grid;
	uint64_t counts[RANK], last;
};

static void read_grid(struct cursor *in, struct dataset *d)
{
	unsigned int bits = 0;
	d->grid = (struct chunk_grid){.rank = cur_u8(in) % (RANK + 1), .counts = d->counts};
	for (unsigned int i = 0; i < d->grid.rank; i++) {
		unsigned int log = cur_u8(in) % (62 - bits);
		uint64_t more = cur_u8(in);
		d->counts[i] = (UINT64_C(1) << log) + more % (UINT64_C(1) << log);
		bits += log + (d->counts[i] > UINT64_C(1) << log);
		bits = bits > 61 ? 61 : bits;
	}
}

/* The next n chunks that a track expects. */
struct outlook {
	const struct track *track;
	uint64_t next[LOOK];
	unsigned int n;
};

static struct outlook look(const struct track *t, const struct dataset *d)
{
	const uint64_t far[] = {1000, UINT32_MAX, INT64_MAX, UINT64_MAX - 1, UINT64_MAX};
	const uint64_t chunks = chunk_grid_size(&d->grid);
	struct outlook o = {.track = t};
	while (o.n < LOOK && pattern_expect(t, &d->grid, o.n, &o.next[o.n]))
		require(o.next[o.n++] < chunks);
	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		uint64_t next = 0;
		if (pattern_expect(t, &d->grid, far[i], &next))
			require(next < chunks);
	}
	return o;
}

static void continues(const struct outlook *before, const struct outlook *now, uint64_t number)
{
	if (now->track != before->track || now->track->nest.newest != number)
		return;
	for (unsigned int i = 0; i < now->n && i + 1 < before->n; i++)
		require(now->next[i] == before->next[i + 1]);
}

static void touch(struct pattern *p, uint32_t dataset, struct dataset *d, uint64_t number,
		  struct outlook *o)
{
	struct track *t = NULL;
	enum pattern_event e = pattern_read(p, dataset, &d->grid, number, &t);
	const bool follows = e == PATTERN_FOLLOWS;
	struct outlook now = {0};
	require(e == PATTERN_REPEAT || (t != NULL) == (e != PATTERN_RANDOM));
	require(!t || (t->dataset == dataset && t >= p->tracks && t < p->tracks + PATTERN_TRACKS));
	if (t)
		now = look(t, d);
	if (o->track && o->n && number == o->next[0]) {
		require(e == PATTERN_FOLLOWS || e == PATTERN_REPEAT);
		if (e == PATTERN_FOLLOWS)
			continues(o, &now, number);
	}
	*o = follows ? now : (struct outlook){0};
	d->last = number;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor in = cursor_of(data, size);
	struct dataset d[GRIDS] = {0};
	struct outlook o[GRIDS] = {0};
	struct pattern *p = calloc(1, sizeof(*p));
	require(p != NULL);
	unsigned int grids = cur_u8(&in) % GRIDS + 1;
	for (unsigned int i = 0; i < grids; i++)
		read_grid(&in, &d[i]);
	while (cur_ok(&in) && cur_pos(&in) < size) {
		uint8_t what = cur_u8(&in);
		uint32_t i = (what & 3) % grids;
		uint64_t number = d[i].last, operand = 0;
		if ((what >> 2) % 3 == 0)
			number = cur_u64(&in);
		else
			operand = cur_u8(&in);
		if ((what >> 2) % 3 == 1)
			number += (uint64_t)(int64_t)(int8_t)operand;
		else if ((what >> 2) % 3 == 2 && o[i].n)
			number = o[i].next[operand % o[i].n];
		if (!cur_ok(&in))
			break;
		number %= chunk_grid_size(&d[i].grid);
		touch(p, i, &d[i], number, &o[i]);
		/* the touch may have replaced the track of another dataset */
		for (unsigned int k = 0; k < grids; k++)
			if (k != i && o[k].track && o[k].track->dataset != k)
				o[k] = (struct outlook){0};
	}
	free(p);
	return 0;
}
