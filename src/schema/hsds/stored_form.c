/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements in the form in which the service stores them, in values with "encoding": "base64". The
 * elements follow each other without padding, and compounds are packed. Types of fixed size are
 * otherwise as in an HDF5 file. The other types are
 *
 *   vlen        +0 i32 LE  number of bytes that follow; 0 for an empty string
 *               +4         the string, or base elements in this form
 *   reference   48 bytes of text, NUL-padded: "datasets/d-…"
 *
 * This form cannot distinguish a string that has no value from an empty one. Therefore the member
 * "unset" of "hsmount", a list of pairs [first, number], says which strings have no value. Strings
 * are counted from 0 in the order of the form, and strings inside of sequences count, too.
 *
 * There must be exactly n elements. Only the value of a single string or opaque may be shorter than
 * its type, because clients remove NULs at the end. Pure.
 */
#include "emit_document.h"
#include "parse.h"

#include <string.h>

#include <base/cursor.h>
#include <base/emit.h>
#include <data/number.h>

enum { REF_TEXT = 48, VLEN_MAX = INT32_MAX };

/* Returns true if elements have the same bytes in memory and in this form. */
static bool is_copied(const struct dtype *t)
{
	return t->is_packed && dtype_is_plain(t);
}

struct stream {
	struct schema_ctx *ctx;
	struct elems *out;
	struct err *err;
	uint64_t strings; /* number of strings so far */
	size_t range;	  /* next pair in ctx->unset, and the current one; count 0 if none */
	uint64_t first, count;
};

static int next_range(struct stream *s)
{
	const json_t *pair = json_array_get(s->ctx->unset, s->range);
	s->count = 0;
	if (!pair)
		return 0;
	if (!schema_count(json_array_get(pair, 0), &s->first) ||
	    !schema_count(json_array_get(pair, 1), &s->count) || s->first < s->strings ||
	    s->count == 0)
		return err_set(s->err, -EIO, "hsmount: unset: pair %zu is not a range", s->range);
	s->range++;
	return 0;
}

/* Counts a string, and sets *is_set to whether it has a value. */
static int count_string(struct stream *s, bool *is_set)
{
	*is_set = s->count == 0 || s->strings < s->first;
	s->strings++;
	return !*is_set && s->strings - s->first == s->count ? next_range(s) : 0;
}

static int take(struct stream *s, const struct dtype *t, struct cursor *c, struct bytes *to,
		size_t off);

static int take_reference(struct stream *s, const struct dtype *t, struct cursor *c,
			  struct bytes *to, size_t off)
{
	const uint8_t *text = cur_bytes(c, REF_TEXT);
	if (!text)
		return err_set(s->err, -EIO, "base64 ends inside a reference");
	if (t->reference.kind == DTYPE_REF_OBJECT)
		number_put_int(to->data + off, DTYPE_OBJREF_SIZE, false,
			       schema_reference(s->ctx, (const char *)text, REF_TEXT));
	return 0;
}

static int heap_add(struct stream *s, const void *items, size_t len, uint64_t *off)
{
	int rc = schema_spend(s->ctx, align_u64(len, 8), s->err);
	if (rc)
		return rc;
	rc = elems_heap_add(s->out, items, len, off);
	if (rc == -ENOMEM)
		return err_errno(s->err, rc, "vlen");
	return rc ? err_set(s->err, -EIO, "the variable-length values are too large") : 0;
}

/* Decodes the base elements of a sequence on the stack, adds them to the heap, and counts them. */
static int take_items(struct stream *s, const struct dtype *base, struct cursor *items,
		      uint32_t *count, uint64_t *heap_off)
{
	struct bytes *stack = &s->ctx->stack;
	size_t start = stack->len;
	int rc = 0;
	while (!rc && cur_left(items) > 0) {
		size_t off = stack->len;
		rc = schema_spend(s->ctx, base->size, s->err);
		if (!rc && bytes_append_zero(stack, base->size))
			rc = err_errno(s->err, -ENOMEM, "vlen");
		if (!rc)
			rc = take(s, base, items, stack, off);
		(*count)++;
	}
	if (!rc && *count > 0)
		rc = heap_add(s, stack->data + start, stack->len - start, heap_off);
	stack->len = start;
	return rc;
}

