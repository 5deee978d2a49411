/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a load of a schema v2 domain is expected to find after this process has put documents. These
 * are the objects of the earlier load, with new documents in place of the old ones, without the
 * objects that were removed, and with those that were added.
 *
 * Objects that were removed, and objects to which no link led before, are not compared, because
 * they may be deleted at any time. But their texts are kept, because a listing may still show them.
 * Pure.
 */
#include "hsds2_load.h"

enum { EXPECTED_ARENA = 1 << 30 };

struct expectation {
	struct hsds_space *space;
	struct arena *arena;
	bool *compared; /* by number */
};

static int take_put(struct expectation *e, const struct schema_id *id, const struct schema_put *put)
{
	const struct hsds_entry entry = {.id = *id,
					 .etag = put->etag,
					 .text = put->text,
					 .text_len = put->text ? put->len : 0};
	uint32_t number = hsds_number(e->space, id);
	if (!put->etag) {
		if (number != OBJECT_NONE)
			e->compared[number] = false;
		return 0;
	}
	if (number != OBJECT_NONE) {
		e->space->entries[number] = entry;
	} else {
		number = e->space->n;
		if (hsds_space_add(e->space, e->arena, &entry))
			return -ENOMEM;
	}
	e->compared[number] = true;
	return 0;
}

static int take_earlier(struct expectation *e, const struct hsds_space *old)
{
	uint32_t n;
	const uint32_t *compared = hsds_compared(old, &n);
	int rc = 0;
	for (uint32_t i = 0; !rc && i < old->n; i++)
		rc = hsds_space_add(e->space, e->arena, &old->entries[i]);
	for (uint32_t i = 0; i < n; i++)
		e->compared[compared[i]] = true;
	e->space->base.listed_whole = old->base.listed_whole;
	e->space->listing_code = old->listing_code;
	e->space->has_missing = hsds_has_missing(old);
	return rc;
}

/* Lists the numbers of the objects that are compared, beginning with the root group. */
static int list_compared(struct expectation *e, uint32_t root)
{
	uint32_t *list = arena_array(e->arena, e->space->n, sizeof(*list));
	uint32_t n = 0;
	if (!list)
		return -ENOMEM;
	list[n++] = root;
	for (uint32_t i = 0; i < e->space->n; i++)
		if (e->compared[i] && i != root)
			list[n++] = i;
	e->space->compared = list;
	e->space->ncompared = n;
	return 0;
}

static int expect(struct hsds2_loader *l, struct hsds_space **out)
{
	const struct schema_load *load = &l->hsds.base.load;
	const struct hsds_space *old = load->puts_all ? NULL : l->hsds.previous;
	struct expectation e = {.arena = l->expected};
	struct schema_id id;
	const uint32_t room = load->nputs + (old ? old->n : 0);
	e.space = arena_alloc(e.arena, sizeof(*e.space));
	e.compared = arena_array(e.arena, room, sizeof(*e.compared));
	if (!e.space || !e.compared || hsds_space_reserve(e.space, e.arena, room))
		return -ENOMEM;
	e.space->root = l->hsds.space->root;
	e.space->base.listed_whole = load->puts_few;
	e.space->listing_code = load->puts_few ? 0 : -E2BIG;
	int rc = old ? take_earlier(&e, old) : 0;
	for (uint32_t i = 0; !rc && i < load->nputs; i++)
		if (schema_id_parse(load->puts[i].id, strlen(load->puts[i].id), &id) &&
		    hsds2_is_of_domain(l, &id))
			rc = take_put(&e, &id, &load->puts[i]);
	const uint32_t root = hsds_number(e.space, &e.space->root);
	if (rc || root == OBJECT_NONE)
		return rc;
	*out = e.space;
	return list_compared(&e, root);
}

int hsds2_expect(struct hsds2_loader *l, struct err *err)
{
	const struct schema_load *load = &l->hsds.base.load;
	struct hsds_space *space = NULL;
	if (!load->nputs || (!load->puts_all && !l->hsds.previous))
		return 0;
	l->expected = arena_new(EXPECTED_ARENA);
	const int rc = l->expected ? expect(l, &space) : -ENOMEM;
	if (!rc && space) {
		l->hsds.previous = space;
		return 0;
	}
	/* Without the root group, the puts belong to another domain, which had this path before. */
	arena_free(l->expected);
	l->expected = NULL;
	return rc ? err_set(err, rc, "out of memory") : 0;
}
