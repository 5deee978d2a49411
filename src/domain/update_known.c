/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datasets that are as in the image, because no program has written to any byte of them. They are
 * neither read nor compared, so an update of a domain takes time and memory for the datasets that
 * have changed, and for groups and links.
 *
 * Bytes that a program has written with the same value count as written. The reason is data of
 * variable length: a program that overwrites such a value may leave the reference to it as it is.
 *
 * A dataset that uses a committed datatype is always read, because it keeps the datatype in the
 * domain even if no link leads to the datatype.
 */
#include "update_internal.h"

static bool has_committed(const struct object *o)
{
	for (uint32_t i = 0; i < o->nattrs; i++)
		if (o->attrs[i].committed != OBJECT_NONE)
			return true;
	return o->dataset.committed != OBJECT_NONE;
}

static bool is_written(const struct update_known *k, uint64_t start, uint64_t end)
{
	return k->opt && start < end && k->opt->next_replaced(k->opt->ctx, start, end) < end;
}

static bool has_written_data(const struct update_known *k, uint32_t number)
{
	struct update_slots at;
	if (!k->base->image.slots(k->base->image.ctx, number, &at) || at.n == 0)
		return false;
	if (at.index != UINT64_MAX && is_written(k, at.index, at.index_end))
		return true;
	return is_written(k, at.addr, at.addr + at.bytes) || is_written(k, at.items, at.items_end);
}

bool update_is_known(void *known, uint64_t addr)
{
	const struct update_known *k = known;
	struct update_parts p;
	if (!k->base->image.parts(k->base->image.ctx, addr, &p))
		return false;
	const struct object *o = &tree_object(domain_tree(k->base->domain), p.number)->o;
	return o->kind == OBJECT_DATASET && !has_committed(o) &&
	       !is_written(k, p.header.start, p.header.end) &&
	       !is_written(k, p.dense.start, p.dense.end) &&
	       !is_written(k, p.large.start, p.large.end) &&
	       !is_written(k, p.items.start, p.items.end) && !has_written_data(k, p.number);
}

static int claim(struct scan *s, uint64_t start, uint64_t end, struct err *err)
{
	const struct h5file_chunk bytes = {.addr = start, .size = end - start};
	return start < end ? h5file_claim(s->file, &bytes, err) : 0;
}

static int claim_data(const struct update_base *b, struct scan *s, uint32_t dataset,
		      struct err *err)
{
	struct update_slots at;
	if (!b->image.slots(b->image.ctx, dataset, &at) || at.n == 0)
		return 0;
	int rc = at.index == UINT64_MAX ? 0 : claim(s, at.index, at.index_end, err);
	if (!rc)
		rc = claim(s, at.addr, at.addr + at.bytes, err);
	return rc ? rc : claim(s, at.items, at.items_end, err);
}

/* The heaps with the items of attributes are not claimed: several objects use them. */
int update_claim_known(const struct update_base *b, struct scan *s, uint32_t number,
		       struct err *err)
{
	struct update_parts p;
	if (!b->image.parts(b->image.ctx, h5file_address(s->file, number), &p))
		return 0;
	int rc = claim(s, p.header.start, p.header.end, err);
	if (!rc)
		rc = claim(s, p.dense.start, p.dense.end, err);
	if (!rc)
		rc = claim(s, p.large.start, p.large.end, err);
	if (!rc)
		rc = claim_data(b, s, p.number, err);
	return rc ? err_wrap(err, rc, "dataset %s", s->paths[number]) : 0;
}
