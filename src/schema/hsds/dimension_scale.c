/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes CLASS and NAME of dimension scales. According to the dimension scale specification
 * they are null-terminated, and libhdf5 recognises a scale only if its CLASS is a null-terminated
 * string of 16 bytes. hsload, the usual loader, stores both null-padded and without a terminator.
 * These functions restore the terminators, except for attributes whose documents have the exact
 * type (hdf5_type.h). Pure.
 */
#include "parse.h"

#include <string.h>

static const char scale_class[] = "DIMENSION_SCALE";

static struct attribute *find(struct object *o, const char *name)
{
	for (uint32_t i = 0; i < o->nattrs; i++)
		if (strcmp(o->attrs[i].name, name) == 0)
			return &o->attrs[i];
	return NULL;
}

/* Returns true if the value is a single null-padded string of fixed size, and its type is not a
 * committed datatype. *len is the length of its text. */
static bool is_padded(const struct attribute *a, size_t *len)
{
	if (!a || a->type->cls != DTYPE_STRING || a->type->string.pad != DTYPE_PAD_NULLPAD ||
	    a->committed != OBJECT_NONE || a->space.nelems != 1)
		return false;
	*len = a->value.fixed.len;
	while (*len > 0 && a->value.fixed.data[*len - 1] == '\0')
		(*len)--;
	return true;
}

static bool is_scale_class(const struct attribute *a)
{
	const size_t len = sizeof(scale_class) - 1;
	return a && a->type->cls == DTYPE_STRING && a->value.fixed.len >= len &&
	       memcmp(a->value.fixed.data, scale_class, len) == 0 &&
	       (a->value.fixed.len == len || a->value.fixed.data[len] == '\0');
}

/* Returns true if the document of the attribute has the exact type. */
static bool is_exact(const json_t *doc, const char *name)
{
	const json_t *a = json_object_get(json_object_get(doc, "attributes"), name);
	return json_object_get(json_object_get(a, "type"), "hsmount");
}

static int terminate(struct schema_ctx *ctx, const json_t *doc, struct attribute *a,
		     struct err *err)
{
	size_t len;
	if (!is_padded(a, &len) || is_exact(doc, a->name))
		return 0;
	const struct dtype *t = dtype_string(ctx->arena, (uint32_t)len + 1, DTYPE_PAD_NULLTERM,
					     a->type->string.cset, err);
	if (!t)
		return schema_defect(err);
	a->value.fixed.len = len; /* bytes that are not set are NULs, so the terminator is there */
	a->type = t;
	return 0;
}

int schema_dimension_scale(struct schema_ctx *ctx, const json_t *doc, struct object *o,
			   struct err *err)
{
	struct attribute *class = find(o, "CLASS");
	if (o->kind != OBJECT_DATASET || !is_scale_class(class))
		return 0;
	int rc = terminate(ctx, doc, class, err);
	if (!rc)
		rc = terminate(ctx, doc, find(o, "NAME"), err);
	return rc ? err_wrap(err, rc, "dimension scale") : 0;
}
