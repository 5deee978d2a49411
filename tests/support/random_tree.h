/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees from a stream of bytes: every kind of object, link, type, dataspace and value. The same
 * bytes give the same tree. Where the bytes end, a generator continues them from `seed`.
 */
#ifndef SUPPORT_RANDOM_TREE_H
#define SUPPORT_RANDOM_TREE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <data/number.h>
#include <data/tree.h>

#include "schema/hsds/stand_in.h"

struct rnd {
	const uint8_t *bytes;
	size_t n;
	uint64_t seed;
	struct tree *tree;
	bool wild;	/* values may be bytes that are no text, and odd NaNs */
	uint32_t names; /* so that all names differ */
};

static inline uint32_t rnd_below(struct rnd *r, uint32_t limit)
{
	if (r->n >= 2) {
		const uint32_t v = (uint32_t)r->bytes[0] << 8 | r->bytes[1];
		r->bytes += 2;
		r->n -= 2;
		return v % limit;
	}
	r->seed = r->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(r->seed >> 33) % limit;
}

static inline bool rnd_one_in(struct rnd *r, uint32_t n)
{
	return rnd_below(r, n) == 0;
}

static inline struct arena *rnd_arena(struct rnd *r)
{
	return tree_arena(r->tree);
}

static inline const char *rnd_name(struct rnd *r, bool utf8)
{
	static const char *const stems[] = {"a",
					    "two words",
					    "Gr\xc3\xb6\xc3\x9f"
					    "e",
					    "q\"\\\n\x10n",
					    "\xf0\x9f\x90\x98",
					    "%x"};
	static const char *const lone[] = {"\xe9t\xe9", "\xed\xb3\xa9", "\xc3"};
	char text[64];
	snprintf(text, sizeof(text), "%s%u",
		 utf8 || rnd_below(r, 8) ? stems[rnd_below(r, 6)] : lone[rnd_below(r, 3)],
		 r->names++);
	return arena_strndup(rnd_arena(r), text, strlen(text));
}

/* ---- types ---- */

static inline const struct dtype *rnd_type(struct rnd *r, uint32_t depth);

static inline const struct dtype *rnd_number(struct rnd *r)
{
	static const uint32_t sizes[] = {1, 2, 4, 8, 3, 16};
	static const enum dtype_class classes[] = {DTYPE_INTEGER, DTYPE_INTEGER, DTYPE_BITFIELD,
						   DTYPE_TIME};
	struct dtype t = {.cls = classes[rnd_below(r, 4)]};
	t.size = sizes[rnd_below(r, rnd_one_in(r, 4) ? 6 : 4)];
	t.integer.big_endian = rnd_below(r, 2);
	t.integer.is_signed = t.cls == DTYPE_INTEGER && rnd_below(r, 2);
	t.integer.precision = (uint16_t)(8 * t.size);
	if (rnd_one_in(r, 4)) {
		t.integer.bit_offset = (uint16_t)rnd_below(r, 4);
		t.integer.precision = (uint16_t)(1 + rnd_below(r, 8 * t.size - 4));
	}
	return dtype_checked(rnd_arena(r), &t, NULL);
}

static inline const struct dtype *rnd_float(struct rnd *r)
{
	if (rnd_below(r, 3))
		return dtype_ieee(rnd_arena(r), 2u << rnd_below(r, 3), rnd_below(r, 2), NULL);
	struct dtype t = {.cls = DTYPE_FLOAT, .size = rnd_below(r, 2) ? 16 : 2};
	t.floating.big_endian = rnd_below(r, 2);
	t.floating.precision = t.size == 2 ? 16 : 80;
	t.floating.sign_loc = (uint8_t)(t.floating.precision - 1);
	t.floating.exp_size = t.size == 2 ? 8 : 15;
	t.floating.exp_loc = (uint8_t)(t.floating.sign_loc - t.floating.exp_size);
	t.floating.mant_size = t.floating.exp_loc;
	t.floating.exp_bias = (1u << (t.floating.exp_size - 1)) - 1;
	t.floating.norm = (enum dtype_norm)rnd_below(r, 3);
	t.floating.hi_pad = rnd_below(r, 2);
	return dtype_checked(rnd_arena(r), &t, NULL);
}

static inline const struct dtype *rnd_enum(struct rnd *r)
{
	static const uint8_t values[3 * 8] = {0, 1, 2, 3, 4, 5, 6, 250, 255, 9, 1};
	const char *names[] = {"FALSE", "TRUE", rnd_below(r, 4) ? "Gr\xc3\xbcn" : "Gr\xfcn"};
	const uint32_t size = 1u << rnd_below(r, 4);
	const struct dtype *base =
		dtype_integer(rnd_arena(r), size, rnd_below(r, 2), rnd_below(r, 2), NULL);
	return dtype_enum(rnd_arena(r), base, 1 + rnd_below(r, 3), names, values, NULL);
}

