/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that links and references in documents may name, and the text of a reference.
 * Pure. */
#include "emit_document.h"

#include <string.h>

const struct object *schema_emit_target(const struct tree *t, uint64_t ref)
{
	if (ref == 0 || ref > tree_numbers(t))
		return NULL;
	const struct tree_object *o = tree_object(t, (uint32_t)(ref - 1));
	return o->broken || !o->linked || !o->o.id ? NULL : &o->o;
}

void schema_ref_text(const struct tree *t, uint64_t ref, char *text)
{
	static const char *const collections[] = {
		[OBJECT_GROUP] = "groups/",
		[OBJECT_DATASET] = "datasets/",
		[OBJECT_DATATYPE] = "datatypes/",
	};
	const struct object *o = schema_emit_target(t, ref);
	memset(text, 0, OBJECT_REF_TEXT);
	if (!o)
		return;
	const size_t n = strlen(collections[o->kind]);
	const size_t id = strnlen(o->id, OBJECT_REF_TEXT - n);
	memcpy(text, collections[o->kind], n);
	memcpy(text + n, o->id, id);
}
