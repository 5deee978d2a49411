/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON values -> elements. The service stores whatever its client has sent if numpy can convert it.
 * So this parser converts the same forms (for numbers see numbers.h):
 *
 *   nesting     nested lists with the shape of the value; also one flat list, one extra pair of
 *               brackets, and a single element without brackets
 *   null        zero; NaN in a float, as numpy converts None; no value in a vlen. If the whole
 *               value is null or missing, it was never set: all elements are zero
 *   numbers     numbers, booleans or text
 *   strings     truncated or padded to the size of the type; a lone surrogate becomes 3 bytes
 *   enums       the value or the name of a member
 *   references  "groups/<id>" or "<id>". Any other text is the null reference. Every region
 *               reference is null, because the schema cannot store selections
 *   opaque      text, truncated or padded with NULs to the size of the type
 *
 * If a value cannot be converted, the error names the element. Elements are not allocated one by
 * one: they are written to their position in out->fixed, or to the one stack of vlen items.
 *
 * out->fixed ends after the last byte that was set. If one null or one fill value stands for many
 * elements, it is stored as a repetition (elems.h), so that time and memory depend only on the
 * length of the document. If a later element is set, the repetition in front of it is expanded,
 * within the memory budget of the object. Pure.
 */
#include "parse.h"

#include <json/base64.h>
#include "stand_in.h"
#include <json/numbers.h>

#include <math.h>
#include <string.h>

#include <data/number.h>

/* The destination of an element. It is not a pointer, because the buffer moves when it grows. */
struct place {
	struct bytes *buf;
	size_t off;
};

static uint8_t *slot(struct place p)
{
	return p.buf->data + p.off;
}

struct reader {
	struct schema_ctx *ctx;
	struct elems *out;
	bool broadcast; /* one element may stand for a whole array */
	bool plain;	/* the type has no slots, so repetitions need not be expanded */
	/* The type of the null elements that the repetition at the end of `out` repeats; NULL if it
	 * repeats other elements, or if there is no repetition. */
	const struct dtype *nulls;
};

static int put(struct reader *r, const struct dtype *t, const json_t *v, struct place at,
	       struct err *err);

/* ---- memory ---- */

/* Expands the repetition at the end of r->out. */
static int expand(struct reader *r, struct err *err)
{
	struct elems *e = r->out;
	if (e->repeated == 0)
		return 0;
	int rc = schema_spend(r->ctx, e->repeated, err);
	if (!rc && bytes_reserve(&e->fixed, (size_t)e->repeated))
		rc = err_errno(err, -ENOMEM, "value");
	if (rc)
		return rc;
	elems_read(e, e->fixed.len, e->fixed.data + e->fixed.len, (size_t)e->repeated);
	e->fixed.len += (size_t)e->repeated;
	e->repeated = 0;
	r->nulls = NULL;
	return 0;
}

/* Makes room for n bytes at a destination. Bytes that were not written before are zero. */
static int reserve(struct reader *r, struct place at, uint64_t n, struct err *err)
{
	struct bytes *fixed = &r->out->fixed;
	if (at.buf != fixed)
		return 0; /* put_vlen() has allocated the items on the stack */
	int rc = expand(r, err);
	if (rc || at.off + n <= fixed->len)
		return rc;
	const uint64_t more = at.off + n - fixed->len;
	rc = schema_spend(r->ctx, more, err);
	if (!rc && bytes_append_zero(fixed, (size_t)more))
		rc = err_errno(err, -ENOMEM, "value");
	return rc;
}

/* Repeats the `size` bytes at a destination `more` times. */
static int repeat(struct reader *r, struct place at, uint64_t size, uint64_t more, struct err *err)
{
	struct elems *e = r->out;
	const bool at_end = at.buf == &e->fixed;
	int rc;
	if (at_end && at.off >= elems_end(e))
		return 0; /* nothing was set, so there is nothing to repeat */
	rc = reserve(r, at, size, err);
	if (rc)
		return rc;
	if (at_end && r->plain && at.off + size == e->fixed.len) {
		e->period = (uint32_t)size;
		e->repeated = more * size;
		return 0;
	}
	rc = reserve(r, at, (more + 1) * size, err);
	if (!rc)
		elems_repeat(slot(at), (size_t)size, (size_t)((more + 1) * size));
	return rc;
}

