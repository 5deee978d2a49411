/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsers for the parts of an object's document, the same in schema v1 and v2. Each turns one JSON
 * member into a struct of the data layer. Inputs that all of them need are in struct schema_ctx.
 * err is never NULL here. Errors: -EIO for a defect of the document, with the reason; -ENOMEM.
 */
#ifndef HSDS_PARSE_H
#define HSDS_PARSE_H

#include <errno.h>

#include <json/reader.h>

#include <schema/schema.h>

#include "id.h"

enum {
	/* Limit of the size of one attribute's value or fill value, and of the memory that all
	 * values of one object take, bytes. */
	SCHEMA_VALUES_MAX = 256 << 20,
	/* Limit of comparisons of enum members by name in one document. */
	SCHEMA_COMPARES_MAX = 1 << 26,
	/* Names and paths of links, names of attributes: an HDF5 file has 16-bit lengths. */
	SCHEMA_NAME_MAX = 65000,
};

struct schema_types; /* parse_object.h */

struct schema_ctx {
	struct arena *arena;
	const struct schema_numbers *numbers;
	struct schema_types *types; /* NULL if types are not shared */
	enum schema_id_form form;   /* of the domain's ids */
	void (*skip)(void *ctx, const char *what, const struct err *why);
	void *skip_ctx;
	uint64_t budget;    /* what is left of SCHEMA_VALUES_MAX */
	uint64_t compares;  /* what is left of SCHEMA_COMPARES_MAX */
	struct bytes text;  /* scratch memory of schema_ctx_text() */
	struct bytes stack; /* items of the vlens that are being read, innermost last */
	/* "unset" of the value that is being read: see stored_form.c. NULL if no string is unset.
	 */
	const json_t *unset;
};

/* The code for a constructor of the data layer that failed: a defect of the document, unless it ran
 * out of memory. */
static inline int schema_defect(struct err *err)
{
	if (err->code != -ENOMEM)
		err->code = -EIO;
	return err->code;
}

/* Reports a part of the document that is left out. */
void schema_skip(struct schema_ctx *ctx, const char *kind, const char *name, const struct err *why);
/* The end of a link or attribute whose parser has returned rc and why. It is counted, or reported
 * if it is damaged. -ENOMEM. */
int schema_part(struct schema_ctx *ctx, const char *kind, const char *name, int rc,
		const struct err *why, uint32_t *count, struct err *err);
/* The object number of an id. OBJECT_NONE: the domain has no such object. */
uint32_t schema_number(const struct schema_ctx *ctx, const struct schema_id *id);
/* The object number + 1 of a reference's text; 0 for the null reference and unknown objects. */
uint64_t schema_reference(const struct schema_ctx *ctx, const char *text, size_t n);

/* The text of a JSON string. Valid until the next call. */
int schema_ctx_text(struct schema_ctx *ctx, const json_t *string, struct json_string *out,
		    struct err *err);
/* The text of a JSON string or key of n encoded bytes, as a C string in the arena. -EIO if it is
 * not text, contains a NUL, or is longer than SCHEMA_NAME_MAX. If utf8 is NULL, a lone surrogate is
 * -EIO, too. */
int schema_ctx_name(struct schema_ctx *ctx, const char *s, size_t n, const char **out, bool *utf8,
		    struct err *err);
/* The same for a JSON string whose lone surrogates U+DC80 to U+DCFF stand for the bytes 80 to FF,
 * as write_text() writes bytes that are not UTF-8. -EIO: another lone surrogate, or no string, too.
 * The limit counts these bytes. */
int schema_ctx_bytes(struct schema_ctx *ctx, const json_t *string, const char **out,
		     struct err *err);
/* Converts seconds since the epoch to ns. 0 if it is not a time. */
int64_t schema_time_ns(const json_t *seconds);
/* True if v is a JSON integer and not negative. */
bool schema_count(const json_t *v, uint64_t *out);
/* True if the creator of the object requested that attribute creation order is tracked. */
bool schema_tracks_order(const json_t *creation_properties);

/* parse_type.c. *committed: the number of the committed datatype that "id" names, or OBJECT_NONE.
 */
int schema_type(struct schema_ctx *ctx, const json_t *v, const struct dtype **out,
		uint32_t *committed, struct err *err);
/* parse_space.c */
int schema_space(struct arena *a, const json_t *shape, struct dspace *out, struct err *err);
int schema_dims(const json_t *list, uint32_t *rank, uint64_t dims[static DSPACE_MAX_RANK],
		struct err *err);

/* Takes n bytes from ctx->budget. -EIO if it is exhausted. */
int schema_spend(struct schema_ctx *ctx, uint64_t n, struct err *err);

/* parse_value.c: the value of an attribute. value and encoding may be NULL. out is zeroed first. On
 * success it is the caller's (elems_release()), on error it is empty. */
int schema_value(struct schema_ctx *ctx, const struct dtype *t, const struct dspace *space,
		 const json_t *value, const char *encoding, struct elems *out, struct err *err);
/* The fill value: like schema_value() for a scalar, but a single value may stand for a whole array.
 */
int schema_fill_value(struct schema_ctx *ctx, const struct dtype *t, const json_t *value,
		      const char *encoding, struct elems *out, struct err *err);

/* stored_form.c: decodes n elements from the bytes in which the service stores them. out: empty
 * before.
 */
int schema_stream(struct schema_ctx *ctx, const struct dtype *t, uint64_t n, const uint8_t *bytes,
		  size_t len, struct elems *out, struct err *err);

/* parse_attr.c, parse_link.c, parse_pipeline.c, service_filters.c, parse_dataset.c: parsers that
 * read members of the whole document.
 */
int schema_attributes(struct schema_ctx *ctx, const json_t *doc, struct object *o, struct err *err);
/* json: the document, of which "links" is kept apart. */
int schema_links(struct schema_ctx *ctx, const struct json_text *json, struct object *o,
		 struct err *err);
/* The name of the link that a member of "links" describes. */
int schema_link_name(struct schema_ctx *ctx, const char *key, const json_t *v, const char **out,
		     bool *utf8, struct err *err);
int schema_pipeline(struct schema_ctx *ctx, const json_t *filters, struct pipeline *out,
		    struct err *err);
/* service_filters.c. filters: those of the service. -ENOMEM. */
int schema_service_filters(struct schema_ctx *ctx, const json_t *filters,
			   struct service_filters *out, struct err *err);
int schema_dataset(struct schema_ctx *ctx, const json_t *doc, const struct schema_id *id,
		   struct object *o, struct err *err);

/* dimension_scale.c: restores the terminators of CLASS and NAME of a dimension scale, which hsload
 * removes. The attributes of o must have been parsed. */
int schema_dimension_scale(struct schema_ctx *ctx, const json_t *doc, struct object *o,
			   struct err *err);

#endif
