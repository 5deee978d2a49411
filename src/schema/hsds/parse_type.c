/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "type" as in HDF5/JSON ({"class": "H5T_…", …}, or the name of a predefined type) -> struct dtype.
 * The constructors of data/dtype.h limit sizes, ranks and numbers of members. The depth is limited
 * here. Compounds are packed, because the schema has no offsets.
 *
 * If the type has a member "hsmount" (hdf5_type.h), the result is the exact type of that member.
 * Both types must be stored in the same bytes. Pure.
 */
#include "parse.h"

#include "stand_in.h"
#include "hdf5_type.h"
#include <json/numbers.h>
#include "parse_object.h"

#include <string.h>

#include <data/number.h>

static int parse(struct schema_ctx *ctx, const json_t *v, unsigned int depth,
		 const struct dtype **out, struct err *err);

/* ---- predefined types ---- */

/* Parses the end of a name such as "I32LE": a letter, the number of bits, and the byte order.
 * Without a byte order the type is little-endian. */
static bool parse_spec(const char *s, char *letter, uint32_t *size, bool *big_endian)
{
	static const struct {
		const char *bits;
		uint32_t size;
	} widths[] = {{"8", 1}, {"16", 2}, {"32", 4}, {"64", 8}};
	*letter = s[0];
	if (s[0] == '\0')
		return false;
	s++;
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		size_t n = strlen(widths[i].bits);
		if (strncmp(s, widths[i].bits, n) != 0)
			continue;
		const char *order = s + n;
		*size = widths[i].size;
		*big_endian = strcmp(order, "BE") == 0;
		return *big_endian || strcmp(order, "LE") == 0 || order[0] == '\0';
	}
	return false;
}

static int parse_reference(struct schema_ctx *ctx, const char *base, const struct dtype **out,
			   struct err *err)
{
	enum dtype_ref kind = DTYPE_REF_OBJECT;
	if (base && strcmp(base, "H5T_STD_REF_DSETREG") == 0)
		kind = DTYPE_REF_REGION;
	else if (base && strcmp(base, "H5T_STD_REF_OBJ") != 0)
		return err_set(err, -EIO, "unknown base \"%.64s\"", base);
	return schema_built(dtype_reference(ctx->arena, kind, err), out, err);
}

static int parse_name(struct schema_ctx *ctx, const char *name, const struct dtype **out,
		      struct err *err)
{
	char letter;
	uint32_t size = 0;
	bool big;
	struct schema_id id;
	if (schema_id_parse(name, strlen(name), &id))
		return err_set(err, -EIO, "committed datatype \"%.64s\" without a description",
			       name);
	if (strncmp(name, "H5T_STD_REF", 11) == 0)
		return parse_reference(ctx, name, out, err);
	if (strncmp(name, "H5T_STD_", 8) == 0 && parse_spec(name + 8, &letter, &size, &big)) {
		if (letter == 'I' || letter == 'U') {
			return schema_built(
				dtype_integer(ctx->arena, size, letter == 'I', big, err), out, err);
		}
		if (letter == 'B') {
			return schema_built(dtype_bitfield(ctx->arena, size, big, err), out, err);
		}
	}
	if (strncmp(name, "H5T_IEEE_", 9) == 0 && parse_spec(name + 9, &letter, &size, &big) &&
	    letter == 'F' && size > 1) {
		return schema_built(dtype_ieee(ctx->arena, size, big, err), out, err);
	}
	return err_set(err, -EIO, "unknown base \"%.64s\"", name);
}

/* Parses a type of the class INTEGER, FLOAT or BITFIELD. It is the type of the base, which must
 * have the same class. */
static int parse_atomic(struct schema_ctx *ctx, const json_t *v, enum dtype_class cls,
			unsigned int depth, const struct dtype **out, struct err *err)
{
	int rc = parse(ctx, json_object_get(v, "base"), depth + 1, out, err);
	if (rc)
		return rc;
	if ((*out)->cls != cls)
		return err_set(err, -EIO, "the base has another class");
	return 0;
}

