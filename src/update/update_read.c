/* SPDX-License-Identifier: Apache-2.0 */
/* Where the file and the base of the update have their chunks. */
#include "update_internal.h"

static int read_dataset(struct update *u, uint32_t now, struct err *err)
{
	const struct h5file_dataset *file = h5file_dataset(u->now->file, now);
	const uint32_t before = u->same[now];
	struct slots slots;
	const bool has_slots = file && slots_of(u->base, u->now->opened[now], &file->grid, &slots);
	int rc = chunk_set_read(u->now, now, has_slots ? &slots : NULL, &u->since, err);
	/* What an earlier update has not read of the base is as in the image. */
	if (!rc && before != OBJECT_NONE)
		rc = has_slots ? chunk_set_of_image(u->before, before, &slots, err)
			       : chunk_set_read(u->before, before, NULL, NULL, err);
	return rc;
}

int update_read_chunks(struct update *u, struct err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < tree_count(u->now->tree); i++) {
		const uint32_t now = tree_nth(u->now->tree, i);
		if (scan_is_unread(u->now, now))
			rc = update_claim_known(u->base, u->now, now, err);
		else if (tree_object(u->now->tree, now)->o.kind == OBJECT_DATASET)
			rc = read_dataset(u, now, err);
	}
	return rc ? rc : h5file_claims_check(u->now->file, err);
}

struct pair pair_of(struct update *u, uint32_t now)
{
	const uint32_t before = u->same[now];
	const struct dataset *ds = dataset_of(u->now, now);
	struct pair p = {.u = u,
			 .before = before,
			 .now = now,
			 .grid_before = &dataset_of(u->before, before)->grid,
			 .grid = &ds->grid,
			 .file = h5file_dataset(u->now->file, now),
			 .old = &u->before->chunks[before],
			 .new = &u->now->chunks[now],
			 .has_items = ds->type->has_vlen};
	p.has_slots = slots_of(u->base, u->now->opened[now], &p.file->grid, &p.slots);
	return p;
}
