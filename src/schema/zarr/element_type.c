/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the types of elements, numpy's type strings in Zarr v2 ("<f8") and names in v3 ("float64"),
 * and makes the HDF5 types that show them. Complex numbers are compounds of r and i. These types
 * are committed in the root group, because libnetcdf ignores variables of other compounds. Pure.
 */
#include "model_internal.h"

#include <errno.h>
#include <string.h>

static bool is_size(enum zarr_kind kind, uint32_t size)
{
	switch (kind) {
	case ZARR_BOOL:
		return size == 1;
	case ZARR_INT:
	case ZARR_UINT:
		return size == 1 || size == 2 || size == 4 || size == 8;
	case ZARR_FLOAT:
		return size == 2 || size == 4 || size == 8;
	case ZARR_COMPLEX:
		return size == 8 || size == 16;
	}
	return false;
}

/* Parses a type string such as "<f8", ">i2", "|b1", "=u4" or "f4". */
static bool parse_v2(const char *s, struct zarr_element *out)
{
	static const char kinds[] = "biufc";
	const bool has_order = s[0] && strchr("<>|=", s[0]);
	const char *kind = s + has_order;
	const char *found = *kind ? strchr(kinds, *kind) : NULL;
	if (!found)
		return false;
	const char *digits = kind + 1;
	const size_t n = strlen(digits);
	struct zarr_integer size;
	if (n == 0 || n > 2 || digits[0] == '0' || !zarr_integer_text(digits, n, &size) ||
	    digits[0] == '+' || digits[0] == '-')
		return false;
	*out = (struct zarr_element){
		.kind = (enum zarr_kind)(found - kinds),
		.size = (uint32_t)size.magnitude,
		.big_endian = s[0] == '>' && size.magnitude > 1,
	};
	return is_size(out->kind, out->size);
}

int zarr_element_v2(struct zarr_build *b, const json_t *dtype, struct zarr_element *out,
		    struct err *err)
{
	char brief[84];
	const char *text = json_string_value(dtype);
	if (text && parse_v2(text, out)) {
		if (b->is_little)
			out->big_endian = false;
		return 0;
	}
	/* A list is a structure. */
	return err_set(err, text || json_is_array(dtype) ? -EOPNOTSUPP : -EIO,
		       "dtype %s is not known", zarr_json_brief(b, dtype, brief));
}

int zarr_element_v3(struct zarr_build *b, const json_t *data_type, struct zarr_element *out,
		    struct err *err)
{
	static const struct {
		const char *name;
		enum zarr_kind kind;
		uint32_t size;
	} types[] = {
		{"bool", ZARR_BOOL, 1},
		{"int8", ZARR_INT, 1},
		{"int16", ZARR_INT, 2},
		{"int32", ZARR_INT, 4},
		{"int64", ZARR_INT, 8},
		{"uint8", ZARR_UINT, 1},
		{"uint16", ZARR_UINT, 2},
		{"uint32", ZARR_UINT, 4},
		{"uint64", ZARR_UINT, 8},
		{"float16", ZARR_FLOAT, 2},
		{"float32", ZARR_FLOAT, 4},
		{"float64", ZARR_FLOAT, 8},
		{"complex64", ZARR_COMPLEX, 8},
		{"complex128", ZARR_COMPLEX, 16},
		{"complex_float32", ZARR_COMPLEX, 8},
		{"complex_float64", ZARR_COMPLEX, 16},
	};
	char brief[84];
	const json_t *configuration;
	const char *name = zarr_extension(data_type, &configuration);
	for (size_t i = 0; name && i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(types[i].name, name) != 0)
			continue;
		*out = (struct zarr_element){.kind = types[i].kind, .size = types[i].size};
		return 0;
	}
	return err_set(err, name ? -EOPNOTSUPP : -EIO, "data_type %s is not known",
		       zarr_json_brief(b, data_type, brief));
}

struct zarr_element zarr_element_shown(const struct zarr_element *e)
{
	struct zarr_element shown = *e;
	if (e->kind == ZARR_FLOAT && e->size == 2)
		shown.size = 4;
	return shown;
}

/* ---- HDF5 types ---- */

static const struct dtype *make_type(struct zarr_build *b, const struct zarr_element *e,
				     struct err *err)
{
	const uint32_t half = e->size / 2;
	struct dtype_member members[] = {{.name = "r"}, {.name = "i", .offset = half}};
	switch (e->kind) {
	case ZARR_BOOL:
	case ZARR_UINT:
		return dtype_integer(b->arena, e->size, false, e->big_endian, err);
	case ZARR_INT:
		return dtype_integer(b->arena, e->size, true, e->big_endian, err);
	case ZARR_FLOAT:
		return dtype_ieee(b->arena, e->size, e->big_endian, err);
	case ZARR_COMPLEX:
		members[0].type = members[1].type = dtype_ieee(b->arena, half, e->big_endian, err);
		return members[0].type ? dtype_compound(b->arena, 2, members, e->size, err) : NULL;
	}
	return NULL;
}

/* Finds or makes the committed type. Each byte order has its own, because a variable must have a
 * type that is equal to it. */
static int commit(struct zarr_build *b, const struct zarr_element *e, const struct dtype *type,
		  uint32_t *number, struct err *err)
{
	uint32_t *known = &b->types.committed[e->size == 16][e->big_endian];
	if (*known == 0) { /* that of the root group */
		static const char *const names[2][2] = {{"_Complex64", "_Complex64_big"},
							{"_Complex128", "_Complex128_big"}};
		const char *name = names[e->size == 16][e->big_endian];
		const int rc = zarr_object_add(b, name, NULL, NULL, known, err);
		if (rc)
			return rc;
		struct object *o = tree_edit(b->tree, *known);
		o->kind = OBJECT_DATATYPE;
		o->datatype = type;
	}
	*number = *known;
	return 0;
}

const struct dtype *zarr_element_type(struct zarr_build *b, const struct zarr_element *e,
				      uint32_t *committed, struct err *err)
{
	const int log2 = __builtin_ctz(e->size);
	const struct dtype **type = &b->types.number[e->kind][log2][e->big_endian];
	*committed = OBJECT_NONE;
	if (!*type)
		*type = make_type(b, e, err);
	if (*type && e->kind == ZARR_COMPLEX && commit(b, e, *type, committed, err))
		return NULL;
	return *type;
}
