/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads consolidated metadata, the "view": copies of the documents of a store in one document. In
 * Zarr v2 this is .zmetadata,
 *
 *   {"zarr_consolidated_format": 1, "metadata": {"g/a/.zarray": {…}, …}}
 *
 * and in Zarr v3 it is a member of the zarr.json of a group, which has whole documents by path:
 *
 *   "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {"g/a": {…}}}
 */
#include "model_internal.h"

#include <errno.h>
#include <string.h>

static const char view_name[] = "consolidated_metadata";

/* Decodes the name of a member. Fails with -EIO if no key can have this name, and with -ENOMEM. */
static int decode_key(const json_t *name, struct bytes *scratch, struct json_string *out)
{
	const int rc =
		json_string_decode(json_string_value(name), json_string_length(name), scratch, out);
	return rc ? rc : out->has_nul || out->literal ? -EIO : 0;
}

static int add_members2(struct zarr_model *m, const struct json_text *json, struct err *err)
{
	struct json_text_members members;
	auto_bytes struct bytes scratch = {0};
	int rc, bad = 0;
	json_text_members_begin(&members, json);
	while (!bad && (rc = json_text_next(&members, err)) == 1) {
		struct json_string key;
		size_t n;
		bad = decode_key(members.name, &scratch, &key);
		if (bad == -EIO) {
			bad = 0;
			continue;
		}
		const enum zarr_document_kind kind =
			bad ? ZARR_NONE : zarr_document_of_key(key.s, &n);
		if (kind != ZARR_NONE && kind != ZARR_CONSOLIDATED)
			bad = zarr_model_add_viewed(m, key.s, n, kind, members.value, err);
	}
	json_text_members_end(&members);
	return bad ? err_errno(err, bad, "document") : rc;
}

int zarr_consolidated2(struct zarr_model *m, const void *text, size_t n, struct err *err)
{
	struct json_text_area area;
	struct json_text json;
	json_text_area_begin(&area);
	const struct json_text_how how = {.lenient = true, .path = {"metadata"}};
	int rc = json_text_load_as(text, n, &how, &json, err);
	const json_t *format = rc ? NULL : json_object_get(json.doc, "zarr_consolidated_format");
	if (!rc && (!json_is_integer(format) || json_integer_value(format) != 1))
		rc = err_set(err, -EIO, "zarr_consolidated_format is not 1");
	if (!rc && !json.apart)
		rc = err_set(err, -EIO, "it has no 'metadata'");
	if (!rc)
		rc = add_members2(m, &json, err);
	m->is_consolidated = m->is_consolidated || !rc;
	bytes_release(&json.rewritten);
	json_text_area_end(&area);
	return rc;
}

/* Adds a document of the view, without the view that zarr-python 3.0 repeats in each group. */
static int add_member3(struct zarr_model *m, const json_t *name, json_t *value, struct err *err)
{
	auto_bytes struct bytes scratch = {0};
	struct json_string path;
	const int rc = decode_key(name, &scratch, &path);
	if (rc == -EIO || (!rc && path.n == 0))
		return 0;
	if (rc)
		return err_errno(err, rc, "document");
	if (json_is_object(value))
		json_object_del(value, view_name);
	return zarr_model_add_viewed(m, path.s, path.n, ZARR_V3, value, err);
}

static int add_members3(struct zarr_model *m, const struct json_text *json, struct err *err)
{
	struct json_text_members members;
	int rc, failed = 0;
	json_text_members_begin(&members, json);
	while (!failed && (rc = json_text_next(&members, err)) == 1)
		failed = add_member3(m, members.name, members.value, err);
	json_text_members_end(&members);
	return failed ? failed : rc;
}

int zarr_consolidated3(struct zarr_model *m, struct zarr_document *d, enum zarr_node_kind *kind,
		       struct err *err)
{
	const struct json_text_how how = {.lenient = true, .path = {view_name, "metadata"}};
	struct json_text json;
	int rc = json_text_load_as(d->text, d->n, &how, &json, err);
	if (rc)
		return rc == -EIO ? err_wrap(err, rc, "not JSON") : rc;
	const char *word = json_text_word(json_object_get(json.doc, view_name), "kind");
	const bool has_view = word && strcmp(word, "inline") == 0 && json.apart;
	rc = zarr_v3_kind(json.doc, kind, err);
	if (!rc && has_view)
		rc = add_members3(m, &json, err);
	bytes_release(&json.rewritten);
	json_object_del(json.doc, view_name);
	if (!rc && zarr_document_dump(d, json.doc))
		rc = err_errno(err, -ENOMEM, "document");
	m->is_consolidated = m->is_consolidated || (!rc && has_view);
	return rc;
}
