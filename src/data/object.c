/* SPDX-License-Identifier: Apache-2.0 */
/* Releases the memory that an object owns outside of the arena. */
#include <data/object.h>

void object_drop_attributes(struct object *o)
{
	for (uint32_t i = 0; i < o->nattrs; i++)
		elems_release(&o->attrs[i].value);
	o->nattrs = 0;
	o->attrs = NULL;
}

void object_release(struct object *o)
{
	object_drop_attributes(o);
	if (o->kind == OBJECT_DATASET)
		elems_release(&o->dataset.fill);
}
