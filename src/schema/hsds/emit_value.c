/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements -> JSON: the reverse of parse_value.c. Writes numbers, text and nested lists if these
 * are read as the same elements. Otherwise writes the stored form in base64 (stored_form.c). This
 * is necessary for
 *
 *   - values whose stand-in requires it (stand_in.is_bytes)
 *   - text that is not UTF-8
 *   - a compound of one sequence, whose brackets the reader could misunderstand
 *   - lists that would be nested too deeply, or be too long (LISTS_MAX, OBJECT_LISTS_MAX)
 *
 * A NaN with another sign or payload than that of a JSON document is written as any other NaN,
 * which clients of the service read. The member "hsmount" then has the stored form of the whole
 * value.
 *
 * Text ends before the padding that the reader adds. A string of variable length that has no value
 * is null. Pure.
 */
#include "emit_document.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include <base/utf8.h>
#include <data/number.h>

enum {
	DEPTH_MAX = 90,		     /* levels of lists; the reader permits JSON_TEXT_DEPTH */
	LISTS_MAX = 1 << 20,	     /* bytes of a value that is written as lists */
	OBJECT_LISTS_MAX = 16 << 20, /* the same for all values of an object */
	SERVED_ARENA = 64 << 20,     /* bytes of memory for a stand-in */
};

struct value {
	struct schema_emit *e;
	const struct elems *elems;
	bool unfit;   /* JSON cannot hold it */
	bool inexact; /* JSON cannot hold the bits of a NaN */
	int rc;	      /* -EIO if a slot is damaged */
};

static void put(struct value *v, const struct dtype *t, const uint8_t *at);

/* ---- one element ---- */

static void put_integer(struct value *v, const struct dtype *t, const uint8_t *at)
{
	const bool is_signed = t->cls == DTYPE_TIME || t->integer.is_signed;
	if (t->size > sizeof(uint64_t)) {
		v->unfit = true;
		return;
	}
	const uint64_t bits = number_get_int(at, t->size, t->integer.big_endian);
	const unsigned int unused = 64 - 8 * t->size;
	if (is_signed)
		write_int(&v->e->w, (int64_t)(bits << unused) >> unused);
	else
		write_uint(&v->e->w, bits);
}

static void put_float(struct value *v, const struct dtype *t, const uint8_t *at)
{
	uint8_t nan[sizeof(double)];
	if (!schema_is_ieee(t)) {
		v->unfit = true;
		return;
	}
	const double real = number_get_float(at, t->size, t->floating.big_endian);
	if (isnan(real)) {
		number_put_float(nan, t->size, t->floating.big_endian, (double)NAN);
		v->inexact = v->inexact || memcmp(nan, at, t->size) != 0;
	}
	write_real(&v->e->w, real);
}

static void put_text(struct value *v, const char *text, size_t n)
{
	if (utf8_valid(text, n))
		write_text(&v->e->w, text, n);
	else
		v->unfit = true;
}

static void put_fixed_text(struct value *v, const struct dtype *t, const uint8_t *at)
{
	const bool spaces = t->cls == DTYPE_STRING && t->string.pad == DTYPE_PAD_SPACEPAD;
	size_t n = t->size;
	while (n > 0 && at[n - 1] == (spaces ? ' ' : '\0'))
		n--;
	put_text(v, (const char *)at, n);
}

static void put_reference(struct value *v, const struct dtype *t, const uint8_t *at)
{
	char text[OBJECT_REF_TEXT];
	if (t->reference.kind != DTYPE_REF_OBJECT) {
		v->unfit = true;
		return;
	}
	schema_ref_text(v->e->tree, number_get_int(at, DTYPE_OBJREF_SIZE, false), text);
	write_text(&v->e->w, text, strnlen(text, sizeof(text)));
}

static void put_vlen(struct value *v, const struct dtype *t, const uint8_t *at)
{
	const struct dtype *base = t->vlen.base;
	const struct elems_vlen slot = elems_get_vlen(at);
	const uint64_t len = (uint64_t)slot.count * base->size; /* both factors have 32 bits */
	const struct bytes *heap = &v->elems->heap;
	if (len > heap->len || (len && slot.offset > heap->len - len)) {
		v->rc = err_set(v->e->err, -EIO, "a sequence is outside of its heap");
		return;
	}
	const uint8_t *items = len ? heap->data + slot.offset : (const uint8_t *)"";
	if (t->vlen.is_string) {
		if (slot.is_set)
			put_text(v, (const char *)items, (size_t)len);
		else
			write_null(&v->e->w);
		return;
	}
	write_open(&v->e->w, '[');
	for (uint32_t i = 0; i < slot.count && !v->unfit && !v->rc; i++)
		put(v, base, items + (size_t)i * base->size);
	write_close(&v->e->w, ']');
}

