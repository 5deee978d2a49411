/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbering of the elements of an array of chunks, and reading of its blocks: see chunk_array.h.
 *
 * A range of chunks is cut into boxes. So the next element of the range can be computed from any
 * element, and a block is skipped without a look at its elements.
 */
#include "chunk_array.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <base/checksum.h>
#include <h5/claims.h>

enum { VERSION = 0, FIXED_PREFIX = 6 };

/* ---- the range as boxes ---- */

/* Adds a box of coordinates, if it is not empty. */
static void add_box(struct chunk_array *a, const struct chunk_box *coords)
{
	const uint32_t rank = a->walk->grid->rank;
	struct chunk_box *box = &a->box[a->nboxes];
	for (uint32_t d = 0; d < rank; d++)
		if (coords->lo[d] > coords->hi[d])
			return;
	for (uint32_t i = 0; i < rank; i++) {
		box->lo[i] = coords->lo[a->dim[i]];
		box->hi[i] = coords->hi[a->dim[i]];
	}
	a->nboxes++;
}

/* Returns the box of all chunks with these coordinates in the first n dimensions. */
static struct chunk_box box_of(const struct chunk_array *a, const uint64_t *coords, uint32_t n)
{
	const struct grid *g = a->walk->grid;
	struct chunk_box box = {0};
	for (uint32_t d = 0; d < g->rank; d++) {
		box.lo[d] = d < n ? coords[d] : 0;
		box.hi[d] = d < n ? coords[d] : g->count[d] - 1;
	}
	return box;
}

/* Returns true if all coordinates after d are the first (or last) ones of their dimension. */
static bool at_border(const struct index_walk *w, const uint64_t *coords, uint32_t d, bool last)
{
	while (++d < w->grid->rank)
		if (coords[d] != (last ? w->grid->count[d] - 1 : 0))
			return false;
	return true;
}

/* Adds the chunks from `from` on (last false), or up to it (last true), that have its coordinates
 * up to dimension k. */
static void add_side(struct chunk_array *a, const uint64_t *from, uint32_t k, bool last)
{
	const struct grid *g = a->walk->grid;
	bool whole = at_border(a->walk, from, k, last);
	for (uint32_t j = k + 1; !whole && j < g->rank; j++) {
		struct chunk_box box = box_of(a, from, j);
		whole = at_border(a->walk, from, j, last);
		if (!last)
			box.lo[j] = from[j] + !whole;
		else if (whole || from[j] > 0)
			box.hi[j] = from[j] - !whole;
		else
			continue;
		add_box(a, &box);
	}
}

static void add_boxes(struct chunk_array *a)
{
	const struct index_walk *w = a->walk;
	uint32_t k = 0; /* the first dimension in which both ends differ, or the last one */
	while (k + 1 < w->grid->rank && w->lo[k] == w->hi[k])
		k++;
	const bool head = !at_border(w, w->lo, k, false), tail = !at_border(w, w->hi, k, true);
	struct chunk_box box = box_of(a, w->lo, k);
	box.lo[k] = w->lo[k] + head;
	box.hi[k] = w->hi[k] - tail; /* with a tail, w->hi[k] is larger than w->lo[k] */
	add_box(a, &box);
	add_side(a, w->lo, k, false);
	add_side(a, w->hi, k, true);
}

/* ---- elements ---- */

int array_init(struct chunk_array *a, const struct index_walk *w, const char *what,
	       uint32_t slowest, struct err *err)
{
	const uint32_t rank = w->grid->rank;
	uint64_t stride = 1;
	*a = (struct chunk_array){
		.walk = w, .what = what, .addr = w->layout->addr, .client = w->filtered};
	a->dim[0] = slowest;
	for (uint32_t i = 1; i < rank; i++)
		a->dim[i] = i <= slowest ? i - 1 : i;
	for (uint32_t i = rank; i-- > 0;) {
		const uint32_t d = a->dim[i];
		const uint64_t max = i ? w->space->max[d] : w->grid->dims[d];
		a->stride[i] = stride;
		if (!mul_u64(stride, div_up_u64(max, w->grid->chunk[d]), &stride))
			return err_set(err, -EOPNOTSUPP,
				       "%s: the maximum extent has more than 2^64 chunks", what);
	}
	add_boxes(a);
	for (uint32_t b = 0; b < a->nboxes; b++) {
		uint64_t element = 0;
		for (uint32_t i = 0; i < rank; i++)
			element += a->box[b].hi[i] * a->stride[i];
		a->needed = max_u64(a->needed, element + 1);
	}
	return 0;
}

