/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the markup of a netCDF-4 file. A dimension is a dataset that is a dimension scale: the
 * variable of its name (a coordinate variable), or a dataset without data. The attributes are:
 *
 *   CLASS, NAME          of scales
 *   _Netcdf4Dimid        of scales: the id of the dimension in the file
 *   _Netcdf4Coordinates  of variables of rank 1 or more, except for coordinate variables of rank
 *                        1: the ids of their dimensions
 *   DIMENSION_LIST       of variables that are no scales: a list of references for each dimension
 *   REFERENCE_LIST       of scales: which variables use them, and for which of their dimensions
 *
 * CLASS must have exactly 16 bytes with a NUL at the end, or libnetcdf sees no dimension. Pure.
 */
#include "model_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <base/utf8.h>
#include <data/number.h>

enum {
	DIMENSION_CHUNK = 1 << 20, /* elements of a piece of a dimension without data */
	REFERENCE_ITEM = 16,	   /* bytes of an element of REFERENCE_LIST */
};

struct markup {
	struct zarr_build *b;
	const struct dtype *i32, *reference, *references, *uses, *f32;
	uint32_t ids; /* dimensions so far */
};

static int init(struct markup *m, struct err *err)
{
	struct arena *a = m->b->arena;
	m->i32 = dtype_integer(a, 4, true, false, err);
	m->reference = dtype_reference(a, DTYPE_REF_OBJECT, err);
	m->f32 = dtype_ieee(a, 4, true, err);
	if (!m->i32 || !m->reference || !m->f32)
		return -ENOMEM;
	const struct dtype_member members[] = {
		{.name = "dataset", .offset = 0, .type = m->reference},
		{.name = "dimension", .offset = 8, .type = m->i32},
	};
	m->references = dtype_vlen(a, m->reference, err);
	m->uses = dtype_compound(a, 2, members, REFERENCE_ITEM, err);
	return m->references && m->uses ? 0 : -ENOMEM;
}

/* Writes a reference to an object (data/elems.h). */
static void put_reference(uint8_t *out, uint32_t number)
{
	number_put_int(out, DTYPE_OBJREF_SIZE, false, (uint64_t)number + 1);
}

/* ---- attributes behind those of the document ---- */

static int add_coordinates(struct markup *m, const struct zarr_variable *v, struct object *o,
			   struct err *err)
{
	uint8_t ids[4 * DSPACE_MAX_RANK];
	for (uint32_t i = 0; i < v->rank; i++)
		number_put_int(ids + 4 * (size_t)i, 4, false, v->dims[i]->id);
	const int rc = zarr_attribute_plain(m->b, &o->attrs[o->nattrs], "_Netcdf4Coordinates",
					    m->i32, v->rank, false, ids, err);
	o->nattrs += !rc;
	return rc;
}

static int add_dimension_list(struct markup *m, const struct zarr_variable *v, struct object *o,
			      struct err *err)
{
	struct attribute *a = &o->attrs[o->nattrs];
	const uint64_t n = v->rank;
	*a = (struct attribute){
		.name = "DIMENSION_LIST", .type = m->references, .committed = OBJECT_NONE};
	int rc = zarr_space(m->b, &a->space, 1, &n, NULL, err);
	for (uint32_t i = 0; !rc && i < v->rank; i++) {
		uint8_t reference[DTYPE_OBJREF_SIZE], elem[DTYPE_VLEN_SIZE];
		uint64_t offset;
		put_reference(reference, v->dims[i]->number);
		rc = elems_heap_add(&a->value, reference, sizeof(reference), &offset);
		if (rc)
			break;
		elems_put_vlen(elem, 1, offset);
		rc = bytes_append(&a->value.fixed, elem, sizeof(elem));
	}
	if (rc) {
		elems_release(&a->value);
		return err_errno(err, -ENOMEM, "DIMENSION_LIST");
	}
	o->nattrs++;
	return 0;
}

