/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the new document of an object that exists and has changed. This file changes the shape and
 * the time of modification. edit_parts.c changes the links and attributes, and edit_extras.c
 * changes the member "hsmount". See edit.h. Pure.
 */
#include "edit.h"

#include <errno.h>
#include <string.h>

#include "parse_object.h"

enum { EDIT_ARENA = 1 << 30 /* bytes of memory for one document */ };

/* ---- documents ---- */

/* Returns the number of an id. An id without a number gets the next one. */
static uint32_t number(void *ctx, const struct schema_id *id)
{
	struct edit *e = ctx;
	const uint32_t known = hsds_number(&e->ids, id);
	const struct hsds_entry entry = {.id = *id, .etag = ""};
	if (known != OBJECT_NONE)
		return known;
	if (hsds_space_add(&e->ids, e->arena, &entry)) {
		e->out_of_memory = true;
		return OBJECT_NONE;
	}
	return e->ids.n - 1;
}

static void count_left_out(void *ctx, const char *what, const struct err *why)
{
	struct edit_document *d = ctx;
	(void)what;
	(void)why;
	d->left_out++;
}

static int read_document(struct edit *e, struct edit_document *d)
{
	const struct schema_numbers numbers = {.number = number, .ctx = e};
	int rc = schema_object_parse(e->arena, e->arena, &e->id, &e->root, d->text, d->n, &numbers,
				     NULL, count_left_out, d, &d->o, e->err);
	if (!rc)
		rc = json_text_load(d->text, d->n, &d->json, e->err);
	return !rc && e->out_of_memory ? err_no_memory(e->err) : rc;
}

static void document_release(struct edit_document *d)
{
	object_release(&d->o);
	json_decref(d->json);
}

/* ---- the shape ---- */

static int find_shape(struct edit *e, struct splice_object *out)
{
	const struct splice_member *shape;
	const int rc = edit_find_one(e, &e->members, "shape", &shape);
	if (rc)
		return rc;
	if (!shape || !json_is_object(json_object_get(e->old.json, "shape")))
		return err_set(e->err, -EIO, "not an object");
	return splice_scan(e->old.text, e->old.n, shape->value, e->arena, out, e->err);
}

static void write_dims(struct edit *e, uint32_t rank, const uint64_t *dims)
{
	write_open(&e->splice.w, '[');
	for (uint32_t d = 0; d < rank; d++)
		write_uint(&e->splice.w, dims[d]);
	write_close(&e->splice.w, ']');
}

/* Keeps the maximum dimensions. Without "maxdims", the new dimensions would become the maximum. A
 * maximum of 0 cannot be written, because 0 stands for no limit there. */
static int keep_max(struct edit *e, const struct splice_object *shape)
{
	static const char key[] = "maxdims";
	const struct dspace *old = &e->old.o.dataset.space, *s = &e->after->dataset.space;
	const struct splice_member *max;
	const int rc = edit_find_one(e, shape, key, &max);
	const size_t end = splice_end(shape);
	bool smaller = false, zero = false;
	for (uint32_t d = 0; d < s->rank; d++) {
		smaller |= s->dims[d] < old->max[d];
		zero |= old->max[d] == 0;
	}
	const json_t *json = json_object_get(json_object_get(e->old.json, "shape"), key);
	if (rc || (json && !json_is_null(json)) || !smaller)
		return rc;
	if (zero)
		return err_set(e->err, -EIO, "%s: missing, and a dimension is 0", key);
	splice_begin(&e->splice, !max);
	if (!max)
		write_key(&e->splice.w, key);
	write_dims(e, old->rank, old->max);
	splice_commit(&e->splice, max ? max->value : end, max ? max->end : end);
	return 0;
}

static int replace_dims(struct edit *e)
{
	struct splice_object shape;
	const struct splice_member *dims;
	int rc = find_shape(e, &shape);
	if (!rc)
		rc = edit_find_one(e, &shape, "dims", &dims);
	if (!rc && !dims)
		rc = err_set(e->err, -EIO, "dims: missing");
	if (rc)
		return rc;
	splice_begin(&e->splice, false);
	write_dims(e, e->after->dataset.space.rank, e->after->dataset.space.dims);
	splice_commit(&e->splice, dims->value, dims->end);
	return keep_max(e, &shape);
}

