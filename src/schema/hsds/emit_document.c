/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole documents of new objects and of a domain, with every member that the service requires.
 * refusals.c lists what the schema cannot hold. It is an error if a document would have such a
 * part.
 *
 * A name or path that is not UTF-8 is written with lone surrogates, as Python would write it. In
 * addition, the link has a member "hsmount" with the bytes in base64: {"name", "h5path",
 * "h5domain"}. Pure.
 */
#include "emit_document.h"

#include <errno.h>
#include <string.h>

#include <base/hex.h>
#include <base/utf8.h>
#include <data/number.h>

#include "extras.h"

enum { CARRIER_ARENA = 64 << 20 /* bytes of memory for the stand-ins of one document */ };

/* Writes when a link or attribute was created. */
static void put_created(struct schema_emit *e, int64_t ns)
{
	write_key(&e->w, "created");
	if (e->created)
		write_json(&e->w, e->created->data, e->created->n);
	else
		write_time(&e->w, ns);
}

/* ---- links ---- */

static bool is_utf8(const char *text)
{
	return !text || utf8_valid(text, strlen(text));
}

static void put_exact(struct writer *w, const char *member, const char *text)
{
	if (is_utf8(text))
		return;
	write_key(w, member);
	write_base64(w, text, strlen(text));
}

static void put_link_bytes(struct writer *w, const struct link *l)
{
	if (is_utf8(l->name) && is_utf8(l->path) && is_utf8(l->domain))
		return;
	write_member_open(w, "hsmount", '{');
	put_exact(w, "name", l->name);
	put_exact(w, "h5path", l->path);
	put_exact(w, "h5domain", l->domain);
	write_close(w, '}');
}

int schema_emit_link(struct schema_emit *e, const struct link *l)
{
	struct writer *w = &e->w;
	const struct object *target;
	write_key_text(w, l->name, strlen(l->name));
	write_open(w, '{');
	switch (l->cls) {
	case LINK_HARD:
		target = schema_emit_target(e->tree, (uint64_t)l->target + 1);
		if (!target)
			return err_set(e->err, -EINVAL, "link \"%.200s\": its object has no id",
				       l->name);
		write_member_word(w, "id", target->id);
		write_member_word(w, "class", "H5L_TYPE_HARD");
		break;
	case LINK_SOFT:
		write_member_word(w, "class", "H5L_TYPE_SOFT");
		write_member_word(w, "h5path", l->path);
		break;
	case LINK_EXTERNAL:
		write_member_word(w, "class", "H5L_TYPE_EXTERNAL");
		write_member_word(w, "h5path", l->path);
		write_member_word(w, "h5domain", l->domain);
		break;
	case LINK_USER:
		return err_set(e->err, -EOPNOTSUPP, "link \"%.200s\": a user-defined link",
			       l->name);
	}
	put_created(e, l->created_ns);
	put_link_bytes(w, l);
	write_close(w, '}');
	return 0;
}

/* ---- attributes ---- */

int schema_emit_attribute(struct schema_emit *e, const struct attribute *a)
{
	struct writer *w = &e->w;
	struct stand_in stand_in;
	write_key_text(w, a->name, strlen(a->name));
	write_open(w, '{');
	/* The loader may repair such an attribute as that of a dimension scale of hsload
	 * (dimension_scale.c), but not if the document has the exact type. */
	e->exact = (strcmp(a->name, "CLASS") == 0 || strcmp(a->name, "NAME") == 0) &&
		   a->type->cls == DTYPE_STRING && a->type->string.pad == DTYPE_PAD_NULLPAD;
	int rc = schema_emit_type(e, a->type, a->committed, &stand_in);
	e->exact = false;
	if (!rc) {
		schema_emit_space(e, &a->space);
		rc = schema_emit_value(e, &stand_in, a);
	}
	put_created(e, a->created_ns);
	write_close(w, '}');
	return rc ? err_wrap(e->err, rc, "attribute \"%.200s\"", a->name) : 0;
}

/* ---- objects ---- */

static void put_times(struct writer *w, int64_t created_ns, int64_t modified_ns)
{
	write_key(w, "created");
	write_time(w, created_ns);
	write_key(w, "lastModified");
	write_time(w, modified_ns);
}

/* Writes the creation properties of a group or datatype. */
static void put_order(struct writer *w, const struct object *o)
{
	if (!o->attrs_ordered)
		return;
	write_member_open(w, "creationProperties", '{');
	write_member_word(w, "attributeCreationOrder", "H5P_CRT_ORDER_INDEXED");
	write_member_uint(w, "CreateOrder", 1);
	write_close(w, '}');
}

