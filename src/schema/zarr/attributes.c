/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows JSON values as attributes of netCDF. A text becomes a scalar string, a list of numbers or
 * texts has one dimension, and a value for which netCDF has no form becomes its JSON text.
 * Attributes whose names are reserved by the markup of netCDF-4 or by conventions are not shown.
 * Pure.
 */
#include "model_internal.h"

#include <errno.h>
#include <string.h>

#include <base/utf8.h>

/* ---- JSON values ---- */

enum form { FORM_TEXT, FORM_TEXTS, FORM_BOOLS, FORM_NUMBERS, FORM_JSON };

static bool is_text(const json_t *v)
{
	const char *s = json_string_value(v);
	return s && !(s[0] == 0x10 && s[1] == 'n'); /* a literal: json/reader.h */
}

static enum form form_of_item(const json_t *v)
{
	if (is_text(v))
		return FORM_TEXTS;
	if (json_is_boolean(v))
		return FORM_BOOLS;
	return json_is_number(v) || json_is_string(v) ? FORM_NUMBERS : FORM_JSON;
}

static enum form form_of(const json_t *v)
{
	size_t i;
	json_t *item;
	if (!json_is_array(v))
		return is_text(v) ? FORM_TEXT : form_of_item(v);
	if (json_array_size(v) == 0)
		return FORM_JSON;
	const enum form form = form_of_item(json_array_get(v, 0));
	json_array_foreach(v, i, item) if (form_of_item(item) != form) return FORM_JSON;
	return form;
}

/* Returns the i-th value of a list. A single value counts as a list of one. */
static const json_t *item_of(const json_t *v, size_t i)
{
	return json_is_array(v) ? json_array_get(v, i) : v;
}

static size_t count_of(const json_t *v)
{
	return json_is_array(v) ? json_array_size(v) : 1;
}

/* Returns the narrowest of the types int, int64, uint64 and double that holds all numbers. */
static struct zarr_element number_type(struct zarr_build *b, const json_t *v)
{
	uint64_t most = 0, least = 0; /* magnitudes */
	bool fits = true;
	for (size_t k = 0; k < count_of(v); k++) {
		struct zarr_integer i;
		double real;
		fits = fits && zarr_number(b, item_of(v, k), &i, &real) == ZARR_INTEGER && i.fits;
		if (fits && i.negative)
			least = max_u64(least, i.magnitude);
		else if (fits)
			most = max_u64(most, i.magnitude);
	}
	if (fits && most <= INT32_MAX && least <= UINT64_C(1) << 31)
		return (struct zarr_element){.kind = ZARR_INT, .size = 4};
	if (fits && most <= INT64_MAX && least <= UINT64_C(1) << 63)
		return (struct zarr_element){.kind = ZARR_INT, .size = 8};
	if (fits && least == 0)
		return (struct zarr_element){.kind = ZARR_UINT, .size = 8};
	return (struct zarr_element){.kind = ZARR_FLOAT, .size = 8};
}

static int make_numbers(struct zarr_build *b, const json_t *v, bool are_bools, struct attribute *a,
			struct err *err)
{
	const struct zarr_element e =
		are_bools ? (struct zarr_element){.kind = ZARR_UINT, .size = 1} : number_type(b, v);
	auto_bytes struct bytes values = {0};
	uint32_t committed;
	const struct dtype *type = zarr_element_type(b, &e, &committed, err);
	if (!type)
		return -ENOMEM;
	for (size_t i = 0; i < count_of(v); i++) {
		uint8_t element[ZARR_FILL_BYTES];
		bool defined;
		int rc = zarr_fill(b, item_of(v, i), &e, false, element, &defined, err);
		if (!rc)
			rc = bytes_append(&values, element, e.size);
		if (rc)
			return err_errno(err, rc, "attribute");
	}
	return zarr_attribute_plain(b, a, a->name, type, count_of(v), false, values.data, err);
}

static int make_texts(struct zarr_build *b, const json_t *v, struct attribute *a, struct err *err)
{
	int rc = zarr_attribute_texts(b, a, json_array_size(v), err);
	for (size_t i = 0; !rc && i < json_array_size(v); i++) {
		struct json_string text;
		rc = zarr_string(b, json_array_get(v, i), &text, err);
		if (!rc)
			rc = zarr_attribute_add_text(a, text.s, text.n, err);
	}
	return rc;
}