static inline const struct dtype *rnd_compound(struct rnd *r, uint32_t depth)
{
	struct dtype_member m[4] = {0};
	const uint32_t n = 1 + rnd_below(r, 4);
	const bool gaps = rnd_one_in(r, 2);
	uint32_t end = 0;
	for (uint32_t i = 0; i < n; i++) {
		m[i].name = rnd_name(r, false);
		m[i].type = rnd_type(r, depth - 1);
		m[i].offset = end + (gaps ? rnd_below(r, 8) : 0);
		end = m[i].offset + m[i].type->size;
	}
	if (gaps && n > 1 && m[0].type->size == m[1].type->size) {
		const uint32_t first = m[0].offset; /* another order */
		m[0].offset = m[1].offset;
		m[1].offset = first;
	}
	return dtype_compound(rnd_arena(r), n, m, gaps ? end + rnd_below(r, 4) : 0, NULL);
}

static inline const struct dtype *rnd_type(struct rnd *r, uint32_t depth)
{
	struct arena *a = rnd_arena(r);
	const uint32_t dims[] = {1 + rnd_below(r, 3), 1 + rnd_below(r, 3)};
	const enum dtype_pad pad = (enum dtype_pad)rnd_below(r, 3);
	const enum dtype_cset cset = (enum dtype_cset)rnd_below(r, 2);
	switch (rnd_below(r, depth ? 10 : 7)) {
	case 0:
	case 1:
		return rnd_number(r);
	case 2:
		return rnd_float(r);
	case 3:
		return rnd_enum(r);
	case 4:
		return rnd_below(r, 2) ? dtype_string(a, 1 + rnd_below(r, 9), pad, cset, NULL)
				       : dtype_vlen_string(a, pad, cset, NULL);
	case 5:
		return dtype_opaque(a, 1 + rnd_below(r, 9),
				    rnd_below(r, 2) ? "tag \xc3\xa9" : "\xff", NULL);
	case 6:
		return dtype_reference(a, DTYPE_REF_OBJECT, NULL);
	case 7:
		return rnd_compound(r, depth);
	case 8:
		return dtype_array(a, rnd_type(r, depth - 1), 1 + rnd_below(r, 2), dims, NULL);
	default:
		return dtype_vlen(a, rnd_type(r, depth - 1), NULL);
	}
}

/* A type that a domain can hold, and whether its values must be wild. */
static inline const struct dtype *rnd_held_type(struct rnd *r)
{
	struct stand_in c;
	const char *why;
	const struct dtype *t = rnd_type(r, 3);
	r->wild = rnd_below(r, 2);
	if (schema_stand_in(rnd_arena(r), t, &c, &why, NULL) || why)
		t = dtype_ieee(rnd_arena(r), 8, false, NULL);
	else
		r->wild = r->wild || c.is_bytes || c.type->cls != t->cls;
	return t;
}

/* ---- values ---- */

static inline void rnd_element(struct rnd *r, const struct dtype *t, uint8_t *at, struct elems *e);

static inline void rnd_bytes(struct rnd *r, uint8_t *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		at[i] = (uint8_t)rnd_below(r, 256);
}

/* Text of at most n bytes, or any bytes; returns their number. */
static inline size_t rnd_text(struct rnd *r, uint8_t *at, size_t n)
{
	static const char *const texts[] = {"",		"x",   "two  ", "\xc3\xa9t\xc3\xa9",
					    "a\tb\"\\", "None"};
	const char *text = texts[rnd_below(r, 6)];
	if (r->wild && rnd_one_in(r, 3)) {
		rnd_bytes(r, at, n);
		return n;
	}
	const size_t len = strlen(text) <= n ? strlen(text) : 0;
	memcpy(at, text, len);
	return len;
}

static inline void rnd_real(struct rnd *r, const struct dtype *t, uint8_t *at)
{
	static const double values[] = {0.0,	-0.0,	0.1,	 1e-7,	    1e16,
					-1e300, 5e-324, 65504.0, 1.0 / 0.0, -1.0 / 0.0};
	const bool ieee = schema_is_ieee(t);
	if (!ieee || (r->wild && rnd_below(r, 2)))
		rnd_bytes(r, at, t->size);
	else
		number_put_float(at, t->size, t->floating.big_endian, values[rnd_below(r, 10)]);
}

