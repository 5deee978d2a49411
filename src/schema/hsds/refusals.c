/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the schema cannot hold. There is a table with a rule in each row. Besides, there are rules
 * for types (schema_stand_in()), for the shapes of datasets and for comments. What no rule reports
 * is written completely. Pure.
 */
#include "emit_document.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <base/utf8.h>
#include <codec/chunk.h>
#include <data/chunk_source.h>

#include "parse.h"

enum {
	TYPE_ARENA = 64 << 20, /* bytes of memory for the stand-ins of one object */
	LINK_BYTES = 160,      /* most bytes of a link in a document, without its names */
	ESCAPED = 6,	       /* most bytes of a document for a byte of text */
};

static const char without_decoder[] = "a filter without a decoder";

/* ---- datasets ---- */

static bool is_elsewhere(const struct object *o)
{
	return o->dataset.absence_unknown != NULL;
}

static const struct filter *unknown_filter(const struct object *o)
{
	for (uint32_t i = 0; i < o->dataset.nfilters; i++)
		if (!codec_filter_known(o->dataset.filters[i].id))
			return &o->dataset.filters[i];
	return NULL;
}

static bool has_unknown_filter(const struct object *o)
{
	return unknown_filter(o);
}

/* Names the filter as the file does. Returns NULL if out of memory. */
static const char *filter_why(struct arena *a, const struct object *o)
{
	const struct filter *f = unknown_filter(o);
	const bool named = f->name && f->name[0];
	char text[160];
	snprintf(text, sizeof(text), "%s: %" PRIu32 "%s%.80s%s", without_decoder, f->id,
		 named ? " (" : "", named ? f->name : "", named ? ")" : "");
	return arena_strndup(a, text, strlen(text));
}

static bool has_large_chunks(const struct object *o)
{
	const struct dataset *ds = &o->dataset;
	const uint64_t stored = ds->type->has_ref && !ds->type->has_vlen
					? OBJECT_REF_TEXT / DTYPE_OBJREF_SIZE
					: 1; /* the text of a reference is longer */
	uint64_t bytes;
	return !mul_u64(ds->grid.chunk_elems, ds->type->size * stored, &bytes) ||
	       bytes > CHUNK_BYTES_MAX;
}

static bool has_large_space(const struct dspace *s)
{
	for (uint32_t d = 0; d < s->rank; d++)
		if (s->dims[d] > INT64_MAX ||
		    (s->max[d] > INT64_MAX && s->max[d] != DSPACE_UNLIMITED))
			return true;
	return false;
}

/* The grid must have one dimension if the dataspace is scalar, and otherwise as many as the
 * dataspace. */
static bool has_other_grid(const struct object *o)
{
	const struct dataset *ds = &o->dataset;
	const uint32_t rank = ds->space.cls == DSPACE_SCALAR ? 1 : ds->space.rank;
	return ds->space.cls != DSPACE_NULL && ds->grid.rank != rank;
}

/* ---- all objects ---- */

static uint64_t value_bytes(const struct dtype *t, const struct dspace *s, const struct elems *e)
{
	/* The text of a reference is longer than the reference, even in a sequence. */
	const uint64_t stored = t->has_ref ? OBJECT_REF_TEXT / DTYPE_OBJREF_SIZE : 1;
	uint64_t bytes;
	if (!mul_u64(s->nelems, t->size, &bytes) || !add_u64(bytes, e->heap.len, &bytes) ||
	    !mul_u64(bytes, stored, &bytes))
		return UINT64_MAX;
	return bytes;
}

static bool has_large_values(const struct object *o)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < o->nattrs; i++) {
		const struct attribute *a = &o->attrs[i];
		if (!add_u64(sum, value_bytes(a->type, &a->space, &a->value), &sum))
			return true;
	}
	if (o->kind == OBJECT_DATASET && o->dataset.fill_defined)
		sum += o->dataset.type->size + o->dataset.fill.heap.len;
	return sum > SCHEMA_EMIT_OBJECT_MAX;
}