static int make_value(struct zarr_build *b, const json_t *v, struct attribute *a, struct err *err)
{
	auto_str struct str json = {0};
	struct json_string text;
	int rc;
	switch (form_of(v)) {
	case FORM_TEXT:
		rc = zarr_string(b, v, &text, err);
		return rc ? rc : zarr_attribute_text(b, a, a->name, text.s, text.n, err);
	case FORM_TEXTS:
		return make_texts(b, v, a, err);
	case FORM_BOOLS:
	case FORM_NUMBERS:
		return make_numbers(b, v, form_of(v) == FORM_BOOLS, a, err);
	case FORM_JSON:
		break;
	}
	zarr_json_text(b, v, &json);
	if (!str_ok(&json))
		return err_errno(err, -ENOMEM, "attribute");
	return zarr_attribute_text(b, a, a->name, str_text(&json), json.b.len, err);
}

/* ---- names ---- */

bool zarr_is_one_of(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names;
}

/* Returns true if this is an attribute in which a convention on top of Zarr keeps its own data. */
static bool is_hidden(const char *name)
{
	static const char *const hidden[] = {
		"_NCProperties",
		"_ARRAY_DIMENSIONS",
		"_NCZARR_ATTR",
		"_NCZARR_GROUP",
		"_NCZARR_ARRAY",
		"_NCZARR_SUPERBLOCK",
		"_nczarr_attr",
		"_nczarr_attrs",
		"_nczarr_group",
		"_nczarr_array",
		"_nczarr_superblock",
		".zattr_type",
		NULL,
	};
	return zarr_is_one_of(name, hidden);
}

static bool is_reserved(const char *name)
{
	static const char *const reserved[] = {
		"CLASS",       "NAME",	  "DIMENSION_LIST", "REFERENCE_LIST",
		"_nc3_strict", "_Codecs", "_Format",	    NULL,
	};
	return zarr_is_one_of(name, reserved) || strncmp(name, "_Netcdf4", 8) == 0;
}

/* A name in which "/" was replaced. */
struct replaced_name {
	UT_hash_handle hh;
	const char *name;
};

struct attributes {
	struct zarr_build *b;
	const json_t *all;
	const struct zarr_array *array;
	const char *key;
	struct object *o;
	struct replaced_name *replaced;
};

static const char *refuse_name(const struct json_string *name)
{
	if (name->n == 0)
		return "its name is empty";
	if (name->n > ZARR_NAME_MAX)
		return "its name has more than 255 bytes";
	if (name->has_nul || !utf8_valid(name->s, name->n))
		return "its name is not UTF-8";
	return NULL;
}

/* Replaces each "/" of a name. *unique becomes false if another attribute has the new name. */
static int replace_slashes(struct attributes *at, char *name, bool *unique, struct err *err)
{
	struct replaced_name *other;
	for (char *slash = name; (slash = strchr(slash, '/'));)
		*slash = '_';
	HASH_FIND_STR(at->replaced, name, other);
	*unique = !other && !json_object_get(at->all, name);
	struct replaced_name *r = *unique ? arena_alloc(at->b->scratch, sizeof(*r)) : NULL;
	if (r) {
		r->name = name;
		HASH_ADD_KEYPTR(hh, at->replaced, r->name, strlen(r->name), r);
	}
	if (*unique && (!r || !r->hh.tbl))
		return err_errno(err, -ENOMEM, "attribute");
	return 0;
}

/* Reads the name of an attribute. *name becomes NULL if the attribute is not shown. */
static int read_name(struct attributes *at, const char *encoded, size_t n, const char **name,
		     struct err *err)
{
	struct json_string text;
	int rc = json_string_decode(encoded, n, &at->b->text, &text);
	const char *why = rc ? NULL : refuse_name(&text);
	bool unique = true;
	*name = NULL;
	if (rc)
		return err_errno(err, rc, "attribute");
	if (why) {
		tree_note(at->b->tree, TREE_ALTERED, "%s: attribute \"%.80s\" is left out: %s",
			  at->key, text.s, why);
		return 0;
	}
	char *copy = arena_strndup(at->b->scratch, text.s, text.n);
	if (!copy)
		return err_errno(err, -ENOMEM, "attribute");
	if (strchr(copy, '/'))
		rc = replace_slashes(at, copy, &unique, err);
	if (rc || is_hidden(copy))
		return rc;
	if (!unique || is_reserved(copy)) {
		tree_note(at->b->tree, TREE_ALTERED, "%s: attribute \"%s\" is left out: %s",
			  at->key, copy,
			  unique ? "the name is reserved" : "another one has this name");
		return 0;
	}
	*name = zarr_share(at->b, copy, strlen(copy));
	return *name ? 0 : err_errno(err, -ENOMEM, "attribute");
}

