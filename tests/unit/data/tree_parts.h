/* SPDX-License-Identifier: Apache-2.0 */
/* Objects, attributes and links of trees that the tests of changes edit. Needs cmocka. */
#ifndef UNIT_DATA_TREE_PARTS_H
#define UNIT_DATA_TREE_PARTS_H

#include <string.h>

#include <data/tree.h>

enum { ROOM = 16 }; /* attributes or links of an object that is added */

static inline uint32_t add(struct tree *t, enum object_kind kind)
{
	uint32_t number;
	assert_int_equal(tree_add(t, &number, NULL), 0);
	*tree_edit(t, number) = (struct object){.kind = kind};
	if (kind == OBJECT_GROUP) {
		struct object *o = tree_edit(t, number);
		o->group.links = arena_array(tree_arena(t), ROOM, sizeof(*o->group.links));
		o->group.links_ordered = true;
	}
	tree_edit(t, number)->attrs_ordered = true;
	tree_edit(t, number)->attrs = arena_array(tree_arena(t), ROOM, sizeof(struct attribute));
	return number;
}

static inline void remove_attr(struct tree *t, uint32_t number, uint32_t i)
{
	struct object *o = tree_edit(t, number);
	elems_release(&o->attrs[i].value);
	o->nattrs--;
	memmove(&o->attrs[i], &o->attrs[i + 1], (o->nattrs - i) * sizeof(*o->attrs));
}

static inline void remove_link(struct tree *t, uint32_t number, uint32_t i)
{
	struct object *o = tree_edit(t, number);
	o->group.nlinks--;
	memmove(&o->group.links[i], &o->group.links[i + 1],
		(o->group.nlinks - i) * sizeof(*o->group.links));
}

/* Removes an attribute and adds it again: the last one, then. */
static inline void move_attr(struct tree *t, uint32_t number, uint32_t i)
{
	struct object *o = tree_edit(t, number);
	const struct attribute a = o->attrs[i];
	memmove(&o->attrs[i], &o->attrs[i + 1], (o->nattrs - 1 - i) * sizeof(a));
	o->attrs[o->nattrs - 1] = a;
}

static inline void move_link(struct tree *t, uint32_t number, uint32_t i)
{
	struct object *o = tree_edit(t, number);
	const struct link l = o->group.links[i];
	remove_link(t, number, i);
	o->group.links[o->group.nlinks++] = l;
}

#endif
