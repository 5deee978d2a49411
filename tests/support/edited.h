/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document that is edited: two trees that both begin as its content, steps that change the second
 * one, the change between them, and what the new document must be. A step is three bytes: what to
 * do, to which part, and how.
 */
#ifndef SUPPORT_EDITED_H
#define SUPPORT_EDITED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <data/tree_change.h>
#include <data/tree_diff.h>
#include <schema/schema.h>

#include <json/reader.h>
#include "schema/hsds/parse_object.h"
#include <json/splice.h>
#include <bucket/schemas.h>
#include "schema/hsds/user_block_member.h"

enum edited_step {
	EDITED_REMOVE,
	EDITED_REPLACE,
	EDITED_RENAME,
	EDITED_ADD,
	EDITED_MOVE,
	EDITED_SHAPE,
	EDITED_COMMENT,
	EDITED_BLOCK, /* the user block of the root group */
	EDITED_STEPS,
	EDITED_LINK = 0x80, /* with one of the first five: a link, otherwise an attribute */
};
#define EDITED_NOW (INT64_C(1800000000) * 1000000000 + 123456789)

struct edited_parts {
	uint32_t n;
	struct {
		uint32_t before; /* CHANGE_NONE: it is new */
		bool changed;
	} * at; /* as in the object of the second tree */
	struct part_change *changes;
	uint32_t nchanges;
};

struct edited {
	const struct schema_ops *ops;
	struct schema_id id, root;
	struct tree *trees[2];
	uint32_t number;
	unsigned int names; /* so that new names differ */
	struct edited_parts attrs, links;
	struct object_change change;
};

/* ---- trees ---- */

static inline void edited_fill(struct tree *t, uint32_t number, const struct schema_id *id)
{
	struct object *o = tree_edit(t, number);
	char text[SCHEMA_ID_MAX];
	schema_id_format(id, text);
	*o = (struct object){.kind = id->kind,
			     .id = arena_strndup(tree_arena(t), text, strlen(text))};
	if (id->kind == OBJECT_GROUP)
		return;
	const struct dtype *type = dtype_integer(tree_arena(t), 1, true, false, NULL);
	if (id->kind == OBJECT_DATATYPE) {
		o->datatype = type;
		return;
	}
	o->dataset.type = type;
	o->dataset.committed = OBJECT_NONE;
	dspace_null(&o->dataset.space);
}

/* The number of an id in the tree, which gets an object with it if it has none. */
static inline uint32_t edited_number(void *ctx, const struct schema_id *id)
{
	struct tree *t = ctx;
	struct schema_id known;
	uint32_t number;
	for (uint32_t i = 0; i < tree_numbers(t); i++) {
		const char *text = tree_object(t, i)->o.id;
		if (schema_id_parse(text, strlen(text), &known) && schema_id_equal(&known, id))
			return i;
	}
	if (tree_add(t, &number, NULL))
		abort();
	edited_fill(t, number, id);
	return number;
}

/* Links from the root group, so that links and references may name all objects. */
static inline void edited_link_all(struct tree *t, uint32_t number)
{
	const uint32_t n = tree_numbers(t);
	struct object *root = tree_edit(t, 0);
	if (number == 0)
		return;
	root->group.links = arena_array(tree_arena(t), n, sizeof(*root->group.links));
	for (uint32_t i = 1; i < n; i++) {
		char name[16];
		const int len = snprintf(name, sizeof(name), "%u", i);
		root->group.links[root->group.nlinks++] =
			(struct link){.name = arena_strndup(tree_arena(t), name, (size_t)len),
				      .utf8 = true,
				      .target = i};
	}
}

static inline int edited_tree(struct edited *e, const void *text, size_t n, struct tree **out,
			      struct err *err)
{
	struct tree *t = tree_new(256 << 20);
	const struct schema_numbers numbers = {.number = edited_number, .ctx = t};
	struct object o;
	*out = t;
	edited_number(t, &e->root);
	e->number = edited_number(t, &e->id);
	int rc = schema_object_parse(tree_arena(t), tree_arena(t), &e->id, &e->root, text, n,
				     &numbers, NULL, NULL, NULL, &o, err);
	if (rc)
		return rc;
	*tree_edit(t, e->number) = o;
	edited_link_all(t, e->number);
	return tree_finish(t, err);
}

