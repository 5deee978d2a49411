/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and writes the exact form of types, see hdf5_type.h. dtype_checked() checks every number.
 * Pure. */
#include "hdf5_type.h"

#include <string.h>

#include <base/utf8.h>

#include <json/base64.h>

const char *const schema_class_names[] = {
	[DTYPE_INTEGER] = "H5T_INTEGER",   [DTYPE_FLOAT] = "H5T_FLOAT",
	[DTYPE_TIME] = "H5T_TIME",	   [DTYPE_STRING] = "H5T_STRING",
	[DTYPE_BITFIELD] = "H5T_BITFIELD", [DTYPE_OPAQUE] = "H5T_OPAQUE",
	[DTYPE_COMPOUND] = "H5T_COMPOUND", [DTYPE_REFERENCE] = "H5T_REFERENCE",
	[DTYPE_ENUM] = "H5T_ENUM",	   [DTYPE_VLEN] = "H5T_VLEN",
	[DTYPE_ARRAY] = "H5T_ARRAY",
};
enum { NCLASSES = sizeof(schema_class_names) / sizeof(schema_class_names[0]) };

static int parse(struct schema_ctx *ctx, const json_t *v, unsigned int depth,
		 const struct dtype **out, struct err *err);

/* Gets a member that is an integer from 0 to max. */
static int number(const json_t *v, const char *member, uint64_t max, uint32_t *out, struct err *err)
{
	uint64_t n;
	if (!schema_count(json_object_get(v, member), &n) || n > max)
		return err_set(err, -EIO, "%s: not a number from 0 to %llu", member,
			       (unsigned long long)max);
	*out = (uint32_t)n;
	return 0;
}

/* Gets a member that is a list of n integers from 0 to 2^32 - 1. */
static int numbers(const json_t *v, const char *member, size_t n, uint32_t *out, struct err *err)
{
	const json_t *list = json_object_get(v, member);
	if (json_array_size(list) != n)
		return err_set(err, -EIO, "%s: not a list of %zu numbers", member, n);
	for (size_t i = 0; i < n; i++) {
		uint64_t value;
		if (!schema_count(json_array_get(list, i), &value) || value > UINT32_MAX)
			return err_set(err, -EIO, "%s: entry %zu is not a number", member, i);
		out[i] = (uint32_t)value;
	}
	return 0;
}

/* ---- numbers ---- */

static void write_head(struct writer *w, const struct dtype *t, bool big_endian, uint32_t offset,
		       uint32_t precision)
{
	write_member_uint(w, "size", t->size);
	write_member_word(w, "order", big_endian ? "BE" : "LE");
	write_member_uint(w, "offset", offset);
	write_member_uint(w, "precision", precision);
}

static int parse_head(const json_t *v, struct dtype *t, bool *big_endian, uint16_t *offset,
		      uint16_t *precision, struct err *err)
{
	const char *order = json_text_word(v, "order");
	uint32_t first = 0, bits = 0;
	if (!order || (strcmp(order, "LE") != 0 && strcmp(order, "BE") != 0))
		return err_set(err, -EIO, "order: neither \"LE\" nor \"BE\"");
	*big_endian = order[0] == 'B';
	int rc = number(v, "size", DTYPE_MAX_SIZE, &t->size, err);
	if (!rc)
		rc = number(v, "offset", UINT16_MAX, &first, err);
	if (!rc)
		rc = number(v, "precision", UINT16_MAX, &bits, err);
	*offset = (uint16_t)first;
	*precision = (uint16_t)bits;
	return rc;
}

static int parse_integer(struct schema_ctx *ctx, const json_t *v, enum dtype_class cls,
			 const struct dtype **out, struct err *err)
{
	struct dtype t = {.cls = cls};
	t.integer.is_signed = json_is_true(json_object_get(v, "signed"));
	int rc = parse_head(v, &t, &t.integer.big_endian, &t.integer.bit_offset,
			    &t.integer.precision, err);
	if (rc)
		return rc;
	return schema_built(dtype_checked(ctx->arena, &t, err), out, err);
}

static void write_float(struct writer *w, const struct dtype *t)
{
	const uint32_t exponent[] = {t->floating.exp_loc, t->floating.exp_size,
				     t->floating.exp_bias};
	const uint32_t mantissa[] = {t->floating.mant_loc, t->floating.mant_size, t->floating.norm};
	const uint32_t padding[] = {t->floating.lo_pad, t->floating.hi_pad,
				    t->floating.internal_pad};
	write_head(w, t, t->floating.big_endian, t->floating.bit_offset, t->floating.precision);
	write_member_uint(w, "sign", t->floating.sign_loc);
	write_member_list(w, "exponent", 3, exponent);
	write_member_list(w, "mantissa", 3, mantissa);
	write_member_list(w, "padding", 3, padding);
}

