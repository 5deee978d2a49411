/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "attributes": {name: {type, shape, value, encoding, created, hsmount}} -> struct attribute. If
 * "hsmount" has the exact bytes of the value, they are read in its place (emit_value.c). An
 * attribute that cannot be parsed is left out and reported. Pure.
 */
#include "parse.h"

#include <stdlib.h>
#include <string.h>

static int parse_name(struct schema_ctx *ctx, const char *key, const char **name, struct err *err)
{
	struct arena *objects = ctx->arena;
	ctx->arena = ctx->attributes;
	const int rc = schema_ctx_name(ctx, key, strlen(key), name, false, err);
	ctx->arena = objects;
	return rc;
}

static int parse_attribute(struct schema_ctx *ctx, const json_t *v, struct attribute *a,
			   struct err *err)
{
	if (!json_is_object(v))
		return err_set(err, -EIO, "not an object");
	int rc = schema_type(ctx, json_object_get(v, "type"), &a->type, &a->committed, err);
	if (rc)
		return err_wrap(err, rc, "type");
	rc = schema_space(ctx->attributes, json_object_get(v, "shape"), &a->space, err);
	if (rc)
		return err_wrap(err, rc, "shape");
	a->created_ns = schema_time_ns(json_object_get(v, "created"));
	const json_t *hsmount = json_object_get(v, "hsmount");
	const json_t *exact = json_object_get(hsmount, "value");
	ctx->unset = json_object_get(hsmount, "unset");
	rc = schema_value(ctx, a->type, &a->space, exact ? exact : json_object_get(v, "value"),
			  exact ? "base64" : json_text_word(v, "encoding"), &a->value, err);
	return rc ? err_wrap(err, rc, "value") : 0;
}

/* Orders attributes by creation time, then by the bytes of the name. */
static int compare(const void *a, const void *b)
{
	const struct attribute *x = a;
	const struct attribute *y = b;
	if (x->created_ns != y->created_ns)
		return x->created_ns < y->created_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

int schema_attributes(struct schema_ctx *ctx, const json_t *doc, struct object *o, struct err *err)
{
	json_t *all = json_object_get(doc, "attributes");
	const char *key;
	json_t *v;
	if (!all || json_is_null(all))
		return 0;
	if (!json_is_object(all))
		return err_set(err, -EIO, "attributes: not an object");
	size_t n = json_object_size(all);
	o->attrs = arena_array(ctx->attributes, n ? n : 1, sizeof(*o->attrs));
	if (n > UINT32_MAX || !o->attrs)
		return err_errno(err, -ENOMEM, "attributes");
	json_object_foreach(all, key, v)
	{
		struct attribute *a = &o->attrs[o->nattrs];
		struct err why = ERR_INIT;
		*a = (struct attribute){0};
		int rc = parse_name(ctx, key, &a->name, &why);
		if (!rc && a->name[0] == '\0')
			rc = err_set(&why, -EIO, "the name is empty");
		if (!rc)
			rc = parse_attribute(ctx, v, a, &why);
		rc = schema_part(ctx, "attribute", a->name ? a->name : key, rc, &why, &o->nattrs,
				 err);
		if (rc)
			return rc;
	}
	if (o->nattrs > 1)
		qsort(o->attrs, o->nattrs, sizeof(*o->attrs), compare);
	return 0;
}
