/* SPDX-License-Identifier: Apache-2.0 */
/* Link and attribute messages. They are the same in headers and in dense storage. */
#include "image_plan.h"

#include <string.h>

#include <base/utf8.h>
#include <h5/message.h>

void link_message(const struct image *img, const struct object *o, uint32_t i, struct h5_link *out,
		  char file[IMAGE_FILE_NAME_MAX])
{
	const struct link *link = &o->group.links[i];
	*out = (struct h5_link){
		.name = link->name,
		.name_len = strlen(link->name),
		.utf8 = link->utf8 && !utf8_is_ascii(link->name, strlen(link->name)),
		.has_corder = true,
		.corder = i,
		.cls = link->cls,
		.path = link->path,
	};
	if (link->cls == LINK_HARD)
		out->addr = img->header_addr[link->target];
	if (link->cls == LINK_EXTERNAL) {
		/* The name is too long for any file, so the link dangles. */
		if (image_external_file(img, link->domain, file, IMAGE_FILE_NAME_MAX))
			strcpy(file, ".");
		out->file = file;
	}
}

void attr_message(const struct image *img, const struct image_object *io, uint32_t i,
		  struct h5_attr *out)
{
	const struct attribute *a = &io->node->o.attrs[i];
	const uint64_t len = attribute_bytes(a);
	const bool relocated = io->values && io->values[i].len;
	const uint8_t *data = relocated ? io->values[i].data : a->value.fixed.data;
	*out = (struct h5_attr){
		.name = a->name,
		.utf8 = true,
		.type = a->type,
		.committed =
			a->committed == OBJECT_NONE ? H5_UNDEF : img->header_addr[a->committed],
		.space = a->space,
		.data = relocated || a->value.fixed.len == len ? data : NULL,
		.data_len = len,
	};
	/* While sizes are counted, the address of a committed type is not known. The size does not
	 * depend on it. */
	if (a->committed != OBJECT_NONE && out->committed == H5_UNDEF)
		out->committed = 0;
}