/* ---- all attributes ---- */

static int add_fill(struct attributes *at, const json_t *stored, struct attribute *a,
		    struct err *err)
{
	struct err why = ERR_INIT;
	bool done;
	const int rc = zarr_fill_attribute(at->b, stored, at->array, a, &done, &why);
	if (rc == -EIO || rc == -EOPNOTSUPP)
		tree_note(at->b->tree, rc == -EIO ? TREE_DAMAGE : TREE_ALTERED,
			  "%s: attribute \"_FillValue\" is left out: %s", at->key, why.msg);
	else if (rc)
		return err_set(err, rc, "%s", why.msg);
	at->o->nattrs += !rc && done;
	return 0;
}

static int add_attribute(struct attributes *at, const char *encoded, size_t n, const json_t *v,
			 struct err *err)
{
	struct attribute *a = &at->o->attrs[at->o->nattrs];
	const char *name;
	int rc = read_name(at, encoded, n, &name, err);
	if (rc || !name)
		return rc;
	if (at->array && strcmp(name, "_FillValue") == 0)
		return add_fill(at, v, a, err);
	*a = (struct attribute){.name = name, .committed = OBJECT_NONE};
	rc = make_value(at->b, v, a, err);
	if (rc)
		elems_release(&a->value);
	else
		at->o->nattrs++;
	return rc;
}

/* Adds the attributes that the type and the fill value of an array imply. */
static int add_implied(struct attributes *at, struct err *err)
{
	struct attribute *a = &at->o->attrs[at->o->nattrs];
	int rc = 0;
	if (at->array->element.kind == ZARR_BOOL && !json_object_get(at->all, "dtype")) {
		rc = zarr_attribute_text(at->b, a, "dtype", "bool", 4, err);
		at->o->nattrs += !rc;
	}
	if (!rc && !json_object_get(at->all, "_FillValue"))
		rc = add_fill(at, NULL, &at->o->attrs[at->o->nattrs], err);
	return rc;
}

int zarr_attributes(struct zarr_build *b, const json_t *attributes, const struct zarr_array *a,
		    const char *key, struct object *o, struct err *err)
{
	enum { IMPLIED = 2 };
	struct attributes at = {.b = b, .all = attributes, .array = a, .key = key, .o = o};
	const size_t n = json_object_size(attributes);
	const char *name;
	size_t len;
	json_t *v;
	int rc = 0;
	struct attribute *attrs = arena_array(
		b->scratch, ZARR_MARKUP_BEFORE + n + IMPLIED + ZARR_MARKUP_AFTER, sizeof(*attrs));
	if (!attrs)
		return err_errno(err, -ENOMEM, "attributes");
	o->attrs = attrs + ZARR_MARKUP_BEFORE;
	o->nattrs = 0;
	json_object_keylen_foreach((json_t *)(uintptr_t)attributes, name, len, v)
	{
		rc = add_attribute(&at, name, len, v, err);
		if (rc)
			break;
	}
	if (!rc && a)
		rc = add_implied(&at, err);
	HASH_CLEAR(hh, at.replaced);
	o->attrs_ordered = o->nattrs <= ZARR_ORDERED_MAX;
	return rc;
}

int zarr_keep_attributes(struct zarr_build *b, struct err *err)
{
	int rc = 0;
	for (uint32_t i = 0; i < tree_numbers(b->tree); i++) {
		struct object *o = tree_edit(b->tree, i);
		struct attribute *attrs = o->nattrs ? arena_array(tree_attributes_arena(b->tree),
								  o->nattrs, sizeof(*attrs))
						    : NULL;
		if (attrs) {
			memcpy(attrs, o->attrs, o->nattrs * sizeof(*attrs));
		} else if (o->nattrs) {
			object_release(o);
			o->nattrs = 0;
			rc = err_errno(err, -ENOMEM, "attributes");
		}
		o->attrs = attrs;
	}
	return rc;
}