/* ---- strings, opaque ---- */

static int parse_opaque(struct schema_ctx *ctx, const json_t *v, const struct dtype **out,
			struct err *err)
{
	const json_t *tag = json_object_get(v, "tag");
	const char *text = "";
	const json_t *size = json_object_get(v, "size");
	uint64_t n;
	if (!schema_count(size, &n) || n == 0 || n > DTYPE_MAX_SIZE)
		return err_set(err, -EIO, size ? "size: not a size" : "size: missing");
	if (json_is_string(tag)) {
		int rc = schema_ctx_name(ctx, json_string_value(tag), json_string_length(tag),
					 &text, true, err);
		if (rc)
			return err_wrap(err, rc, "tag");
	}
	return schema_built(dtype_opaque(ctx->arena, (uint32_t)n, text, err), out, err);
}

/* ---- enumerations ---- */

struct members {
	const struct dtype *base;
	const char **names;
	uint8_t *values;
	uint32_t n;
};

static int add_member(struct schema_ctx *ctx, struct members *m, const char *name, size_t name_len,
		      const json_t *value, struct err *err)
{
	const char **slot = &m->names[m->n];
	int rc = schema_ctx_name(ctx, name, name_len, slot, false, err);
	if (rc)
		return err_wrap(err, rc, "enum member %u", m->n);
	struct json_number num = json_number_int(0);
	struct json_string text;
	if (json_is_integer(value))
		num = json_number_int(json_integer_value(value));
	else if (json_is_boolean(value))
		num = json_number_int(json_is_true(value));
	else if (!json_is_string(value) || schema_ctx_text(ctx, value, &text, err) ||
		 !json_number_text(text.s, text.n, &num))
		return err_set(err, -EIO, "enum member \"%.64s\": not an integer", *slot);
	number_put_int(m->values + (size_t)m->n * m->base->size, m->base->size,
		       m->base->integer.big_endian, num.bits);
	m->n++;
	return 0;
}

/* Parses "mapping", which is {name: value} or a list of {name, value}. The list may also be called
 * "members". */
static int add_members(struct schema_ctx *ctx, struct members *m, json_t *mapping, struct err *err)
{
	const char *name;
	json_t *v;
	json_object_foreach(mapping, name, v)
	{
		int rc = add_member(ctx, m, name, strlen(name), v, err);
		if (rc)
			return rc;
	}
	size_t i;
	json_array_foreach(mapping, i, v)
	{
		const json_t *text = json_object_get(v, "name");
		if (!json_is_string(text))
			return err_set(err, -EIO, "enum member %zu: no name", i);
		int rc = add_member(ctx, m, json_string_value(text), json_string_length(text),
				    json_object_get(v, "value"), err);
		if (rc)
			return rc;
	}
	return 0;
}

static int parse_enum(struct schema_ctx *ctx, const json_t *v, unsigned int depth,
		      const struct dtype **out, struct err *err)
{
	struct members m = {0};
	json_t *mapping = json_object_get(v, "mapping");
	int rc = parse(ctx, json_object_get(v, "base"), depth + 1, &m.base, err);
	if (rc)
		return err_wrap(err, rc, "enum base");
	if (m.base->cls != DTYPE_INTEGER)
		return err_set(err, -EIO, "the enum base is not an integer");
	if (!mapping)
		mapping = json_object_get(v, "members");
	size_t n = json_object_size(mapping) + json_array_size(mapping);
	if (n > DTYPE_MAX_MEMBERS)
		return err_set(err, -EIO, "enum with %zu members, the limit is %d", n,
			       DTYPE_MAX_MEMBERS);
	m.names = arena_array(ctx->arena, n ? n : 1, sizeof(*m.names));
	m.values = arena_array(ctx->arena, n ? n : 1, m.base->size);
	if (!m.names || !m.values)
		return err_errno(err, -ENOMEM, "enum");
	rc = add_members(ctx, &m, mapping, err);
	if (rc)
		return rc;
	return schema_built(dtype_enum(ctx->arena, m.base, m.n, m.names, m.values, err), out, err);
}