static inline void edited_parts_init(struct edited_parts *p, uint32_t n, uint32_t steps)
{
	*p = (struct edited_parts){.n = n};
	p->at = calloc(n + steps + 1, sizeof(*p->at));
	p->changes = calloc(2 * n + steps + 1, sizeof(*p->changes));
	for (uint32_t i = 0; i < n; i++)
		p->at[i].before = i;
}

static inline void edited_release(struct edited *e)
{
	for (int i = 0; i < 2; i++)
		tree_free(e->trees[i]);
	free(e->attrs.at);
	free(e->attrs.changes);
	free(e->links.at);
	free(e->links.changes);
}

static inline struct object *edited_after(const struct edited *e)
{
	return tree_edit(e->trees[1], e->number);
}

/* steps: the greatest number of steps. An error of the parser is returned. */
static inline int edited_init(struct edited *e, const struct schema_id *id,
			      const struct schema_id *root, const void *text, size_t n,
			      uint32_t steps, struct err *err)
{
	*e = (struct edited){.ops = schema_all()[0], .id = *id, .root = *root};
	int rc = edited_tree(e, text, n, &e->trees[0], err);
	if (!rc)
		rc = edited_tree(e, text, n, &e->trees[1], err);
	if (rc)
		return rc;
	struct object *o = edited_after(e);
	const uint32_t nlinks = o->kind == OBJECT_GROUP ? o->group.nlinks : 0;
	struct arena *a = tree_arena(e->trees[1]);
	edited_parts_init(&e->attrs, o->nattrs, steps);
	edited_parts_init(&e->links, nlinks, steps);
	struct attribute *attrs = arena_array(a, o->nattrs + steps + 1, sizeof(*attrs));
	if (o->nattrs)
		memcpy(attrs, o->attrs, o->nattrs * sizeof(*attrs));
	o->attrs = attrs;
	if (o->kind != OBJECT_GROUP)
		return 0;
	struct link *links = arena_array(a, nlinks + steps + 1, sizeof(*links));
	if (nlinks)
		memcpy(links, o->group.links, nlinks * sizeof(*links));
	o->group.links = links;
	return 0;
}

/* ---- steps ---- */

/* A name that no part has. */
static inline const char *edited_name(struct edited *e, bool link, uint8_t how)
{
	static const char *const stems[] = {"new", "an\"other\\",  "\xc3\xa4 b", "NAME", "CLASS",
					    "\n",  "\xe9\xed\xb3", "created",	 "0"};
	const struct object *o = edited_after(e);
	const char *stem = stems[how % (sizeof(stems) / sizeof(stems[0]))];
	char name[64];
	if (!link && how % 9 == 6)
		stem = "plain";
	snprintf(name, sizeof(name), "%s", stem);
	for (bool used = true; used;) {
		used = false;
		for (uint32_t i = 0; !link && i < o->nattrs; i++)
			used |= strcmp(o->attrs[i].name, name) == 0;
		for (uint32_t i = 0; link && i < o->group.nlinks; i++)
			used |= strcmp(o->group.links[i].name, name) == 0;
		if (used)
			snprintf(name, sizeof(name), "%s%u", stem, e->names++);
	}
	return arena_strndup(tree_arena(e->trees[1]), name, strlen(name));
}

