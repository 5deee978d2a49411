/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The member "hsmount" of a document that is edited (extras.c). One of its members is set, replaced
 * or removed; all others keep their bytes. If none is left, "hsmount" goes, too. Pure.
 */
#include "edit.h"

#include <errno.h>
#include <string.h>

#include "extras.h"

static int twice(struct edit *e, const char *name)
{
	return err_set(e->err, -EIO, "%s: the document has it twice", name);
}

/* Removes a member of an object, with the comma in front of it, or behind it if it is the first. */
static void remove_member(struct edit *e, const struct splice_object *o,
			  const struct splice_member *m)
{
	const size_t i = (size_t)(m - o->members);
	if (i > 0)
		splice_remove(&e->splice, o->members[i - 1].end, m->end);
	else
		splice_remove(&e->splice, m->start, o->n > 1 ? o->members[1].start : m->end);
}

/* The document has no "hsmount", or null: at is NULL, or the member. */
static void write_whole(struct edit *e, const struct splice_member *at, const char *name,
			const char *text)
{
	const size_t end = splice_end(&e->members);
	struct writer *w = &e->splice.w;
	splice_begin(&e->splice, !at);
	if (!at)
		write_key(w, SCHEMA_EXTRAS);
	write_open(w, '{');
	write_member_text(w, name, text);
	write_close(w, '}');
	splice_commit(&e->splice, at ? at->value : end, at ? at->end : end);
}

/* text: NULL removes the member. */
static int write_one(struct edit *e, const struct splice_member *at, const char *name,
		     const char *text)
{
	struct splice_object o;
	size_t count;
	const int rc = splice_scan(e->old.text, e->old.n, at->value, e->arena, &o, e->err);
	if (rc)
		return rc;
	const struct splice_member *m = splice_find(&o, name, &count);
	const size_t end = splice_end(&o);
	if (count > 1)
		return twice(e, name);
	if (!text && m && o.n == 1)
		remove_member(e, &e->members, at);
	else if (!text && m)
		remove_member(e, &o, m);
	if (!text)
		return 0;
	splice_begin(&e->splice, !m && o.n > 0);
	if (m)
		write_text(&e->splice.w, text, strlen(text));
	else
		write_member_text(&e->splice.w, name, text);
	splice_commit(&e->splice, m ? m->value : end, m ? m->end : end);
	return 0;
}

static int set(struct edit *e, const char *name, const char *text)
{
	size_t count;
	const struct splice_member *at = splice_find(&e->members, SCHEMA_EXTRAS, &count);
	const json_t *json = json_object_get(e->old.json, SCHEMA_EXTRAS);
	if (count > 1)
		return twice(e, SCHEMA_EXTRAS);
	if (at && json_is_object(json))
		return write_one(e, at, name, text);
	if (at && !json_is_null(json))
		return err_set(e->err, -EIO, "%s: not an object", SCHEMA_EXTRAS);
	if (text)
		write_whole(e, at, name, text);
	return 0;
}

int edit_extras(struct edit *e)
{
	const char *comment = e->after->comment;
	if (!e->want->change->comment)
		return 0;
	const char *why = schema_refused_comment(e->after);
	if (why)
		return err_set(e->err, -EOPNOTSUPP, "a domain cannot hold %s", why);
	return set(e, SCHEMA_EXTRA_COMMENT, comment);
}
