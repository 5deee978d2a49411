/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks of variable-length elements that are JSON text, which the documentation of schema v1
 * describes. Such a chunk is a list of the elements, in the form of the value of an attribute. It
 * is converted to the bytes in which the service stores other chunks of such a type
 * (stored_form.c), so that no other layer has to know the text form.
 *
 * The other form may begin with "[", too: an element of 91 bytes begins with its size, 5B 00 00 00.
 * But then a byte follows that JSON text cannot contain. Pure.
 */
#include "hsds1.h"

#include <string.h>

#include "emit_document.h"
#include "hsds_load.h"
#include "parse.h"

static uint32_t number_of(void *ctx, const struct schema_id *id)
{
	return hsds_number(ctx, id);
}

/* Parses the whole text. *doc becomes an object whose member "value" is the parsed text. */
static int load(const void *text, size_t n, json_t **doc, struct err *err)
{
	static const char before[] = "{\"value\":", after[] = "}";
	auto_bytes struct bytes wrapped = {0};
	if (bytes_reserve(&wrapped, sizeof(before) + n + sizeof(after)))
		return err_errno(err, -ENOMEM, "chunk");
	memcpy(wrapped.data, before, sizeof(before) - 1);
	memcpy(wrapped.data + sizeof(before) - 1, text, n);
	memcpy(wrapped.data + sizeof(before) - 1 + n, after, sizeof(after) - 1);
	return json_text_load(wrapped.data, sizeof(before) + sizeof(after) + n - 2, doc, err);
}

/* Returns true if the first bytes can be those of a list in JSON. */
static bool may_be_list(const uint8_t *text, size_t n)
{
	if (n < 2 || text[0] != '[')
		return false;
	for (size_t i = 1; i < n && i < 8; i++)
		if (text[i] < ' ' && !memchr("\t\n\r", text[i], 3))
			return false;
	return true;
}

static int convert(struct schema_ctx *ctx, const struct hsds_space *s, const struct object *o,
		   const json_t *value, struct bytes *out, struct err *err)
{
	const struct dataset *ds = &o->dataset;
	uint64_t dims[DSPACE_MAX_RANK];
	struct elems elems;
	auto_unset struct schema_unset unset = {0};
	for (uint32_t d = 0; d < ds->grid.rank; d++)
		dims[d] = ds->grid.chunk[d];
	const struct dspace space = {.cls = DSPACE_SIMPLE,
				     .rank = ds->grid.rank,
				     .dims = dims,
				     .max = dims,
				     .nelems = ds->grid.chunk_elems};
	int rc = schema_value(ctx, ds->type, &space, value, NULL, &elems, err);
	if (rc)
		return rc;
	rc = schema_stream_encode(s->base.tree, ds->type, space.nelems, &elems, out, &unset, err);
	elems_release(&elems);
	return rc;
}

int hsds1_chunk_text(const struct schema_space *base, const struct object *o, const void *text,
		     size_t n, uint64_t size, struct bytes *out, struct err *err)
{
	struct hsds_space *s = (struct hsds_space *)(uintptr_t)base; /* for number_of() */
	const struct schema_numbers numbers = {.number = number_of, .ctx = s};
	struct schema_ctx ctx = {
		.arena = NULL, /* parsing a value does not use it */
		.numbers = &numbers,
		.budget = SCHEMA_VALUES_MAX,
		.compares = SCHEMA_COMPARES_MAX,
		.form = s->root.form,
	};
	auto_json json_t *doc = NULL;
	struct err why = ERR_INIT;
	if (!o->dataset.type->has_vlen || !may_be_list(text, n))
		return SCHEMA_NOT_TEXT;
	if (n < size)
		return err_set(err, -EAGAIN, "a part of a chunk that may be JSON text");
	int rc = load(text, n, &doc, &why);
	if (rc && rc != -ENOMEM)
		return SCHEMA_NOT_TEXT;
	if (!rc)
		rc = convert(&ctx, s, o, json_object_get(doc, "value"), out, &why);
	bytes_release(&ctx.text);
	bytes_release(&ctx.stack);
	if (!rc)
		return 0;
	bytes_release(out);
	err_copy(err, &why);
	return err_wrap(err, rc, "the chunk is JSON text");
}
