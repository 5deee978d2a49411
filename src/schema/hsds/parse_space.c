/* SPDX-License-Identifier: Apache-2.0 */
/* "shape": {class, dims, maxdims, hsmount} -> struct dspace. Sizes are checked strictly. Pure. */
#include "parse.h"

#include <string.h>

int schema_dims(const json_t *list, uint32_t *rank, uint64_t dims[static DSPACE_MAX_RANK],
		struct err *err)
{
	if (json_is_integer(list)) { /* a single dimension without brackets */
		*rank = 1;
		if (!schema_count(list, &dims[0]))
			return err_set(err, -EIO, "a dimension is negative");
		return 0;
	}
	if (!json_is_array(list))
		return err_set(err, -EIO, list ? "not a list of dimensions" : "missing");
	size_t n = json_array_size(list);
	if (n > DSPACE_MAX_RANK)
		return err_set(err, -EIO, "%zu dimensions, the limit is %d", n, DSPACE_MAX_RANK);
	for (size_t i = 0; i < n; i++)
		if (!schema_count(json_array_get(list, i), &dims[i]))
			return err_set(err, -EIO, "dimension %zu is not a size", i);
	*rank = (uint32_t)n;
	return 0;
}

/* Parses maximum dimensions. "H5S_UNLIMITED" and null mean no limit. So does 0, unless the list is
 * that of "hsmount" (`exact`). */
static int parse_max(const json_t *list, uint32_t rank, bool exact, uint64_t *max, struct err *err)
{
	if (!json_is_array(list) || json_array_size(list) != rank)
		return err_set(err, -EIO, "maxdims: not a list of %u sizes", rank);
	for (uint32_t d = 0; d < rank; d++) {
		const json_t *v = json_array_get(list, d);
		const char *word = json_string_value(v);
		if (json_is_null(v) || (word && strcmp(word, "H5S_UNLIMITED") == 0))
			max[d] = DSPACE_UNLIMITED;
		else if (!schema_count(v, &max[d]))
			return err_set(err, -EIO, "maxdims: dimension %u is not a size", d);
		else if (max[d] == 0 && !exact)
			max[d] = DSPACE_UNLIMITED;
	}
	return 0;
}

static int parse_simple(struct arena *a, const json_t *shape, struct dspace *out, struct err *err)
{
	uint64_t dims[DSPACE_MAX_RANK], max[DSPACE_MAX_RANK];
	uint32_t rank;
	const json_t *maxdims = json_object_get(shape, "maxdims");
	const json_t *exact = json_object_get(json_object_get(shape, "hsmount"), "maxdims");
	bool limited = maxdims && !json_is_null(maxdims);
	int rc = schema_dims(json_object_get(shape, "dims"), &rank, dims, err);
	if (rc)
		return err_wrap(err, rc, "dims");
	if (rank == 0) {
		dspace_scalar(out);
		return 0;
	}
	if (limited)
		rc = parse_max(exact ? exact : maxdims, rank, exact, max, err);
	if (rc)
		return rc;
	rc = dspace_simple(a, out, rank, dims, limited ? max : NULL, err);
	return rc ? schema_defect(err) : 0;
}

int schema_space(struct arena *a, const json_t *shape, struct dspace *out, struct err *err)
{
	const char *cls =
		json_is_string(shape) ? json_string_value(shape) : json_text_word(shape, "class");
	if (!cls)
		return err_set(err, -EIO, shape ? "no class" : "missing");
	if (strcmp(cls, "H5S_SIMPLE") == 0)
		return parse_simple(a, shape, out, err);
	if (strcmp(cls, "H5S_SCALAR") == 0)
		dspace_scalar(out);
	else if (strcmp(cls, "H5S_NULL") == 0)
		dspace_null(out);
	else
		return err_set(err, -EIO, "unknown class \"%.64s\"", cls);
	return 0;
}