/* Returns true if an element of this type is itself a list. */
static bool is_list_type(const struct dtype *t)
{
	return t->cls == DTYPE_COMPOUND || t->cls == DTYPE_ARRAY ||
	       (t->cls == DTYPE_VLEN && !t->vlen.is_string);
}

/* ---- numbers ---- */

static int number_of(struct reader *r, const json_t *v, struct json_number *out, struct err *err)
{
	if (json_is_integer(v)) {
		*out = json_number_int(json_integer_value(v));
		return 0;
	}
	if (json_is_real(v)) {
		*out = json_number_real(json_real_value(v));
		return 0;
	}
	if (json_is_boolean(v)) {
		*out = json_number_int(json_is_true(v));
		return 0;
	}
	if (!json_is_string(v))
		return err_set(err, -EIO, "not a number");
	struct json_string text;
	int rc = schema_ctx_text(r->ctx, v, &text, err);
	if (!rc && !json_number_text(text.s, text.n, out))
		rc = err_set(err, -EIO, "\"%.*s\" is not a number", (int)min_u64(text.n, 64),
			     text.s);
	return rc;
}

static int put_integer(struct reader *r, const struct dtype *t, const json_t *v, struct place at,
		       struct err *err)
{
	struct json_number num;
	if (t->size > sizeof(num.bits))
		return err_set(err, -EIO, "an integer of %u bytes cannot be written in JSON",
			       t->size);
	int rc = number_of(r, v, &num, err);
	if (!rc)
		rc = reserve(r, at, t->size, err);
	if (!rc)
		number_put_int(slot(at), t->size, t->integer.big_endian, num.bits);
	return rc;
}

static int put_float(struct reader *r, const struct dtype *t, const json_t *v, struct place at,
		     struct err *err)
{
	struct json_number num = {.real = (double)NAN};
	if (!schema_is_ieee(t))
		return json_is_null(v) ? 0
				       : err_set(err, -EIO,
						 "a float that is not of IEEE 754 cannot be "
						 "written in JSON");
	int rc = json_is_null(v) ? 0 : number_of(r, v, &num, err);
	if (!rc)
		rc = reserve(r, at, t->size, err);
	if (!rc)
		number_put_float(slot(at), t->size, t->floating.big_endian, num.real);
	return rc;
}

static int put_enum(struct reader *r, const struct dtype *t, const json_t *v, struct place at,
		    struct err *err)
{
	const struct dtype *base = t->enumeration.base;
	struct json_string text;
	if (!json_is_string(v))
		return put_integer(r, base, v, at, err);
	int rc = schema_ctx_text(r->ctx, v, &text, err);
	if (rc)
		return rc;
	if (t->enumeration.n > r->ctx->compares)
		return err_set(err, -EIO, "too many enum values are given by name");
	r->ctx->compares -= t->enumeration.n;
	for (uint32_t i = 0; i < t->enumeration.n && !text.literal; i++) {
		const char *name = t->enumeration.names[i];
		if (strlen(name) == text.n && memcmp(name, text.s, text.n) == 0) {
			rc = reserve(r, at, base->size, err);
			if (!rc)
				memcpy(slot(at), t->enumeration.values + (size_t)i * base->size,
				       base->size);
			return rc;
		}
	}
	return put_integer(r, base, v, at, err);
}

/* ---- text ---- */

static int text_of(struct reader *r, const json_t *v, struct json_string *text, struct err *err)
{
	if (!json_is_string(v))
		return err_set(err, -EIO, "not text");
	return schema_ctx_text(r->ctx, v, text, err);
}

/* Puts a string of fixed size or an opaque, truncated or padded to the size of the type. */
static int put_text(struct reader *r, const struct dtype *t, const json_t *v, struct place at,
		    struct err *err)
{
	struct json_string text = {.s = "", .n = 0};
	int rc = json_is_null(v) ? 0 : text_of(r, v, &text, err);
	if (rc)
		return rc;
	size_t n = text.n < t->size ? text.n : t->size;
	const bool spaces =
		t->cls == DTYPE_STRING && t->string.pad == DTYPE_PAD_SPACEPAD && n < t->size;
	if (n + spaces == 0)
		return 0; /* only NULs, which need not be written */
	rc = reserve(r, at, n + spaces, err);
	if (rc)
		return rc;
	memcpy(slot(at), text.s, n);
	if (!spaces)
		return 0;
	const struct place pad = {at.buf, at.off + n};
	*slot(pad) = ' ';
	return repeat(r, pad, 1, t->size - n - 1, err);
}

