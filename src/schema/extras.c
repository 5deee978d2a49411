/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The member "hsmount" of the document of an object: what the service has no member for.
 *
 *   "hsmount": {"comment": "text"}
 *
 *   comment   the comment of the object. A byte that is not UTF-8 is a lone surrogate.
 *
 * Each member is optional. One that is damaged is reported and left out; unknown ones are ignored.
 * edit_extras.c changes one and leaves the others. Pure.
 */
#include "extras.h"

static int parse_comment(struct schema_ctx *ctx, const json_t *v, struct object *o, struct err *err)
{
	struct err why = ERR_INIT;
	const char *text = NULL;
	if (!v || json_is_null(v))
		return 0;
	const int rc = schema_ctx_bytes(ctx, v, &text, &why);
	if (rc == -ENOMEM) {
		err_copy(err, &why);
		return rc;
	}
	if (rc)
		schema_skip(ctx, "member", "hsmount.comment", &why);
	else if (text[0])
		o->comment = text;
	return 0;
}

int schema_extras(struct schema_ctx *ctx, const json_t *doc, struct object *o, struct err *err)
{
	const json_t *extras = json_object_get(doc, SCHEMA_EXTRAS);
	return parse_comment(ctx, json_object_get(extras, SCHEMA_EXTRA_COMMENT), o, err);
}

void schema_extras_emit(struct writer *w, const struct object *o)
{
	if (!o->comment)
		return;
	write_key(w, SCHEMA_EXTRAS);
	write_open(w, '{');
	write_member_text(w, SCHEMA_EXTRA_COMMENT, o->comment);
	write_close(w, '}');
}