static int take_vlen(struct stream *s, const struct dtype *t, struct cursor *c, struct bytes *to,
		     size_t off)
{
	uint32_t len = cur_u32(c);
	struct cursor items = cur_sub(c, len);
	uint32_t count = len;
	uint64_t heap_off = 0;
	bool is_set = true;
	int rc = 0;
	if (!cur_ok(c) || len > VLEN_MAX)
		return err_set(s->err, -EIO,
			       "base64: a sequence states %u bytes, more than are left", len);
	if (t->vlen.is_string)
		rc = count_string(s, &is_set);
	if (rc || (!is_set && len == 0))
		return rc;
	if (!t->vlen.is_string && !is_copied(t->vlen.base)) {
		count = 0;
		rc = take_items(s, t->vlen.base, &items, &count, &heap_off);
	} else if (len % t->vlen.base->size) {
		return err_set(
			s->err, -EIO,
			"base64: a sequence has %u bytes, not a multiple of the item size %u", len,
			t->vlen.base->size);
	} else if (len > 0) {
		count = len / t->vlen.base->size;
		rc = heap_add(s, cur_bytes(&items, len), len, &heap_off);
	}
	if (!rc)
		elems_put_vlen(to->data + off, count, heap_off);
	return rc;
}

static int take(struct stream *s, const struct dtype *t, struct cursor *c, struct bytes *to,
		size_t off)
{
	int rc = 0;
	if (is_copied(t)) {
		const uint8_t *bytes = cur_bytes(c, t->size);
		if (!bytes)
			return err_set(s->err, -EIO, "base64: too few bytes");
		memcpy(to->data + off, bytes, t->size);
		return 0;
	}
	switch (t->cls) {
	case DTYPE_REFERENCE:
		return take_reference(s, t, c, to, off);
	case DTYPE_VLEN:
		return take_vlen(s, t, c, to, off);
	case DTYPE_COMPOUND:
		for (uint32_t i = 0; !rc && i < t->compound.n; i++) {
			const struct dtype_member *m = &t->compound.members[i];
			rc = take(s, m->type, c, to, off + m->offset);
			if (rc)
				err_wrap(s->err, rc, "field \"%.64s\"", m->name);
		}
		return rc;
	case DTYPE_ARRAY:
		for (uint64_t i = 0; !rc && i < t->array.nelems; i++)
			rc = take(s, t->array.base, c, to, off + (size_t)i * t->array.base->size);
		return rc;
	default:
		return err_set(s->err, -EIO, "values of this class cannot be stored");
	}
}

/* Appends n bytes to the elements. If `bytes` is NULL, they are zeros. */
static int append(struct stream *s, const void *bytes, size_t n)
{
	struct bytes *fixed = &s->out->fixed;
	int rc = schema_spend(s->ctx, n, s->err);
	if (!rc && (bytes ? bytes_append(fixed, bytes, n) : bytes_append_zero(fixed, n)))
		rc = err_errno(s->err, -ENOMEM, "value");
	return rc;
}

int schema_stream(struct schema_ctx *ctx, const struct dtype *t, uint64_t n, const uint8_t *bytes,
		  size_t len, struct elems *out, struct err *err)
{
	struct stream s = {.ctx = ctx, .out = out, .err = err};
	struct cursor c = cursor_of(bytes, len);
	int rc = next_range(&s);
	if (rc)
		return rc;
	const bool is_stripped =
		n == 1 && len < t->size && (t->cls == DTYPE_STRING || t->cls == DTYPE_OPAQUE);
	if (is_copied(t) && (is_stripped || (len % t->size == 0 && len / t->size == n)))
		return append(&s, bytes, len);
	for (uint64_t i = 0; i < n; i++) {
		const size_t off = out->fixed.len;
		rc = append(&s, NULL, t->size);
		if (!rc)
			rc = take(&s, t, &c, &out->fixed, off);
		if (rc)
			return err_wrap(err, rc, "element %llu", (unsigned long long)i);
	}
	if (cur_left(&c) > 0)
		return err_set(err, -EIO, "base64: %zu bytes too many", cur_left(&c));
	return 0;
}

/* ---- encoding ---- */

struct encoder {
	const struct tree *tree;
	const struct elems *e;
	struct bytes *out;
	struct schema_unset *unset;
	uint64_t strings; /* number of strings so far */
	struct err *err;
};

/* Notes that the string with this number has no value. */
static int note_unset(struct encoder *k, uint64_t number)
{
	struct schema_unset *u = k->unset;
	if (u->n > 0 && u->ranges[u->n - 1].first + u->ranges[u->n - 1].count == number) {
		u->ranges[u->n - 1].count++;
		return 0;
	}
	void *ranges = array_grow(u->ranges, u->n, sizeof(*u->ranges));
	if (!ranges)
		return err_errno(k->err, -ENOMEM, "value");
	u->ranges = ranges;
	u->ranges[u->n].first = number;
	u->ranges[u->n++].count = 1;
	return 0;
}

