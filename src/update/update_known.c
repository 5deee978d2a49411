/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datasets that are as in the image. They are neither read nor compared, so an update of a domain
 * takes time and memory for the datasets that have changed, and for groups and links.
 *
 * Header, dense storage and chunk index: programs often write them with the bytes that they have,
 * so written bytes are compared with those of the image. But if an earlier update has read the
 * dataset, its state in the base may be another one than that of the image: for example, that
 * update has stored a new attribute, and now the program removes it again. Then each written byte
 * counts as changed.
 *
 * Chunks, large attributes, and items of global heaps: each written byte counts as changed. To
 * compare them, data might have to be fetched. A program that overwrites a value of variable length
 * may leave the reference to it as it is, so both the references and the items count.
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

/* Returns 1 if the metadata of a dataset have changed, 0 if not, or a negative errno. `at` are its
 * slots, or zeros. */
static int is_metadata_changed(const struct update_known *k, const struct image_parts *p,
			       const struct image_layout *at, struct err *err)
{
	const struct byte_range parts[] = {p->header, p->dense, {at->index, at->index_end}};
	/* The base has the dataset as the image has it. */
	const uint32_t number = h5file_at(k->base->scan->file, p->header.start);
	const bool compares = number != OBJECT_NONE && scan_is_unread(k->base->scan, number);
	int rc = 0;
	for (size_t i = 0; !rc && i < sizeof(parts) / sizeof(parts[0]); i++)
		rc = compares ? since_image_is_changed(k->since, parts[i].start, parts[i].end, err)
			      : since_image_is_written(k->since, parts[i].start, parts[i].end);
	return rc;
}

/* Returns 1 if a dataset has changed, 0 if not, or a negative errno. */
static int is_changed(const struct update_known *k, const struct image_parts *p, struct err *err)
{
	struct image_layout at;
	if (!image_dataset_layout(k->base->image, p->number, &at))
		at = (struct image_layout){.slots = 0};
	if (since_image_is_written(k->since, p->large.start, p->large.end) ||
	    since_image_is_written(k->since, p->items.start, p->items.end) ||
	    since_image_is_written(k->since, at.addr, at.addr + at.bytes) ||
	    since_image_is_written(k->since, at.heap, at.heap_end))
		return 1;
	return is_metadata_changed(k, p, &at, err);
}

int update_is_known(void *known, uint64_t addr, struct err *err)
{
	const struct update_known *k = known;
	struct image_parts p;
	if (!image_parts_at(k->base->image, addr, &p))
		return 0;
	const struct object *o = &tree_object(domain_tree(k->base->domain), p.number)->o;
	if (o->kind != OBJECT_DATASET || has_committed(o))
		return 0;
	const int rc = k->since ? is_changed(k, &p, err) : 0;
	return rc < 0 ? rc : !rc;
}

/* The heaps with the items of attributes are not claimed: several objects use them. */
int update_claim_known(const struct update_base *b, struct scan *s, uint32_t number,
		       struct err *err)
{
	struct image_parts p;
	if (!image_parts_at(b->image, h5file_address(s->file, number), &p))
		return 0;
	struct image_layout at;
	if (!image_dataset_layout(b->image, p.number, &at))
		at = (struct image_layout){.slots = 0};
	const struct byte_range parts[] = {p.header,
					   p.dense,
					   p.large,
					   {at.index, at.index_end},
					   {at.addr, at.addr + at.bytes},
					   {at.heap, at.heap_end}};
	int rc = 0;
	for (size_t i = 0; !rc && i < sizeof(parts) / sizeof(parts[0]); i++) {
		const struct h5file_chunk bytes = {.addr = parts[i].start,
						   .size = parts[i].end - parts[i].start};
		if (parts[i].start < parts[i].end)
			rc = h5file_claim(s->file, &bytes, err);
	}
	return rc ? err_wrap(err, rc, "dataset %s", s->paths[number]) : 0;
}
