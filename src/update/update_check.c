/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks whether a domain can hold what has changed. The rules are those of an import. What the
 * domain had before and what cannot change, such as the type of a dataset, passes, whatever the
 * rules say.
 */
#include "update_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct check {
	const struct update *u;
	const struct object_change **changes; /* by number in the new scan; NULL if the object has
					       * none */
	struct err *err;
};

static bool has_part(const struct part_change *parts, uint32_t n, uint32_t after)
{
	for (uint32_t i = 0; i < n; i++)
		if (parts[i].after == after)
			return true;
	return false;
}

static bool is_new_attribute(const struct check *c, const struct schema_refusal *r)
{
	const struct object_change *change = c->changes[r->object];
	const struct object *o = object_of(c->u->now, r->object);
	for (uint32_t i = 0; change && i < o->nattrs; i++)
		if (strcmp(o->attrs[i].name, r->attribute) == 0)
			return has_part(change->attrs, change->nattrs, i);
	return false;
}

static bool is_new_link(const struct check *c, const struct schema_refusal *r)
{
	const struct object_change *change = c->changes[r->object];
	const struct object *o = object_of(c->u->now, r->object);
	for (uint32_t i = 0; change && i < o->group.nlinks; i++)
		if (strcmp(o->group.links[i].name, r->link) == 0)
			return has_part(change->links, change->nlinks, i);
	return false;
}

/* Returns whether the change is the reason of a refusal. */
static bool is_new(const struct check *c, const struct schema_refusal *r)
{
	if (c->u->same[r->object] == OBJECT_NONE)
		return true;
	if (r->attribute)
		return is_new_attribute(c, r);
	if (r->link)
		return is_new_link(c, r);
	if (r->comment)
		return c->changes[r->object] && c->changes[r->object]->comment;
	return !r->is_fixed && c->changes[r->object];
}

static int refuse(void *ctx, const struct schema_refusal *r)
{
	const struct check *c = ctx;
	const char *part = r->attribute ? r->attribute : r->link;
	if (!is_new(c, r))
		return 0;
	return err_set(c->err, -EOPNOTSUPP, "%s%s%s: a domain cannot hold it: %s",
		       c->u->now->paths[r->object],
		       r->attribute ? ", attribute "
		       : r->link    ? ", link "
		       : r->comment ? ", comment"
				    : "",
		       part ? part : "", r->why);
}

/* A library may have given the place of a dataset to another one, although writes to it were
 * refused. */
static int check_removed(const struct update *u, struct err *err)
{
	for (uint32_t i = 0; u->opt->must_stay && i < u->change.nremoved; i++) {
		const uint32_t before = u->change.removed[i];
		const uint32_t opened = u->before->opened[before];
		if (opened != OBJECT_NONE && u->opt->must_stay(u->opt->must_stay_ctx, opened))
			return err_set(err, -EOPNOTSUPP,
				       "dataset %s was removed, but a write to its place in the "
				       "file was refused before, so data of other datasets may be "
				       "missing",
				       u->before->paths[before]);
	}
	return 0;
}

int update_check(struct update *u, struct err *err)
{
	struct check c = {.u = u, .err = err};
	c.changes = calloc(tree_numbers(u->now->tree), sizeof(*c.changes));
	if (!c.changes)
		return err_no_memory(err);
	for (uint32_t i = 0; i < u->change.nchanged; i++)
		c.changes[u->change.changed[i].after] = &u->change.changed[i];
	const int rc = u->schema->writer->refusals(u->now->tree, refuse, &c);
	free(c.changes);
	return rc ? rc : check_removed(u, err);
}