static void put_compound(struct value *v, const struct dtype *t, const uint8_t *at)
{
	const struct dtype_member *first = &t->compound.members[0];
	if (t->compound.n == 1 && t->has_vlen) { /* the service sees the member alone */
		if (first->type->cls == DTYPE_VLEN && first->type->vlen.is_string)
			put(v, first->type, at + first->offset);
		else
			v->unfit = true;
		return;
	}
	write_open(&v->e->w, '[');
	for (uint32_t i = 0; i < t->compound.n && !v->unfit && !v->rc; i++)
		put(v, t->compound.members[i].type, at + t->compound.members[i].offset);
	write_close(&v->e->w, ']');
}

/* Writes the items of the dimensions d and later. */
static void put_items(struct value *v, const struct dtype *t, uint32_t d, const uint8_t *at)
{
	size_t step = t->array.base->size;
	if (d == t->array.rank) {
		put(v, t->array.base, at);
		return;
	}
	for (uint32_t k = d + 1; k < t->array.rank; k++)
		step *= t->array.dims[k];
	write_open(&v->e->w, '[');
	for (uint32_t i = 0; i < t->array.dims[d] && !v->unfit && !v->rc; i++)
		put_items(v, t, d + 1, at + i * step);
	write_close(&v->e->w, ']');
}

static void put(struct value *v, const struct dtype *t, const uint8_t *at)
{
	switch (t->cls) {
	case DTYPE_INTEGER:
	case DTYPE_BITFIELD:
	case DTYPE_TIME:
		put_integer(v, t, at);
		break;
	case DTYPE_FLOAT:
		put_float(v, t, at);
		break;
	case DTYPE_STRING:
	case DTYPE_OPAQUE:
		put_fixed_text(v, t, at);
		break;
	case DTYPE_ENUM:
		put_integer(v, t->enumeration.base, at);
		break;
	case DTYPE_REFERENCE:
		put_reference(v, t, at);
		break;
	case DTYPE_VLEN:
		put_vlen(v, t, at);
		break;
	case DTYPE_COMPOUND:
		put_compound(v, t, at);
		break;
	case DTYPE_ARRAY:
		put_items(v, t, 0, at);
		break;
	}
}

/* ---- whole values ---- */

/* Returns the number of levels of lists in an element. */
static uint32_t levels(const struct dtype *t)
{
	uint32_t most = 0;
	switch (t->cls) {
	case DTYPE_ARRAY:
		return t->array.rank + levels(t->array.base);
	case DTYPE_VLEN:
		return 1 + levels(t->vlen.base);
	case DTYPE_COMPOUND:
		for (uint32_t i = 0; i < t->compound.n; i++) {
			const uint32_t n = levels(t->compound.members[i].type);
			most = n > most ? n : most;
		}
		return 1 + most;
	default:
		return 0;
	}
}

/* Writes the elements of the dimensions d and later, beginning with element *next. */
static void put_shape(struct value *v, const struct dtype *t, const struct dspace *s, uint32_t d,
		      uint64_t *next, uint8_t *element)
{
	if (d == s->rank) {
		elems_read(v->elems, *next * t->size, element, t->size);
		put(v, t, element);
		++*next;
		return;
	}
	write_open(&v->e->w, '[');
	for (uint64_t i = 0; i < s->dims[d] && !v->unfit && !v->rc; i++)
		put_shape(v, t, s, d + 1, next, element);
	write_close(&v->e->w, ']');
}

/* Writes a value as lists. If JSON cannot hold the value, *fits is false and nothing is written. If
 * it cannot hold all bits of the value, *exact is false. */
static int put_lists(struct schema_emit *e, const struct dtype *t, const struct dspace *s,
		     const struct elems *elems, bool *fits, bool *exact)
{
	struct value v = {.e = e, .elems = elems};
	const struct writer before = e->w;
	const size_t len = e->w.out->len;
	uint64_t next = 0;
	auto_free uint8_t *element = malloc(t->size);
	if (!element)
		return err_errno(e->err, -ENOMEM, "value");
	put_shape(&v, t, s, 0, &next, element);
	*fits = !v.unfit;
	*exact = !v.inexact;
	if (v.unfit && !e->w.bad) {
		e->w = before;
		e->w.out->len = len;
	}
	return v.rc;
}

/* Returns whether a value is small enough to be written as lists, and counts its bytes in e->lists.
 * The bytes in memory stand for those of the document, which has at least a fraction of them. */
static bool is_small(struct schema_emit *e, const struct dtype *t, const struct dspace *s,
		     const struct elems *elems)
{
	uint64_t bytes;
	if (!mul_u64(s->nelems, t->size, &bytes) || !add_u64(bytes, elems->heap.len, &bytes) ||
	    bytes > LISTS_MAX || e->lists > OBJECT_LISTS_MAX - bytes)
		return false;
	e->lists += bytes;
	return true;
}

