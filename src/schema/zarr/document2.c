/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the documents of Zarr v2: .zarray, .zattrs and .zgroup. Members that are not known are
 * ignored. Pure. */
#include "model_internal.h"

#include <errno.h>
#include <string.h>

int zarr_format_v2(struct zarr_build *b, const json_t *doc, struct err *err)
{
	const json_t *format = json_object_get(doc, "zarr_format");
	char brief[84];
	uint64_t n;
	const bool is_number = zarr_count(b, format, &n);
	if (!format || (is_number && n == 2))
		return 0;
	return err_set(err, is_number ? -EOPNOTSUPP : -EIO, "zarr_format %s is not known",
		       zarr_json_brief(b, format, brief));
}

static int check_members(const json_t *doc, struct err *err)
{
	static const char *const members[] = {"shape", "chunks", "dtype"};
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (!json_object_get(doc, members[i]))
			return err_set(err, -EIO, ".zarray has no '%s'", members[i]);
	return 0;
}

/* Parses the chunk shape. true and null stand for the shape of the array. */
static int parse_chunks(struct zarr_build *b, const json_t *v, struct zarr_array *a,
			struct err *err)
{
	uint32_t rank = a->rank;
	int rc = 0;
	a->chunk = a->shape;
	if (!json_is_true(v) && !json_is_null(v))
		rc = zarr_counts(b, v, &rank, &a->chunk, err);
	if (rc)
		return err_wrap(err, rc, "chunks");
	if (rank != a->rank)
		return err_set(err, -EIO, "chunks has %u numbers, shape has %u", rank, a->rank);
	return 0;
}

static int parse_separator(struct zarr_build *b, const json_t *doc, struct zarr_array *a,
			   struct err *err)
{
	const json_t *v = json_object_get(doc, "dimension_separator");
	const char *word = json_string_value(v);
	char brief[84];
	a->separator = '.';
	const bool is_missing = !v || json_is_null(v);
	a->is_guessed = is_missing && a->rank > 1; /* with fewer dimensions, keys have none */
	if (is_missing || (word && strcmp(word, ".") == 0))
		return 0;
	if (!word || strcmp(word, "/") != 0)
		return err_set(err, -EIO, "dimension_separator %s is not known",
			       zarr_json_brief(b, v, brief));
	a->separator = '/';
	return 0;
}

int zarr_array_v2(struct zarr_build *b, const json_t *doc, const json_t *attrs,
		  struct zarr_array *out, struct err *err)
{
	*out = (struct zarr_array){.fill = json_object_get(doc, "fill_value"), .attributes = attrs};
	int rc = zarr_format_v2(b, doc, err);
	if (!rc)
		rc = check_members(doc, err);
	if (!rc)
		rc = zarr_element_v2(b, json_object_get(doc, "dtype"), &out->element, err);
	if (rc)
		return rc;
	rc = zarr_counts(b, json_object_get(doc, "shape"), &out->rank, &out->shape, err);
	if (rc)
		return err_wrap(err, rc, "shape");
	rc = parse_chunks(b, json_object_get(doc, "chunks"), out, err);
	if (!rc)
		rc = parse_separator(b, doc, out, err);
	if (!rc)
		rc = zarr_array_chunk(b, out, err);
	if (!rc)
		rc = zarr_codecs_v2(b, out, doc, err);
	if (rc)
		return rc;
	out->names_member = "_ARRAY_DIMENSIONS";
	out->names = json_object_get(attrs, out->names_member);
	if (!json_is_array(out->names))
		out->names = NULL;
	/* Programs that use xarray's convention mask the fill value. netCDF-C does not. */
	out->derives_fill = out->names && !b->by_netcdf;
	return 0;
}
