/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chunks of a dataset in one state of the file.
 *
 * A file that was made from the image has most of its chunk indexes as the image has them. Such
 * parts are not read: they are runs of slots. The others are read, and give records. So a set takes
 * memory for what has changed. The index of a new dataset is read as a whole.
 *
 * All that the file has is claimed: the nodes that were read, the chunks of their records, and the
 * nodes and slots of the runs. Therefore h5file_claims_check() finds structures that share bytes.
 */
#include "update_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <base/checksum.h>

struct reading {
	struct scan *s;
	struct chunk_set *out;
	const struct slots *slots;	 /* or NULL */
	const struct since_image *since; /* with slots */
	bool is_sorted;
};

/* ---- the lists ---- */

/* Makes room for one more element of `size` bytes, and charges the budget for it. */
static int grow(struct scan *s, void **v, size_t n, size_t *room, size_t size, struct err *err)
{
	const size_t more = *room ? *room : 4;
	if (n < *room)
		return 0;
	int rc = budget_set(&s->charge, s->charge.bytes + more * size, err);
	if (rc)
		return rc;
	void *bigger = reallocarray(*v, *room + more, size);
	if (!bigger)
		return err_no_memory(err);
	*v = bigger;
	*room += more;
	return 0;
}

/* Adds a run. Runs come in order, and neighbours are joined. */
static int add_run(struct scan *s, struct chunk_set *set, uint64_t first, uint64_t end,
		   struct err *err)
{
	if (set->nruns && set->runs[set->nruns - 1].end == first) {
		set->runs[set->nruns - 1].end = end;
		return 0;
	}
	void *v = set->runs;
	const int rc = grow(s, &v, set->nruns, &set->runs_room, sizeof(*set->runs), err);
	set->runs = v;
	if (!rc)
		set->runs[set->nruns++] = (struct slot_run){first, end};
	return rc;
}

static uint64_t hash_of(const uint8_t *data, uint64_t n)
{
	const uint32_t low = checksum_lookup3(data, (size_t)n, 0);
	return (uint64_t)checksum_lookup3(data, (size_t)n, low + 1) << 32 | low;
}

struct chunk_record chunk_record_of(const struct h5file_chunk *chunk)
{
	return (struct chunk_record){
		.number = chunk->number,
		.addr = chunk->data ? hash_of(chunk->data, chunk->size) : chunk->addr,
		.size = chunk->size,
		.mask = chunk->filter_mask,
	};
}

static int take(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct reading *r = ctx;
	struct chunk_set *set = r->out;
	void *v = set->v;
	const int rc = grow(r->s, &v, set->n, &set->room, sizeof(*set->v), err);
	set->v = v;
	if (rc)
		return rc;
	if (set->n && chunk->number <= set->v[set->n - 1].number)
		r->is_sorted = false;
	set->v[set->n++] = chunk_record_of(chunk);
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct chunk_record *x = a, *y = b;
	return x->number < y->number ? -1 : x->number > y->number;
}

int chunk_records_sort(struct chunk_record *v, size_t n, struct err *err)
{
	if (n)
		qsort(v, n, sizeof(*v), compare);
	for (size_t i = 1; i < n; i++)
		if (v[i].number == v[i - 1].number)
			return err_set(err, -EIO, "its index names chunk %" PRIu64 " twice",
				       v[i].number);
	return 0;
}

/* ---- the index of the image ---- */

static int is_changed(void *ctx, uint64_t start, uint64_t end, struct err *err)
{
	return since_image_is_changed(((struct reading *)ctx)->since, start, end, err);
}

static void find_offset(void *ctx, uint64_t slot, uint64_t *offset)
{
	const struct slots *s = ((struct reading *)ctx)->slots;
	grid_coords(s->grid, slots_chunk(s, slot), offset);
	for (uint32_t i = 0; i < s->grid->rank; i++)
		offset[i] *= s->grid->chunk[i];
}