static int add_reference_list(struct markup *m, const struct zarr_dimension *d, struct object *o,
			      struct err *err)
{
	auto_bytes struct bytes uses = {0};
	if (d->nuses == 0)
		return 0;
	for (uint64_t i = 0; i < d->nuses; i++) {
		uint8_t item[REFERENCE_ITEM] = {0};
		put_reference(item, d->uses[i].number);
		number_put_int(item + 8, 4, false, d->uses[i].axis);
		if (bytes_append(&uses, item, sizeof(item)))
			return err_errno(err, -ENOMEM, "REFERENCE_LIST");
	}
	const int rc = zarr_attribute_plain(m->b, &o->attrs[o->nattrs], "REFERENCE_LIST", m->uses,
					    d->nuses, false, uses.data, err);
	o->nattrs += !rc;
	return rc;
}

/* ---- attributes before those of the document ---- */

/* Makes an attribute of a text with its NUL, as libhdf5 writes it. */
static int add_terminated(struct markup *m, struct attribute *a, const char *name, const char *text,
			  struct err *err)
{
	const size_t n = strlen(text) + 1;
	const struct dtype *t = zarr_string_type(m->b, n, DTYPE_CSET_ASCII, err);
	return t ? zarr_attribute_plain(m->b, a, name, t, 1, true, text, err) : -ENOMEM;
}

/* Adds the attributes of a scale, in the room that zarr_attributes() keeps before those of the
 * document. */
static int add_scale(struct markup *m, const struct zarr_dimension *d, struct object *o,
		     const char *name, struct err *err)
{
	struct attribute before[ZARR_MARKUP_BEFORE] = {0};
	uint8_t id[4];
	number_put_int(id, 4, false, d->id);
	int rc = add_terminated(m, &before[0], "CLASS", "DIMENSION_SCALE", err);
	if (!rc)
		rc = add_terminated(m, &before[1], "NAME", name, err);
	if (!rc)
		rc = zarr_attribute_plain(m->b, &before[2], "_Netcdf4Dimid", m->i32, 1, true, id,
					  err);
	if (rc) {
		for (int i = 0; i < ZARR_MARKUP_BEFORE; i++)
			elems_release(&before[i].value);
		return rc;
	}
	o->attrs -= ZARR_MARKUP_BEFORE;
	memcpy(o->attrs, before, sizeof(before));
	o->nattrs += ZARR_MARKUP_BEFORE;
	return 0;
}

/* ---- dimensions without a variable ---- */

static int fill_dimension(struct markup *m, const struct zarr_dimension *d, struct dataset *ds,
			  struct err *err)
{
	const uint64_t chunk = min_u64(max_u64(d->length, 1), DIMENSION_CHUNK);
	struct zarr_locator *l = arena_alloc(m->b->arena, sizeof(*l));
	struct codec_plan plan;
	if (!l)
		return err_errno(err, -ENOMEM, "locator");
	*l = (struct zarr_locator){.path = NULL, .store = m->b->store, .separator = '.'};
	ds->type = m->f32;
	ds->committed = OBJECT_NONE;
	ds->requested = LAYOUT_CONTIGUOUS;
	ds->alloc_time = ALLOC_TIME_LATE;
	ds->fill_time = FILL_TIME_IFSET;
	ds->locator = l;
	int rc = zarr_space(m->b, &ds->space, 1, &d->length, NULL, err);
	if (!rc)
		rc = grid_init(m->b->arena, &ds->grid, 1, &d->length, &chunk, err);
	if (!rc)
		rc = codec_plan_array(&plan, ds->type, ds->type->size, chunk, NULL, 0);
	ds->chain = rc ? NULL : zarr_chain(m->b, &plan.chain);
	return ds->chain ? 0 : err_errno(err, -ENOMEM, "dimension");
}