static int parse_float(struct schema_ctx *ctx, const json_t *v, const struct dtype **out,
		       struct err *err)
{
	struct dtype t = {.cls = DTYPE_FLOAT};
	uint32_t sign = 0, exponent[3] = {0}, mantissa[3] = {0}, padding[3] = {0};
	int rc = parse_head(v, &t, &t.floating.big_endian, &t.floating.bit_offset,
			    &t.floating.precision, err);
	if (!rc)
		rc = number(v, "sign", UINT8_MAX, &sign, err);
	if (!rc)
		rc = numbers(v, "exponent", 3, exponent, err);
	if (!rc)
		rc = numbers(v, "mantissa", 3, mantissa, err);
	if (!rc)
		rc = numbers(v, "padding", 3, padding, err);
	if (rc)
		return rc;
	if (exponent[0] > UINT8_MAX || exponent[1] > UINT8_MAX || mantissa[0] > UINT8_MAX ||
	    mantissa[1] > UINT8_MAX || mantissa[2] > DTYPE_NORM_IMPLIED || padding[0] > 1 ||
	    padding[1] > 1 || padding[2] > 1)
		return err_set(err, -EIO, "a part of the float is out of range");
	t.floating.sign_loc = (uint8_t)sign;
	t.floating.exp_loc = (uint8_t)exponent[0];
	t.floating.exp_size = (uint8_t)exponent[1];
	t.floating.exp_bias = exponent[2];
	t.floating.mant_loc = (uint8_t)mantissa[0];
	t.floating.mant_size = (uint8_t)mantissa[1];
	t.floating.norm = (enum dtype_norm)mantissa[2];
	t.floating.lo_pad = (uint8_t)padding[0];
	t.floating.hi_pad = (uint8_t)padding[1];
	t.floating.internal_pad = (uint8_t)padding[2];
	return schema_built(dtype_checked(ctx->arena, &t, err), out, err);
}

/* ---- opaque, reference ---- */

static int parse_opaque(struct schema_ctx *ctx, const json_t *v, const struct dtype **out,
			struct err *err)
{
	const json_t *tag = json_object_get(v, "tag");
	const json_t *coded = json_object_get(v, "tag_base64");
	auto_bytes struct bytes raw = {0};
	const char *text = "";
	uint32_t size = 0;
	int rc = number(v, "size", DTYPE_MAX_SIZE, &size, err);
	if (rc)
		return rc;
	if (json_is_string(coded)) {
		rc = base64_decode(json_string_value(coded), json_string_length(coded), &raw);
		if (!rc)
			rc = bytes_append(&raw, "", 1);
		if (rc == -ENOMEM)
			return err_errno(err, rc, "tag");
		if (rc || memchr(raw.data, '\0', raw.len - 1))
			return err_set(err, -EIO, "tag_base64: not the base64 form of a tag");
		text = (const char *)raw.data;
	} else if (json_is_string(tag)) {
		rc = schema_ctx_name(ctx, json_string_value(tag), json_string_length(tag), &text,
				     false, err);
		if (rc)
			return err_wrap(err, rc, "tag");
	}
	return schema_built(dtype_opaque(ctx->arena, size, text, err), out, err);
}

static int parse_reference(struct schema_ctx *ctx, const json_t *v, const struct dtype **out,
			   struct err *err)
{
	const char *base = json_text_word(v, "base");
	if (!base || strcmp(base, "H5T_STD_REF_OBJ") != 0)
		return err_set(err, -EIO, "unknown base \"%.64s\"", base ? base : "");
	return schema_built(dtype_reference(ctx->arena, DTYPE_REF_OBJECT, err), out, err);
}

/* ---- compounds ---- */

static void write_compound(struct writer *w, const struct dtype *t)
{
	write_member_uint(w, "size", t->size);
	write_member_open(w, "fields", '[');
	for (uint32_t i = 0; i < t->compound.n; i++) {
		const struct dtype_member *m = &t->compound.members[i];
		write_open(w, '{');
		write_member_word(w, "name", m->name);
		write_member_uint(w, "offset", m->offset);
		write_key(w, "type");
		schema_hdf5_type_write(w, m->type);
		write_close(w, '}');
	}
	write_close(w, ']');
}

