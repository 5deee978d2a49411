/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The member "hsmount" of a document that is changed: what the service does not know of an object.
 * Each of its members belongs to one property. The others stay as they are, and one that the object
 * has no more becomes null. See edit.h. Pure.
 */
#include "edit.h"

#include <errno.h>
#include <string.h>

#include "user_block.h"

static const char own[] = "hsmount";

static void put_user_block(struct writer *w, const struct object *o)
{
	if (o->group.user_block)
		schema_user_block_write(w, o->group.user_block);
	else
		write_null(w);
}

static bool same_user_block(const struct object *a, const struct object *b)
{
	return schema_user_block_same(a->group.user_block, b->group.user_block);
}

static bool is_user_block_changed(const struct object_change *c)
{
	return c->user_block;
}

static const struct property {
	const char *name;
	bool (*is_changed)(const struct object_change *c);
	void (*put)(struct writer *w, const struct object *o);
	bool (*same)(const struct object *a, const struct object *b);
} properties[] = {
	{"userBlock", is_user_block_changed, put_user_block, same_user_block},
};
enum { NPROPERTIES = sizeof(properties) / sizeof(properties[0]) };

static bool is_changed(const struct edit *e, const struct property *p)
{
	return p->is_changed(e->want->change);
}

bool edit_own_is_changed(const struct edit *e)
{
	bool changed = false;
	for (int i = 0; i < NPROPERTIES; i++)
		changed |= is_changed(e, &properties[i]);
	return changed;
}

/* The document has no such member yet. */
static void add_all(struct edit *e)
{
	const size_t end = splice_end(&e->members);
	struct writer *w = &e->splice.w;
	splice_begin(&e->splice, true);
	write_key(w, own);
	write_open(w, '{');
	for (int i = 0; i < NPROPERTIES; i++) {
		if (!is_changed(e, &properties[i]))
			continue;
		write_key(w, properties[i].name);
		properties[i].put(w, e->after);
	}
	write_close(w, '}');
	splice_commit(&e->splice, end, end);
}

/* *behind: a member is in front of the end. */
static int replace(struct edit *e, const struct splice_object *members, const struct property *p,
		   bool *behind)
{
	size_t count, end = splice_end(members);
	const struct splice_member *m = splice_find(members, p->name, &count);
	if (count > 1)
		return err_set(e->err, -EIO, "%s: the document has it twice", p->name);
	splice_begin(&e->splice, !m && *behind);
	if (!m)
		write_key(&e->splice.w, p->name);
	*behind = true;
	p->put(&e->splice.w, e->after);
	splice_commit(&e->splice, m ? m->value : end, m ? m->end : end);
	return 0;
}

int edit_own_write(struct edit *e)
{
	size_t count;
	const struct splice_member *m = splice_find(&e->members, own, &count);
	struct splice_object members;
	if (!m) {
		add_all(e);
		return 0;
	}
	if (count > 1 || !json_is_object(json_object_get(e->old.json, own)))
		return err_set(e->err, -EIO, "%s: %s", own,
			       count > 1 ? "the document has it twice" : "not an object");
	int rc = splice_scan(e->old.text, e->old.n, m->value, e->arena, &members, e->err);
	bool behind = !rc && members.n > 0;
	for (int i = 0; !rc && i < NPROPERTIES; i++)
		if (is_changed(e, &properties[i]))
			rc = replace(e, &members, &properties[i], &behind);
	return rc ? err_wrap(e->err, rc, "%s", own) : 0;
}

int edit_own_check(struct edit *e, const struct edit_document *now)
{
	const char *without[NPROPERTIES];
	size_t n = 0;
	auto_json json_t *none = json_object();
	json_t *a = json_object_get(e->old.json, own), *b = json_object_get(now->json, own);
	bool same = true;
	for (int i = 0; same && i < NPROPERTIES; i++) {
		if (!is_changed(e, &properties[i]))
			continue;
		without[n++] = properties[i].name;
		same = properties[i].same(&now->o, e->after);
	}
	if (!none)
		return edit_out_of_memory(e);
	int rc = same ? edit_same_json(e, a ? a : none, b, without, n, &same) : 0;
	return rc || same ? rc : edit_differs(e, own);
}
