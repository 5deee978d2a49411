/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares an edited document with what it should be. What has changed is parsed and compared with
 * the tree. Everything else must be the same JSON as before, and must be parsed in the same way.
 * Pure.
 */
#include "edit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <data/tree_diff.h>

#include "extras.h"

/* ---- parts ---- */

/* Returns whether a part that was not changed has the same content in both documents. References
 * can be compared by their numbers, because both documents use the same numbers. */
static bool is_kept(const struct edit *e, const struct edit_parts *p, const struct edit_part *part,
		    const struct object *now, uint32_t i)
{
	if (p->links) {
		const struct link *a = &e->old.o.group.links[part->old];
		const struct link *b = &now->group.links[i];
		return a->cls == b->cls && a->target == b->target &&
		       edit_same_text(a->path, b->path) && edit_same_text(a->domain, b->domain);
	}
	const struct attribute *a = &e->old.o.attrs[part->old], *b = &now->attrs[i];
	return dtype_equal(a->type, b->type) && a->committed == b->committed &&
	       dspace_equal(&a->space, &b->space) &&
	       elems_diff(a->type, a->space.nelems, &a->value, &b->value, NULL) == a->space.nelems;
}

static int is_right(struct edit *e, const struct edit_parts *p, const struct edit_part *part,
		    const struct object *now, uint32_t i, bool *right)
{
	if (!part->change) {
		*right = is_kept(e, p, part, now, i);
		return 0;
	}
	if (!p->links)
		return edit_same_attribute(e, &now->attrs[i], &e->after->attrs[part->change->after],
					   right);
	const struct link l = edit_link(e, part);
	*right = edit_same_link(e, &now->group.links[i], &l);
	return 0;
}

/* ---- all parts ---- */

/* The name of a part, and either the part or its index in the new object. */
struct named {
	const char *name;
	const struct edit_part *part;
	uint32_t index;
};

static int compare_named(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* Lists the parts that the new document is expected to have, in a form that can be parsed, sorted
 * by name. */
static struct named *list_expected(const struct edit *e, const struct edit_parts *p, size_t *n)
{
	struct named *all = arena_array(e->arena, p->n + p->nadded + 1, sizeof(*all));
	*n = 0;
	for (size_t i = 0; all && i < p->n + p->nadded; i++) {
		const struct edit_part *part = i < p->n ? &p->parts[i] : &p->added[i - p->n];
		if (!part->gone && (part->change || part->old != UINT32_MAX))
			all[(*n)++] = (struct named){edit_part_name(e, p, part), part, 0};
	}
	if (all && *n > 1)
		qsort(all, *n, sizeof(*all), compare_named);
	return all;
}

static struct named *list_found(const struct edit *e, const struct edit_parts *p,
				const struct object *now, size_t *n)
{
	*n = p->links ? now->group.nlinks : now->nattrs;
	struct named *all = arena_array(e->arena, *n + 1, sizeof(*all));
	for (uint32_t i = 0; all && i < *n; i++)
		all[i] = (struct named){edit_name_in(now, p->links, i), NULL, i};
	if (all && *n > 1)
		qsort(all, *n, sizeof(*all), compare_named);
	return all;
}

static int check_content(struct edit *e, const struct edit_parts *p, const struct object *now)
{
	size_t n, found_n;
	bool right = true;
	int rc = 0;
	const struct named *want = list_expected(e, p, &n);
	const struct named *found = list_found(e, p, now, &found_n);
	if (!want || !found)
		return err_no_memory(e->err);
	if (n != found_n)
		return edit_differs(e, p->member);
	for (size_t i = 0; !rc && i < n; i++) {
		right = strcmp(want[i].name, found[i].name) == 0;
		if (right)
			rc = is_right(e, p, want[i].part, now, found[i].index, &right);
		if (!rc && !right)
			rc = edit_differs(e, p->member);
	}
	return rc;
}

/* Checks that the parts of p->order follow each other in this order in the new document. */
static int check_order(const struct edit *e, const struct edit_parts *p, const struct object *now)
{
	const uint32_t n = p->links ? now->group.nlinks : now->nattrs;
	size_t next = 0;
	for (uint32_t i = 0; i < n && next < p->norder; i++)
		if (strcmp(edit_part_name(e, p, p->order[next]), edit_name_in(now, p->links, i)) ==
		    0)
			next++;
	return next == p->norder ? 0 : edit_differs(e, p->member);
}

/* ---- JSON ---- */

/* Checks that members that stay are the same JSON as before, and that there are no more members
 * than expected. */
static int check_members(struct edit *e, const struct edit_parts *p, json_t *now)
{
	static const char *const created[] = {"created"};
	size_t n = p->nadded;
	for (size_t i = 0; i < p->n; i++) {
		const struct edit_part *part = &p->parts[i];
		json_t *v = json_object_get(now, part->at->name);
		bool same = true;
		int rc = 0;
		/* If a name occurs more than once, both JSON objects have only the value of its
		 * last member. */
		n += !part->gone;
		if (!part->gone && !part->change)
			rc = edit_same_json(e, part->json, v, created, part->retimed, &same);
		if (rc || !same)
			return rc ? rc : edit_differs(e, p->member);
	}
	return json_object_size(now) <= n ? 0 : edit_differs(e, p->member);
}

static int check_parts(struct edit *e, const struct edit_parts *p, const struct edit_document *now)
{
	int rc = check_members(e, p, json_object_get(now->json, p->member));
	if (!rc)
		rc = check_content(e, p, &now->o);
	return rc ? rc : check_order(e, p, &now->o);
}

/* ---- the document ---- */

static int check_shape(struct edit *e, const struct edit_document *now)
{
	static const char *const dims[] = {"dims", "maxdims"};
	const struct dataset *old = &e->old.o.dataset, *ds = &now->o.dataset;
	struct dspace want = old->space;
	bool same;
	const int rc = edit_same_json(e, json_object_get(e->old.json, "shape"),
				      json_object_get(now->json, "shape"), dims, 2, &same);
	if (rc)
		return rc;
	want.dims = e->after->dataset.space.dims;
	if (!same || want.rank != e->after->dataset.space.rank || !dspace_equal(&ds->space, &want))
		return edit_differs(e, "shape");
	/* The stored chunks keep their shape. */
	return grid_same_chunks(&old->grid, &ds->grid)
		       ? 0
		       : err_set(e->err, -EIO, "shape: the document has no shape of chunks");
}

int edit_check(struct edit *e, const struct edit_parts *attributes, const struct edit_parts *links,
	       const struct edit_document *now)
{
	const char *without[5] = {"lastModified"};
	size_t n = 1;
	bool same;
	int rc = 0;
	if (now->left_out > e->old.left_out)
		return edit_differs(e, "links and attributes");
	if (attributes->parts) {
		without[n++] = attributes->member;
		rc = check_parts(e, attributes, now);
	}
	if (!rc && links && links->parts) {
		without[n++] = links->member;
		rc = check_parts(e, links, now);
	}
	if (!rc && e->want->change->shape) {
		without[n++] = "shape";
		rc = check_shape(e, now);
	}
	if (!rc && (e->want->change->comment || e->want->change->user_block)) {
		without[n++] = SCHEMA_EXTRAS;
		rc = edit_check_extras(e, now);
	}
	if (!rc)
		rc = edit_same_json(e, e->old.json, now->json, without, n, &same);
	return rc || same ? rc : edit_differs(e, "members");
}
