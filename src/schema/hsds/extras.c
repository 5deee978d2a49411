/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The member "hsmount" of the document of an object: what the service has no member for.
 *
 *   "hsmount": {"comment": "text", "userBlock": {…}}
 *
 *   comment     the comment of the object. A byte that is not UTF-8 is a lone surrogate
 *   userBlock   in the document of the root group: the user block of the file (user_block_member.h)
 *
 * Each member is optional. A damaged member is reported and left out; unknown ones are ignored.
 * edit_extras.c changes some members and leaves the others as they are. Pure.
 */
#include "extras.h"

#include <string.h>

#include "user_block_member.h"

const char *const schema_extra_names[SCHEMA_EXTRAS_N] = {
	[SCHEMA_EXTRA_COMMENT] = "comment",
	[SCHEMA_EXTRA_USER_BLOCK] = "userBlock",
};

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

int schema_extras(struct schema_ctx *ctx, const json_t *doc, bool is_root, struct object *o,
		  struct err *err)
{
	const json_t *extras = json_object_get(doc, SCHEMA_EXTRAS);
	struct err why = ERR_INIT;
	if (extras && !json_is_object(extras) && !json_is_null(extras)) {
		err_set(&why, -EIO, "not an object");
		schema_skip(ctx, "member", SCHEMA_EXTRAS, &why);
		return 0;
	}
	const int rc = parse_comment(
		ctx, json_object_get(extras, schema_extra_names[SCHEMA_EXTRA_COMMENT]), o, err);
	if (rc || !is_root)
		return rc;
	return schema_user_block_parse(
		ctx, json_object_get(extras, schema_extra_names[SCHEMA_EXTRA_USER_BLOCK]), o, err);
}

static const struct user_block *block_of(const struct object *o)
{
	return o->kind == OBJECT_GROUP ? o->group.user_block : NULL;
}

bool schema_has_extra(enum schema_extra which, const struct object *o)
{
	return which == SCHEMA_EXTRA_COMMENT ? o->comment != NULL : block_of(o) != NULL;
}

void schema_extra_emit(struct writer *w, enum schema_extra which, const struct object *o)
{
	if (!schema_has_extra(which, o))
		return;
	write_key(w, schema_extra_names[which]);
	if (which == SCHEMA_EXTRA_COMMENT)
		write_text(w, o->comment, strlen(o->comment));
	else
		schema_user_block_write(w, o->group.user_block);
}

bool schema_same_extra(enum schema_extra which, const struct object *a, const struct object *b)
{
	if (which == SCHEMA_EXTRA_USER_BLOCK)
		return schema_user_block_same(block_of(a), block_of(b));
	return a->comment && b->comment ? strcmp(a->comment, b->comment) == 0
					: a->comment == b->comment;
}

void schema_extras_emit(struct writer *w, const struct object *o)
{
	bool any = false;
	for (unsigned int i = 0; i < SCHEMA_EXTRAS_N; i++)
		any |= schema_has_extra(i, o);
	if (!any)
		return;
	write_member_open(w, SCHEMA_EXTRAS, '{');
	for (unsigned int i = 0; i < SCHEMA_EXTRAS_N; i++)
		schema_extra_emit(w, i, o);
	write_close(w, '}');
}