static int put_reference(struct reader *r, const struct dtype *t, const json_t *v, struct place at,
			 struct err *err)
{
	struct json_string text;
	int rc = text_of(r, v, &text, err);
	if (rc || t->reference.kind != DTYPE_REF_OBJECT)
		return rc;
	rc = reserve(r, at, DTYPE_OBJREF_SIZE, err);
	if (!rc)
		number_put_int(slot(at), DTYPE_OBJREF_SIZE, false,
			       schema_reference(r->ctx, text.s, text.n));
	return rc;
}

/* ---- variable length ---- */

static int add_items(struct reader *r, const void *items, size_t len, uint32_t count,
		     struct place at, struct err *err)
{
	uint64_t off = 0;
	int rc = reserve(r, at, DTYPE_VLEN_SIZE, err);
	if (rc)
		return rc;
	rc = elems_heap_add(r->out, items, len, &off);
	if (rc == -ENOMEM)
		return err_errno(err, rc, "vlen");
	if (rc)
		return err_set(err, -EIO, "the variable-length values are too large");
	elems_put_vlen(slot(at), count, off);
	return 0;
}

static int put_vlen_text(struct reader *r, const json_t *v, struct place at, struct err *err)
{
	struct json_string text;
	int rc = text_of(r, v, &text, err);
	if (!rc)
		rc = schema_spend(r->ctx, align_u64(text.n, 8), err);
	return rc ? rc : add_items(r, text.s, text.n, (uint32_t)text.n, at, err);
}

/* Puts a sequence. The items are built on top of the stack. After the values that they contain,
 * they are copied to the heap. */
static int put_vlen(struct reader *r, const struct dtype *t, const json_t *v, struct place at,
		    struct err *err)
{
	const struct dtype *base = t->vlen.base;
	struct bytes *stack = &r->ctx->stack;
	size_t start = stack->len;
	if (!is_list_type(base) && json_array_size(v) == 1 && json_is_array(json_array_get(v, 0)))
		v = json_array_get(v, 0); /* an extra pair of brackets */
	bool list = json_is_array(v);
	size_t n = list ? json_array_size(v) : 1;
	uint64_t len;
	if (n > UINT32_MAX || !mul_u64(n, base->size, &len))
		return err_set(err, -EIO, "a sequence of %zu items is too large", n);
	if (n == 0)
		return add_items(r, NULL, 0, 0, at, err);
	int rc = schema_spend(r->ctx, len, err);
	if (rc)
		return rc;
	rc = bytes_append_zero(stack, len);
	if (rc)
		return err_errno(err, rc, "vlen");
	for (size_t i = 0; !rc && i < n; i++) {
		struct place item = {stack, start + i * base->size};
		rc = put(r, base, list ? json_array_get(v, i) : v, item, err);
		if (rc)
			err_wrap(err, rc, "item %zu", i);
	}
	if (!rc)
		rc = add_items(r, stack->data + start, len, (uint32_t)n, at, err);
	stack->len = start;
	return rc;
}

/* ---- lists ---- */

struct shape {
	uint32_t rank;
	uint64_t dims[DSPACE_MAX_RANK];
	uint64_t left[DSPACE_MAX_RANK +
		      1]; /* left[d]: number of elements in dimensions d and later */
};

static void shape_finish(struct shape *s)
{
	s->left[s->rank] = 1;
	for (uint32_t d = s->rank; d > 0; d--)
		s->left[d - 1] = s->left[d] * s->dims[d - 1];
}

static int put_shape(struct reader *r, const struct dtype *t, const struct shape *s, uint32_t d,
		     const json_t *v, struct place at, struct err *err);

