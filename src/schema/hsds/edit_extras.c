/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The member "hsmount" of a document that is edited (extras.c). Those of its members that have
 * changed are set, replaced or removed; all others keep their bytes. If no member is left,
 * "hsmount" is removed, too. Pure.
 */
#include "edit.h"

#include <errno.h>
#include <string.h>

#include "extras.h"

static bool is_changed(const struct edit *e, enum schema_extra which)
{
	const struct object_change *c = e->want->change;
	return which == SCHEMA_EXTRA_COMMENT ? c->comment : c->user_block;
}

/* Returns which member has this name if it has changed, or SCHEMA_EXTRAS_N if the member of this
 * name stays as it is. */
static unsigned int find_changed(const struct edit *e, const char *name)
{
	unsigned int i = 0;
	while (i < SCHEMA_EXTRAS_N && (!is_changed(e, i) || strcmp(name, schema_extra_names[i])))
		i++;
	return i;
}

/* Writes the members that the document has, which keep their positions, and then the new ones. */
static void write_members(struct edit *e, const struct splice_object *old)
{
	struct writer *w = &e->splice.w;
	bool written[SCHEMA_EXTRAS_N] = {false};
	write_open(w, '{');
	for (size_t i = 0; i < old->n; i++) {
		const struct splice_member *m = &old->members[i];
		const unsigned int which = find_changed(e, m->name);
		if (which == SCHEMA_EXTRAS_N) {
			write_json(w, e->old.text + m->start, m->end - m->start);
		} else {
			schema_extra_emit(w, which, e->after);
			written[which] = true;
		}
	}
	for (unsigned int i = 0; i < SCHEMA_EXTRAS_N; i++)
		if (is_changed(e, i) && !written[i])
			schema_extra_emit(w, i, e->after);
	write_close(w, '}');
}

/* Returns whether "hsmount" has a member after the change. */
static bool has_members(const struct edit *e, const struct splice_object *old)
{
	for (size_t i = 0; i < old->n; i++)
		if (find_changed(e, old->members[i].name) == SCHEMA_EXTRAS_N)
			return true;
	for (unsigned int i = 0; i < SCHEMA_EXTRAS_N; i++)
		if (is_changed(e, i) && schema_has_extra(i, e->after))
			return true;
	return false;
}

static int scan(struct edit *e, const struct splice_member *at, struct splice_object *out)
{
	const json_t *json = json_object_get(e->old.json, SCHEMA_EXTRAS);
	const struct splice_member *found;
	int rc = 0;
	*out = (struct splice_object){0};
	if (at && json_is_object(json))
		rc = splice_scan(e->old.text, e->old.n, at->value, e->arena, out, e->err);
	else if (at && !json_is_null(json))
		rc = err_set(e->err, -EIO, "%s: not an object", SCHEMA_EXTRAS);
	for (unsigned int i = 0; !rc && i < SCHEMA_EXTRAS_N; i++)
		if (is_changed(e, i))
			rc = edit_find_one(e, out, schema_extra_names[i], &found);
	return rc;
}

static int change_extras(struct edit *e)
{
	const struct splice_member *at;
	const size_t end = splice_end(&e->members);
	struct splice_object old;
	int rc = edit_find_one(e, &e->members, SCHEMA_EXTRAS, &at);
	if (!rc)
		rc = scan(e, at, &old);
	if (rc)
		return rc;
	if (has_members(e, &old)) {
		splice_begin(&e->splice, !at);
		if (!at)
			write_key(&e->splice.w, SCHEMA_EXTRAS);
		write_members(e, &old);
		splice_commit(&e->splice, at ? at->value : end, at ? at->end : end);
	} else if (at) {
		splice_remove_member(&e->splice, &e->members, (size_t)(at - e->members.members),
				     at == e->members.members);
	}
	return 0;
}

int edit_extras(struct edit *e)
{
	const struct object_change *c = e->want->change;
	const char *why = c->comment ? schema_refused_comment(e->after) : NULL;
	if (why)
		return err_set(e->err, -EOPNOTSUPP, "a domain cannot hold %s", why);
	return c->comment || c->user_block ? change_extras(e) : 0;
}

int edit_check_extras(struct edit *e, const struct edit_document *now)
{
	const char *changed[SCHEMA_EXTRAS_N];
	size_t n = 0;
	auto_json json_t *none = json_object();
	json_t *a = json_object_get(e->old.json, SCHEMA_EXTRAS);
	json_t *b = json_object_get(now->json, SCHEMA_EXTRAS);
	bool same = true;
	if (!none)
		return err_no_memory(e->err);
	for (unsigned int i = 0; i < SCHEMA_EXTRAS_N; i++) {
		if (!is_changed(e, i))
			continue;
		changed[n++] = schema_extra_names[i];
		same &= schema_same_extra(i, &now->o, e->after);
	}
	const int rc = same ? edit_same_json(e, json_is_object(a) ? a : none,
					     json_is_object(b) ? b : none, changed, n, &same)
			    : 0;
	return rc || same ? rc : edit_differs(e, SCHEMA_EXTRAS);
}
