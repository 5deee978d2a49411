/* SPDX-License-Identifier: Apache-2.0 */
#include "domain_values.h"

#include <string.h>

#include "domain_words.h"

enum { TYPE_DEPTH = 3 }; /* of an attribute's type */

bool is_document(const char *key)
{
	const size_t n = strlen(key);
	return n > 5 && strcmp(key + n - 5, ".json") == 0;
}

json_t *load_document(const struct input_object *o)
{
	return json_loadb((const char *)o->body.data, o->body.len, JSON_DECODE_ANY | JSON_ALLOW_NUL,
			  NULL);
}

size_t pick(struct chance *c, const struct input *in, bool document, const char *text)
{
	const size_t first = below(c, in->n);
	for (size_t k = 0; k < in->n; k++) {
		const size_t i = (first + k) % in->n;
		if (is_document(in->v[i].key) == document && strstr(in->v[i].key, text))
			return i;
	}
	return in->n;
}

/* The id of a random object of the domain, from its document; if there is none, an id of no object.
 */
static json_t *some_id(struct chance *c, const struct input *in)
{
	const size_t i = pick(c, in, true, "db/");
	json_t *doc = i < in->n ? load_document(&in->v[i]) : NULL;
	json_t *id = json_incref(json_object_get(doc, one_in(c, 8) ? "root" : "id"));
	json_decref(doc);
	if (json_is_string(id))
		return id;
	json_decref(id);
	return json_string("g-00000000-00000000-0000-000000-000000");
}

static json_t *some_number(struct chance *c)
{
	if (one_in(c, 6))
		return json_real(ANY(c, reals));
	return one_in(c, 3) ? json_integer(ANY(c, integers))
			    : json_integer((json_int_t)below(c, 20));
}

json_t *some_scalar(struct chance *c, const struct input *in)
{
	switch (below(c, 8)) {
	case 0:
		return json_null();
	case 1:
		return json_boolean((int)below(c, 2));
	case 2:
		return some_id(c, in);
	case 3:
		return json_string(ANY(c, texts));
	case 4:
		return json_string(ANY(c, words));
	default:
		return some_number(c);
	}
}

json_t *some_dims(struct chance *c, size_t rank)
{
	json_t *dims = json_array();
	for (size_t i = 0; i < rank; i++)
		json_array_append_new(dims, one_in(c, 12) ? some_number(c)
							  : json_integer((json_int_t)below(c, 9)));
	return dims;
}

static json_t *some_members(struct chance *c, const struct input *in, unsigned int depth)
{
	json_t *fields = json_array();
	for (size_t i = below(c, 4) + 1; i > 0; i--) {
		char name[] = {(char)('a' + below(c, 5)), '\0'};
		json_array_append_new(fields, json_pack("{s:s, s:o}", "name", name, "type",
							some_type(c, in, depth)));
	}
	return json_pack("{s:s, s:o}", "class", "H5T_COMPOUND", "fields", fields);
}

static json_t *some_enum(struct chance *c)
{
	json_t *mapping = json_object();
	for (size_t i = below(c, 4); i > 0; i--)
		json_object_set_new(mapping, ANY(c, texts), some_number(c));
	return json_pack("{s:s, s:{s:s, s:s}, s:o}", "class", "H5T_ENUM", "base", "class",
			 "H5T_INTEGER", "base", ANY(c, integer_bases), "mapping", mapping);
}

static json_t *some_string_type(struct chance *c)
{
	json_t *length = one_in(c, 2) ? json_string("H5T_VARIABLE") : some_number(c);
	return json_pack("{s:s, s:s, s:s, s:o}", "class", "H5T_STRING", "charSet",
			 one_in(c, 2) ? "H5T_CSET_ASCII" : "H5T_CSET_UTF8", "strPad", ANY(c, pads),
			 "length", length);
}

