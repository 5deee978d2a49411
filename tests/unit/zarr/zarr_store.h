/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores for the tests of zarr/: documents in, the tree as text out. The text has a line for each
 * object, in the order of links, and below it those of its attributes:
 *
 *   group /g
 *   a (5, 3) max (6, 3) chunk (3, 3) int32 fill 01000000
 *     @units "m"
 *   note: b/.zarray: …
 *
 * Attributes of the markup are left out unless the test asks for them. References are paths.
 */
#ifndef ZARR_STORE_H
#define ZARR_STORE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <codec/chain.h>
#include <data/describe.h>

#include "schema/zarr/model.h"

struct store_doc {
	const char *key, *text;
};

struct store {
	struct tree *tree;
	struct zarr_model *model;
	struct zarr_finish finish;
	struct err err;
	int rc;
	bool with_markup;
	struct str text;
};

static inline void store_begin(struct store *s, enum zarr_document_kind root)
{
	*s = (struct store){.err = ERR_INIT, .finish = {.store = "b/s"}};
	s->tree = tree_new((size_t)1 << 30);
	assert_non_null(s->tree);
	s->model = zarr_model_new(s->tree, root);
	assert_non_null(s->model);
}

/* The text is copied to a block of exactly its size. */
static inline int store_add(struct store *s, const char *key, const char *text, size_t n)
{
	char *exact = malloc(n ? n : 1);
	assert_non_null(exact);
	memcpy(exact, text, n);
	const int rc = zarr_model_add(s->model, key, "e", exact, n, &s->err);
	free(exact);
	return rc;
}

static inline void store_end(struct store *s)
{
	zarr_model_free(s->model);
	tree_free(s->tree);
	str_release(&s->text);
}

/* ---- text ---- */

static inline uint64_t store_bits(const struct dtype *t, const uint8_t *at)
{
	const bool big = t->cls == DTYPE_FLOAT ? t->floating.big_endian : t->integer.big_endian;
	uint64_t v = 0;
	for (uint32_t i = 0; i < t->size; i++)
		v = v << 8 | at[big ? i : t->size - 1 - i];
	return v;
}

static inline void store_number(struct str *out, const struct dtype *t, const uint8_t *at)
{
	const uint64_t v = store_bits(t, at);
	const uint32_t narrow = (uint32_t)v;
	float single;
	double real;
	memcpy(&single, &narrow, sizeof(single));
	memcpy(&real, &v, sizeof(real));
	if (t->cls == DTYPE_FLOAT)
		str_addf(out, "%.17g", t->size == 4 ? (double)single : real);
	else if (t->integer.is_signed)
		str_addf(out, "%lld",
			 (long long)(int64_t)(v << (64 - 8 * t->size)) >> (64 - 8 * t->size));
	else
		str_addf(out, "%llu", (unsigned long long)v);
}

static inline void store_reference(struct str *out, const struct store *s, const uint8_t *at)
{
	uint32_t number = 0;
	for (int i = 3; i >= 0; i--)
		number = number << 8 | at[i];
	str_add(out, tree_object(s->tree, number - 1)->o.id);
}

static inline void store_element(struct str *out, const struct store *s, const struct dtype *t,
				 const struct elems *e, const uint8_t *at)
{
	struct elems_vlen v;
	switch (t->cls) {
	case DTYPE_STRING:
		str_addf(out, "\"%.*s\"", (int)strnlen((const char *)at, t->size),
			 (const char *)at);
		break;
	case DTYPE_VLEN:
		v = elems_get_vlen(at);
		if (t->vlen.is_string)
			str_addf(out, "$\"%.*s\"", (int)v.count,
				 v.count ? (char *)e->heap.data + v.offset : "");
		else
			store_reference(out, s, e->heap.data + v.offset);
		break;
	case DTYPE_REFERENCE:
		store_reference(out, s, at);
		break;
	case DTYPE_COMPOUND:
		for (uint32_t i = 0; i < t->compound.n; i++) {
			str_add(out, i ? " " : "{");
			store_element(out, s, t->compound.members[i].type, e,
				      at + t->compound.members[i].offset);
		}
		str_add(out, "}");
		break;
	default:
		store_number(out, t, at);
	}
}