static bool has_many_links(const struct object *o)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; o->kind == OBJECT_GROUP && i < o->group.nlinks; i++) {
		const struct link *l = &o->group.links[i];
		sum += LINK_BYTES + ESCAPED * strlen(l->name);
		sum += l->path ? ESCAPED * strlen(l->path) : 0;
		sum += l->domain ? ESCAPED * strlen(l->domain) : 0;
	}
	return sum > JSON_TEXT_MAX;
}

/* ---- attributes ---- */

bool schema_is_addressable(const struct attribute *a)
{
	return !strchr(a->name, '/');
}

static bool is_bad_name(const char *name)
{
	return name[0] == '\0' || strlen(name) > SCHEMA_NAME_MAX;
}

static bool is_unnamed(const struct attribute *a)
{
	return is_bad_name(a->name) || !utf8_valid(a->name, strlen(a->name));
}

static bool has_large_shape(const struct attribute *a)
{
	return has_large_space(&a->space);
}

/* ---- links ---- */

static bool is_user_link(const struct link *l)
{
	return l->cls == LINK_USER;
}

static bool is_bad_link(const struct link *l)
{
	return is_bad_name(l->name) || strchr(l->name, '/') || strcmp(l->name, ".") == 0;
}

static bool is_bad_path(const struct link *l)
{
	if (l->cls != LINK_SOFT && l->cls != LINK_EXTERNAL)
		return false;
	const size_t domain = l->cls == LINK_EXTERNAL ? strlen(l->domain) : 1;
	const size_t path = strlen(l->path);
	return path == 0 || domain == 0 || path + domain > SCHEMA_NAME_MAX;
}

/* ---- the table ---- */

static const char large_dims[] = "a dimension of 2^63 or more";
static const char long_comment[] = "a comment of more than 65,000 bytes";

/* In each row, one of the functions is set, which returns whether the rule applies, or where the
 * raw data of a dataset are if the rule applies to all such datasets. */
static const struct {
	const char *why;
	enum raw_data raw;
	bool (*dataset)(const struct object *o);
	bool (*object)(const struct object *o);
	bool (*attribute)(const struct attribute *a);
	bool (*link)(const struct link *l);
} rules[] = {
	{"a virtual dataset", .raw = RAW_VIRTUAL},
	{"raw data in external files, which --allow-external reads", .raw = RAW_EXTERNAL},
	{"structured chunks", .raw = RAW_STRUCTURED},
	{"raw data in another HDF5 file", .dataset = is_elsewhere},
	{without_decoder, .dataset = has_unknown_filter},
	{"chunks of more than 256 MiB", .dataset = has_large_chunks},
	{"a chunk grid of another rank than the dataspace", .dataset = has_other_grid},
	{"attribute values of more than 96 MiB", .object = has_large_values},
	{"more links than fit into a document", .object = has_many_links},
	{"an attribute name that is empty, too long or not UTF-8", .attribute = is_unnamed},
	{large_dims, .attribute = has_large_shape},
	{"a user-defined link", .link = is_user_link},
	{"a link name that is empty, \".\", too long or contains \"/\"", .link = is_bad_link},
	{"a link with an empty or too long path", .link = is_bad_path},
};
enum { NRULES = sizeof(rules) / sizeof(rules[0]) };
_Static_assert(CHUNK_BYTES_MAX == 256 << 20, "the text of the rule");
_Static_assert(SCHEMA_EMIT_OBJECT_MAX == 96 << 20, "the text of the rule");
_Static_assert(SCHEMA_NAME_MAX == 65000, "the text of the rule");

struct report {
	uint32_t number;
	struct arena *arena;
	schema_refusal_fn fn;
	void *ctx;
};

static int tell(const struct report *r, const struct schema_refusal *refusal)
{
	struct schema_refusal told = *refusal;
	told.object = r->number;
	return told.why ? r->fn(r->ctx, &told) : 0;
}