/* Puts the entries of a list, each of which has the shape of dimensions d and later. */
static int put_entries(struct reader *r, const struct dtype *t, const struct shape *s, uint32_t d,
		       const json_t *list, struct place at, struct err *err)
{
	size_t n = json_array_size(list);
	size_t step = (size_t)s->left[d] * t->size;
	for (size_t i = 0; i < n; i++) {
		struct place entry = {at.buf, at.off + i * step};
		int rc = put_shape(r, t, s, d, json_array_get(list, i), entry, err);
		if (rc)
			return err_wrap(err, rc, "[%zu]", i);
	}
	return 0;
}

/* Puts one value for n > 0 elements. */
static int put_all(struct reader *r, const struct dtype *t, const json_t *v, uint64_t n,
		   struct place at, struct err *err)
{
	struct elems *e = r->out;
	const bool null = json_is_null(v);
	if (null && r->nulls == t && at.buf == &e->fixed && at.off == elems_end(e)) {
		e->repeated += n * t->size; /* continues the repetition */
		return 0;
	}
	int rc = put(r, t, v, at, err);
	if (rc || n == 1)
		return rc;
	/* Copies must not share items that have slots of their own. */
	if (null || !t->has_vlen || (t->cls == DTYPE_VLEN && dtype_is_plain(t->vlen.base))) {
		rc = repeat(r, at, t->size, n - 1, err);
		const bool at_end = at.buf == &e->fixed && elems_end(e) == at.off + n * t->size;
		r->nulls = !rc && null && at_end && e->repeated ? t : NULL;
		return rc;
	}
	for (uint64_t i = 1; !rc && i < n; i++)
		rc = put(r, t, v, (struct place){at.buf, at.off + (size_t)(i * t->size)}, err);
	return rc;
}

static int put_shape(struct reader *r, const struct dtype *t, const struct shape *s, uint32_t d,
		     const json_t *v, struct place at, struct err *err)
{
	uint64_t left = s->left[d];
	if (d == s->rank)
		return put(r, t, v, at, err);
	if (!json_is_array(v)) {
		if (left == 1 || r->broadcast || json_is_null(v))
			return left ? put_all(r, t, v, left, at, err) : 0;
		return err_set(err, -EIO, "1 value instead of %llu", (unsigned long long)left);
	}
	size_t n = json_array_size(v);
	const json_t *only = n == 1 ? json_array_get(v, 0) : NULL;
	if (n == s->dims[d])
		return put_entries(r, t, s, d + 1, v, at, err);
	if (n == left)
		return put_entries(r, t, s, s->rank, v, at, err);
	if (json_is_array(only) || json_is_null(only))
		return put_shape(r, t, s, d, only, at, err);
	if (left == 1 && is_list_type(t))
		return put(r, t, v, at, err);
	return err_set(err, -EIO, "%zu values instead of %llu", n, (unsigned long long)s->dims[d]);
}

static int put_array(struct reader *r, const struct dtype *t, const json_t *v, struct place at,
		     struct err *err)
{
	struct shape s = {.rank = t->array.rank};
	for (uint32_t d = 0; d < s.rank; d++)
		s.dims[d] = t->array.dims[d];
	shape_finish(&s);
	return put_shape(r, t->array.base, &s, 0, v, at, err);
}

static int put_compound(struct reader *r, const struct dtype *t, const json_t *v, struct place at,
			struct err *err)
{
	uint32_t n = t->compound.n;
	size_t have = json_array_size(v);
	if (have != n && have == 1 && json_is_array(json_array_get(v, 0)))
		return put_compound(r, t, json_array_get(v, 0), at, err);
	if (!(json_is_array(v) && have == n) && (json_is_array(v) || n != 1))
		return err_set(err, -EIO, "%zu values for a compound of %u members", have, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct dtype_member *m = &t->compound.members[i];
		struct place field = {at.buf, at.off + m->offset};
		int rc = put(r, m->type, json_is_array(v) ? json_array_get(v, i) : v, field, err);
		if (rc)
			return err_wrap(err, rc, "field \"%.64s\"", m->name);
	}
	return 0;
}