static inline bool store_is_markup(const char *name)
{
	static const char *const names[] = {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST",
					    "_NCProperties"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return strncmp(name, "_Netcdf4", 8) == 0;
}

static inline void store_attributes(struct store *s, const struct object *o)
{
	for (uint32_t i = 0; i < o->nattrs; i++) {
		const struct attribute *a = &o->attrs[i];
		if (store_is_markup(a->name) && !s->with_markup)
			continue;
		str_addf(&s->text, "  @%s", a->name);
		if (a->type->cls != DTYPE_STRING && a->type->cls != DTYPE_VLEN) {
			str_add(&s->text, " ");
			if (a->type->cls == DTYPE_COMPOUND)
				str_addf(&s->text, "%s", a->committed == OBJECT_NONE ? "" : "!");
			else
				describe_type(&s->text, a->type);
		}
		if (a->space.cls == DSPACE_SCALAR && a->type->cls != DTYPE_STRING)
			str_add(&s->text, " scalar");
		if (strcmp(a->name, "_NCProperties") == 0) { /* without the version */
			assert_memory_equal(a->value.fixed.data, "version=2,hsmount=", 18);
			str_add(&s->text, "\n");
			continue;
		}
		for (uint64_t k = 0; k < a->space.nelems; k++) {
			str_add(&s->text, " ");
			store_element(&s->text, s, a->type, &a->value,
				      a->value.fixed.data + k * a->type->size);
		}
		str_add(&s->text, "\n");
	}
}

static inline void store_dims(struct str *out, const char *what, uint32_t rank, const uint64_t *d,
			      const uint32_t *narrow)
{
	str_addf(out, " %s(", what);
	for (uint32_t i = 0; i < rank; i++)
		str_addf(out, "%s%llu", i ? "," : "",
			 (unsigned long long)(narrow ? narrow[i] : d[i]));
	str_add(out, ")");
}

static inline void store_dataset(struct store *s, const struct dataset *ds)
{
	struct str *out = &s->text;
	struct pipeline p;
	const struct zarr_locator *l = ds->locator;
	store_dims(out, "", ds->space.rank, ds->space.dims, NULL);
	if (ds->space.rank && memcmp(ds->space.dims, ds->space.max, 8 * ds->space.rank) != 0)
		store_dims(out, "max", ds->space.rank, ds->space.max, NULL);
	if (!l->path) {
		str_add(out, " dimension");
		return;
	}
	if (ds->space.rank)
		store_dims(out, "chunk", ds->grid.rank, NULL, ds->grid.chunk);
	str_add(out, " ");
	if (ds->type->cls == DTYPE_COMPOUND)
		str_add(out, ds->committed == OBJECT_NONE
				     ? "compound"
				     : tree_object(s->tree, ds->committed)->o.id);
	else
		describe_type(out, ds->type);
	if (ds->fill_defined) {
		str_add(out, " fill ");
		store_element(out, s, ds->type, &ds->fill, ds->fill.fixed.data);
	}
	dataset_pipeline(ds, &p);
	if (p.n) {
		str_add(out, " ");
		describe_filters(out, &p);
	}
	if (l->is_default || l->separator != '.')
		str_addf(out, " keys %s%c", l->is_default ? "c" : "", l->separator);
}

static inline void store_object(struct store *s, uint32_t number, const char *path)
{
	const struct object *o = &tree_object(s->tree, number)->o;
	str_addf(&s->text, "%s%s", o->kind == OBJECT_GROUP ? "group " : "",
		 path[0] ? path + (o->kind != OBJECT_GROUP) : "/");
	if (o->kind == OBJECT_DATASET)
		store_dataset(s, &o->dataset);
	else if (o->kind == OBJECT_DATATYPE)
		str_add(&s->text, " type");
	str_add(&s->text, "\n");
	store_attributes(s, o);
	for (uint32_t i = 0; o->kind == OBJECT_GROUP && i < o->group.nlinks; i++) {
		char below[4096];
		snprintf(below, sizeof(below), "%.2000s/%.1500s", path, o->group.links[i].name);
		store_object(s, o->group.links[i].target, below);
	}
}

static inline void store_print(struct store *s)
{
	store_object(s, 0, "");
	for (uint32_t i = 0; tree_problem(s->tree, i); i++)
		str_addf(&s->text, "note: %s\n", tree_problem(s->tree, i));
	assert_true(str_ok(&s->text));
}

static inline void store_finish(struct store *s)
{
	s->rc = zarr_model_finish(s->model, &s->finish, &s->err);
}

/* ---- stores of a table ---- */

/* Documents end with a NULL key. The first one marks the store. */
static inline void store_load(struct store *s, const struct store_doc *docs)
{
	size_t n;
	const enum zarr_document_kind root = zarr_document_of_key(docs[0].key, &n);
	store_begin(s, root);
	for (; docs->key && !s->rc; docs++)
		s->rc = store_add(s, docs->key, docs->text, strlen(docs->text));
	if (!s->rc)
		store_finish(s);
	if (!s->rc)
		store_print(s);
	else
		str_addf(&s->text, "%d: %s\n", s->rc, s->err.msg);
}

static inline void assert_store(const struct store_doc *docs, bool with_markup, const char *text)
{
	struct store s;
	store_load(&s, docs);
	if (with_markup && !s.rc) {
		str_cut(&s.text, 0);
		s.with_markup = true;
		store_print(&s);
	}
	assert_string_equal(str_text(&s.text), text);
	store_end(&s);
}

/* A line of the text of a store with one array "a", and the notes, joined by " | ". */
static inline void store_line(const struct store_doc *docs, char *out, size_t room)
{
	struct store s;
	store_load(&s, docs);
	out[0] = '\0';
	const char *text = str_text(&s.text);
	for (const char *line = text; *line;) {
		const char *end = strchr(line, '\n');
		const bool shown = line[0] == 'a' || strncmp(line, "  @", 3) == 0 ||
				   strncmp(line, "note", 4) == 0 || line[0] == '-';
		const size_t n = strlen(out);
		if (shown)
			snprintf(out + n, room - n, "%s%.*s", n ? " | " : "", (int)(end - line),
				 line);
		line = end + 1;
	}
	store_end(&s);
}

#endif