static inline void rnd_vlen(struct rnd *r, const struct dtype *t, uint8_t *at, struct elems *e)
{
	uint64_t offset = 0;
	uint32_t n = rnd_below(r, 4);
	uint8_t *items = calloc(n + 8, t->vlen.base->size);
	if (rnd_one_in(r, 4)) {
		free(items);
		return; /* no value */
	}
	if (t->vlen.is_string)
		n = (uint32_t)rnd_text(r, items, 8);
	else
		for (uint32_t i = 0; i < n; i++)
			rnd_element(r, t->vlen.base, items + (size_t)i * t->vlen.base->size, e);
	elems_heap_add(e, items, (size_t)n * t->vlen.base->size, &offset);
	elems_put_vlen(at, n, offset);
	free(items);
}

static inline void rnd_element(struct rnd *r, const struct dtype *t, uint8_t *at, struct elems *e)
{
	switch (t->cls) {
	case DTYPE_FLOAT:
		rnd_real(r, t, at);
		break;
	case DTYPE_STRING:
		memset(at, t->string.pad == DTYPE_PAD_SPACEPAD ? ' ' : 0, t->size);
		rnd_text(r, at, t->size);
		break;
	case DTYPE_OPAQUE:
		rnd_text(r, at, t->size);
		break;
	case DTYPE_REFERENCE:
		number_put_int(at, DTYPE_OBJREF_SIZE, false,
			       rnd_below(r, tree_numbers(r->tree) + 1));
		break;
	case DTYPE_COMPOUND:
		for (uint32_t i = 0; i < t->compound.n; i++)
			rnd_element(r, t->compound.members[i].type,
				    at + t->compound.members[i].offset, e);
		break;
	case DTYPE_ARRAY:
		for (uint64_t i = 0; i < t->array.nelems; i++)
			rnd_element(r, t->array.base, at + i * t->array.base->size, e);
		break;
	case DTYPE_VLEN:
		rnd_vlen(r, t, at, e);
		break;
	default:
		rnd_bytes(r, at, t->size);
		break;
	}
}

/* Not all elements need to be set. */
static inline void rnd_value(struct rnd *r, const struct dtype *t, uint64_t n, struct elems *e)
{
	if (n > 0 && !t->has_vlen && rnd_one_in(r, 5))
		n = rnd_below(r, (uint32_t)n);
	if (n == 0)
		return;
	bytes_append_zero(&e->fixed, (size_t)n * t->size);
	for (uint64_t i = 0; i < n; i++)
		rnd_element(r, t, e->fixed.data + i * t->size, e);
}

/* ---- objects ---- */

static inline void rnd_space(struct rnd *r, struct dspace *s)
{
	uint64_t dims[3], max[3];
	const uint32_t rank = 1 + rnd_below(r, 3);
	const uint32_t kind = rnd_below(r, 6);
	for (uint32_t d = 0; d < rank; d++) {
		dims[d] = rnd_below(r, 4);
		max[d] = rnd_one_in(r, 3) ? DSPACE_UNLIMITED : dims[d] + rnd_below(r, 2);
	}
	if (kind == 0)
		dspace_scalar(s);
	else if (kind == 1)
		dspace_null(s);
	else
		dspace_simple(rnd_arena(r), s, rank, dims, kind == 2 ? max : NULL, NULL);
}

static inline void rnd_attributes(struct rnd *r, struct object *o)
{
	o->attrs_ordered = rnd_below(r, 2);
	o->nattrs = rnd_below(r, 5);
	o->attrs = arena_array(rnd_arena(r), o->nattrs + 1, sizeof(*o->attrs));
	for (uint32_t i = 0; i < o->nattrs; i++) {
		struct attribute *a = &o->attrs[i];
		a->name = rnd_name(r, true);
		a->type = rnd_held_type(r);
		a->committed = OBJECT_NONE;
		rnd_space(r, &a->space);
		rnd_value(r, a->type, a->space.nelems, &a->value);
	}
}

static inline void rnd_filters(struct rnd *r, struct dataset *ds)
{
	static const uint32_t ids[] = {FILTER_SHUFFLE, FILTER_DEFLATE,	   FILTER_FLETCHER32,
				       FILTER_ZSTD,    FILTER_SCALEOFFSET, FILTER_LZF};
	struct filter *f = arena_array(rnd_arena(r), 3, sizeof(*f));
	uint32_t *params = arena_array(rnd_arena(r), 9, sizeof(*params));
	ds->nfilters = rnd_below(r, 4);
	ds->filters = f;
	for (uint32_t i = 0; i < ds->nfilters; i++) {
		f[i].id = ids[rnd_below(r, 6)];
		f[i].name = rnd_below(r, 2) ? "a filter" : NULL;
		f[i].nparams = f[i].id == FILTER_DEFLATE ? 1 : rnd_below(r, 3);
		f[i].params = params + 3 * i;
		for (uint32_t k = 0; k < f[i].nparams; k++)
			params[3 * i + k] = f[i].id == FILTER_DEFLATE
						    ? rnd_below(r, 10)
						    : UINT32_MAX - rnd_below(r, 2);
	}
}