/* ---- compound, array, vlen ---- */

static int parse_field(struct schema_ctx *ctx, const json_t *field, size_t i, unsigned int depth,
		       struct dtype_member *m, struct err *err)
{
	const json_t *name = json_object_get(field, "name");
	if (!json_is_string(name))
		return err_set(err, -EIO, "compound field %zu: no name", i);
	int rc = schema_ctx_name(ctx, json_string_value(name), json_string_length(name), &m->name,
				 false, err);
	if (rc)
		return err_wrap(err, rc, "compound field %zu", i);
	rc = parse(ctx, json_object_get(field, "type"), depth + 1, &m->type, err);
	return rc ? err_wrap(err, rc, "compound field %zu \"%.64s\"", i, m->name) : 0;
}

static int parse_compound(struct schema_ctx *ctx, const json_t *v, unsigned int depth,
			  const struct dtype **out, struct err *err)
{
	const json_t *fields = json_object_get(v, "fields");
	size_t n = json_array_size(fields);
	if (n == 0 || n > DTYPE_MAX_MEMBERS)
		return err_set(err, -EIO, "compound with %zu fields instead of 1 to %d", n,
			       DTYPE_MAX_MEMBERS);
	struct dtype_member *m = arena_array(ctx->arena, n, sizeof(*m));
	if (!m)
		return err_errno(err, -ENOMEM, "compound");
	for (size_t i = 0; i < n; i++) {
		int rc = parse_field(ctx, json_array_get(fields, i), i, depth, &m[i], err);
		if (rc)
			return rc;
	}
	return schema_built(dtype_compound(ctx->arena, (uint32_t)n, m, 0, err), out, err);
}

static int parse_array(struct schema_ctx *ctx, const json_t *v, unsigned int depth,
		       const struct dtype **out, struct err *err)
{
	const struct dtype *base;
	uint64_t dims[DSPACE_MAX_RANK];
	uint32_t small[DTYPE_MAX_RANK];
	uint32_t rank;
	int rc = schema_dims(json_object_get(v, "dims"), &rank, dims, err);
	if (rc)
		return err_wrap(err, rc, "array dims");
	for (uint32_t d = 0; d < rank; d++) {
		if (dims[d] > DTYPE_MAX_SIZE)
			return err_set(err, -EIO, "array dimension %u is too large", d);
		small[d] = (uint32_t)dims[d];
	}
	rc = parse(ctx, json_object_get(v, "base"), depth + 1, &base, err);
	if (rc)
		return err_wrap(err, rc, "array base");
	return schema_built(dtype_array(ctx->arena, base, rank, small, err), out, err);
}

/* ---- all classes ---- */