static int edit_shape(struct edit *e)
{
	const struct dspace *s = &e->after->dataset.space;
	const struct dspace *old = &e->old.o.dataset.space;
	if (e->after->kind != OBJECT_DATASET || old->cls != DSPACE_SIMPLE ||
	    s->cls != DSPACE_SIMPLE || old->rank != s->rank)
		return err_set(e->err, -EIO, "shape: it cannot get another rank");
	const char *why = schema_refused_shape(s);
	if (why)
		return err_set(e->err, -EOPNOTSUPP, "a domain cannot hold %s", why);
	const int rc = replace_dims(e);
	return rc ? err_wrap(e->err, rc, "shape") : 0;
}

/* ---- the document ---- */

/* Sets all members "lastModified", so that every reader finds the new time. Adds one if there is
 * none. */
static void edit_time(struct edit *e)
{
	static const char name[] = "lastModified";
	const size_t end = splice_end(&e->members);
	for (size_t i = 0; i < e->members.n; i++) {
		const struct splice_member *m = &e->members.members[i];
		if (strcmp(m->name, name) != 0)
			continue;
		splice_begin(&e->splice, false);
		write_time(&e->splice.w, e->want->now_ns);
		splice_commit(&e->splice, m->value, m->end);
	}
	if (splice_find(&e->members, name, NULL))
		return;
	splice_begin(&e->splice, true);
	write_key(&e->splice.w, name);
	write_time(&e->splice.w, e->want->now_ns);
	splice_commit(&e->splice, end, end);
}

/* Makes the new document according to the plans for its attributes and links. */
static int make(struct edit *e, struct edit_parts *attributes, struct edit_parts *links,
		struct bytes *out)
{
	const size_t start = out->len;
	int rc = edit_parts_write(e, attributes);
	if (!rc && links)
		rc = edit_parts_write(e, links);
	if (!rc && e->want->change->shape)
		rc = edit_shape(e);
	if (!rc)
		rc = edit_extras(e);
	if (rc)
		return rc;
	edit_time(e);
	rc = splice_apply(&e->splice, out, e->err);
	if (!rc && out->len - start > JSON_TEXT_MAX)
		rc = err_set(e->err, -EOPNOTSUPP, "a document of %zu bytes, the limit is %d",
			     out->len - start, JSON_TEXT_MAX);
	return rc;
}

static int edit_document(struct edit *e, struct bytes *out)
{
	const bool group = e->after->kind == OBJECT_GROUP;
	struct edit_parts attributes, links;
	const size_t start = out->len;
	int rc = read_document(e, &e->old);
	if (!rc)
		rc = splice_scan(e->old.text, e->old.n, 0, e->arena, &e->members, e->err);
	if (!rc)
		rc = edit_parts_plan(e, false, &attributes);
	if (!rc && group)
		rc = edit_parts_plan(e, true, &links);
	if (!rc)
		rc = make(e, &attributes, group ? &links : NULL, out);
	if (rc)
		return rc;
	struct edit_document now = {.text = (const char *)out->data + start, .n = out->len - start};
	rc = read_document(e, &now);
	if (!rc)
		rc = edit_check(e, &attributes, group ? &links : NULL, &now);
	document_release(&now);
	return rc;
}

static int begin(struct edit *e)
{
	const char *root = tree_object(e->want->after, 0)->o.id;
	e->before = &tree_object(e->want->before, e->want->change->before)->o;
	e->after = e->want->state ? e->want->state
				  : &tree_object(e->want->after, e->want->change->after)->o;
	if (!root || !e->after->id || !schema_id_parse(root, strlen(root), &e->root) ||
	    !schema_id_parse(e->after->id, strlen(e->after->id), &e->id))
		return err_set(e->err, -EINVAL, "object %u has no id", e->want->change->after);
	if (e->before->kind != e->after->kind || e->id.kind != e->after->kind)
		return err_set(e->err, -EINVAL, "object %s is of another kind", e->after->id);
	return 0;
}

int schema_edit_object(const void *text, size_t n, const struct schema_edit *want,
		       struct bytes *out, struct err *err)
{
	struct err why = ERR_INIT;
	const size_t start = out->len;
	struct edit e = {.want = want, .old = {.text = text, .n = n}, .err = &why};
	splice_init(&e.splice, text, n);
	e.arena = arena_new(EDIT_ARENA);
	int rc = e.arena ? begin(&e) : err_no_memory(e.err);
	if (!rc)
		rc = edit_document(&e, out);
	document_release(&e.old);
	splice_release(&e.splice);
	arena_free(e.arena);
	if (!rc)
		return 0;
	out->len = start;
	if (err)
		err_copy(err, &why);
	return rc;
}