static int put_kind(struct schema_emit *e, const struct object *o)
{
	struct stand_in stand_in;
	int rc = 0;
	switch (o->kind) {
	case OBJECT_GROUP:
		put_order(&e->w, o);
		write_member_open(&e->w, "links", '{');
		for (uint32_t i = 0; !rc && i < o->group.nlinks; i++)
			rc = schema_emit_link(e, &o->group.links[i]);
		write_close(&e->w, '}');
		break;
	case OBJECT_DATASET:
		return schema_emit_dataset(e, o);
	case OBJECT_DATATYPE:
		rc = schema_emit_type(e, o->datatype, OBJECT_NONE, &stand_in);
		put_order(&e->w, o);
		break;
	}
	return rc;
}

static int put_object(struct schema_emit *e, const struct object *o)
{
	struct writer *w = &e->w;
	write_open(w, '{');
	write_member_word(w, "id", o->id);
	write_member_word(w, "root", tree_object(e->tree, 0)->o.id);
	put_times(w, o->created_ns, o->modified_ns);
	int rc = put_kind(e, o);
	write_member_open(w, "attributes", '{');
	for (uint32_t i = 0; !rc && i < o->nattrs; i++)
		rc = schema_emit_attribute(e, &o->attrs[i]);
	write_close(w, '}');
	schema_extras_emit(w, o);
	write_close(w, '}');
	return rc;
}

/* Returns the result for a document that begins at byte `start` of the output. On error, removes
 * the document. */
static int finish(struct writer *w, size_t start, int rc, struct err *err)
{
	if (!rc && w->bad)
		rc = err_no_memory(err);
	if (!rc && w->out->len - start > JSON_TEXT_MAX)
		rc = err_set(err, -EFBIG, "document of %zu bytes, the limit is %d",
			     w->out->len - start, JSON_TEXT_MAX);
	if (rc)
		w->out->len = start;
	return rc;
}

int schema_emit_object(const struct tree *t, uint32_t number, struct bytes *out, struct err *err)
{
	/* The object need not be linked, because no link leads to a chunk table. */
	const struct tree_object *to = number < tree_numbers(t) ? tree_object(t, number) : NULL;
	const struct object *o = to && !to->broken && to->o.id ? &to->o : NULL;
	const size_t start = out->len;
	struct err why = ERR_INIT;
	if (!o || !tree_object(t, 0)->o.id)
		return err_set(err, -EINVAL, "object %u has no id", number);
	struct schema_emit e = {.tree = t, .w = {.out = out}, .err = &why};
	e.arena = arena_new(CARRIER_ARENA);
	int rc = e.arena ? put_object(&e, o) : err_errno(&why, -ENOMEM, "document");
	arena_free(e.arena);
	rc = finish(&e.w, start, rc, &why);
	if (rc && err)
		err_copy(err, &why);
	return rc;
}

/* ---- domains ---- */

void schema_emit_acls(struct writer *w, const struct domain_info *info)
{
	write_open(w, '{');
	for (uint32_t i = 0; i < info->nacls; i++) {
		write_member_open(w, info->acls[i].user, '{');
		for (unsigned int k = 0; k < DOMAIN_PERMS; k++) {
			write_key(w, domain_perm_names[k]);
			write_bool(w, info->acls[i].perms >> k & 1);
		}
		write_close(w, '}');
	}
	write_close(w, '}');
}

int schema_emit_domain(const struct domain_info *info, struct bytes *out, struct err *err)
{
	const size_t start = out->len;
	struct writer w = {.out = out};
	write_open(&w, '{');
	if (info->root)
		write_member_word(&w, "root", info->root);
	write_member_word(&w, "owner", info->owner);
	write_key(&w, "acls");
	schema_emit_acls(&w, info);
	put_times(&w, info->created_ns, info->modified_ns);
	if (info->nonce) {
		uint8_t bytes[sizeof(info->nonce)];
		char digits[2 * sizeof(info->nonce) + 1];
		number_put_int(bytes, sizeof(bytes), true, info->nonce);
		hex_encode(bytes, sizeof(bytes), digits);
		write_member_open(&w, "hsmount", '{');
		write_member_word(&w, "rename", digits);
		write_close(&w, '}');
	}
	write_close(&w, '}');
	return finish(&w, start, 0, err);
}