static inline void rnd_dataset(struct rnd *r, struct dataset *ds)
{
	uint64_t chunk[3];
	uint32_t *requested = arena_array(rnd_arena(r), 3, sizeof(*requested));
	static const uint64_t one[] = {1};
	ds->type = rnd_held_type(r);
	ds->committed = OBJECT_NONE;
	rnd_space(r, &ds->space);
	ds->requested = (enum layout_class)rnd_below(r, 3);
	for (uint32_t d = 0; d < 3; d++) {
		chunk[d] = 1 + rnd_below(r, 4);
		requested[d] = (uint32_t)chunk[d] + rnd_below(r, 2);
	}
	if (ds->space.cls == DSPACE_SCALAR)
		grid_init(rnd_arena(r), &ds->grid, 1, one, one, NULL);
	else if (ds->space.cls == DSPACE_SIMPLE)
		grid_init(rnd_arena(r), &ds->grid, ds->space.rank, ds->space.dims, chunk, NULL);
	if (ds->requested == LAYOUT_CHUNKED && ds->space.cls != DSPACE_SIMPLE)
		ds->requested = LAYOUT_CONTIGUOUS;
	if (ds->requested == LAYOUT_CHUNKED && rnd_below(r, 2))
		ds->requested_chunk = requested;
	rnd_filters(r, ds);
	ds->alloc_time = (enum alloc_time)(1 + rnd_below(r, 3));
	ds->fill_time = (enum fill_time)rnd_below(r, 3);
	ds->fill_defined = rnd_below(r, 2);
	if (ds->fill_defined)
		rnd_value(r, ds->type, 1, &ds->fill);
}

static inline void rnd_link(struct rnd *r, struct link *l, uint32_t target)
{
	l->name = rnd_name(r, false);
	l->utf8 = true; /* not compared */
	l->target = OBJECT_NONE;
	switch (target == OBJECT_NONE ? rnd_below(r, 2) : 2) {
	case 0:
		l->cls = LINK_SOFT;
		l->path = rnd_name(r, false);
		break;
	case 1:
		l->cls = LINK_EXTERNAL;
		l->path = rnd_name(r, false);
		l->domain = rnd_name(r, false);
		break;
	default:
		l->cls = LINK_HARD;
		l->target = target;
		break;
	}
}

/* A finished tree of up to 12 objects. The caller frees it. */
static inline struct tree *random_tree(const void *bytes, size_t n, uint64_t seed)
{
	struct rnd r = {.bytes = bytes, .n = n, .seed = seed};
	uint32_t number, group = 0;
	r.tree = tree_new((size_t)1 << 30);
	const uint32_t total = 1 + rnd_below(&r, 12);
	for (uint32_t i = 0; i < total; i++)
		tree_add(r.tree, &number, NULL);
	for (uint32_t i = 0; i < total; i++) {
		struct object *o = tree_edit(r.tree, i);
		o->kind = i == 0 ? OBJECT_GROUP : (enum object_kind)rnd_below(&r, 3);
		o->created_ns = (int64_t)rnd_below(&r, 3) * 1000000007;
		if (o->kind == OBJECT_DATASET)
			rnd_dataset(&r, &o->dataset);
		else if (o->kind == OBJECT_DATATYPE)
			o->datatype = rnd_held_type(&r);
		else
			o->group.links = arena_array(tree_arena(r.tree), 2 * total + 4,
						     sizeof(*o->group.links));
		rnd_attributes(&r, o);
		if (rnd_one_in(&r, 3))
			o->comment = rnd_name(&r, false);
		struct object *parent = tree_edit(r.tree, group);
		if (i > 0)
			rnd_link(&r, &parent->group.links[parent->group.nlinks++], i);
		if (rnd_one_in(&r, 4))
			rnd_link(&r, &parent->group.links[parent->group.nlinks++],
				 rnd_below(&r, 2) ? OBJECT_NONE : rnd_below(&r, total));
		if (o->kind == OBJECT_GROUP && rnd_below(&r, 2))
			group = i;
	}
	/* Uses of committed types. */
	for (uint32_t i = 0; i < total; i++) {
		struct object *o = tree_edit(r.tree, i);
		const struct tree_object *type = tree_object(r.tree, rnd_below(&r, total));
		if (o->kind != OBJECT_DATATYPE || o->nattrs == 0 || type->o.kind != OBJECT_DATATYPE)
			continue;
		elems_release(&o->attrs[0].value);
		o->attrs[0].value = (struct elems){0};
		o->attrs[0].type = type->o.datatype;
		o->attrs[0].committed = (uint32_t)(type - tree_object(r.tree, 0));
	}
	tree_finish(r.tree, NULL);
	return r.tree;
}

#endif