static int take_run(void *ctx, uint64_t first, uint64_t end, struct err *err)
{
	struct reading *r = ctx;
	struct h5file_chunk all = {.size = 0};
	uint64_t stop, ignored;
	slots_range(r->slots, first, &all.addr, &ignored);
	slots_range(r->slots, end - 1, &ignored, &stop);
	all.size = stop - all.addr;
	if (stop > r->s->source.size)
		return err_set(err, -EIO,
			       "chunks %" PRIu64 " to %" PRIu64 " are outside of the file",
			       slots_chunk(r->slots, first), slots_chunk(r->slots, end - 1));
	const int rc = h5file_claim(r->s->file, &all, err);
	return rc ? rc : add_run(r->s, r->out, first, end, err);
}

static int keep_chunk(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	*(struct h5file_chunk *)ctx = *chunk;
	return 0;
}

/* Returns 1 if contiguous data are where the image has them, 0 if not, or a negative errno. */
static int is_in_place(const struct reading *r, uint32_t number, struct err *err)
{
	const uint64_t n = r->slots->at.slots;
	struct h5file_chunk first = {.size = 0}, last = {.size = 0};
	if (r->slots->at.index != UINT64_MAX ||
	    h5file_dataset(r->s->file, number)->grid.nchunks != n)
		return 0;
	int rc = h5file_chunks(r->s->file, number, 0, 1, keep_chunk, &first, err);
	if (!rc)
		rc = h5file_chunks(r->s->file, number, n - 1, n, keep_chunk, &last, err);
	if (rc)
		return rc;
	return first.size && last.size && first.addr == r->slots->at.addr &&
	       last.addr + last.size == r->slots->at.addr + r->slots->at.bytes;
}

/* ---- reading ---- */

static int read_index(struct reading *r, uint32_t number, struct err *err)
{
	struct h5file_index known = {
		.is_changed = is_changed, .offset = find_offset, .run = take_run, .ctx = r};
	const bool has_index = r->slots && r->slots->at.index != UINT64_MAX;
	const uint64_t reads = r->s->source.reads;
	if (has_index) {
		known.addr = r->slots->at.index;
		known.n = r->slots->at.slots;
	}
	int rc = h5file_claim_chunks(r->s->file, number, has_index ? &known : NULL, take, r, err);
	r->s->nodes += r->s->source.reads - reads; /* a node is one read */
	if (!rc && !r->is_sorted)
		rc = chunk_records_sort(r->out->v, r->out->n, err);
	return rc;
}

static int read_contiguous(struct reading *r, uint32_t number, struct err *err)
{
	const int same = r->slots ? is_in_place(r, number, err) : 0;
	if (same <= 0)
		return same ? same : read_index(r, number, err);
	return add_run(r->s, r->out, 0, r->slots->at.slots, err);
}

int chunk_set_read(struct scan *s, uint32_t number, const struct slots *slots,
		   const struct since_image *since, struct err *err)
{
	const struct h5file_dataset *file = h5file_dataset(s->file, number);
	const struct dataset *ds = &tree_object(s->tree, number)->o.dataset;
	struct reading r = {.s = s,
			    .out = &s->chunks[number],
			    .slots = slots,
			    .since = since,
			    .is_sorted = true};
	if (r.out->is_read)
		return 0;
	r.out->is_read = true;
	if (!file || !file->grid.nchunks || ds->raw != RAW_STORED)
		return 0;
	const int rc = file->layout == LAYOUT_CONTIGUOUS ? read_contiguous(&r, number, err)
							 : read_index(&r, number, err);
	return rc ? err_wrap(err, rc, "dataset %s", s->paths[number]) : 0;
}

int chunk_set_of_image(struct scan *s, uint32_t number, const struct slots *slots, struct err *err)
{
	struct chunk_set *set = &s->chunks[number];
	if (set->is_read)
		return 0;
	set->is_read = true;
	return add_run(s, set, 0, slots->at.slots, err);
}

void chunk_set_release(struct chunk_set *set)
{
	free(set->runs);
	free(set->v);
	free(set->versions.v);
}

/* ---- finding ---- */

struct chunk_record *chunk_set_find(const struct chunk_set *set, uint64_t number)
{
	const struct chunk_record key = {.number = number};
	return set->n ? bsearch(&key, set->v, set->n, sizeof(*set->v), compare) : NULL;
}

bool chunk_set_has_slot(const struct chunk_set *set, uint64_t slot)
{
	size_t low = 0, high = set->nruns;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (set->runs[middle].end <= slot)
			low = middle + 1;
		else
			high = middle;
	}
	return low < set->nruns && set->runs[low].first <= slot;
}
