/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of dimensions, with names from the input.
 *
 *   for each array, at most 24 of them:
 *   +0  u8  group, modulo 4, and above that the name of the array, modulo 8
 *   +1  u8  rank, modulo 4; from 128 on, the array has no names of dimensions
 *   then    for each axis, u8 its length, modulo 6, u8 length of its name, modulo 18, and the name,
 *           whose bytes are characters of 7 bits
 *
 * Each array is shown with its shape, or a note names it. Each axis is a dimension of its length.
 * No two links of a group have one name.
 */
#include <string.h>

#include <base/cursor.h>
#include <base/str.h>

#include "require.h"
#include "schema/zarr/model.h"

enum { ARRAYS_MAX = 24, RANK_MAX = 4, NAMES = 8, NAME_MAX_LEN = 18 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct array {
	char path[64];
	uint32_t rank;
	uint64_t shape[RANK_MAX];
};

struct input {
	struct array arrays[ARRAYS_MAX];
	uint32_t n;
};

static void add_document(struct zarr_model *m, const char *path, const char *text)
{
	struct err err = ERR_INIT;
	auto_str struct str key = {0};
	str_addf(&key, "%s%szarr.json", path, path[0] ? "/" : "");
	require(zarr_model_add(m, str_text(&key), "", text, strlen(text), &err) == 0);
}

static void read_name(struct cursor *c, struct str *names)
{
	const uint32_t n = cur_u8(c) % NAME_MAX_LEN;
	str_add(names, names->b.len > 1 ? ",\"" : "\"");
	for (uint32_t i = 0; i < n; i++)
		str_addf(names, "\\u%04x", cur_u8(c) & 0x7f);
	str_add(names, "\"");
}

static bool is_new(const struct input *in, const char *path)
{
	for (uint32_t i = 0; i < in->n; i++)
		if (strcmp(in->arrays[i].path, path) == 0)
			return false;
	return true;
}

static void read_array(struct cursor *c, struct input *in, struct zarr_model *m)
{
	static const char *const groups[] = {"", "g/", "g/h/", "k/"};
	static const char *const words[NAMES] = {
		"x", "y", "z", "x_3", "_nc4_non_coord_x", "_Anonymous_Dim_3", "phony_dim_0", "g"};
	auto_str struct str shape = {0}, names = {0}, text = {0};
	struct array *a = &in->arrays[in->n];
	const uint8_t where = cur_u8(c), how = cur_u8(c);
	snprintf(a->path, sizeof(a->path), "%s%s", groups[where % 4], words[where / 4 % NAMES]);
	a->rank = how % RANK_MAX;
	str_add(&shape, "[");
	str_add(&names, "[");
	for (uint32_t i = 0; i < a->rank; i++) {
		a->shape[i] = cur_u8(c) % 6;
		str_addf(&shape, "%s%d", i ? "," : "", (int)a->shape[i]);
		read_name(c, &names);
	}
	str_addf(&text,
		 "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":%s],\"data_type\":\"int8\","
		 "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[%s]}},"
		 "\"chunk_key_encoding\":\"v2\",\"fill_value\":0,\"codecs\":[\"bytes\"]",
		 str_text(&shape), &"2,2,2"[a->rank ? 2 * (RANK_MAX - 1 - a->rank) : 5]);
	if (how < 128)
		str_addf(&text, ",\"dimension_names\":%s]", str_text(&names));
	str_add(&text, "}");
	if (cur_ok(c) && is_new(in, a->path)) {
		add_document(m, a->path, str_text(&text));
		in->n++;
	}
}

static const struct attribute *find_attribute(const struct object *o, const char *name)
{
	for (uint32_t i = 0; i < o->nattrs; i++)
		if (strcmp(o->attrs[i].name, name) == 0)
			return &o->attrs[i];
	return NULL;
}

