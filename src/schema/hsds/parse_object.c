/* SPDX-License-Identifier: Apache-2.0 */
/* Parses an object's document into a struct object, with the parsers of parse.h. Pure. */
#include "parse_object.h"

#include "extras.h"
#include <json/reader_memory.h>
#include "parse.h"

#include <string.h>

/* Checks that a member of the document is the expected id: "id" must be that of the document's key,
 * and "root" that of the domain's root group. */
static int check_id(const json_t *doc, const char *member, const struct schema_id *expected,
		    struct err *err)
{
	const json_t *text = json_object_get(doc, member);
	struct schema_id id;
	if (!json_is_string(text) ||
	    !schema_id_parse(json_string_value(text), json_string_length(text), &id))
		return err_set(err, -EIO, "%s: %s", member, text ? "not an id" : "missing");
	if (!schema_id_equal(&id, expected))
		return err_set(err, -EIO, "%s: the document has %s", member,
			       json_string_value(text));
	return 0;
}

static int parse_kind(struct schema_ctx *ctx, const struct json_text *json,
		      const struct schema_id *id, struct object *o, struct err *err)
{
	const json_t *doc = json->doc;
	uint32_t committed;
	int rc;
	switch (o->kind) {
	case OBJECT_GROUP:
		return schema_links(ctx, json, o, err);
	case OBJECT_DATASET:
		return schema_dataset(ctx, doc, id, o, err);
	case OBJECT_DATATYPE:
		rc = schema_type(ctx, json_object_get(doc, "type"), &o->datatype, &committed, err);
		return rc ? err_wrap(err, rc, "type") : 0;
	}
	return err_set(err, -EIO, "unknown kind of object");
}

static int parse_document(struct schema_ctx *ctx, const struct schema_id *id,
			  const struct schema_id *root, const struct json_text *json,
			  struct object *o, struct err *err)
{
	const json_t *doc = json->doc;
	char text[SCHEMA_ID_MAX];
	int rc = check_id(doc, "id", id, err);
	if (!rc)
		rc = check_id(doc, "root", root, err);
	if (rc)
		return rc;
	schema_id_format(id, text);
	o->id = arena_strndup(ctx->arena, text, strlen(text));
	if (!o->id)
		return err_errno(err, -ENOMEM, "id");
	o->created_ns = schema_time_ns(json_object_get(doc, "created"));
	o->modified_ns = schema_time_ns(json_object_get(doc, "lastModified"));
	o->attrs_ordered = schema_tracks_order(json_object_get(doc, "creationProperties"));
	rc = schema_extras(ctx, doc, schema_id_equal(id, root), o, err);
	if (!rc)
		rc = parse_kind(ctx, json, id, o, err);
	if (!rc)
		rc = schema_attributes(ctx, doc, o, err);
	return rc ? rc : schema_dimension_scale(ctx, doc, o, err);
}

int schema_object_parse(struct arena *a, struct arena *attributes, const struct schema_id *id,
			const struct schema_id *root, const void *json, size_t n,
			const struct schema_numbers *numbers, struct schema_types *types,
			void (*skip)(void *ctx, const char *what, const struct err *why),
			void *skip_ctx, struct object *out, struct err *err)
{
	struct err why = ERR_INIT;
	struct schema_ctx ctx = {
		.arena = a,
		.attributes = attributes,
		.numbers = numbers,
		.types = types,
		.form = root->form,
		.skip = skip,
		.skip_ctx = skip_ctx,
		.budget = SCHEMA_VALUES_MAX,
		.compares = SCHEMA_COMPARES_MAX,
	};
	struct json_text_area area;
	struct json_text doc;
	*out = (struct object){.kind = id->kind};
	json_text_area_begin(&area);
	int rc = json_text_load_apart(json, n, "links", &doc, &why);
	if (!rc)
		rc = parse_document(&ctx, id, root, &doc, out, &why);
	bytes_release(&doc.rewritten);
	json_text_area_end(&area);
	bytes_release(&ctx.text);
	bytes_release(&ctx.stack);
	if (rc) {
		static const char *const kinds[] = {
			[OBJECT_GROUP] = "group",
			[OBJECT_DATASET] = "dataset",
			[OBJECT_DATATYPE] = "datatype",
		};
		char text[SCHEMA_ID_MAX];
		object_release(out);
		*out = (struct object){.kind = id->kind};
		schema_id_format(id, text);
		err_wrap(&why, rc, "%s %s", kinds[id->kind], text);
		if (err)
			err_copy(err, &why);
	}
	return rc;
}
