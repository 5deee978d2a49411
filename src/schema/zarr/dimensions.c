/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives each axis of each array its dimension. A Zarr store has only names of dimensions, and
 * nothing ensures that all axes with one name have the same length. First, each one-dimensional
 * array x along x defines the dimension x of its group. Then these rules choose the dimension of
 * each axis, from the root group down and in the order of names. "Its group" is that of the array.
 *
 *   1. If its group has a dimension of this name and this length, the axis has that one.
 *   2. If its group has no dimension of this name, the axis has that of the nearest group above
 *      which has this name and this length. If there is none, its group gets a new one.
 *   3. If its group has the name with another length, the axis has NAME_LENGTH of its group.
 *   4. If it has no name, or one that cannot be used, it has _Anonymous_Dim_LENGTH of the root.
 *
 * A dimension is a link of its group. So if a group in there has its name, rule 3 applies, too.
 * Pure.
 */
#include "model_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <base/utf8.h>

#define NON_COORDINATE "_nc4_non_coord_" /* libnetcdf's prefix of a variable that is none */

enum { NAME_BYTES = ZARR_NAME_MAX + 32 /* of a name with a length behind it */ };

/* ---- names ---- */

static bool is_usable(const struct json_string *name)
{
	return name->n > 0 && name->n <= ZARR_NAME_MAX && !name->has_nul && !name->literal &&
	       utf8_valid(name->s, name->n) && strcmp(name->s, ".") != 0 &&
	       strcmp(name->s, "..") != 0 &&
	       strncmp(name->s, NON_COORDINATE, sizeof(NON_COORDINATE) - 1) != 0;
}

/* Reads the name of one dimension. *out becomes NULL if the dimension is anonymous. */
static int read_name(struct zarr_build *b, const json_t *v, const char *key, const char **out,
		     struct err *err)
{
	struct json_string name;
	char brief[84];
	*out = NULL;
	if (json_is_null(v))
		return 0;
	if (json_is_string(v)) {
		const int rc = zarr_string(b, v, &name, err);
		if (rc || name.n == 0)
			return rc;
	}
	if (!json_is_string(v) || !is_usable(&name)) {
		tree_note(b->tree, json_is_string(v) ? TREE_ALTERED : TREE_DAMAGE,
			  "%s: %s cannot be the name of a dimension", key,
			  zarr_json_brief(b, v, brief));
		return 0;
	}
	char *copy = arena_strndup(b->scratch, name.s, name.n);
	if (!copy)
		return err_errno(err, -ENOMEM, "dimension");
	for (char *slash = copy; (slash = strchr(slash, '/'));)
		*slash = '_';
	*out = copy;
	return 0;
}

int zarr_dimension_names(struct zarr_build *b, const struct zarr_array *a, const char *key,
			 struct zarr_variable *v, struct err *err)
{
	size_t n = json_array_size(a->names);
	const char *word = json_string_value(json_array_get(a->names, 0));
	int rc = 0;
	if (!a->names)
		return 0;
	/* ["_scalar_"] stands for an empty list. */
	if (n == 1 && word && strcmp(word, "_scalar_") == 0)
		n = 0;
	if (n != a->rank) {
		tree_note(b->tree, TREE_DAMAGE, "%s: %s has %zu names for %u dimensions", key,
			  a->names_member, n, a->rank);
		return 0;
	}
	v->names = arena_array(b->scratch, n + 1, sizeof(*v->names));
	if (!v->names)
		return err_errno(err, -ENOMEM, "dimensions");
	for (size_t i = 0; !rc && i < n; i++)
		rc = read_name(b, json_array_get(a->names, i), key, &v->names[i], err);
	return rc;
}

/* ---- dimensions ---- */

static struct zarr_dimension *find(const struct zarr_node *group, const char *name)
{
	struct zarr_dimension *d = NULL;
	HASH_FIND_STR(group->dims, name, d);
	return d;
}

/* Makes a dimension. Returns 0 with NULL in *out if a group has the name. */
static int define(struct zarr_build *b, struct zarr_node *group, const char *name, uint64_t length,
		  struct zarr_dimension **out, struct err *err)
{
	const struct zarr_node *child = zarr_shown_child(b->m, group, name);
	*out = NULL;
	if (child && !child->variable)
		return 0;
	struct zarr_dimension *d = arena_alloc(b->scratch, sizeof(*d));
	const char *copy = arena_strndup(b->arena, name, strlen(name));
	if (!d || !copy)
		return err_errno(err, -ENOMEM, "dimension");
	*d = (struct zarr_dimension){.name = copy, .length = length, .group = group};
	HASH_ADD_KEYPTR(hh, group->dims, d->name, strlen(d->name), d);
	if (!d->hh.tbl)
		return err_errno(err, -ENOMEM, "dimension");
	*out = d;
	return 0;
}

/* Finds the dimension of a group, or makes it if the name is free. *out becomes NULL if the one of
 * this name has another length, or if a group has the name. */