/* Writes a value of at least one element, as lists or as text in base64. */
static int put_value(struct schema_emit *e, const struct stand_in *c, const struct dtype *t,
		     const struct dspace *s, const struct elems *elems, bool *is_base64,
		     struct schema_beside *beside)
{
	auto_bytes struct bytes raw = {0};
	bool fits = false, exact = false;
	int rc = 0;
	if (!c->is_bytes && s->rank + levels(t) <= DEPTH_MAX && is_small(e, t, s, elems))
		rc = put_lists(e, t, s, elems, &fits, &exact);
	*is_base64 = !fits;
	if (rc || (fits && exact))
		return rc;
	rc = schema_stream_encode(e->tree, t, s->nelems, elems, fits ? &beside->exact : &raw,
				  &beside->unset, e->err);
	if (!rc && !fits)
		write_base64(&e->w, raw.data, raw.len);
	return rc;
}

static void emit_unset(struct writer *w, const struct schema_unset *unset)
{
	write_member_open(w, "unset", '[');
	for (size_t i = 0; i < unset->n; i++) {
		write_open(w, '[');
		write_uint(w, unset->ranges[i].first);
		write_uint(w, unset->ranges[i].count);
		write_close(w, ']');
	}
	write_close(w, ']');
}

void schema_emit_beside(struct writer *w, const char *name, const struct schema_beside *b)
{
	if (b->exact.len > 0) {
		write_key(w, name);
		write_base64(w, b->exact.data, b->exact.len);
	}
	if (b->unset.n > 0)
		emit_unset(w, &b->unset);
}

int schema_emit_value(struct schema_emit *e, const struct stand_in *c, const struct attribute *a)
{
	auto_beside struct schema_beside beside = {0};
	bool is_base64 = false;
	int rc = 0;
	write_key(&e->w, "value");
	if (a->space.cls == DSPACE_NULL) {
		write_null(&e->w);
	} else if (a->space.nelems == 0) {
		write_open(&e->w, '[');
		write_close(&e->w, ']');
	} else {
		rc = put_value(e, c, a->type, &a->space, &a->value, &is_base64, &beside);
	}
	if (!rc && is_base64)
		write_member_word(&e->w, "encoding", "base64");
	if (!rc && (beside.exact.len > 0 || beside.unset.n > 0)) {
		write_member_open(&e->w, "hsmount", '{');
		schema_emit_beside(&e->w, "value", &beside);
		write_close(&e->w, '}');
	}
	return rc;
}

bool schema_is_served(const struct tree *t, const struct attribute *a)
{
	auto_bytes struct bytes text = {0};
	struct err why = ERR_INIT;
	struct schema_emit e = {.tree = t, .w = {.out = &text}, .err = &why};
	struct stand_in stand_in;
	const char *refused;
	bool fits = true, exact;
	if (a->space.cls == DSPACE_NULL || a->space.nelems == 0)
		return true;
	e.arena = arena_new(SERVED_ARENA);
	if (!e.arena || schema_stand_in(e.arena, a->type, &stand_in, &refused, NULL) ||
	    stand_in.is_bytes || a->space.rank + levels(a->type) > DEPTH_MAX ||
	    !is_small(&e, a->type, &a->space, &a->value) ||
	    put_lists(&e, a->type, &a->space, &a->value, &fits, &exact))
		fits = false;
	arena_free(e.arena);
	return fits;
}

/* ---- fill values ---- */

/* Returns whether the reader might not take this JSON as the fill value. The reader takes an empty
 * text as no fill value unless the type is text, and takes "None" and null as no fill value for
 * every type. */
static bool is_ambiguous(const struct dtype *t, const char *json, size_t n)
{
	const bool is_text = t->cls == DTYPE_STRING || t->cls == DTYPE_OPAQUE ||
			     (t->cls == DTYPE_VLEN && t->vlen.is_string);
	return n > 0 && json[0] == '"' &&
	       (!is_text || (n == strlen("\"None\"") && memcmp(json, "\"None\"", n) == 0));
}

int schema_emit_fill(struct schema_emit *e, const struct stand_in *c, const struct dataset *ds,
		     bool *written, struct schema_beside *beside)
{
	static const char key[] = "fillValue";
	struct stand_in how = *c;
	struct writer *w = &e->w;
	const struct writer before = *w;
	const size_t start = w->out->len;
	struct dspace scalar;
	bool is_base64;
	dspace_scalar(&scalar);
	write_key(w, key);
	const size_t at = w->out->len;
	int rc = put_value(e, &how, ds->type, &scalar, &ds->fill, &is_base64, beside);
	const char *json = (const char *)w->out->data + at;
	const size_t n = w->out->len - at;
	*written = true;
	if (rc || w->bad)
		return rc;
	if (!is_base64 && n == 4 && memcmp(json, "null", n) == 0) {
		*w = before;
		w->out->len = start;
		*written = false;
		return 0;
	}
	if (!is_base64 && is_ambiguous(ds->type, json, n)) {
		w->out->len = at;
		w->behind = false;
		how.is_bytes = true;
		rc = put_value(e, &how, ds->type, &scalar, &ds->fill, &is_base64, beside);
	}
	if (!rc && is_base64)
		write_member_word(w, "fillValue_encoding", "base64");
	return rc;
}