/* The scale of an axis, to which DIMENSION_LIST refers. */
static const struct object *scale_of(const struct tree *t, const struct attribute *list, uint32_t i)
{
	uint32_t number = 0;
	require(i < list->space.nelems);
	const struct elems_vlen v = elems_get_vlen(list->value.fixed.data + i * list->type->size);
	require(v.count == 1 && v.offset + 4 <= list->value.heap.len);
	for (int k = 3; k >= 0; k--)
		number = number << 8 | list->value.heap.data[v.offset + (uint64_t)k];
	return &tree_object(t, number - 1)->o;
}

static void check_axes(const struct tree *t, const struct object *o)
{
	const struct attribute *list = find_attribute(o, "DIMENSION_LIST");
	const struct dspace *space = &o->dataset.space;
	if (!list) /* it is the scale of its first axis */
		require(space->rank == 0 || find_attribute(o, "CLASS"));
	for (uint32_t i = 0; list && i < space->rank; i++) {
		const struct object *scale = scale_of(t, list, i);
		require(scale->kind == OBJECT_DATASET && find_attribute(scale, "CLASS"));
		require(scale->dataset.space.rank > 0);
		require(scale->dataset.space.dims[0] == space->dims[i]);
	}
}

static const struct object *find_array(const struct tree *t, const char *path)
{
	for (uint32_t i = 0; i < tree_count(t); i++) {
		const struct object *o = &tree_object(t, tree_nth(t, i))->o;
		const struct zarr_locator *l =
			o->kind == OBJECT_DATASET ? o->dataset.locator : NULL;
		if (l && l->path && strcmp(l->path, path) == 0)
			return o;
	}
	return NULL;
}

static bool is_noted(const struct tree *t, const char *path)
{
	const size_t n = strlen(path);
	for (uint32_t i = 0; tree_problem(t, i); i++)
		if (strncmp(tree_problem(t, i), path, n) == 0 &&
		    strchr("/:", tree_problem(t, i)[n]))
			return true;
	return false;
}

/* A path below another array is no node. */
static bool is_in_an_array(const struct input *in, const char *path)
{
	for (uint32_t i = 0; i < in->n; i++) {
		const size_t n = strlen(in->arrays[i].path);
		if (strncmp(path, in->arrays[i].path, n) == 0 && path[n] == '/')
			return true;
	}
	return false;
}

static void check_links(const struct object *o)
{
	for (uint32_t i = 0; o->kind == OBJECT_GROUP && i < o->group.nlinks; i++)
		for (uint32_t k = 0; k < i; k++)
			require(strcmp(o->group.links[i].name, o->group.links[k].name) != 0);
}

static void check(const struct input *in, const struct tree *t)
{
	for (uint32_t i = 0; i < in->n; i++) {
		const struct array *a = &in->arrays[i];
		const struct object *o = find_array(t, a->path);
		require(o || is_noted(t, a->path) || is_in_an_array(in, a->path));
		if (!o)
			continue;
		require(o->dataset.space.rank == a->rank);
		for (uint32_t k = 0; k < a->rank; k++)
			require(o->dataset.space.dims[k] == a->shape[k]);
		check_axes(t, o);
	}
	for (uint32_t i = 0; i < tree_count(t); i++)
		check_links(&tree_object(t, tree_nth(t, i))->o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char group[] = "{\"zarr_format\":3,\"node_type\":\"group\"}";
	struct cursor c = cursor_of(data, size);
	struct err err = ERR_INIT;
	struct input in = {.n = 0};
	struct tree *t = tree_new(64 << 20);
	struct zarr_model *m = t ? zarr_model_new(t, ZARR_V3) : NULL;
	const struct zarr_finish f = {.store = "s"};
	require(t && m);
	add_document(m, "", group);
	while (cur_ok(&c) && cur_left(&c) > 0 && in.n < ARRAYS_MAX)
		read_array(&c, &in, m);
	require(zarr_model_finish(m, &f, &err) == 0);
	check(&in, t);
	zarr_model_free(m);
	tree_free(t);
	return 0;
}