static int parse(struct schema_ctx *ctx, const json_t *v, unsigned int depth,
		 const struct dtype **out, struct err *err)
{
	*out = NULL;
	if (depth > DTYPE_MAX_DEPTH)
		return err_set(err, -EIO, "nested deeper than %d levels", DTYPE_MAX_DEPTH);
	if (json_is_string(v))
		return parse_name(ctx, json_string_value(v), out, err);
	const char *cls = json_text_word(v, "class");
	if (!cls)
		return err_set(err, -EIO, v ? "no class" : "missing");
	if (strcmp(cls, "H5T_INTEGER") == 0)
		return parse_atomic(ctx, v, DTYPE_INTEGER, depth, out, err);
	if (strcmp(cls, "H5T_FLOAT") == 0)
		return parse_atomic(ctx, v, DTYPE_FLOAT, depth, out, err);
	if (strcmp(cls, "H5T_BITFIELD") == 0)
		return parse_atomic(ctx, v, DTYPE_BITFIELD, depth, out, err);
	if (strcmp(cls, "H5T_STRING") == 0)
		return schema_type_string(ctx, v, out, err);
	if (strcmp(cls, "H5T_OPAQUE") == 0)
		return parse_opaque(ctx, v, out, err);
	if (strcmp(cls, "H5T_REFERENCE") == 0)
		return parse_reference(ctx, json_text_word(v, "base"), out, err);
	if (strcmp(cls, "H5T_ENUM") == 0)
		return parse_enum(ctx, v, depth, out, err);
	if (strcmp(cls, "H5T_COMPOUND") == 0)
		return parse_compound(ctx, v, depth, out, err);
	if (strcmp(cls, "H5T_ARRAY") == 0)
		return parse_array(ctx, v, depth, out, err);
	if (strcmp(cls, "H5T_VLEN") == 0) {
		const struct dtype *base;
		int rc = parse(ctx, json_object_get(v, "base"), depth + 1, &base, err);
		if (rc)
			return err_wrap(err, rc, "vlen base");
		return schema_built(dtype_vlen(ctx->arena, base, err), out, err);
	}
	return err_set(err, -EIO, "unknown class \"%.64s\"", cls);
}

/* *type is the type that the service knows. It is replaced by the exact type. */
static int parse_exact(struct schema_ctx *ctx, const json_t *v, const struct dtype **type,
		       struct err *err)
{
	const struct dtype *exact;
	int rc = schema_hdf5_type_parse(ctx, v, &exact, err);
	if (rc)
		return err_wrap(err, rc, "hsmount");
	if (!schema_carries(*type, exact))
		return err_set(err, -EIO,
			       "hsmount: its elements are not stored in the same bytes as those "
			       "of the type");
	*type = exact;
	return 0;
}

/* Returns whether a type has no types as its parts. Most attributes and datasets have one of a few
 * such types. */
static bool is_simple(const struct dtype *t)
{
	return t->cls == DTYPE_INTEGER || t->cls == DTYPE_FLOAT || t->cls == DTYPE_STRING ||
	       t->cls == DTYPE_REFERENCE;
}

/* If another document has an equal type, returns that, and releases the memory of this one.
 * Otherwise remembers this type. */
static const struct dtype *share(struct schema_ctx *ctx, const struct dtype *t,
				 const struct arena_mark *before)
{
	struct schema_types *types = ctx->types;
	const unsigned int n = sizeof(types->known) / sizeof(types->known[0]);
	for (unsigned int i = 0; i < n && types->known[i]; i++)
		if (dtype_equal(types->known[i], t)) {
			arena_rewind(ctx->arena, before);
			return types->known[i];
		}
	types->known[types->next] = t;
	types->next = (types->next + 1) % n;
	return t;
}

int schema_type(struct schema_ctx *ctx, const json_t *v, const struct dtype **out,
		uint32_t *committed, struct err *err)
{
	const char *text = json_text_word(v, "id");
	struct schema_id id;
	*committed = OBJECT_NONE;
	if (text && schema_id_parse(text, strlen(text), &id) && id.kind == OBJECT_DATATYPE)
		*committed = schema_number(ctx, &id);
	const struct arena_mark before =
		ctx->types ? arena_mark(ctx->arena) : (struct arena_mark){0};
	int rc = parse(ctx, v, 1, out, err);
	if (!rc && json_object_get(v, "hsmount"))
		rc = parse_exact(ctx, json_object_get(v, "hsmount"), out, err);
	if (!rc && (*out)->described > DTYPE_MAX_DESCRIBED)
		return err_set(err, -E2BIG,
			       "its description has %u bytes, the limit of a file is %d",
			       (*out)->described, DTYPE_MAX_DESCRIBED);
	if (!rc && ctx->types && is_simple(*out))
		*out = share(ctx, *out, &before);
	return rc;
}