/* Sets *why to the reason why a type has no stand-in, or to NULL if it has one. Fails with
 * -ENOMEM. */
static int type_why(struct arena *a, const struct dtype *t, const char **why)
{
	struct stand_in stand_in;
	int rc = schema_stand_in(a, t, &stand_in, why, NULL);
	if (rc == -E2BIG)
		*why = "a type with too many parts";
	return rc == -E2BIG ? 0 : rc;
}

int schema_refused_attribute(struct arena *arena, const struct attribute *a, const char **why)
{
	*why = NULL;
	for (size_t i = 0; i < NRULES && !*why; i++)
		if (rules[i].attribute && rules[i].attribute(a))
			*why = rules[i].why;
	return *why ? 0 : type_why(arena, a->type, why);
}

const char *schema_refused_link(const struct link *l)
{
	for (size_t i = 0; i < NRULES; i++)
		if (rules[i].link && rules[i].link(l))
			return rules[i].why;
	return NULL;
}

const char *schema_refused_shape(const struct dspace *s)
{
	return has_large_space(s) ? large_dims : NULL;
}

const char *schema_refused_comment(const struct object *o)
{
	return o->comment && strlen(o->comment) > SCHEMA_NAME_MAX ? long_comment : NULL;
}

const char *schema_refused_object(const struct object *o)
{
	for (size_t i = 0; i < NRULES; i++)
		if (rules[i].object && rules[i].object(o))
			return rules[i].why;
	return NULL;
}

static int check_attribute(const struct report *r, const struct attribute *a)
{
	struct schema_refusal refusal = {.attribute = a->name};
	int rc = schema_refused_attribute(r->arena, a, &refusal.why);
	return rc ? rc : tell(r, &refusal);
}

static int check_object(const struct report *r, const struct object *o)
{
	const struct dtype *t = o->kind == OBJECT_DATASET    ? o->dataset.type
				: o->kind == OBJECT_DATATYPE ? o->datatype
							     : NULL;
	struct schema_refusal refusal = {0};
	int rc = 0;
	/* Reasons that can change come first, because only one reason is reported. */
	refusal.why = schema_refused_object(o);
	if (!refusal.why && o->kind == OBJECT_DATASET)
		refusal.why = schema_refused_shape(&o->dataset.space);
	refusal.is_fixed = !refusal.why;
	for (size_t i = 0; o->kind == OBJECT_DATASET && i < NRULES && !refusal.why; i++)
		if (rules[i].dataset ? rules[i].dataset(o)
				     : rules[i].raw && rules[i].raw == o->dataset.raw)
			refusal.why = rules[i].why;
	if (refusal.why == without_decoder) {
		refusal.why = filter_why(r->arena, o);
		rc = refusal.why ? 0 : -ENOMEM;
	} else if (t && !refusal.why) {
		rc = type_why(r->arena, t, &refusal.why);
	}
	if (!rc)
		rc = tell(r, &refusal);
	if (!rc)
		rc = tell(r, &(struct schema_refusal){.comment = true,
						      .why = schema_refused_comment(o)});
	for (uint32_t i = 0; !rc && i < o->nattrs; i++)
		rc = check_attribute(r, &o->attrs[i]);
	for (uint32_t i = 0; !rc && o->kind == OBJECT_GROUP && i < o->group.nlinks; i++)
		rc = tell(r,
			  &(struct schema_refusal){.link = o->group.links[i].name,
						   .why = schema_refused_link(&o->group.links[i])});
	return rc;
}

int schema_refusals(const struct tree *t, schema_refusal_fn fn, void *ctx)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < tree_count(t); i++) {
		const uint32_t number = tree_nth(t, i);
		if (tree_object(t, number)->unread)
			continue;
		struct report r = {.number = number, .fn = fn, .ctx = ctx};
		r.arena = arena_new(TYPE_ARENA);
		rc = r.arena ? check_object(&r, &tree_object(t, number)->o) : -ENOMEM;
		arena_free(r.arena);
	}
	return rc;
}
