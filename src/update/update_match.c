/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which objects of a file are objects of the base. The header of an object stays where it is as
 * long as the object exists. The reverse is not true: a new object may be at the address of a
 * deleted one. So what is at the same address counts as the same object only if nothing tells the
 * two apart: the kind, the version of the header, the time of creation if both headers have one,
 * and for a dataset or a committed type what cannot change during its life. A wrong guess gives an
 * object the id of another one; its content is compared in any case.
 */
#include "update_internal.h"

#include <string.h>

#include <data/dtype.h>
#include <data/tree_diff.h>

static bool same_pipeline(const struct pipeline *a, const struct pipeline *b)
{
	if (a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->f[i].id != b->f[i].id || a->f[i].nparams != b->f[i].nparams ||
		    memcmp(a->f[i].params, b->f[i].params,
			   a->f[i].nparams * sizeof(a->f[i].params[0])) != 0)
			return false;
	return true;
}

static bool same_fill(const struct dataset *a, const struct dataset *b)
{
	if (a->fill_defined != b->fill_defined)
		return false;
	return !a->fill_defined || elems_diff(a->type, 1, &a->fill, &b->fill, NULL) == 1;
}

static bool same_dataset(const struct update *u, uint32_t before, uint32_t now)
{
	const struct dataset *a = &tree_object(u->before->tree, before)->o.dataset;
	const struct dataset *b = &tree_object(u->now->tree, now)->o.dataset;
	const struct h5file_dataset *fa = h5file_dataset(u->before->file, before);
	const struct h5file_dataset *fb = h5file_dataset(u->now->file, now);
	if (!fa || !fb || a->raw != b->raw || fa->layout != fb->layout)
		return false;
	if (!dtype_equal(a->type, b->type) || !dspace_same_limits(&a->space, &b->space) ||
	    !same_fill(a, b))
		return false;
	if (fa->layout != LAYOUT_CHUNKED)
		return true;
	return grid_same_chunks(&fa->grid, &fb->grid) && same_pipeline(fa->pipeline, fb->pipeline);
}

static bool same_header(const struct update *u, uint32_t before, uint32_t now)
{
	struct h5file_header a, b;
	if (!h5file_header(u->before->file, before, &a) || !h5file_header(u->now->file, now, &b))
		return false;
	return a.version == b.version && (!a.birth_ns || !b.birth_ns || a.birth_ns == b.birth_ns);
}

static bool is_same(const struct update *u, uint32_t before, uint32_t now)
{
	const struct object *a = &tree_object(u->before->tree, before)->o;
	const struct object *b = &tree_object(u->now->tree, now)->o;
	if (scan_is_unread(u->now, now) || now == tree_nth(u->now->tree, 0))
		return true;
	if (a->kind != b->kind || !same_header(u, before, now))
		return false;
	switch (a->kind) {
	case OBJECT_DATASET:
		return same_dataset(u, before, now);
	case OBJECT_DATATYPE:
		return dtype_equal(a->datatype, b->datatype);
	case OBJECT_GROUP:
		break;
	}
	return true;
}

/* Returns the object of the base that object `now` may be. The root group stays the root group,
 * wherever its header is. */
static uint32_t candidate(const struct update *u, uint32_t now)
{
	const uint32_t root = tree_nth(u->before->tree, 0);
	if (now == tree_nth(u->now->tree, 0))
		return root;
	const uint32_t before = h5file_at(u->before->file, h5file_address(u->now->file, now));
	if (before == root || before == OBJECT_NONE)
		return OBJECT_NONE;
	return tree_object(u->before->tree, before)->linked ? before : OBJECT_NONE;
}

/* Reads objects that are unread: an object that was read can be compared only with one that was
 * read, and a new object must be read. */
static int read_both(struct update *u, uint32_t now, uint32_t before, struct err *err)
{
	if (before == OBJECT_NONE)
		return scan_read(u->now, now, err);
	if (scan_is_unread(u->now, now) || !scan_is_unread(u->before, before))
		return 0;
	const struct object *opened = update_opened(u->base, u->before, before);
	int rc = scan_read(u->before, before, err);
	return rc ? rc : scan_adopt_dataset(u->before, before, u->schema, &opened->dataset, err);
}

/* A dataset keeps its committed datatype. The datatypes are matched before. */
static void match_types(struct update *u)
{
	for (uint32_t i = 0; i < tree_count(u->now->tree); i++) {
		const uint32_t now = tree_nth(u->now->tree, i), before = u->same[now];
		const struct object *o = &tree_object(u->now->tree, now)->o;
		if (before == OBJECT_NONE || o->kind != OBJECT_DATASET)
			continue;
		const uint32_t old = tree_object(u->before->tree, before)->o.dataset.committed;
		const uint32_t type = o->dataset.committed;
		if (old != (type == OBJECT_NONE ? OBJECT_NONE : u->same[type]))
			u->same[now] = OBJECT_NONE;
	}
}

int update_match(struct update *u, struct err *err)
{
	const uint32_t n = tree_numbers(u->now->tree);
	u->same = arena_array(u->arena, n, sizeof(*u->same));
	if (!u->same)
		return err_no_memory(err);
	memset(u->same, 0xff, n * sizeof(*u->same));
	int rc = 0;
	for (uint32_t i = 0; !rc && i < tree_count(u->now->tree); i++) {
		const uint32_t now = tree_nth(u->now->tree, i), before = candidate(u, now);
		rc = read_both(u, now, before, err);
		if (!rc && before != OBJECT_NONE && is_same(u, before, now))
			u->same[now] = before;
	}
	if (!rc)
		match_types(u);
	return rc;
}

static int adopt(struct update *u, uint32_t now, struct err *err)
{
	const uint32_t before = u->same[now];
	struct object *o = tree_edit(u->now->tree, now);
	o->id = NULL;
	if (before == OBJECT_NONE)
		return 0;
	const struct object *old = &tree_object(u->before->tree, before)->o;
	struct arena *a = u->now->arena;
	const char *version = u->before->version[before];
	o->id = arena_strndup(a, old->id, strlen(old->id));
	u->now->version[now] = version ? arena_strndup(a, version, strlen(version)) : NULL;
	u->now->opened[now] = u->before->opened[before];
	if (!o->id || (version && !u->now->version[now]))
		return err_no_memory(err);
	if (scan_is_unread(u->now, now)) {
		scan_adopt_unread(u->now, now, &update_opened(u->base, u->now, now)->dataset);
		return 0;
	}
	return o->kind == OBJECT_DATASET
		       ? scan_adopt_dataset(u->now, now, u->schema, &old->dataset, err)
		       : 0;
}

int update_adopt(struct update *u, struct err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < tree_count(u->now->tree); i++)
		rc = adopt(u, tree_nth(u->now->tree, i), err);
	return rc ? rc
		  : u->schema->editor->adopt_new(u->now->tree, u->opt->seed, u->opt->now_ns, err);
}
