/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .info.json, the service's summary of a domain. It may be missing or older than the domain, so it
 * is used for estimates only. Pure.
 */
#include "parse_object.h"

#include "parse.h"

/* Gets a total, or 0 if it is missing. */
static int total(const json_t *doc, const char *member, uint64_t *out, struct err *err)
{
	const json_t *v = json_object_get(doc, member);
	*out = 0;
	if (v && !json_is_null(v) && !schema_count(v, out))
		return err_set(err, -EIO, "%s: not a count", member);
	return 0;
}

int schema_info_parse(const void *json, size_t n, struct schema_info *out, struct err *err)
{
	auto_json json_t *doc = NULL;
	uint64_t groups = 0;
	uint64_t types = 0;
	*out = (struct schema_info){0};
	int rc = json_text_load(json, n, &doc, err);
	if (!rc)
		rc = total(doc, "num_groups", &groups, err);
	if (!rc)
		rc = total(doc, "num_datatypes", &types, err);
	if (!rc)
		rc = total(doc, "num_chunks", &out->num_chunks, err);
	if (!rc)
		rc = total(doc, "allocated_bytes", &out->allocated_bytes, err);
	if (!rc)
		rc = total(doc, "logical_bytes", &out->logical_bytes, err);
	if (!rc)
		rc = total(doc, "metadata_bytes", &out->metadata_bytes, err);
	if (rc)
		return rc;
	/* This sum does not overflow, because both terms are below 2^63. */
	out->num_objects = groups + types;
	out->num_objects += json_object_size(json_object_get(doc, "datasets"));
	out->modified_ns = schema_time_ns(json_object_get(doc, "lastModified"));
	return 0;
}