static int parse_field(struct schema_ctx *ctx, const json_t *v, unsigned int depth,
		       struct dtype_member *m, struct err *err)
{
	int rc = schema_ctx_bytes(ctx, json_object_get(v, "name"), &m->name, err);
	if (rc)
		return err_wrap(err, rc, "name");
	rc = number(v, "offset", DTYPE_MAX_SIZE, &m->offset, err);
	return rc ? rc : parse(ctx, json_object_get(v, "type"), depth + 1, &m->type, err);
}

static int parse_compound(struct schema_ctx *ctx, const json_t *v, unsigned int depth,
			  const struct dtype **out, struct err *err)
{
	const json_t *fields = json_object_get(v, "fields");
	const size_t n = json_array_size(fields);
	struct dtype t = {.cls = DTYPE_COMPOUND};
	int rc = number(v, "size", DTYPE_MAX_SIZE, &t.size, err);
	if (rc)
		return rc;
	if (n == 0 || n > DTYPE_MAX_MEMBERS)
		return err_set(err, -EIO, "compound with %zu fields instead of 1 to %d", n,
			       DTYPE_MAX_MEMBERS);
	struct dtype_member *members = arena_array(ctx->arena, n, sizeof(*members));
	if (!members)
		return err_errno(err, -ENOMEM, "compound");
	for (size_t i = 0; i < n; i++) {
		rc = parse_field(ctx, json_array_get(fields, i), depth, &members[i], err);
		if (rc)
			return err_wrap(err, rc, "compound field %zu", i);
	}
	t.compound.n = (uint32_t)n;
	t.compound.members = members;
	return schema_built(dtype_checked(ctx->arena, &t, err), out, err);
}

/* ---- enumerations ---- */

static void write_enum(struct writer *w, const struct dtype *t)
{
	const uint32_t n = t->enumeration.n;
	write_key(w, "base");
	schema_hdf5_type_write(w, t->enumeration.base);
	write_member_open(w, "names", '[');
	for (uint32_t i = 0; i < n; i++)
		write_text(w, t->enumeration.names[i], strlen(t->enumeration.names[i]));
	write_close(w, ']');
	write_key(w, "values");
	write_base64(w, t->enumeration.values, (size_t)n * t->size);
}

static int parse_enum(struct schema_ctx *ctx, const json_t *v, unsigned int depth,
		      const struct dtype **out, struct err *err)
{
	const json_t *list = json_object_get(v, "names");
	const json_t *values = json_object_get(v, "values");
	const size_t n = json_array_size(list);
	auto_bytes struct bytes raw = {0};
	const struct dtype *base;
	int rc = parse(ctx, json_object_get(v, "base"), depth + 1, &base, err);
	if (rc)
		return err_wrap(err, rc, "enum base");
	if (n == 0 || n > DTYPE_MAX_MEMBERS || !json_is_string(values))
		return err_set(err, -EIO, "enum with %zu names instead of 1 to %d, or no values", n,
			       DTYPE_MAX_MEMBERS);
	const char **names = arena_array(ctx->arena, n, sizeof(*names));
	if (!names)
		return err_errno(err, -ENOMEM, "enum");
	for (size_t i = 0; i < n; i++) {
		rc = schema_ctx_bytes(ctx, json_array_get(list, i), &names[i], err);
		if (rc)
			return err_wrap(err, rc, "enum member %zu", i);
	}
	rc = base64_decode(json_string_value(values), json_string_length(values), &raw);
	if (rc == -ENOMEM)
		return err_errno(err, rc, "enum");
	if (rc || raw.len != n * base->size)
		return err_set(err, -EIO, "values: not %zu values of %u bytes in base64", n,
			       base->size);
	return schema_built(dtype_enum(ctx->arena, base, (uint32_t)n, names, raw.data, err), out,
			    err);
}

/* ---- arrays, sequences ---- */

static int parse_array(struct schema_ctx *ctx, const json_t *v, unsigned int depth,
		       const struct dtype **out, struct err *err)
{
	const size_t n = json_array_size(json_object_get(v, "dims"));
	uint32_t dims[DTYPE_MAX_RANK] = {0};
	const struct dtype *base;
	if (n > DTYPE_MAX_RANK)
		return err_set(err, -EIO, "dims: %zu dimensions, the limit is %d", n,
			       DTYPE_MAX_RANK);
	int rc = numbers(v, "dims", n, dims, err);
	if (!rc)
		rc = parse(ctx, json_object_get(v, "base"), depth + 1, &base, err);
	if (rc)
		return err_wrap(err, rc, "array");
	return schema_built(dtype_array(ctx->arena, base, (uint32_t)n, dims, err), out, err);
}