json_t *some_type(struct chance *c, const struct input *in, unsigned int depth)
{
	switch (below(c, depth > 0 ? 10 : 7)) {
	case 0:
	case 1:
		return json_pack("{s:s, s:s}", "class", "H5T_INTEGER", "base",
				 ANY(c, integer_bases));
	case 2:
		return json_pack("{s:s, s:s}", "class", "H5T_FLOAT", "base", ANY(c, float_bases));
	case 3:
		return some_string_type(c);
	case 4:
		return json_pack("{s:s, s:s}", "class", "H5T_REFERENCE", "base",
				 one_in(c, 3) ? "H5T_STD_REF_DSETREG" : "H5T_STD_REF_OBJ");
	case 5:
		return one_in(c, 2) ? some_enum(c) : some_id(c, in);
	case 6:
		return json_pack("{s:s, s:o, s:s}", "class", "H5T_OPAQUE", "size", some_number(c),
				 "tag", ANY(c, texts));
	case 7:
		return some_members(c, in, depth - 1);
	case 8:
		return json_pack("{s:s, s:o, s:o}", "class", "H5T_ARRAY", "base",
				 some_type(c, in, depth - 1), "dims", some_dims(c, below(c, 4)));
	default:
		return json_pack("{s:s, s:s, s:o}", "class", "H5T_VLEN", "size", "H5T_VARIABLE",
				 "base", some_type(c, in, depth - 1));
	}
}

json_t *some_shape(struct chance *c, size_t rank)
{
	if (one_in(c, 8))
		return json_pack("{s:s}", "class", one_in(c, 2) ? "H5S_NULL" : "H5S_SCALAR");
	json_t *shape = json_pack("{s:s, s:o}", "class", "H5S_SIMPLE", "dims", some_dims(c, rank));
	if (one_in(c, 2))
		json_object_set_new(shape, "maxdims", some_dims(c, rank));
	return shape;
}

json_t *some_layout(struct chance *c, size_t rank)
{
	json_t *layout =
		json_pack("{s:s, s:o}", "class", one_in(c, 3) ? ANY(c, layouts) : "H5D_CHUNKED",
			  "dims", some_dims(c, rank));
	if (one_in(c, 5))
		json_object_set_new(layout, "partition_count", some_number(c));
	if (one_in(c, 8))
		json_object_set_new(layout, "file_uri", json_string("s3://bucket/file.h5"));
	return layout;
}

json_t *some_filters(struct chance *c)
{
	json_t *list = json_array();
	for (size_t i = below(c, one_in(c, 10) ? 40 : 4); i > 0; i--) {
		json_t *f = json_pack("{s:s}", "class", ANY(c, filter_classes));
		if (one_in(c, 3))
			json_object_set_new(f, "id", json_integer(ANY(c, filter_ids)));
		if (one_in(c, 2))
			json_object_set_new(f, "level", some_number(c));
		if (one_in(c, 4))
			json_object_set_new(f, "parameters", some_dims(c, below(c, 6)));
		if (one_in(c, 4))
			json_object_set_new(f, "name", json_string(ANY(c, texts)));
		json_array_append_new(list, f);
	}
	return list;
}

json_t *some_value(struct chance *c, const struct input *in, unsigned int depth)
{
	if (depth == 0 || one_in(c, 3))
		return some_scalar(c, in);
	json_t *list = json_array();
	for (size_t i = below(c, 5); i > 0; i--)
		json_array_append_new(list, some_value(c, in, depth - 1));
	return list;
}

json_t *some_attribute(struct chance *c, const struct input *in)
{
	return json_pack("{s:o, s:o, s:o, s:i}", "type", some_type(c, in, TYPE_DEPTH), "shape",
			 some_shape(c, below(c, 3)), "value", some_value(c, in, 3), "created",
			 (int)below(c, 3));
}

json_t *some_link(struct chance *c, const struct input *in)
{
	switch (below(c, 4)) {
	case 0:
		return json_pack("{s:s, s:s}", "class", "H5L_TYPE_SOFT", "h5path", ANY(c, texts));
	case 1:
		return json_pack("{s:s, s:s, s:s}", "class", "H5L_TYPE_EXTERNAL", "h5path",
				 ANY(c, texts), "h5domain", ANY(c, texts));
	default:
		return json_pack("{s:s, s:o, s:i}", "class", "H5L_TYPE_HARD", "id", some_id(c, in),
				 "created", (int)below(c, 3));
	}
}
