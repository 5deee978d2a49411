/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States of an object between the old and the new one, for objects whose document is put twice.
 *
 * A group may have a link whose name leads to another object now. A group that has the links of
 * both states gives the new object another name, which is that of BETWEEN_PREFIX and its id.
 * Readers see this name until the group is put again. Without it, two groups that exchange objects
 * under equal names could not be put one after the other: one of the objects would have no link in
 * between, and would be lost if the journal were lost at this moment.
 */
#include "update_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>

#define BETWEEN_PREFIX "hsmount-moves-"

enum { NAME_BYTES = 128 };

/* ---- shapes ---- */

bool update_is_two_steps(const struct update *u, const struct object_change *c)
{
	const struct object *old = object_of(u->before, c->before);
	const struct object *new = object_of(u->now, c->after);
	bool smaller = false, larger = false;
	if (new->kind != OBJECT_DATASET || !c->shape)
		return false;
	const struct dspace *a = &old->dataset.space, *b = &new->dataset.space;
	for (uint32_t i = 0; i < a->rank && i < b->rank; i++) {
		smaller |= b->dims[i] < a->dims[i];
		larger |= b->dims[i] > a->dims[i];
	}
	return smaller && larger;
}

int update_common_shape(const struct update *u, const struct object_change *c, struct object *state,
			struct err *err)
{
	const struct dspace *old = &object_of(u->before, c->before)->dataset.space;
	uint64_t dims[DSPACE_MAX_RANK];
	*state = *object_of(u->now, c->after);
	const struct dspace now = state->dataset.space;
	for (uint32_t i = 0; i < now.rank; i++)
		dims[i] = min_u64(now.dims[i], old->dims[i]);
	return dspace_simple(u->arena, &state->dataset.space, now.rank, dims, now.max, err);
}

/* ---- links ---- */

struct links {
	const struct update *u;
	const struct object *old, *new;
	const struct object_change *c;
	const char **removed; /* names, sorted */
	size_t nremoved;
	bool has_prefix; /* a link of either state begins with BETWEEN_PREFIX */
	struct object *state;
	struct part_change *changes;
	uint32_t nchanges;
};

static bool has_prefix(const struct object *group)
{
	for (uint32_t i = 0; i < group->group.nlinks; i++)
		if (strncmp(group->group.links[i].name, BETWEEN_PREFIX, strlen(BETWEEN_PREFIX)) ==
		    0)
			return true;
	return false;
}

static bool has_link(const struct object *group, const char *name)
{
	for (uint32_t i = 0; i < group->group.nlinks; i++)
		if (strcmp(group->group.links[i].name, name) == 0)
			return true;
	return false;
}

/* Makes a name that the group has in neither state. Returns NULL if out of memory. */
static const char *name_between(const struct links *l, const char *id)
{
	char name[NAME_BYTES];
	int n = snprintf(name, sizeof(name), BETWEEN_PREFIX "%s", id);
	while (l->has_prefix && n + 1 < NAME_BYTES &&
	       (has_link(l->old, name) || has_link(l->new, name))) {
		name[n++] = '_';
		name[n] = '\0';
	}
	return arena_strndup(l->u->arena, name, (size_t)n);
}

static int make_links(struct links *l, struct err *err)
{
	const uint32_t n = l->new->group.nlinks, more = l->c->nlinks;
	struct arena *a = l->u->arena;
	struct link *links = arena_array(a, (size_t)n + more + 1, sizeof(*links));
	l->changes = arena_array(a, (size_t)more + 1, sizeof(*l->changes));
	l->removed = arena_array(a, (size_t)more + 1, sizeof(*l->removed));
	if (!links || !l->changes || !l->removed)
		return err_no_memory(err);
	if (n)
		memcpy(links, l->new->group.links, n * sizeof(*links));
	*l->state = *l->new;
	l->state->group.links = links;
	for (uint32_t i = 0; i < more; i++)
		if (l->c->links[i].after == CHANGE_NONE)
			l->removed[l->nremoved++] = l->old->group.links[l->c->links[i].before].name;
	if (l->nremoved)
		qsort(l->removed, l->nremoved, sizeof(*l->removed), str_compare);
	l->has_prefix = has_prefix(l->old) || has_prefix(l->new);
	return 0;
}

/* Returns whether the group had another link of this name. */
static bool is_taken(const struct links *l, const struct part_change *link)
{
	const char *name = l->new->group.links[link->after].name;
	if (link->before == CHANGE_NONE)
		return l->nremoved &&
		       bsearch(&name, l->removed, l->nremoved, sizeof(*l->removed), str_compare);
	return strcmp(l->old->group.links[link->before].name, name) == 0;
}

static int add_link(struct links *l, const struct part_change *link, struct err *err)
{
	const uint32_t n = l->state->group.nlinks;
	struct link more = l->new->group.links[link->after];
	if (!is_taken(l, link)) {
		if (link->before == CHANGE_NONE)
			l->changes[l->nchanges++] = *link;
		return 0;
	}
	if (more.cls != LINK_HARD)
		return 0;
	more.name = name_between(l, object_of(l->u->now, more.target)->id);
	more.utf8 = true;
	if (!more.name)
		return err_no_memory(err);
	l->changes[l->nchanges++] = (struct part_change){CHANGE_NONE, n};
	l->state->group.links[n] = more;
	l->state->group.nlinks = n + 1;
	return 0;
}

int update_both_links(const struct update *u, const struct object_change *c, struct object *state,
		      struct object_change *change, struct err *err)
{
	struct links l = {.u = u,
			  .old = object_of(u->before, c->before),
			  .new = object_of(u->now, c->after),
			  .c = c,
			  .state = state};
	int rc = make_links(&l, err);
	for (uint32_t i = 0; !rc && i < c->nlinks; i++)
		if (c->links[i].after != CHANGE_NONE)
			rc = add_link(&l, &c->links[i], err);
	*change = (struct object_change){
		.before = c->before, .after = c->after, .nlinks = l.nchanges, .links = l.changes};
	return rc;
}
