/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transposes arrays. The plan removes what needs no loop. Axes of length 1 are left out, and axes
 * that follow each other in both arrays become one. An axis that is innermost in both arrays
 * becomes part of the unit that is copied. If axes remain, the one that is innermost in the stored
 * array is not the one that is innermost in the decoded array. These two make up a matrix. It is
 * copied in tiles of one cache line in each direction, so that every line of both arrays is used as
 * a whole while it is in the cache. The loop over all other axes is around it. Pure.
 */
#include "transpose.h"

#include <string.h>

#include <base/mem.h>

enum { LINE = 64 /* bytes of a tile in each direction */, TILE_MIN = 4 };

void transpose_plan(struct transpose *t, size_t elem_size, uint32_t rank, const uint64_t *shape,
		    const uint32_t *order)
{
	size_t from[TRANSPOSE_MAX_RANK], size = elem_size;
	*t = (struct transpose){.unit = elem_size};
	for (uint32_t i = rank; i-- > 0; size *= (size_t)shape[order[i]])
		from[order[i]] = size;
	/* The loop goes from the innermost axis outwards, and collects axes at the end of t->axes.
	 */
	uint32_t first = rank;
	size = elem_size;
	for (uint32_t i = rank; i-- > 0; size *= (size_t)shape[i]) {
		const size_t n = (size_t)shape[i];
		if (n == 1)
			continue;
		if (first == rank && from[i] == t->unit)
			t->unit *= n;
		else if (first < rank && from[i] == t->axes[first].from * t->axes[first].n)
			t->axes[first].n *= n;
		else
			t->axes[--first] = (__typeof__(t->axes[0])){n, from[i], size};
	}
	t->rank = rank - first;
	memmove(t->axes, t->axes + first, t->rank * sizeof(t->axes[0]));
}

/* The position of one matrix in both arrays, counted over all axes but two. */
struct place {
	size_t index[TRANSPOSE_MAX_RANK];
	size_t from, to;
};

/* Moves to the next matrix. Returns false behind the last one. */
static bool next_place(const struct transpose *t, uint32_t inner, struct place *p)
{
	for (uint32_t i = t->rank - 1; i-- > 0;) {
		if (i == inner)
			continue;
		p->from += t->axes[i].from;
		p->to += t->axes[i].to;
		if (++p->index[i] < t->axes[i].n)
			return true;
		p->from -= t->axes[i].from * t->axes[i].n;
		p->to -= t->axes[i].to * t->axes[i].n;
		p->index[i] = 0;
	}
	return false;
}

/* A matrix. The units of a row are next to each other in the decoded array, those of a column in
 * the stored array. */
struct matrix {
	size_t unit, rows, columns;
	size_t from; /* bytes from one column to the next, stored */
	size_t to;   /* bytes from one row to the next, decoded */
};

static inline __attribute__((always_inline)) void copy_tile(const struct matrix *m, size_t unit,
							    uint8_t *to, const uint8_t *from,
							    size_t rows, size_t columns)
{
	for (size_t r = 0; r < rows; r++)
		for (size_t c = 0; c < columns; c++)
			memcpy(to + r * m->to + c * unit, from + c * m->from + r * unit, unit);
}

/* Copies a matrix. `unit` is m->unit. If it is a constant, the compiler makes a single instruction
 * of each copy. */
static inline __attribute__((always_inline)) void copy_matrix(const struct matrix *m, size_t unit,
							      uint8_t *to, const uint8_t *from)
{
	const size_t tile = unit < LINE / TILE_MIN ? LINE / unit : TILE_MIN;
	for (size_t r = 0; r < m->rows; r += tile) {
		const size_t rows = m->rows - r < tile ? m->rows - r : tile;
		for (size_t c = 0; c < m->columns; c += tile) {
			const size_t columns = m->columns - c < tile ? m->columns - c : tile;
			uint8_t *at = to + r * m->to + c * unit;
			const uint8_t *source = from + c * m->from + r * unit;
			if (rows == tile && columns == tile)
				copy_tile(m, unit, at, source, tile, tile);
			else
				copy_tile(m, unit, at, source, rows, columns);
		}
	}
}

static void copy_any_matrix(const struct matrix *m, uint8_t *to, const uint8_t *from)
{
	switch (m->unit) {
	case 1:
		copy_matrix(m, 1, to, from);
		break;
	case 2:
		copy_matrix(m, 2, to, from);
		break;
	case 4:
		copy_matrix(m, 4, to, from);
		break;
	case 8:
		copy_matrix(m, 8, to, from);
		break;
	case 16:
		copy_matrix(m, 16, to, from);
		break;
	default:
		copy_matrix(m, m->unit, to, from);
		break;
	}
}

void transpose_copy(const struct transpose *t, uint8_t *to, const uint8_t *from)
{
	/* The axis that is innermost in the stored array: its units are next to each other there.
	 * It is not the last one, which would be part of the unit then. */
	uint32_t inner = 0;
	for (uint32_t i = 1; i + 1 < t->rank; i++)
		if (t->axes[i].from < t->axes[inner].from)
			inner = i;
	const uint32_t last = t->rank - 1;
	const struct matrix m = {.unit = t->unit,
				 .rows = t->axes[inner].n,
				 .columns = t->axes[last].n,
				 .from = t->axes[last].from,
				 .to = t->axes[inner].to};
	struct place p = {0};
	do
		copy_any_matrix(&m, to + p.to, from + p.from);
	while (next_place(t, inner, &p));
}
