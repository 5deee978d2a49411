/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents of groups, datasets and datatypes: accepted ones satisfy data/object.h (sizes, slots,
 * names, order), parsing them twice gives the same bytes, and the keys of a dataset's chunks are
 * recognised. Links are the same, read one by one, as those that Jansson finds in the document.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <schema/schema.h>

#include "schema/hsds/hsds2.h"
#include <json/reader.h>
#include "schema/hsds/parse_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* The id after the first `"member"` in the document; if there is none, the fallback. */
static struct schema_id id_of(const uint8_t *data, size_t size, const char *member,
			      const char *fallback)
{
	struct schema_id id = {0};
	const uint8_t *at = memmem(data, size, member, strlen(member));
	const uint8_t *end = data + size;
	if (at) {
		at += strlen(member);
		while (at < end && (*at == ':' || *at == ' ' || *at == '"'))
			at++;
		if (end - at >= 38 && schema_id_parse((const char *)at, 38, &id))
			return id;
	}
	require(schema_id_parse(fallback, strlen(fallback), &id));
	return id;
}

/* A domain with few objects. */
static uint32_t number(void *ctx, const struct schema_id *id)
{
	return id->b[15] % 4 == 3 ? OBJECT_NONE : id->b[15] % 4;
}

static void skip(void *ctx, const char *what, const struct err *why)
{
	require(what[0] != '\0' && why->code == -EIO && why->msg[0] != '\0');
}

static void check_elems(const struct dtype *t, uint64_t n, const struct elems *e)
{
	const struct elems_visitor v = {0};
	require(elems_end(e) <= n * t->size);
	require(e->repeated == 0 || (e->period > 0 && e->period <= e->fixed.len));
	require(dtype_is_plain(t) || (e->repeated == 0 && e->fixed.len % t->size == 0));
	require(elems_visit(t, e->fixed.data, e->fixed.len / t->size, e->heap.data, e->heap.len, &v,
			    NULL) == 0);
}

static void check_attributes(const struct object *o)
{
	for (uint32_t i = 0; i < o->nattrs; i++) {
		const struct attribute *a = &o->attrs[i];
		require(a->name[0] != '\0');
		check_elems(a->type, a->space.nelems, &a->value);
		if (i > 0)
			require(a[-1].created_ns < a->created_ns ||
				(a[-1].created_ns == a->created_ns &&
				 strcmp(a[-1].name, a->name) < 0));
	}
}

static void check_links(const struct object *o)
{
	for (uint32_t i = 0; i < o->group.nlinks; i++) {
		const struct link *l = &o->group.links[i];
		require(l->name[0] != '\0' && !strchr(l->name, '/'));
		require((l->cls == LINK_HARD) == (l->target != OBJECT_NONE));
		require((l->cls != LINK_HARD) == (l->path != NULL));
		require((l->cls == LINK_EXTERNAL) == (l->domain != NULL));
		if (i > 0)
			require(l[-1].created_ns < l->created_ns ||
				(l[-1].created_ns == l->created_ns &&
				 strcmp(l[-1].name, l->name) < 0));
	}
}

static void check_dataset(const struct object *o)
{
	const struct dataset *ds = &o->dataset;
	require(ds->nfilters <= FILTER_MAX);
	if (ds->fill_defined)
		check_elems(ds->type, 1, &ds->fill);
	if (ds->grid.nchunks == 0)
		return;
	char key[SCHEMA_KEY_MAX + 1];
	char prefix[SCHEMA_KEY_MAX + 1];
	uint64_t number;
	unsigned int state = 0;
	struct chunk_place place = {.key = key, .room = sizeof(key)};
	if (hsds2_locate(o, NULL, ds->grid.nchunks - 1, &state, NULL, &place, NULL) < 0)
		return; /* in another file */
	if (ds->reference)
		return; /* see schema_reference_fuzz.c */
	require(hsds2_chunk_of_key(o, key, &number) && number == ds->grid.nchunks - 1);
	const int n = hsds2_chunk_prefix(o, prefix, sizeof(prefix));
	require(n < 0 ? ds->absence_unknown != NULL : strncmp(key, prefix, (size_t)n) == 0);
}