static int append_stored(struct encoder *k, const void *bytes, size_t n)
{
	if (n > SCHEMA_EMIT_VALUES_MAX || k->out->len > SCHEMA_EMIT_VALUES_MAX - n)
		return err_set(k->err, -EFBIG, "values of more than %d bytes",
			       SCHEMA_EMIT_VALUES_MAX);
	return bytes_append(k->out, bytes, n) ? err_errno(k->err, -ENOMEM, "value") : 0;
}

static int give(struct encoder *k, const struct dtype *t, const uint8_t *slot);

static int give_vlen(struct encoder *k, const struct dtype *t, const uint8_t *slot)
{
	const struct dtype *base = t->vlen.base;
	const struct elems_vlen v = elems_get_vlen(slot);
	const uint64_t len = (uint64_t)v.count * base->size; /* both factors have 32 bits */
	const size_t at = k->out->len;
	if (len > k->e->heap.len || (len && v.offset > k->e->heap.len - len))
		return err_set(k->err, -EIO, "a sequence is outside of its heap");
	int rc = append_stored(k, "\0\0\0", sizeof(uint32_t));
	if (!rc && t->vlen.is_string && !v.is_set)
		rc = note_unset(k, k->strings);
	k->strings += t->vlen.is_string;
	if (!rc && len && is_copied(base)) {
		rc = append_stored(k, k->e->heap.data + v.offset, (size_t)len);
	} else {
		for (uint32_t i = 0; !rc && i < v.count; i++)
			rc = give(k, base, k->e->heap.data + v.offset + (size_t)i * base->size);
	}
	if (rc)
		return rc;
	struct emit count = emit_to(k->out->data + at, sizeof(uint32_t));
	emit_u32(&count, (uint32_t)(k->out->len - at - sizeof(uint32_t)));
	return 0;
}

static int give(struct encoder *k, const struct dtype *t, const uint8_t *slot)
{
	char text[REF_TEXT];
	int rc = 0;
	if (is_copied(t))
		return append_stored(k, slot, t->size);
	switch (t->cls) {
	case DTYPE_REFERENCE:
		schema_ref_text(k->tree,
				t->reference.kind == DTYPE_REF_OBJECT
					? number_get_int(slot, DTYPE_OBJREF_SIZE, false)
					: 0,
				text);
		return append_stored(k, text, sizeof(text));
	case DTYPE_VLEN:
		return give_vlen(k, t, slot);
	case DTYPE_COMPOUND:
		for (uint32_t i = 0; !rc && i < t->compound.n; i++)
			rc = give(k, t->compound.members[i].type,
				  slot + t->compound.members[i].offset);
		return rc;
	case DTYPE_ARRAY:
		for (uint64_t i = 0; !rc && i < t->array.nelems; i++)
			rc = give(k, t->array.base, slot + (size_t)i * t->array.base->size);
		return rc;
	default:
		return err_set(k->err, -EIO, "values of this class cannot be stored");
	}
}

/* Appends all elements of a type that is_copied() at once. */
static int give_all(struct encoder *k, uint64_t len)
{
	if (len > SCHEMA_EMIT_VALUES_MAX)
		return err_set(k->err, -EFBIG, "a value of more than %d bytes",
			       SCHEMA_EMIT_VALUES_MAX);
	if (bytes_reserve(k->out, (size_t)len))
		return err_errno(k->err, -ENOMEM, "value");
	elems_read(k->e, 0, k->out->data + k->out->len, (size_t)len);
	k->out->len += (size_t)len;
	return 0;
}

int schema_stream_encode(const struct tree *tree, const struct dtype *t, uint64_t n,
			 const struct elems *e, struct bytes *out, struct schema_unset *unset,
			 struct err *err)
{
	struct encoder k = {.tree = tree, .e = e, .out = out, .unset = unset, .err = err};
	auto_free uint8_t *element = NULL;
	uint64_t len;
	int rc = 0;
	if (!mul_u64(n, t->size, &len))
		return err_set(err, -EFBIG, "value size overflows");
	if (is_copied(t))
		return len ? give_all(&k, len) : 0;
	element = malloc(t->size);
	if (!element)
		return err_errno(err, -ENOMEM, "value");
	for (uint64_t i = 0; !rc && i < n; i++) {
		elems_read(e, i * t->size, element, t->size);
		rc = give(&k, t, element);
	}
	return rc;
}
