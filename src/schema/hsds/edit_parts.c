/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The links and attributes of a document that is edited.
 *
 * The file shows them in the order of `created`. If two times are equal, the names give the order.
 * A part that stays keeps its time unless the time contradicts the order of the file. Then it gets
 * the time of the part in front of it in whole microseconds, plus two microseconds. One microsecond
 * would not be enough, because a double holds seconds only to a quarter of a microsecond. New parts
 * come after all others, unless the order of the old ones has changed, too.
 *
 * If a name occurs twice, the last member counts, and a change removes the others. A member that
 * could not be parsed is replaced if a new part has its name. Pure.
 */
#include "edit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/search.h>
#include <base/utf8.h>

enum { MICROSECOND = 1000 };

/* ---- parts of the trees and of the document ---- */

static uint32_t count_of(const struct object *o, bool links)
{
	return links ? o->group.nlinks : o->nattrs;
}

static const char *what(const struct edit_parts *p)
{
	return p->links ? "link" : "attribute";
}

/* ---- reading ---- */

static int compare_parts(const void *a, const void *b)
{
	const struct edit_part *x = *(struct edit_part *const *)a;
	const struct edit_part *y = *(struct edit_part *const *)b;
	const int order = strcmp(x->name, y->name);
	return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* Returns the index of the last part with this name in p->sorted, plus one. Returns 0 if there is
 * none. */
static size_t find_at(const struct edit_parts *p, const char *name)
{
	const size_t low = LOWER_BOUND(i, p->nsorted, strcmp(p->sorted[i]->name, name) <= 0);
	return low > 0 && strcmp(p->sorted[low - 1]->name, name) == 0 ? low : 0;
}

static struct edit_part *find(const struct edit_parts *p, const char *name)
{
	const size_t at = find_at(p, name);
	return at ? p->sorted[at - 1] : NULL;
}

/* Reads the name of a part. If the parser refuses it, the part has no name, and no change affects
 * it. */
static int read_name(struct edit *e, bool links, struct schema_ctx *ctx, struct edit_part *part)
{
	struct err why = ERR_INIT;
	const char *name = NULL, *key = part->at->name;
	const int rc = links ? schema_link_name(ctx, key, part->json, &name, &why)
			     : schema_ctx_name(ctx, key, strlen(key), &name, false, &why);
	if (rc == -ENOMEM)
		return err_no_memory(e->err);
	part->name = rc ? NULL : name;
	return 0;
}

static int read_parts(struct edit *e, struct edit_parts *p)
{
	struct schema_ctx ctx = {.arena = e->arena};
	int rc = 0;
	for (size_t i = 0; !rc && i < p->n; i++) {
		struct edit_part *part = &p->parts[i];
		part->at = &p->text.members[i];
		part->json = json_object_get(p->json, part->at->name);
		part->created_ns = schema_time_ns(json_object_get(part->json, "created"));
		part->old = UINT32_MAX;
		rc = read_name(e, p->links, &ctx, part);
		if (part->name)
			p->sorted[p->nsorted++] = part;
	}
	bytes_release(&ctx.text);
	if (rc)
		return rc;
	if (p->nsorted > 1)
		qsort(p->sorted, p->nsorted, sizeof(struct edit_part *), compare_parts);
	for (uint32_t i = 0; i < count_of(&e->old.o, p->links); i++) {
		struct edit_part *part = find(p, edit_name_in(&e->old.o, p->links, i));
		if (!part)
			return err_set(e->err, -EIO, "%s: unusual form", p->member);
		part->old = i;
	}
	return 0;
}

/* Finds the member "links" or "attributes" and reads its parts. If the member is null or missing,
 * it counts as an empty object. */
static int read_member(struct edit *e, struct edit_parts *p)
{
	int rc = edit_find_one(e, &e->members, p->member, &p->at);
	p->json = json_object_get(e->old.json, p->member);
	if (!rc && json_is_object(p->json) && p->at)
		rc = splice_scan(e->old.text, e->old.n, p->at->value, e->arena, &p->text, e->err);
	if (rc)
		return rc;
	p->n = p->text.n;
	p->parts = arena_array(e->arena, p->n + 1, sizeof(*p->parts));
	p->sorted = arena_array(e->arena, p->n + 1, sizeof(struct edit_part *));
	p->added = arena_array(e->arena, (size_t)p->nchanges + 1, sizeof(*p->added));
	p->order = arena_array(e->arena, p->n + p->nchanges + 1, sizeof(struct edit_part *));
	if (!p->parts || !p->sorted || !p->added || !p->order)
		return err_no_memory(e->err);
	return read_parts(e, p);
}

/* ---- changes ---- */

/* Removes the members that are hidden behind the last one of this name. Fails with -EIO if two
 * members with different keys are links of the same name, because they cannot be distinguished. */
static int claim(struct edit *e, struct edit_parts *p, struct edit_part *part)
{
	for (size_t i = find_at(p, part->name); i > 0; i--) {
		struct edit_part *other = p->sorted[i - 1];
		if (strcmp(other->name, part->name) != 0)
			break;
		if (other == part)
			continue;
		if (strcmp(other->at->name, part->at->name) != 0)
			return err_set(e->err, -EIO, "two members of %s are %s \"%.200s\"",
				       p->member, what(p), part->name);
		other->gone = true;
	}
	return 0;
}

static int lacks(struct edit *e, const struct edit_parts *p, const char *name)
{
	return err_set(e->err, -EIO, "the document has no %s \"%.200s\"", what(p), name);
}

/* Notes the change of a part that is removed, replaced or renamed. */
static int take_old(struct edit *e, struct edit_parts *p, const struct part_change *c)
{
	const char *name = edit_name_in(e->before, p->links, c->before);
	struct edit_part *part = find(p, name);
	if (!part || part->old == UINT32_MAX || part->change)
		return lacks(e, p, name);
	part->change = c;
	return claim(e, p, part);
}

/* Makes room for the name that a part has after the change. If the part that has this name is
 * removed at the same time, the new part replaces it. A part of this name that the file did not
 * show is removed. */
static int take_new(struct edit *e, struct edit_parts *p, const struct part_change *c)
{
	struct edit_part *part = find(p, edit_name_in(e->after, p->links, c->after));
	const bool is_new = c->before == CHANGE_NONE;
	if (part && part->change == c)
		return 0;
	if (part && !part->change) {
		part->gone = true;
		const int rc = claim(e, p, part);
		if (rc)
			return rc;
	} else if (part && is_new && part->change->after == CHANGE_NONE) {
		part->change = c;
		return 0;
	}
	if (is_new)
		p->added[p->nadded++] = (struct edit_part){.change = c, .old = UINT32_MAX};
	return 0;
}

/* Finds out whether a domain can hold the attribute. If the document has an attribute of this name
 * already, its name is no reason against it. */
static int refuse_attribute(struct edit *e, const struct part_change *c, const char **why)
{
	struct attribute a = e->after->attrs[c->after];
	if (c->before != CHANGE_NONE && strcmp(a.name, e->before->attrs[c->before].name) == 0)
		a.name = "a";
	return schema_refused_attribute(e->arena, &a, why) ? err_no_memory(e->err) : 0;
}

static int refuse(struct edit *e, const struct edit_parts *p, const struct part_change *c)
{
	const char *why = NULL;
	const int rc = p->links ? 0 : refuse_attribute(e, c, &why);
	if (rc)
		return rc;
	if (p->links)
		why = schema_refused_link(&e->after->group.links[c->after]);
	if (!why)
		return 0;
	return err_set(e->err, -EOPNOTSUPP, "%s \"%.200s\": a domain cannot hold %s", what(p),
		       edit_name_in(e->after, p->links, c->after), why);
}

static int take_changes(struct edit *e, struct edit_parts *p)
{
	bool fresh = false;
	int rc = 0;
	for (uint32_t i = 0; !rc && i < p->nchanges; i++)
		if (p->changes[i].before != CHANGE_NONE)
			rc = take_old(e, p, &p->changes[i]);
	for (uint32_t i = 0; !rc && i < p->nchanges; i++) {
		if (p->changes[i].after == CHANGE_NONE)
			continue;
		fresh = true;
		rc = refuse(e, p, &p->changes[i]);
		if (!rc)
			rc = take_new(e, p, &p->changes[i]);
	}
	const char *why = !rc && fresh ? schema_refused_object(e->after) : NULL;
	if (why)
		return err_set(e->err, -EOPNOTSUPP, "a domain cannot hold %s", why);
	for (size_t i = 0; i < p->n; i++)
		if (p->parts[i].change && p->parts[i].change->after == CHANGE_NONE)
			p->parts[i].gone = true;
	return rc;
}

/* The loader restores the terminator of NAME if CLASS says that the dataset is a dimension scale
 * (dimension_scale.c). So if CLASS changes, NAME is written anew, as the file shows it. */
static int add_scale_name(struct edit *e, struct edit_parts *p)
{
	struct part_change name = {CHANGE_NONE, CHANGE_NONE};
	bool is_class = false;
	for (uint32_t i = 0; i < p->nchanges; i++) {
		const struct part_change *c = &p->changes[i];
		is_class |= c->before != CHANGE_NONE &&
			    strcmp(e->before->attrs[c->before].name, "CLASS") == 0;
		is_class |= c->after != CHANGE_NONE &&
			    strcmp(e->after->attrs[c->after].name, "CLASS") == 0;
	}
	for (uint32_t i = 0; i < e->before->nattrs; i++)
		if (strcmp(e->before->attrs[i].name, "NAME") == 0)
			name.before = i;
	for (uint32_t i = 0; i < e->after->nattrs; i++)
		if (strcmp(e->after->attrs[i].name, "NAME") == 0)
			name.after = i;
	if (!is_class || name.before == CHANGE_NONE || name.after == CHANGE_NONE ||
	    e->after->attrs[name.after].type->cls != DTYPE_STRING)
		return 0;
	for (uint32_t i = 0; i < p->nchanges; i++)
		if (p->changes[i].before == name.before || p->changes[i].after == name.after)
			return 0;
	struct part_change *all = arena_array(e->arena, (size_t)p->nchanges + 1, sizeof(*all));
	if (!all)
		return err_no_memory(e->err);
	memcpy(all, p->changes, p->nchanges * sizeof(*all));
	all[p->nchanges++] = name;
	p->changes = all;
	return 0;
}

/* ---- order ---- */

static void place(struct edit_parts *p, struct edit_part *part)
{
	if (!part || part->placed || part->gone)
		return;
	part->placed = true;
	p->order[p->norder++] = part;
}

static int take_order(struct edit *e, struct edit_parts *p)
{
	const uint32_t n = count_of(e->after, p->links);
	struct edit_part **changed = arena_array(e->arena, (size_t)n + 1, sizeof(*changed));
	if (!changed)
		return err_no_memory(e->err);
	for (size_t i = 0; i < p->n; i++)
		if (p->parts[i].change && !p->parts[i].gone)
			changed[p->parts[i].change->after] = &p->parts[i];
	for (size_t i = 0; i < p->nadded; i++)
		changed[p->added[i].change->after] = &p->added[i];
	for (uint32_t i = 0; i < n; i++) {
		const char *name = edit_name_in(e->after, p->links, i);
		struct edit_part *part = changed[i] ? changed[i] : find(p, name);
		if (!part || (!changed[i] && (part->change || part->old == UINT32_MAX)))
			return lacks(e, p, name);
		place(p, part);
	}
	return 0;
}

static int64_t next_time(int64_t ns)
{
	return ns < 0 ? 0 : ns - ns % MICROSECOND + 2 * MICROSECOND;
}

/* Gives times to new parts, and to parts whose own time contradicts the order. */
static void set_times(const struct edit *e, struct edit_parts *p)
{
	const int64_t now = e->want->now_ns - e->want->now_ns % MICROSECOND;
	const struct edit_part *last = NULL;
	const char *last_name = NULL;
	for (size_t i = 0; i < p->norder; i++) {
		struct edit_part *part = p->order[i];
		const char *name = edit_part_name(e, p, part);
		const int64_t own = part->at ? part->created_ns : now;
		const int64_t room = !part->at || (last && last->retimed) ? MICROSECOND : 1;
		bool fits = !last || own - room >= last->created_ns;
		if (last && part->at && !last->retimed && own == last->created_ns)
			fits = strcmp(last_name, name) < 0;
		part->created_ns = fits ? own : next_time(last->created_ns);
		part->retimed = !part->at || !fits;
		last = part;
		last_name = name;
	}
}

int edit_parts_plan(struct edit *e, bool links, struct edit_parts *p)
{
	const struct object_change *c = e->want->change;
	*p = (struct edit_parts){
		.links = links,
		.member = links ? "links" : "attributes",
		.nchanges = links ? c->nlinks : c->nattrs,
		.changes = links ? c->links : c->attrs,
	};
	if (!p->nchanges && !c->reordered)
		return 0;
	int rc = !links && e->after->kind == OBJECT_DATASET ? add_scale_name(e, p) : 0;
	if (!rc)
		rc = read_member(e, p);
	if (!rc)
		rc = take_changes(e, p);
	if (!rc && c->reordered) {
		rc = take_order(e, p);
	} else if (!rc) {
		/* The order of the document stays. New parts follow in the order of the file. */
		for (uint32_t i = 0; i < count_of(&e->old.o, p->links); i++)
			place(p, find(p, edit_name_in(&e->old.o, p->links, i)));
		for (size_t i = 0; i < p->nadded; i++)
			place(p, &p->added[i]);
	}
	if (!rc)
		set_times(e, p);
	return rc;
}

/* ---- writing ---- */

/* Gets the JSON text of `created` of a part of the document; "0" if it has none. */
static int find_created(struct edit *e, const struct edit_part *part, struct piece *out)
{
	struct splice_object o;
	*out = (struct piece){"0", 1};
	if (!json_is_object(part->json))
		return 0;
	const int rc = splice_scan(e->old.text, e->old.n, part->at->value, e->arena, &o, e->err);
	const struct splice_member *created = rc ? NULL : splice_find(&o, "created", NULL);
	if (created)
		*out = (struct piece){e->old.text + created->value, created->end - created->value};
	return rc;
}

/* Writes the member of a part that is new or has changed. */
static int emit(struct edit *e, const struct edit_parts *p, const struct edit_part *part)
{
	struct piece created;
	struct schema_emit emit = {.tree = e->want->after,
				   .arena = e->arena,
				   .w = e->splice.w,
				   .lists = e->lists,
				   .err = e->err};
	int rc = 0;
	if (!part->retimed) {
		rc = find_created(e, part, &created);
		emit.created = &created;
	}
	if (!rc && p->links) {
		struct link l = edit_link(e, part);
		l.created_ns = part->created_ns;
		rc = schema_emit_link(&emit, &l);
	} else if (!rc) {
		struct attribute a = e->after->attrs[part->change->after];
		a.created_ns = part->created_ns;
		rc = schema_emit_attribute(&emit, &a);
	}
	e->splice.w = emit.w;
	e->lists = emit.lists;
	return rc;
}

/* Replaces only `created` of a part, or adds it. */
static int write_created(struct edit *e, const struct edit_part *part)
{
	struct splice_object o;
	size_t count;
	const int rc = splice_scan(e->old.text, e->old.n, part->at->value, e->arena, &o, e->err);
	if (rc)
		return rc;
	const struct splice_member *m = splice_find(&o, "created", &count);
	splice_begin(&e->splice, !m && o.n > 0);
	if (!m)
		write_key(&e->splice.w, "created");
	write_time(&e->splice.w, part->created_ns);
	splice_commit(&e->splice, m ? m->value : splice_end(&o), m ? m->end : splice_end(&o));
	return 0;
}

/* Returns whether a name influences how values are read, see dimension_scale.c. */
static bool is_scale_name(const char *name)
{
	return strcmp(name, "CLASS") == 0 || strcmp(name, "NAME") == 0;
}

/* *out is true if a part has only got another name, so that the bytes of its value can stay. */
static int is_rename(struct edit *e, const struct edit_parts *p, const struct edit_part *part,
		     bool *out)
{
	const char *name = edit_part_name(e, p, part);
	*out = false;
	if (part->old == UINT32_MAX || strcmp(name, part->name) == 0)
		return 0;
	if (!p->links && (is_scale_name(name) || is_scale_name(part->name)))
		return 0;
	if (!p->links)
		return edit_same_attribute(e, &e->old.o.attrs[part->old],
					   &e->after->attrs[part->change->after], out);
	const struct link l = edit_link(e, part);
	*out = utf8_valid(name, strlen(name)) && !json_object_get(part->json, "hsmount") &&
	       edit_same_link(e, &e->old.o.group.links[part->old], &l);
	return 0;
}

static int write_changed(struct edit *e, const struct edit_parts *p, const struct edit_part *part)
{
	const char *name = edit_part_name(e, p, part);
	bool rename;
	int rc = is_rename(e, p, part, &rename);
	if (rc)
		return rc;
	splice_begin(&e->splice, false);
	if (rename) {
		write_word(&e->splice.w, name);
		splice_commit(&e->splice, part->at->start, part->at->name_end);
		return part->retimed ? write_created(e, part) : 0;
	}
	rc = emit(e, p, part);
	splice_commit(&e->splice, part->at->start, part->at->end);
	return rc;
}

static int write_added(struct edit *e, struct edit_parts *p, bool empty)
{
	const bool object = json_is_object(p->json) && p->at;
	const size_t end = object ? splice_end(&p->text) : splice_end(&e->members);
	struct writer *w = &e->splice.w;
	int rc = 0;
	if (!p->nadded)
		return 0;
	splice_begin(&e->splice, object ? !empty : !p->at);
	if (!p->at)
		write_key(w, p->member);
	if (!object)
		write_open(w, '{');
	for (size_t i = 0; !rc && i < p->nadded; i++)
		rc = emit(e, p, &p->added[i]);
	if (!object)
		write_close(w, '}');
	splice_commit(&e->splice, p->at && !object ? p->at->value : end,
		      p->at && !object ? p->at->end : end);
	return rc;
}

int edit_parts_write(struct edit *e, struct edit_parts *p)
{
	bool empty = true;
	int rc = 0;
	for (size_t i = 0; !rc && i < p->n; i++) {
		const struct edit_part *part = &p->parts[i];
		if (part->gone)
			splice_remove_member(&e->splice, &p->text, i, empty);
		else if (part->change)
			rc = write_changed(e, p, part);
		else if (part->retimed)
			rc = write_created(e, part);
		empty = empty && part->gone;
	}
	return rc ? rc : write_added(e, p, empty);
}