static int parse_vlen(struct schema_ctx *ctx, const json_t *v, unsigned int depth,
		      const struct dtype **out, struct err *err)
{
	const struct dtype *base;
	int rc = parse(ctx, json_object_get(v, "base"), depth + 1, &base, err);
	if (rc)
		return err_wrap(err, rc, "vlen base");
	return schema_built(dtype_vlen(ctx->arena, base, err), out, err);
}

/* ---- all classes ---- */

static void write_members(struct writer *w, const struct dtype *t)
{
	switch (t->cls) {
	case DTYPE_INTEGER:
	case DTYPE_BITFIELD:
	case DTYPE_TIME:
		write_head(w, t, t->integer.big_endian, t->integer.bit_offset,
			   t->integer.precision);
		if (t->cls == DTYPE_INTEGER) {
			write_key(w, "signed");
			write_bool(w, t->integer.is_signed);
		}
		break;
	case DTYPE_FLOAT:
		write_float(w, t);
		break;
	case DTYPE_STRING:
		schema_write_string_type(w, t);
		break;
	case DTYPE_OPAQUE:
		write_member_uint(w, "size", t->size);
		if (utf8_valid(t->opaque.tag, strlen(t->opaque.tag))) {
			write_member_word(w, "tag", t->opaque.tag);
		} else {
			write_key(w, "tag_base64");
			write_base64(w, t->opaque.tag, strlen(t->opaque.tag));
		}
		break;
	case DTYPE_COMPOUND:
		write_compound(w, t);
		break;
	case DTYPE_REFERENCE:
		write_member_word(w, "base", "H5T_STD_REF_OBJ");
		break;
	case DTYPE_ENUM:
		write_enum(w, t);
		break;
	case DTYPE_ARRAY:
		write_member_list(w, "dims", t->array.rank, t->array.dims);
		write_key(w, "base");
		schema_hdf5_type_write(w, t->array.base);
		break;
	case DTYPE_VLEN:
		if (t->vlen.is_string) {
			schema_write_string_type(w, t);
		} else {
			write_key(w, "base");
			schema_hdf5_type_write(w, t->vlen.base);
		}
		break;
	}
}

void schema_hdf5_type_write(struct writer *w, const struct dtype *t)
{
	const bool is_string = t->cls == DTYPE_VLEN && t->vlen.is_string;
	write_open(w, '{');
	write_member_word(w, "class", schema_class_names[is_string ? DTYPE_STRING : t->cls]);
	write_members(w, t);
	write_close(w, '}');
}

static int parse(struct schema_ctx *ctx, const json_t *v, unsigned int depth,
		 const struct dtype **out, struct err *err)
{
	const char *word = json_text_word(v, "class");
	const int cls = schema_word_index(word, schema_class_names, NCLASSES);
	*out = NULL;
	if (depth > DTYPE_MAX_DEPTH)
		return err_set(err, -EIO, "nested deeper than %d levels", DTYPE_MAX_DEPTH);
	if (cls < 0)
		return err_set(err, -EIO, word ? "unknown class \"%.64s\"" : "no class", word);
	switch ((enum dtype_class)cls) {
	case DTYPE_INTEGER:
	case DTYPE_BITFIELD:
	case DTYPE_TIME:
		return parse_integer(ctx, v, (enum dtype_class)cls, out, err);
	case DTYPE_FLOAT:
		return parse_float(ctx, v, out, err);
	case DTYPE_STRING:
		return schema_type_string(ctx, v, out, err);
	case DTYPE_OPAQUE:
		return parse_opaque(ctx, v, out, err);
	case DTYPE_COMPOUND:
		return parse_compound(ctx, v, depth, out, err);
	case DTYPE_REFERENCE:
		return parse_reference(ctx, v, out, err);
	case DTYPE_ENUM:
		return parse_enum(ctx, v, depth, out, err);
	case DTYPE_VLEN:
		return parse_vlen(ctx, v, depth, out, err);
	case DTYPE_ARRAY:
		return parse_array(ctx, v, depth, out, err);
	}
	return err_set(err, -EIO, "unknown class");
}

int schema_hdf5_type_parse(struct schema_ctx *ctx, const json_t *v, const struct dtype **out,
			   struct err *err)
{
	return parse(ctx, v, 1, out, err);
}
