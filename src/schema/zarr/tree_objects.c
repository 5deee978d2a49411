/* SPDX-License-Identifier: Apache-2.0 */
/* Adds objects to the tree, and remembers the document of each one. Pure. */
#include "model_internal.h"

#include <errno.h>
#include <string.h>

int zarr_object_add(struct zarr_build *b, const char *id, const char *key, const char *etag,
		    uint32_t *number, struct err *err)
{
	struct zarr_model *m = b->m;
	const int rc = tree_add(b->tree, number, err);
	if (rc)
		return rc;
	if (*number >= m->nobjects) {
		const uint32_t n = 2 * m->nobjects + 64;
		struct zarr_object_doc *objects = reallocarray(m->objects, n, sizeof(*m->objects));
		if (!objects)
			return err_errno(err, -ENOMEM, "objects");
		memset(objects + m->nobjects, 0, (n - m->nobjects) * sizeof(*objects));
		m->objects = objects;
		m->nobjects = n;
	}
	m->objects[*number] = (struct zarr_object_doc){.key = key, .etag = etag};
	struct object *o = tree_edit(b->tree, *number);
	o->id = id;
	o->modified_ns = b->f->modified_ns;
	return 0;
}

const char *zarr_model_object(const struct zarr_model *m, uint32_t number, const char **etag)
{
	const struct zarr_object_doc *d = number < m->nobjects ? &m->objects[number] : NULL;
	*etag = d ? d->etag : NULL;
	return d && d->key ? d->key : "";
}