static bool same_bytes(const struct bytes *a, const struct bytes *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static void check_same(const struct object *a, const struct object *b)
{
	require(a->kind == b->kind && a->nattrs == b->nattrs);
	require(!a->comment == !b->comment);
	require(!a->comment || strcmp(a->comment, b->comment) == 0);
	for (uint32_t i = 0; i < a->nattrs; i++) {
		require(strcmp(a->attrs[i].name, b->attrs[i].name) == 0);
		require(dtype_equal(a->attrs[i].type, b->attrs[i].type));
		require(same_bytes(&a->attrs[i].value.fixed, &b->attrs[i].value.fixed));
		require(a->attrs[i].value.repeated == b->attrs[i].value.repeated);
		require(same_bytes(&a->attrs[i].value.heap, &b->attrs[i].value.heap));
	}
	if (a->kind == OBJECT_GROUP) {
		require(a->group.nlinks == b->group.nlinks);
		for (uint32_t i = 0; i < a->group.nlinks; i++)
			require(strcmp(a->group.links[i].name, b->group.links[i].name) == 0);
	}
}

/* right: for each name, 1 if its last value is that of the whole document. It is not in the area,
 * so only its numbers are changed. */
static int compare_members(const struct json_text *json, const json_t *whole, json_t *right)
{
	struct json_text_members m;
	struct err err = ERR_INIT;
	int rc;
	json_text_members_begin(&m, json);
	while ((rc = json_text_next(&m, &err)) > 0) {
		const char *name = json_string_value(m.name);
		const json_t *value = json_object_get(whole, name);
		require(!right || value);
		if (right)
			json_integer_set(json_object_get(right, name), json_equal(m.value, value));
	}
	require(rc == 0 || err.msg[0] != '\0');
	json_text_members_end(&m);
	return rc;
}

static void check_apart(const uint8_t *data, size_t size)
{
	struct json_text json;
	struct json_text_area area;
	json_t *whole = NULL, *value, *right = NULL;
	const char *name;
	const int rc = json_text_load(data, size, &whole, NULL);
	json_t *links = json_object_get(whole, "links");
	if (json_is_object(links))
		right = json_object();
	json_object_foreach(links, name, value) json_object_set_new(right, name, json_integer(0));
	json_text_area_begin(&area);
	int apart_rc = json_text_load_apart(data, size, "links", &json, NULL);
	require(!apart_rc || (!json.doc && !json.apart));
	if (rc == 0)
		require(apart_rc == 0 && (json.apart != NULL) == json_is_object(links));
	if (json.apart)
		apart_rc = compare_members(&json, links, right);
	require(rc == apart_rc);
	bytes_release(&json.rewritten);
	json_text_area_end(&area);
	json_object_foreach(right, name, value) require(json_integer_value(value) == 1);
	json_decref(right);
	json_decref(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_apart(data, size);
	struct schema_id id = id_of(data, size, "\"id\"", "g-00000000-00000000-0000-000000-000000");
	struct schema_id root =
		id_of(data, size, "\"root\"", "g-00000000-00000000-8888-888888-888888");
	const struct schema_numbers numbers = {.number = number};
	struct arena *arena = arena_new(256 << 20);
	struct object one, two;
	struct schema_types types = {0};
	struct err err = ERR_INIT;
	if (!arena)
		return 0;
	int rc = schema_object_parse(arena, arena, &id, &root, data, size, &numbers, NULL, skip,
				     NULL, &one, &err);
	require(rc == err.code && (rc == 0) == (err.msg[0] == '\0'));
	require(schema_object_parse(arena, arena, &id, &root, data, size, &numbers, &types, NULL,
				    NULL, &two, NULL) == rc);
	if (rc == 0) {
		check_attributes(&one);
		require(!one.comment || one.comment[0]);
		if (one.kind == OBJECT_GROUP)
			check_links(&one);
		else if (one.kind == OBJECT_DATASET)
			check_dataset(&one);
		check_same(&one, &two);
	}
	object_release(&one);
	object_release(&two);
	arena_free(arena);
	return 0;
}