static inline struct attribute edited_attribute(struct edited *e, const char *name, uint8_t how)
{
	struct arena *arena = tree_arena(e->trees[1]);
	static const uint64_t dims[] = {3};
	struct attribute a = {.name = name, .committed = OBJECT_NONE};
	uint8_t value[24] = {how, 1, 2, 3, 4, 5, 6, 7, 8};
	switch (how % 5) {
	case 0:
		a.type = dtype_integer(arena, 4, true, false, NULL);
		dspace_simple(tree_arena(e->trees[1]), &a.space, 1, dims, NULL, NULL);
		break;
	case 1:
		a.type = dtype_string(arena, 15, DTYPE_PAD_NULLPAD, DTYPE_CSET_ASCII, NULL);
		memcpy(value, "DIMENSION_SCALE", 15);
		dspace_scalar(&a.space);
		break;
	case 2:
		a.type = dtype_reference(arena, DTYPE_REF_OBJECT, NULL);
		memset(value, 0, sizeof(value));
		value[0] = (uint8_t)(how % tree_numbers(e->trees[1]) + 1);
		dspace_scalar(&a.space);
		break;
	case 3:
		a.type = dtype_string(arena, 16, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
		memcpy(value, "DIMENSION_SCALE", 16);
		dspace_scalar(&a.space);
		break;
	default:
		a.type = dtype_integer(arena, 8, false, true, NULL);
		dspace_null(&a.space);
		break;
	}
	if (a.space.nelems)
		bytes_append(&a.value.fixed, value, a.space.nelems * a.type->size);
	return a;
}

static inline struct link edited_new_link(struct edited *e, const char *name, uint8_t how)
{
	struct link l = {.name = name, .target = OBJECT_NONE};
	const uint32_t target = how % tree_numbers(e->trees[1]);
	l.cls = how % 3 == 0 ? LINK_HARD : how % 3 == 1 ? LINK_SOFT : LINK_EXTERNAL;
	if (l.cls == LINK_HARD && !tree_object(e->trees[1], target)->linked)
		l.cls = LINK_SOFT;
	if (l.cls == LINK_HARD)
		l.target = target;
	else
		l.path = how & 1 ? "/x/y" : "p\xe9q";
	if (l.cls == LINK_EXTERNAL)
		l.domain = "other.h5";
	return l;
}

static inline void edited_cut(struct edited_parts *p, void *parts, size_t size, uint32_t i)
{
	uint8_t *at = (uint8_t *)parts + i * size;
	memmove(at, at + size, (p->n - i - 1) * size);
	memmove(&p->at[i], &p->at[i + 1], (p->n - i - 1) * sizeof(*p->at));
	p->n--;
}

static inline void edited_step_attr(struct edited *e, enum edited_step step, uint32_t i,
				    uint8_t how)
{
	struct object *o = edited_after(e);
	struct edited_parts *p = &e->attrs;
	const struct attribute *a = &o->attrs[i];
	if (step == EDITED_ADD) {
		o->attrs[p->n] = edited_attribute(e, edited_name(e, false, how), how);
		p->at[p->n].before = CHANGE_NONE;
		o->nattrs = ++p->n;
		return;
	}
	if (p->n == 0)
		return;
	if (step == EDITED_REMOVE) {
		elems_release(&o->attrs[i].value);
		edited_cut(p, o->attrs, sizeof(*o->attrs), i);
		o->nattrs = p->n;
	} else if (step == EDITED_REPLACE) {
		const struct attribute b = edited_attribute(e, a->name, how);
		elems_release(&o->attrs[i].value);
		o->attrs[i] = b;
		p->at[i].changed = true;
	} else if (step == EDITED_RENAME) {
		o->attrs[i].name = edited_name(e, false, how);
		p->at[i].changed = true;
	} else { /* the last one becomes the i-th */
		const struct attribute last = o->attrs[p->n - 1];
		memmove(&o->attrs[i + 1], &o->attrs[i], (p->n - 1 - i) * sizeof(last));
		o->attrs[i] = last;
	}
}

static inline void edited_step_link(struct edited *e, enum edited_step step, uint32_t i,
				    uint8_t how)
{
	struct object *o = edited_after(e);
	struct edited_parts *p = &e->links;
	struct link *links = o->group.links;
	if (step == EDITED_ADD) {
		links[p->n] = edited_new_link(e, edited_name(e, true, how), how);
		p->at[p->n].before = CHANGE_NONE;
		o->group.nlinks = ++p->n;
		return;
	}
	if (p->n == 0)
		return;
	if (step == EDITED_REMOVE) {
		edited_cut(p, links, sizeof(*links), i);
		o->group.nlinks = p->n;
	} else if (step == EDITED_REPLACE) {
		links[i] = edited_new_link(e, links[i].name, how);
		p->at[i].changed = true;
	} else if (step == EDITED_RENAME) {
		links[i].name = edited_name(e, true, how);
		p->at[i].changed = true;
	} else {
		const struct link last = links[p->n - 1];
		memmove(&links[i + 1], &links[i], (p->n - 1 - i) * sizeof(last));
		links[i] = last;
	}
}

static inline void edited_shape(struct edited *e, uint32_t d, uint8_t how)
{
	struct object *o = edited_after(e);
	if (o->kind != OBJECT_DATASET || o->dataset.space.cls != DSPACE_SIMPLE)
		return;
	struct dspace *s = &o->dataset.space;
	uint64_t dims[DSPACE_MAX_RANK];
	struct dspace now;
	memcpy(dims, s->dims, s->rank * sizeof(dims[0]));
	d %= s->rank;
	dims[d] = s->max[d] == DSPACE_UNLIMITED ? dims[d] + how
						: (s->max[d] ? how % (s->max[d] + 1) : 0);
	if (dspace_simple(tree_arena(e->trees[1]), &now, s->rank, dims,
			  dspace_extendible(s) ? s->max : NULL, NULL))
		return;
	e->change.shape |= dims[d] != s->dims[d];
	*s = now;
}

static inline void edited_block(struct edited *e, uint8_t how)
{
	static const char name[] = "0123456789abcdef0123456789abcdef0123456789abcdef"
				   "0123456789abcdef-0123456789abcdef";
	struct object *o = edited_after(e);
	const struct object *before = &tree_object(e->trees[0], e->number)->o;
	struct user_block *b;
	if (!schema_id_equal(&e->id, &e->root))
		return;
	o->group.user_block = NULL;
	if (how % 3 && !user_block_new(tree_arena(e->trees[1]), 512, &how, 1, &b, NULL)) {
		b->object = how % 3 == 2 ? name : NULL;
		o->group.user_block = b;
	}
	e->change.user_block = !user_block_equal(before->group.user_block, o->group.user_block);
}

static inline void edited_comment(struct edited *e, uint8_t how)
{
	static const char *const texts[] = {NULL, "a comment", "caf\xe9 \"\\\n", "\xed\xb3\xbc",
					    "\xc3\xa9"};
	const char *before = tree_object(e->trees[0], e->number)->o.comment;
	struct object *o = edited_after(e);
	o->comment = texts[how % (sizeof(texts) / sizeof(texts[0]))];
	e->change.comment =
		before && o->comment ? strcmp(before, o->comment) != 0 : before != o->comment;
}

static inline void edited_step(struct edited *e, const uint8_t step[static 3])
{
	const bool link = step[0] & EDITED_LINK;
	const enum edited_step what = (enum edited_step)((step[0] & 0x7f) % EDITED_STEPS);
	struct edited_parts *p = link ? &e->links : &e->attrs;
	const uint32_t i = p->n ? step[1] % p->n : 0;
	if (what == EDITED_BLOCK) {
		edited_block(e, step[2]);
		return;
	}
	if (what == EDITED_SHAPE) {
		edited_shape(e, step[1], step[2]);
		return;
	}
	if (what == EDITED_COMMENT) {
		edited_comment(e, step[2]);
		return;
	}
	if (what == EDITED_MOVE && p->n) {
		struct edited_parts last = *p;
		void *at = malloc(sizeof(*p->at));
		memcpy(at, &last.at[p->n - 1], sizeof(*p->at));
		memmove(&p->at[i + 1], &p->at[i], (p->n - 1 - i) * sizeof(*p->at));
		memcpy(&p->at[i], at, sizeof(*p->at));
		free(at);
	}
	if (!link)
		edited_step_attr(e, what, i, step[2]);
	else if (edited_after(e)->kind == OBJECT_GROUP)
		edited_step_link(e, what, i, step[2]);
}

/* ---- the change ---- */

static inline const char *edited_part_name(const struct edited *e, const struct edited_parts *p,
					   int tree, uint32_t i)
{
	const struct object *o = &tree_object(e->trees[tree], e->number)->o;
	return p == &e->links ? o->group.links[i].name : o->attrs[i].name;
}

/* Removed parts first, then those of the second tree that have changed. New parts between old ones
 * are an order of their own, which the document gets only if the order has changed. */
static inline void edited_parts_finish(struct edited *e, struct edited_parts *p, uint32_t before)
{
	bool *stays = calloc(before + 1, sizeof(*stays));
	uint32_t last = 0;
	bool any = false, is_new = false;
	for (uint32_t i = 0; i < p->n; i++)
		if (p->at[i].before != CHANGE_NONE)
			stays[p->at[i].before] = true;
	for (uint32_t i = 0; i < p->n; i++) {
		const char *name = edited_part_name(e, p, 1, i);
		for (uint32_t b = 0; b < before && p->at[i].before == CHANGE_NONE; b++)
			if (!stays[b] && strcmp(edited_part_name(e, p, 0, b), name) == 0) {
				p->at[i].before = b; /* the same name: one replacement */
				p->at[i].changed = stays[b] = true;
			}
	}
	for (uint32_t i = 0; i < p->n; i++) {
		const uint32_t b = p->at[i].before;
		is_new |= b == CHANGE_NONE;
		if (b == CHANGE_NONE)
			continue;
		e->change.reordered |= (any && b < last) || is_new;
		any = true;
		last = b;
	}
	for (uint32_t i = 0; i < before; i++)
		if (!stays[i])
			p->changes[p->nchanges++] = (struct part_change){i, CHANGE_NONE};
	for (uint32_t i = 0; i < p->n; i++)
		if (p->at[i].before == CHANGE_NONE || p->at[i].changed)
			p->changes[p->nchanges++] = (struct part_change){p->at[i].before, i};
	free(stays);
}

static inline int edited_make(struct edited *e, const void *text, size_t n, struct bytes *out,
			      struct err *err)
{
	const struct object *before = &tree_object(e->trees[0], e->number)->o;
	edited_parts_finish(e, &e->attrs, before->nattrs);
	if (before->kind == OBJECT_GROUP)
		edited_parts_finish(e, &e->links, before->group.nlinks);
	e->change.before = e->change.after = e->number;
	e->change.attrs = e->attrs.changes;
	e->change.nattrs = e->attrs.nchanges;
	e->change.links = e->links.changes;
	e->change.nlinks = e->links.nchanges;
	const struct schema_edit edit = {.before = e->trees[0],
					 .after = e->trees[1],
					 .change = &e->change,
					 .now_ns = EDITED_NOW};
	return e->ops->editor->edit_object(text, n, &edit, out, err);
}

/* ---- what the new document must be ---- */

/* A reference to an object that no link leads to becomes a null reference, if its attribute is
 * written anew. */
static inline bool edited_same_value(const struct edited *e, const struct attribute *now,
				     const struct attribute *want)
{
	const uint64_t n = want->space.nelems;
	const uint32_t numbers = tree_numbers(e->trees[1]);
	uint32_t *map = calloc(numbers, sizeof(*map));
	for (uint32_t i = 0; i < numbers; i++)
		map[i] = tree_object(e->trees[1], i)->linked ? i : OBJECT_NONE;
	const bool same = elems_diff(want->type, n, &want->value, &now->value, NULL) == n ||
			  elems_diff(want->type, n, &want->value, &now->value, map) == n;
	free(map);
	return same;
}

static inline const char *edited_same_attrs(const struct edited *e, const struct object *now,
					    const struct object *want)
{
	if (now->nattrs != want->nattrs)
		return "number of attributes";
	for (uint32_t i = 0; i < want->nattrs; i++) {
		const struct attribute *a = &now->attrs[i], *b = &want->attrs[i];
		if (strcmp(a->name, b->name) != 0)
			return "names or order of attributes";
		if (!dtype_equal(a->type, b->type) || a->space.cls != b->space.cls ||
		    a->space.nelems != b->space.nelems)
			return "type or shape of an attribute";
		if (!edited_same_value(e, a, b))
			return "value of an attribute";
	}
	return NULL;
}

static inline bool edited_same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static inline const char *edited_same_links(const struct object *now, const struct object *want)
{
	if (now->group.nlinks != want->group.nlinks)
		return "number of links";
	for (uint32_t i = 0; i < want->group.nlinks; i++) {
		const struct link *a = &now->group.links[i], *b = &want->group.links[i];
		if (strcmp(a->name, b->name) != 0)
			return "names or order of links";
		if (a->cls != b->cls || a->target != b->target ||
		    !edited_same_text(a->path, b->path) || !edited_same_text(a->domain, b->domain))
			return "target of a link";
	}
	return NULL;
}

/* NULL, or how the new document differs from the second tree. */
static inline const char *edited_differs(struct edited *e, const struct bytes *out)
{
	struct arena *a = arena_new(256 << 20);
	const struct schema_numbers numbers = {.number = edited_number, .ctx = e->trees[1]};
	const uint32_t n = tree_numbers(e->trees[1]);
	struct object now;
	int rc = schema_object_parse(a, a, &e->id, &e->root, out->data, out->len, &numbers, NULL,
				     NULL, NULL, &now, NULL);
	const struct object *want = edited_after(e);
	const char *why = rc ? "it cannot be parsed" : edited_same_attrs(e, &now, want);
	if (!why && now.kind == OBJECT_GROUP)
		why = edited_same_links(&now, want);
	if (!why && now.kind == OBJECT_GROUP &&
	    !schema_user_block_same(now.group.user_block, want->group.user_block))
		why = "user block";
	if (!why && now.kind == OBJECT_DATASET &&
	    !dspace_same_dims(&now.dataset.space, &want->dataset.space))
		why = "shape";
	if (!why && !edited_same_text(now.comment, want->comment))
		why = "comment";
	if (!why && now.modified_ns / 10000 != EDITED_NOW / 10000)
		why = "time";
	if (!why && n != tree_numbers(e->trees[1]))
		why = "an id that was not there";
	object_release(&now);
	arena_free(a);
	return why;
}

/* ---- bytes ---- */

static inline bool edited_same_bytes(const char *a, const struct splice_member *m, const char *b,
				     const struct splice_member *n)
{
	return m->end - m->start == n->end - n->start &&
	       memcmp(a + m->start, b + n->start, m->end - m->start) == 0;
}

/* Parts with equal times are ordered by their names, so a new name may give them other times. */
static inline bool edited_has_ties(const struct edited *e, bool links)
{
	const struct object *o = &tree_object(e->trees[0], e->number)->o;
	const uint32_t n = links ? o->group.nlinks : o->nattrs;
	for (uint32_t i = 1; i < n; i++)
		if (links ? o->group.links[i - 1].created_ns == o->group.links[i].created_ns
			  : o->attrs[i - 1].created_ns == o->attrs[i].created_ns)
			return true;
	return false;
}

/* A member of "attributes" or "links" may differ if a part that has changed has its name. key: as
 * Jansson has it. A link whose name is in its member "hsmount" is not compared. */
static inline bool edited_may_differ(const struct edited *e, bool links, const char *key,
				     const char *text, const struct splice_member *m)
{
	const struct edited_parts *p = links ? &e->links : &e->attrs;
	auto_bytes struct bytes scratch = {0};
	struct json_string name;
	if (e->change.reordered || edited_has_ties(e, links) ||
	    memmem(text + m->start, m->end - m->start, "hsmount", 7))
		return true;
	if (!links && (strcmp(key, "NAME") == 0)) /* see add_scale_name() */
		return true;
	if (json_string_decode(key, strlen(key), &scratch, &name))
		abort();
	for (uint32_t i = 0; i < p->n; i++)
		if ((p->at[i].changed || p->at[i].before == CHANGE_NONE) &&
		    strcmp(edited_part_name(e, p, 1, i), name.s) == 0)
			return true;
	return false;
}

static inline const char *edited_moved(const struct edited *e, const char *old, size_t old_n,
				       const struct bytes *out, size_t old_at, size_t at,
				       struct arena *a, bool links)
{
	struct splice_object x, y;
	if (splice_scan(old, old_n, old_at, a, &x, NULL) ||
	    splice_scan((const char *)out->data, out->len, at, a, &y, NULL))
		return NULL; /* null becomes an object */
	for (size_t i = 0; i < x.n; i++) {
		const struct splice_member *m = splice_find(&x, x.members[i].name, NULL);
		const struct splice_member *n = splice_find(&y, m->name, NULL);
		if (n && !edited_may_differ(e, links, m->name, old, m) &&
		    !edited_same_bytes(old, m, (const char *)out->data, n))
			return "bytes of a part that has not changed";
	}
	return NULL;
}

/* The members of "hsmount" that have not changed. It may be gone if it has none. */
static inline const char *edited_extras_differ(const struct edited *e, const char *old,
					       size_t old_n, const struct bytes *out,
					       const struct splice_member *before,
					       const struct splice_member *after, struct arena *a)
{
	struct splice_object x, y = {0};
	if (splice_scan(old, old_n, before->value, a, &x, NULL))
		return NULL; /* null becomes an object */
	if (after && splice_scan((const char *)out->data, out->len, after->value, a, &y, NULL))
		return "hsmount is no object";
	for (size_t i = 0; i < x.n; i++) {
		const struct splice_member *m = &x.members[i];
		const struct splice_member *n = splice_find(&y, m->name, NULL);
		if (!(e->change.comment && strcmp(m->name, "comment") == 0) &&
		    !(e->change.user_block && strcmp(m->name, "userBlock") == 0) &&
		    (!n || !edited_same_bytes(old, splice_find(&x, m->name, NULL),
					      (const char *)out->data, n)))
			return "bytes of another member of hsmount";
	}
	return NULL;
}

/* NULL, or which bytes have changed that should not. */
static inline const char *edited_bytes_differ(const struct edited *e, const char *old, size_t n,
					      const struct bytes *out)
{
	struct arena *a = arena_new(256 << 20);
	struct splice_object x, y;
	const char *why = NULL, *now = (const char *)out->data;
	if (splice_scan(old, n, 0, a, &x, NULL) || splice_scan(now, out->len, 0, a, &y, NULL))
		why = "members";
	for (size_t i = 0, at = 0; !why && i < x.n; i++, at++) {
		const bool links = strcmp(x.members[i].name, "links") == 0;
		const bool has = at < y.n && strcmp(x.members[i].name, y.members[at].name) == 0;
		const struct splice_member *m = &x.members[i], *k = &y.members[at];
		if ((e->change.comment || e->change.user_block) &&
		    strcmp(m->name, "hsmount") == 0) {
			why = edited_extras_differ(e, old, n, out, m, has ? k : NULL, a);
			at -= !has;
			continue;
		}
		if (!has)
			why = "order of members";
		else if (links || strcmp(m->name, "attributes") == 0)
			why = edited_moved(e, old, n, out, m->value, k->value, a, links);
		else if (strcmp(m->name, "lastModified") != 0 &&
			 !(e->change.shape && strcmp(m->name, "shape") == 0) &&
			 !edited_same_bytes(old, m, now, k))
			why = m->name;
		if (why == m->name)
			why = "bytes of a member that has not changed";
	}
	arena_free(a);
	return why;
}

#endif