/* Puts one element. Its bytes are zero before. */
static int put(struct reader *r, const struct dtype *t, const json_t *v, struct place at,
	       struct err *err)
{
	if (!is_list_type(t))
		while (json_array_size(v) == 1) /* extra pairs of brackets */
			v = json_array_get(v, 0);
	switch (t->cls) {
	case DTYPE_FLOAT:
		return put_float(r, t, v, at, err);
	case DTYPE_STRING:
	case DTYPE_OPAQUE:
		return put_text(r, t, v, at, err);
	default:
		break;
	}
	if (json_is_null(v))
		return 0;
	switch (t->cls) {
	case DTYPE_INTEGER:
	case DTYPE_BITFIELD:
	case DTYPE_TIME:
		return put_integer(r, t, v, at, err);
	case DTYPE_ENUM:
		return put_enum(r, t, v, at, err);
	case DTYPE_REFERENCE:
		return put_reference(r, t, v, at, err);
	case DTYPE_VLEN:
		return t->vlen.is_string ? put_vlen_text(r, v, at, err)
					 : put_vlen(r, t, v, at, err);
	case DTYPE_ARRAY:
		return put_array(r, t, v, at, err);
	case DTYPE_COMPOUND:
		return put_compound(r, t, v, at, err);
	default:
		return err_set(err, -EIO, "values of this class cannot be written in JSON");
	}
}

/* ---- whole values ---- */

static int put_base64(struct reader *r, const struct dtype *t, uint64_t n, const json_t *v,
		      struct err *err)
{
	auto_bytes struct bytes raw = {0};
	struct json_string text;
	int rc = text_of(r, v, &text, err);
	if (rc)
		return rc;
	rc = base64_decode(text.s, text.n, &raw);
	if (rc == -ENOMEM)
		return err_errno(err, rc, "base64");
	if (rc)
		return err_set(err, -EIO, "not base64");
	return schema_stream(r->ctx, t, n, raw.data, raw.len, r->out, err);
}

static int read_value(struct reader *r, const struct dtype *t, const struct dspace *space,
		      const json_t *v, const char *encoding, struct err *err)
{
	uint64_t len;
	if (!mul_u64(space->nelems, t->size, &len))
		return err_set(err, -EIO, "value size overflows");
	if (len > SCHEMA_VALUES_MAX)
		return err_set(err, -EIO, "%llu bytes, the limit is %d", (unsigned long long)len,
			       SCHEMA_VALUES_MAX);
	if (!v || json_is_null(v) || len == 0)
		return 0;
	if (encoding && strcmp(encoding, "base64") == 0)
		return put_base64(r, t, space->nelems, v, err);
	if (encoding)
		return err_set(err, -EIO, "unknown encoding \"%.64s\"", encoding);
	struct shape s = {.rank = space->rank};
	for (uint32_t d = 0; d < s.rank; d++)
		s.dims[d] = space->dims[d];
	shape_finish(&s);
	return put_shape(r, t, &s, 0, v, (struct place){&r->out->fixed, 0}, err);
}

static int read_whole(struct reader *r, const struct dtype *t, const struct dspace *space,
		      const json_t *v, const char *encoding, struct err *err)
{
	*r->out = (struct elems){0};
	r->ctx->stack.len = 0;
	r->plain = dtype_is_plain(t);
	int rc = read_value(r, t, space, v, encoding, err);
	/* The last element of a value with slots may be incomplete. */
	const uint64_t elements = div_up_u64(r->out->fixed.len, t->size);
	if (!rc && !r->plain)
		rc = reserve(r, (struct place){&r->out->fixed, 0}, elements * t->size, err);
	bytes_trim(&r->out->fixed);
	bytes_trim(&r->out->heap);
	if (rc)
		elems_release(r->out);
	return rc;
}

int schema_value(struct schema_ctx *ctx, const struct dtype *t, const struct dspace *space,
		 const json_t *value, const char *encoding, struct elems *out, struct err *err)
{
	struct reader r = {.ctx = ctx, .out = out};
	return read_whole(&r, t, space, value, encoding, err);
}

int schema_fill_value(struct schema_ctx *ctx, const struct dtype *t, const json_t *value,
		      const char *encoding, struct elems *out, struct err *err)
{
	struct reader r = {.ctx = ctx, .out = out, .broadcast = true};
	struct dspace scalar;
	dspace_scalar(&scalar);
	return read_whole(&r, t, &scalar, value, encoding, err);
}
