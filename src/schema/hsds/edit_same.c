/* SPDX-License-Identifier: Apache-2.0 */
/* Names and values of links and attributes, in the trees and in the documents. See edit.h. Pure. */
#include "edit.h"

#include <errno.h>
#include <string.h>

#include <data/number.h>
#include <data/tree_diff.h>

/* ---- names and values ---- */

const char *edit_name_in(const struct object *o, bool links, uint32_t i)
{
	return links ? o->group.links[i].name : o->attrs[i].name;
}

const char *edit_part_name(const struct edit *e, const struct edit_parts *p,
			   const struct edit_part *part)
{
	return part->change ? edit_name_in(e->after, p->links, part->change->after) : part->name;
}

/* If the link leads to the same external file as before, the document keeps the name that it has
 * for this file. */
struct link edit_link(const struct edit *e, const struct edit_part *part)
{
	struct link l = e->after->group.links[part->change->after];
	const struct link *old = part->change->before == CHANGE_NONE
					 ? NULL
					 : &e->before->group.links[part->change->before];
	if (old && part->old != UINT32_MAX && l.cls == LINK_EXTERNAL && old->cls == LINK_EXTERNAL &&
	    strcmp(l.domain, old->domain) == 0 &&
	    e->old.o.group.links[part->old].cls == LINK_EXTERNAL)
		l.domain = e->old.o.group.links[part->old].domain;
	return l;
}

/* ---- comparison ---- */

/* Returns the number in e->ids of an object of the tree `after`, or OBJECT_NONE. */
static uint32_t number_of(const struct edit *e, uint32_t number)
{
	const struct object *o = schema_emit_target(e->want->after, (uint64_t)number + 1);
	struct schema_id id;
	if (number == OBJECT_NONE || !o || !schema_id_parse(o->id, strlen(o->id), &id))
		return OBJECT_NONE;
	return hsds_number(&e->ids, &id);
}

static int note_reference(void *ctx, const struct dtype *t, uint8_t *slot, struct err *err)
{
	struct edit *e = ctx;
	(void)err;
	if (t->reference.kind != DTYPE_REF_OBJECT)
		return 0;
	const uint64_t ref = number_get_int(slot, DTYPE_OBJREF_SIZE, false);
	if (ref > 0 && ref <= tree_numbers(e->want->after))
		e->map[ref - 1] = number_of(e, (uint32_t)(ref - 1));
	return 0;
}

/* Fills in e->map for the objects to which a value refers. */
static int note_references(struct edit *e, const struct attribute *a)
{
	const struct elems_visitor v = {.reference = note_reference, .ctx = e};
	const uint32_t n = tree_numbers(e->want->after);
	if (!a->type->has_ref)
		return 0;
	if (!e->map) {
		e->map = arena_array(e->arena, n, sizeof(*e->map));
		if (!e->map)
			return err_no_memory(e->err);
		memset(e->map, 0xff, n * sizeof(*e->map));
	}
	return elems_visit(a->type, a->value.fixed.data, a->value.fixed.len / a->type->size,
			   a->value.heap.data, a->value.heap.len, &v, e->err);
}
_Static_assert(OBJECT_NONE == UINT32_MAX, "the bytes of a map of no objects");

int edit_same_attribute(struct edit *e, const struct attribute *doc, const struct attribute *after,
			bool *same)
{
	const int rc = note_references(e, after);
	*same = !rc && dtype_equal(doc->type, after->type) &&
		doc->committed == number_of(e, after->committed) &&
		dspace_equal(&doc->space, &after->space) &&
		elems_diff(after->type, after->space.nelems, &after->value, &doc->value, e->map) ==
			after->space.nelems;
	return rc;
}

bool edit_same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool edit_same_link(const struct edit *e, const struct link *doc, const struct link *after)
{
	if (doc->cls != after->cls)
		return false;
	if (doc->cls == LINK_HARD)
		return doc->target == number_of(e, after->target);
	return edit_same_text(doc->path, after->path) && edit_same_text(doc->domain, after->domain);
}

/* ---- documents ---- */

int edit_find_one(struct edit *e, const struct splice_object *o, const char *name,
		  const struct splice_member **out)
{
	size_t count;
	*out = splice_find(o, name, &count);
	return count > 1 ? err_set(e->err, -EIO, "%s: the document has it twice", name) : 0;
}

int edit_differs(const struct edit *e, const char *member)
{
	return err_set(e->err, -EIO, "%s: the document has an unusual form", member);
}

int edit_same_json(struct edit *e, json_t *a, json_t *b, const char *const *without, size_t n,
		   bool *same)
{
	auto_json json_t *x = json_copy(a), *y = json_copy(b);
	if ((a && !x) || (b && !y))
		return err_no_memory(e->err);
	for (size_t i = 0; i < n; i++) {
		json_object_del(x, without[i]);
		json_object_del(y, without[i]);
	}
	*same = json_equal(x, y);
	return 0;
}
