/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of a domain: what they own outside of their arena. */
#include <data/object.h>

void object_release(struct object *o)
{
	for (uint32_t i = 0; i < o->nattrs; i++)
		elems_release(&o->attrs[i].value);
	if (o->kind == OBJECT_DATASET)
		elems_release(&o->dataset.fill);
}
