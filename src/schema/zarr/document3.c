/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the document of Zarr v3, zarr.json. A node is left out if its document has a member that
 * is not known, unless this member says "must_understand": false. Pure. */
#include "model_internal.h"

#include <errno.h>
#include <string.h>

/* Checks that all members are known. One version of netCDF-C writes the member must_understand into
 * the document itself, so it is among those that are known. */
static int check_known(const json_t *doc, const char *const *known, struct err *err)
{
	const char *name;
	json_t *v;
	json_object_foreach((json_t *)(uintptr_t)doc, name, v)
	{
		if (!zarr_is_one_of(name, known) &&
		    !json_is_false(json_object_get(v, "must_understand")))
			return err_set(err, -EOPNOTSUPP, "'%s' must be understood and is not",
				       name);
	}
	return 0;
}

static int check_format(const json_t *doc, struct err *err)
{
	const json_t *v = json_object_get(doc, "zarr_format");
	if (!v)
		return err_set(err, -EIO, "zarr.json has no 'zarr_format'");
	if (json_is_string(v) && strstr(json_string_value(v), "://"))
		return err_set(err, -EOPNOTSUPP, "Zarr v3 of the 2022 draft is not supported");
	if (!json_is_integer(v))
		return err_set(err, -EIO, "zarr_format is not known");
	if (json_integer_value(v) != 3)
		return err_set(err, -EOPNOTSUPP,
			       "zarr_format %" JSON_INTEGER_FORMAT " is not known",
			       json_integer_value(v));
	return 0;
}

int zarr_v3_kind(const json_t *doc, enum zarr_node_kind *out, struct err *err)
{
	const char *type = json_text_word(doc, "node_type");
	const int rc = check_format(doc, err);
	*out = ZARR_NO_NODE;
	if (rc)
		return rc;
	if (!json_object_get(doc, "node_type"))
		return err_set(err, -EIO, "zarr.json has no 'node_type'");
	if (type && strcmp(type, "group") == 0)
		*out = ZARR_GROUP;
	else if (type && strcmp(type, "array") == 0)
		*out = ZARR_ARRAY;
	else
		return err_set(err, -EIO, "node_type '%s' is not known", type ? type : "");
	return 0;
}

int zarr_group_v3(struct zarr_build *b, const json_t *doc, struct err *err)
{
	static const char *const known[] = {
		"zarr_format",		 "node_type",	    "attributes",
		"consolidated_metadata", "must_understand", NULL,
	};
	return check_known(doc, known, err);
}

static int check_members(const json_t *doc, struct err *err)
{
	static const char *const mandatory[] = {
		"shape",      "data_type", "chunk_grid", "chunk_key_encoding",
		"fill_value", "codecs",	   NULL,
	};
	static const char *const known[] = {
		"zarr_format",
		"node_type",
		"shape",
		"data_type",
		"chunk_grid",
		"chunk_key_encoding",
		"fill_value",
		"codecs",
		"attributes",
		"storage_transformers",
		"dimension_names",
		"must_understand",
		NULL,
	};
	for (size_t i = 0; mandatory[i]; i++)
		if (!json_object_get(doc, mandatory[i]))
			return err_set(err, -EIO, "zarr.json has no '%s'", mandatory[i]);
	return check_known(doc, known, err);
}

static int parse_grid(struct zarr_build *b, const json_t *v, struct zarr_array *a, struct err *err)
{
	const json_t *configuration;
	const char *name = zarr_extension(v, &configuration);
	char brief[84];
	uint32_t rank;
	if (!name || strcmp(name, "regular") != 0)
		return err_set(err, name ? -EOPNOTSUPP : -EIO, "chunk_grid '%s' is not known",
			       name ? name : zarr_json_brief(b, v, brief));
	const int rc = zarr_counts(b, json_object_get(configuration, "chunk_shape"), &rank,
				   &a->chunk, err);
	if (rc)
		return err_wrap(err, rc, "chunk_shape");
	if (rank != a->rank)
		return err_set(err, -EIO, "chunk_shape has %u numbers, shape has %u", rank,
			       a->rank);
	return 0;
}

static int parse_keys(struct zarr_build *b, const json_t *v, struct zarr_array *a, struct err *err)
{
	const json_t *configuration;
	const char *name = zarr_extension(v, &configuration);
	const json_t *separator = json_object_get(configuration, "separator");
	const char *word = json_string_value(separator);
	char brief[84];
	a->is_default = name && strcmp(name, "default") == 0;
	if (!name || (!a->is_default && strcmp(name, "v2") != 0))
		return err_set(err, name ? -EOPNOTSUPP : -EIO,
			       "chunk_key_encoding '%s' is not known",
			       name ? name : zarr_json_brief(b, v, brief));
	a->separator = a->is_default ? '/' : '.';
	if (!separator)
		return 0;
	if (!word || (strcmp(word, "/") != 0 && strcmp(word, ".") != 0))
		return err_set(err, -EIO, "chunk_key_encoding: separator %s is not known",
			       zarr_json_brief(b, separator, brief));
	a->separator = word[0];
	return 0;
}

static void find_names(const json_t *doc, struct zarr_array *a)
{
	const json_t *names = json_object_get(doc, "dimension_names");
	a->names_member = "dimension_names";
	a->names = json_is_array(names) ? names : NULL;
	if (a->names)
		return;
	a->names_member = "_ARRAY_DIMENSIONS";
	names = json_object_get(a->attributes, a->names_member);
	a->names = json_is_array(names) ? names : NULL;
}

int zarr_array_v3(struct zarr_build *b, const json_t *doc, struct zarr_array *out, struct err *err)
{
	*out = (struct zarr_array){
		.is_v3 = true,
		.fill = json_object_get(doc, "fill_value"),
		.attributes = json_object_get(doc, "attributes"),
	};
	char brief[84];
	int rc = check_members(doc, err);
	const json_t *transformers = json_object_get(doc, "storage_transformers");
	if (!rc && transformers && !json_is_null(transformers) &&
	    !(json_is_array(transformers) && json_array_size(transformers) == 0))
		rc = err_set(err, -EOPNOTSUPP, "storage_transformers %s are not known",
			     zarr_json_brief(b, transformers, brief));
	if (!rc)
		rc = zarr_element_v3(b, json_object_get(doc, "data_type"), &out->element, err);
	if (rc)
		return rc;
	rc = zarr_counts(b, json_object_get(doc, "shape"), &out->rank, &out->shape, err);
	if (rc)
		return err_wrap(err, rc, "shape");
	rc = parse_grid(b, json_object_get(doc, "chunk_grid"), out, err);
	if (!rc)
		rc = parse_keys(b, json_object_get(doc, "chunk_key_encoding"), out, err);
	if (!rc)
		rc = zarr_array_chunk(b, out, err);
	if (!rc)
		rc = zarr_codecs_v3(b, out, json_object_get(doc, "codecs"), err);
	if (!rc)
		find_names(doc, out);
	out->derives_fill = b->by_netcdf3;
	return rc;
}