static int own(struct zarr_build *b, struct zarr_node *group, const char *name, uint64_t length,
	       struct zarr_dimension **out, bool *is_new, struct err *err)
{
	*out = find(group, name);
	*is_new = !*out;
	if (!*out)
		return define(b, group, name, length, out, err);
	if ((*out)->length != length)
		*out = NULL;
	return 0;
}

static struct zarr_dimension *find_above(const struct zarr_node *group, const char *name,
					 uint64_t length)
{
	for (const struct zarr_node *up = group->parent; up; up = up->parent) {
		struct zarr_dimension *d = find(up, name);
		if (d && d->length == length)
			return d;
	}
	return NULL;
}

static int other_length(struct zarr_build *b, const struct zarr_variable *v, const char *name,
			uint64_t length, struct zarr_dimension **out, struct err *err)
{
	char other[NAME_BYTES], path[ZARR_KEY_MAX + 1];
	const struct zarr_dimension *known = find(v->group, name);
	bool is_new;
	const int n = snprintf(other, sizeof(other), "%s_%" PRIu64, name, length);
	*out = NULL;
	if (n > ZARR_NAME_MAX)
		return 0;
	const int rc = own(b, v->group, other, length, out, &is_new, err);
	if (!rc && *out && is_new) {
		zarr_node_path(v->node, path);
		if (known)
			tree_note(b->tree, TREE_ALTERED,
				  "%s: dimension %s is %" PRIu64 " here, %" PRIu64 " elsewhere: %s",
				  path, name, length, known->length, other);
		else
			tree_note(b->tree, TREE_ALTERED,
				  "%s: a group is called %s like the dimension: %s", path, name,
				  other);
	}
	return rc;
}

static int resolve(struct zarr_build *b, struct zarr_variable *v, uint32_t axis, struct err *err)
{
	struct zarr_dimension **out = &v->dims[axis];
	const char *name = v->names ? v->names[axis] : NULL;
	const uint64_t length = v->shape[axis];
	char anonymous[64];
	bool is_new;
	int rc = 0;
	if (name) {
		*out = find(v->group, name) ? NULL : find_above(v->group, name, length);
		if (!*out)
			rc = own(b, v->group, name, length, out, &is_new, err);
		if (!rc && !*out)
			rc = other_length(b, v, name, length, out, err);
	}
	if (!rc && !*out) {
		snprintf(anonymous, sizeof(anonymous), "_Anonymous_Dim_%" PRIu64, length);
		rc = own(b, b->m->root, anonymous, length, out, &is_new, err);
	}
	return rc;
}

/* ---- links ---- */

static void leave_out(struct zarr_build *b, struct zarr_variable *v, const char *why)
{
	char path[ZARR_KEY_MAX + 1];
	zarr_node_path(v->node, path);
	tree_note(b->tree, TREE_UNSUPPORTED, "%s: %s", path, why);
	v->link_name = NULL;
	v->node->is_shown = false;
}

/* Chooses the name of the variable's link, and makes the variable the coordinate of its first
 * dimension if both have the same name. */
static int choose_link(struct zarr_build *b, struct zarr_variable *v, struct err *err)
{
	struct zarr_dimension *first = v->rank ? v->dims[0] : NULL;
	struct zarr_dimension *same = find(v->group, v->name);
	v->link_name = v->name;
	if (first && first == same)
		first->coordinate = v;
	if (!same || first == same)
		return 0;
	const size_t prefix = sizeof(NON_COORDINATE) - 1, n = strlen(v->name);
	char *name = arena_alloc(b->arena, prefix + n + 1);
	if (!name)
		return err_errno(err, -ENOMEM, "variable");
	memcpy(name, NON_COORDINATE, prefix);
	memcpy(name + prefix, v->name, n + 1);
	v->link_name = name;
	if (zarr_shown_child(b->m, v->group, name))
		leave_out(b, v,
			  "its name is that of a dimension, and the name of its link is taken");
	return 0;
}

static int resolve_all(struct zarr_build *b, struct zarr_variable *v, struct err *err)
{
	int rc = 0;
	v->dims = arena_array(b->scratch, v->rank + 1, sizeof(struct zarr_dimension *));
	if (!v->dims)
		return err_errno(err, -ENOMEM, "dimensions");
	for (uint32_t i = 0; !rc && i < v->rank; i++) {
		rc = resolve(b, v, i, err);
		if (!rc && !v->dims[i]) {
			leave_out(b, v, "no name is free for one of its dimensions");
			break;
		}
	}
	return rc;
}

int zarr_dimensions(struct zarr_build *b, struct err *err)
{
	struct zarr_dimension *d;
	int rc = 0;
	/* An array x along x defines the dimension x. */
	for (struct zarr_variable *v = b->variables; !rc && v; v = v->next)
		if (v->rank == 1 && v->names && v->names[0] && strcmp(v->names[0], v->name) == 0)
			rc = define(b, v->group, v->name, v->shape[0], &d, err);
	for (struct zarr_variable *v = b->variables; !rc && v; v = v->next)
		rc = resolve_all(b, v, err);
	for (struct zarr_variable *v = b->variables; !rc && v; v = v->next)
		if (v->node->is_shown)
			rc = choose_link(b, v, err);
	return rc;
}
