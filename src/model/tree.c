/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the objects that a bucket holds to the ones that a file shows: hard links to nothing are
 * dropped, orphans are left aside, and what is reachable is put in breadth-first order with its
 * reference counts. Cycles among groups are legal in HDF5; each object is entered once.
 */
#include <model/model.h>

#include <errno.h>

#include "model_internal.h"

static bool usable(const struct model *m, uint32_t number)
{
	return number < m->numbers && !m->objects[number].broken;
}

static void enqueue(struct model *m, uint32_t number)
{
	if (m->entries[number].linked)
		return;
	m->entries[number].linked = true;
	m->order[m->count++] = number;
}

static void drop_dangling(struct model *m, struct object *group)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < group->group.nlinks; i++) {
		struct link *link = &group->group.links[i];

		if (link->cls == LINK_HARD && !usable(m, link->target)) {
			char id[SCHEMA_ID_MAX];

			m->entries[link->target].missed = true;
			schema_id_format(&m->entries[link->target].id, id);
			model_note(m, "group %s: hard link \"%s\" left out: no usable object %s",
				   group->id, link->name, id);
			continue;
		}
		group->group.links[kept++] = *link;
	}
	group->group.nlinks = kept;
}

/* A committed type is shared only where it is really there and really the same. */
static void share_committed(struct model *m, uint32_t *committed, const struct dtype *type,
			    const char *id, const char *what)
{
	if (*committed == OBJECT_NONE)
		return;
	const struct model_object *target = usable(m, *committed) ? &m->objects[*committed] : NULL;

	if (!target || target->o.kind != OBJECT_DATATYPE ||
	    !dtype_equal(target->o.datatype, type)) {
		model_note(m, "object %s: %s: committed type %s, its own copy is used", id, what,
			   target ? "differs" : "is not there");
		*committed = OBJECT_NONE;
		return;
	}
	m->objects[*committed].refcount++;
	enqueue(m, *committed);
}

static void visit_object(struct model *m, uint32_t number)
{
	struct object *o = &m->objects[number].o;

	for (uint32_t i = 0; i < o->nattrs; i++)
		share_committed(m, &o->attrs[i].committed, o->attrs[i].type, o->id,
				o->attrs[i].name);
	if (o->kind == OBJECT_DATASET) {
		share_committed(m, &o->dataset.committed, o->dataset.type, o->id, "dataset");
	} else if (o->kind == OBJECT_GROUP) {
		drop_dangling(m, o);
		for (uint32_t i = 0; i < o->group.nlinks; i++) {
			const struct link *link = &o->group.links[i];

			if (link->cls != LINK_HARD)
				continue;
			m->objects[link->target].refcount++;
			enqueue(m, link->target);
		}
	}
}

int model_order(struct model *m, struct err *err)
{
	if (m->objects[0].o.kind != OBJECT_GROUP)
		return err_set(err, -EIO, "the root object is not a group");
	m->order = calloc(m->numbers, sizeof(*m->order));
	if (!m->order)
		return err_set(err, -ENOMEM, "no memory for %u objects", m->numbers);
	m->objects[0].refcount = 1;
	enqueue(m, 0);
	for (uint32_t i = 0; i < m->count; i++)
		visit_object(m, m->order[i]);
	for (uint32_t number = 0; number < m->numbers; number++)
		if (m->entries[number].missed)
			m->order[m->count + m->missed++] = number;
	return 0;
}