/* Gets the digits of the first element in a box that is not before `element`. */
static bool next_in_box(const struct chunk_array *a, const struct chunk_box *box, uint64_t element,
			uint64_t *digits)
{
	const uint32_t rank = a->walk->grid->rank;
	uint32_t i;
	for (i = 0; i < rank; i++) {
		digits[i] = element / a->stride[i];
		element %= a->stride[i];
	}
	for (i = 0; i < rank && digits[i] >= box->lo[i] && digits[i] <= box->hi[i]; i++)
		;
	if (i < rank && digits[i] > box->hi[i]) {
		do {
			if (i-- == 0)
				return false;
		} while (digits[i] == box->hi[i]);
		digits[i++]++;
	}
	for (; i < rank; i++)
		digits[i] = box->lo[i];
	return true;
}

bool array_next(const struct chunk_array *a, uint64_t element, struct array_run *run)
{
	const uint32_t rank = a->walk->grid->rank;
	bool any = false;
	for (uint32_t b = 0; b < a->nboxes; b++) {
		uint64_t digits[DSPACE_MAX_RANK];
		if (!next_in_box(a, &a->box[b], element, digits))
			continue;
		struct array_run r = {.n = a->box[b].hi[rank - 1] - digits[rank - 1] + 1,
				      .step = a->walk->stride[a->dim[rank - 1]]};
		for (uint32_t i = 0; i < rank; i++) {
			r.element += digits[i] * a->stride[i];
			r.number += digits[i] * a->walk->stride[a->dim[i]];
		}
		if (!any || r.element < run->element)
			*run = r;
		any = true;
	}
	return any;
}

bool array_wanted(const struct chunk_array *a, uint64_t element, uint64_t end)
{
	struct array_run run;
	return array_next(a, element, &run) && run.element < end;
}

int array_entries(const struct chunk_array *a, uint64_t element, struct cursor entries,
		  struct err *err)
{
	const unsigned int size = index_entry_size(a->walk);
	const uint64_t end = element + cur_left(&entries) / size;
	struct array_run run;
	for (uint64_t at = element; at < end && array_next(a, at, &run); at = run.element + run.n) {
		if (run.element >= end)
			return 0;
		cur_skip(&entries, (size_t)(run.element - at) * size);
		const uint64_t n = min_u64(run.n, end - run.element);
		for (uint64_t i = 0; i < n; i++) {
			struct h5_chunk chunk = {.number = run.number + i * run.step};
			index_entry(a->walk, &entries, &chunk);
			int rc = index_found(a->walk, &chunk, err);
			if (rc)
				return rc;
		}
	}
	return 0;
}

/* ---- blocks ---- */

int array_damaged(const struct chunk_array *a, uint64_t addr, const char *why, struct err *err)
{
	return err_set(err, -EIO, "%s at %" PRIu64 ": %s", a->what, addr, why);
}

unsigned int array_prefix(const struct chunk_array *a)
{
	return FIXED_PREFIX + a->walk->f->addr_size;
}

int array_read(const struct chunk_array *a, uint64_t addr, uint64_t n, const char *magic,
	       uint8_t **raw, struct cursor *c, struct err *err)
{
	const struct h5_file *f = a->walk->f;
	if (n > ARRAY_MAX_BLOCK || n > h5_file_size(f))
		return array_damaged(a, addr, "the block is too large", err);
	*raw = malloc((size_t)n);
	if (!*raw)
		return err_set(err, -ENOMEM, "%s: out of memory", a->what);
	int rc = h5_file_read(f, addr, *raw, (size_t)n, err);
	if (rc)
		return err_wrap(err, rc, "%s at %" PRIu64, a->what, addr);
	*c = cursor_of(*raw, (size_t)n - ARRAY_CHECKSUM);
	if (magic) {
		const uint8_t *found = cur_bytes(c, 4);
		const uint8_t version = cur_u8(c), client = cur_u8(c);
		if (!cur_ok(c) || memcmp(found, magic, 4) != 0)
			return array_damaged(a, addr, "wrong signature", err);
		if (version != VERSION)
			return err_set(err, -EOPNOTSUPP, "%s: unsupported version %u", a->what,
				       version);
		if (client != a->client)
			return array_damaged(a, addr, "wrong client", err);
	}
	struct cursor sum = cursor_of(*raw + n - ARRAY_CHECKSUM, ARRAY_CHECKSUM);
	if (cur_u32(&sum) != checksum_lookup3(*raw, (size_t)n - ARRAY_CHECKSUM, 0))
		return array_damaged(a, addr, "wrong checksum", err);
	return h5_claim(f->claims, addr, n, a->what, err);
}

int array_owner(const struct chunk_array *a, uint64_t addr, struct cursor *c, struct err *err)
{
	const bool is_own = h5_cur_addr(a->walk->f, c) == a->addr;
	return is_own ? 0 : array_damaged(a, addr, "the block belongs to another array", err);
}