static int add_object(struct markup *m, struct zarr_dimension *d, struct err *err)
{
	char path[2 * ZARR_KEY_MAX];
	struct object o = {.kind = OBJECT_DATASET, .modified_ns = m->b->f->modified_ns};
	zarr_node_path(d->group, path);
	strcat(path, path[0] ? "/" : "");
	strcat(path, d->name);
	const char *id = arena_strndup(m->b->arena, path, strlen(path));
	if (!id)
		return err_errno(err, -ENOMEM, "dimension");
	int rc = fill_dimension(m, d, &o.dataset, err);
	if (!rc)
		rc = zarr_attributes(m->b, NULL, NULL, id, &o, err);
	if (!rc)
		rc = zarr_object_add(m->b, id, NULL, NULL, &d->number, err);
	if (rc)
		return rc;
	o.id = id;
	*tree_edit(m->b->tree, d->number) = o;
	return 0;
}

/* Numbers the dimensions of all groups, and makes objects for those without a variable. */
static int number_dimensions(struct markup *m, struct err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < m->b->nnodes; i++) {
		struct zarr_dimension *d = m->b->nodes[i]->dims;
		for (; !rc && d; d = d->hh.next) {
			d->id = m->ids++;
			if (d->coordinate)
				d->number = d->coordinate->number;
			else
				rc = add_object(m, d, err);
		}
	}
	return rc;
}

/* ---- uses of dimensions ---- */

static bool is_scale(const struct zarr_variable *v)
{
	return v->rank > 0 && v->dims[0]->coordinate == v;
}

/* Counts the uses of each dimension by the variables that are no scales, and notes them if there is
 * room for them. */
static void count_uses(struct zarr_build *b, bool is_noted)
{
	for (const struct zarr_variable *v = b->variables; v; v = v->next)
		for (uint32_t i = 0; v->link_name && !is_scale(v) && i < v->rank; i++) {
			struct zarr_dimension *d = v->dims[i];
			if (is_noted)
				d->uses[d->nuses] =
					(struct zarr_use){.number = v->number, .axis = i};
			d->nuses++;
		}
}

static int collect_uses(struct zarr_build *b, struct err *err)
{
	count_uses(b, false);
	for (uint32_t i = 0; i < b->nnodes; i++)
		for (struct zarr_dimension *d = b->nodes[i]->dims; d; d = d->hh.next) {
			d->uses = arena_array(b->scratch, d->nuses + 1, sizeof(*d->uses));
			if (!d->uses)
				return err_errno(err, -ENOMEM, "dimension");
			d->nuses = 0;
		}
	count_uses(b, true);
	return 0;
}

/* ---- markup ---- */

static int mark_variable(struct markup *m, const struct zarr_variable *v, struct err *err)
{
	struct object *o = tree_edit(m->b->tree, v->number);
	const bool scale = is_scale(v);
	int rc = 0;
	if (scale)
		rc = add_scale(m, v->dims[0], o, v->name, err);
	if (!rc && v->rank > (scale ? 1 : 0))
		rc = add_coordinates(m, v, o, err);
	if (!rc && v->rank > 0 && !scale)
		rc = add_dimension_list(m, v, o, err);
	if (!rc && scale)
		rc = add_reference_list(m, v->dims[0], o, err);
	return rc;
}

static int mark_dimension(struct markup *m, const struct zarr_dimension *d, struct err *err)
{
	char name[96];
	struct object *o = tree_edit(m->b->tree, d->number);
	snprintf(name, sizeof(name),
		 "This is a netCDF dimension but not a netCDF variable.%10" PRIu64, d->length);
	const int rc = add_scale(m, d, o, name, err);
	return rc ? rc : add_reference_list(m, d, o, err);
}

static int mark_all(struct markup *m, struct err *err)
{
	int rc = 0;
	for (const struct zarr_variable *v = m->b->variables; !rc && v; v = v->next)
		if (v->link_name)
			rc = mark_variable(m, v, err);
	for (uint32_t i = 0; !rc && i < m->b->nnodes; i++)
		for (const struct zarr_dimension *d = m->b->nodes[i]->dims; !rc && d;
		     d = d->hh.next)
			if (!d->coordinate)
				rc = mark_dimension(m, d, err);
	return rc;
}

/* Adds the attribute that tells libnetcdf which program wrote the file. */
static int mark_root(struct markup *m, struct err *err)
{
	static const char text[] = "version=2,hsmount=" HSMOUNT_VERSION;
	struct object *o = tree_edit(m->b->tree, 0);
	const int rc = zarr_attribute_text(m->b, &o->attrs[o->nattrs], "_NCProperties", text,
					   sizeof(text) - 1, err);
	o->nattrs += !rc;
	return rc;
}

/* ---- links ---- */

static struct link *add_link(struct object *o, const char *name, uint32_t target)
{
	struct link *l = &o->group.links[o->group.nlinks++];
	*l = (struct link){
		.name = name,
		.utf8 = utf8_valid(name, strlen(name)),
		.cls = LINK_HARD,
		.target = target,
	};
	return l;
}

static bool is_taken(const struct zarr_build *b, const char *name)
{
	const struct zarr_dimension *d = NULL;
	HASH_FIND_STR(b->m->root->dims, name, d);
	return d || zarr_shown_child(b->m, b->m->root, name);
}

static int link_types(struct zarr_build *b, struct object *root, struct err *err)
{
	for (unsigned int i = 0; i < 4; i++) {
		const uint32_t number = b->types.committed[i / 2][i % 2];
		const char *name = number ? tree_edit(b->tree, number)->id : NULL;
		char other[64];
		if (!number || !b->types.is_used[i / 2][i % 2])
			continue;
		snprintf(other, sizeof(other), "%s", name);
		for (unsigned int k = 1; is_taken(b, other); k++)
			snprintf(other, sizeof(other), "%s_t%u", name, k);
		char *copy = arena_strndup(b->arena, other, strlen(other));
		if (!copy)
			return err_errno(err, -ENOMEM, "type");
		add_link(root, copy, number);
	}
	return 0;
}

static void link_child(const struct zarr_build *b, struct object *o, const struct zarr_node *child)
{
	if (!child->is_shown)
		return;
	if (child->variable) {
		if (child->variable->link_name)
			add_link(o, child->variable->link_name, child->number);
		return;
	}
	/* The id is the path, which lives as long as the tree. */
	const char *id = tree_edit(b->tree, child->number)->id;
	add_link(o, id + strlen(id) - strlen(child->name), child->number);
}

static int link_group(struct zarr_build *b, struct zarr_node *group, struct err *err)
{
	struct object *o = tree_edit(b->tree, group->number);
	const size_t room = 5 + (size_t)HASH_COUNT(group->dims) + group->nsorted;
	o->group.links = arena_array(b->arena, room, sizeof(*o->group.links));
	if (!o->group.links)
		return err_errno(err, -ENOMEM, "links");
	o->group.links_ordered = true;
	if (group == b->m->root && link_types(b, o, err))
		return -ENOMEM;
	for (const struct zarr_dimension *d = group->dims; d; d = d->hh.next)
		if (!d->coordinate)
			add_link(o, d->name, d->number);
	if (group->variable) /* the store is an array */
		add_link(o, group->variable->link_name, group->variable->number);
	for (uint32_t i = 0; i < group->nsorted; i++)
		link_child(b, o, group->sorted[i]);
	return 0;
}

int zarr_netcdf(struct zarr_build *b, struct err *err)
{
	struct markup m = {.b = b};
	int rc = init(&m, err);
	if (!rc)
		rc = number_dimensions(&m, err);
	if (!rc)
		rc = collect_uses(b, err);
	if (!rc)
		rc = mark_all(&m, err);
	if (!rc)
		rc = mark_root(&m, err);
	for (const struct zarr_variable *v = b->variables; v; v = v->next) {
		const uint32_t number = tree_edit(b->tree, v->number)->dataset.committed;
		for (unsigned int i = 0; v->link_name && number != OBJECT_NONE && i < 4; i++)
			if (b->types.committed[i / 2][i % 2] == number)
				b->types.is_used[i / 2][i % 2] = true;
	}
	for (uint32_t i = 0; !rc && i < b->nnodes; i++)
		if (b->nodes[i]->is_shown && (!b->nodes[i]->variable || b->nodes[i] == b->m->root))
			rc = link_group(b, b->nodes[i], err);
	return rc;
}
