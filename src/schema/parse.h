/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of an object's document, common to schema v1 and v2: each function turns one JSON
 * member into the struct of the data layer. What a caller of schema_ops hands in travels in a
 * struct schema_ctx. err is never NULL here. Errors: -EIO a defect, with the reason; -ENOMEM.
 */
#ifndef SCHEMA_PARSE_H
#define SCHEMA_PARSE_H

#include <errno.h>

#include "json.h"

#include <schema/schema.h>

#include "id.h"

enum {
	/* Bytes of one attribute's value or fill value, and of what was set in all those of one
	 * object. */
	SCHEMA_VALUES_MAX = 256 << 20,
	/* Enum members compared by name while values are read: no document needs more. */
	SCHEMA_COMPARES_MAX = 1 << 26,
	/* Names and paths of links, names of attributes: 16-bit lengths in an HDF5 file. */
	SCHEMA_NAME_MAX = 65000,
};

struct schema_ctx {
	struct arena *arena;
	const struct schema_numbers *numbers;
	void (*skip)(void *ctx, const char *what, const struct err *why);
	void *skip_ctx;
	uint64_t budget;    /* what is left of SCHEMA_VALUES_MAX */
	uint64_t compares;  /* what is left of SCHEMA_COMPARES_MAX */
	struct bytes text;  /* scratch of schema_ctx_text */
	struct bytes stack; /* items of the vlens that are being read, innermost last */
};

/* A constructor of the data layer refused: a defect of the document, unless memory ran out. */
static inline int schema_defect(struct err *err)
{
	if (err->code != -ENOMEM)
		err->code = -EIO;
	return err->code;
}

/* Reports a part that is left out. */
void schema_skip(struct schema_ctx *ctx, const char *kind, const char *name, const struct err *why);
/* Object number of an id; OBJECT_NONE when the domain has none such. */
uint32_t schema_number(const struct schema_ctx *ctx, const struct schema_id *id);
/* Text of a reference -> object number + 1, 0 for null and unknown. */
uint64_t schema_reference(const struct schema_ctx *ctx, const char *text, size_t n);

/* Text of a JSON string, valid until the next call. */
int schema_ctx_text(struct schema_ctx *ctx, const json_t *string, struct schema_text *out,
		    struct err *err);
/* Text of a JSON string or key of n encoded bytes as a C string in the arena. -EIO: not text, NUL
 * inside, over SCHEMA_NAME_MAX. utf8 may be NULL: then lone surrogates are -EIO too. */
int schema_ctx_name(struct schema_ctx *ctx, const char *s, size_t n, const char **out, bool *utf8,
		    struct err *err);
/* Seconds since the epoch -> ns; 0 for what is no time. */
int64_t schema_time_ns(const json_t *seconds);
/* A non-negative integer, strictly. */
bool schema_count(const json_t *v, uint64_t *out);
/* The creator asked for attribute creation order. */
bool schema_tracks_order(const json_t *creation_properties);

/* type.c: *committed becomes the number of the committed type whose "id" it bears. */
int schema_type(struct schema_ctx *ctx, const json_t *v, const struct dtype **out,
		uint32_t *committed, struct err *err);
/* space.c */
int schema_space(const json_t *shape, struct dspace *out, struct err *err);
int schema_dims(const json_t *list, uint32_t *rank, uint64_t dims[static DSPACE_MAX_RANK],
		struct err *err);

/* budget.c: takes n bytes from ctx->budget. -EIO when it is spent. */
int schema_spend(struct schema_ctx *ctx, uint64_t n, struct err *err);

/* value.c: the value of an attribute. value, encoding: may be NULL. out is zeroed first and is the
 * caller's (elems_release), empty on error. */
int schema_value(struct schema_ctx *ctx, const struct dtype *t, const struct dspace *space,
		 const json_t *value, const char *encoding, struct elems *out, struct err *err);
/* One element that every element is to have: like schema_value for a scalar, but one value stands
 * for a whole array. */
int schema_fill_value(struct schema_ctx *ctx, const struct dtype *t, const json_t *value,
		      const char *encoding, struct elems *out, struct err *err);

/* stream.c: n elements from the bytes in which the service stores them, into out, which is empty.
 */
int schema_stream(struct schema_ctx *ctx, const struct dtype *t, uint64_t n, const uint8_t *bytes,
		  size_t len, struct elems *out, struct err *err);

/* attr.c, link.c, dataset.c, pipeline.c: members of a whole document. */
int schema_attributes(struct schema_ctx *ctx, const json_t *doc, struct object *o, struct err *err);
int schema_links(struct schema_ctx *ctx, const json_t *doc, struct object *o, struct err *err);
int schema_pipeline(struct schema_ctx *ctx, const json_t *filters, struct pipeline *out,
		    struct err *err);
int schema_dataset(struct schema_ctx *ctx, const json_t *doc, const struct schema_id *id,
		   struct object *o, struct err *err);

/* dimension_scale.c: gives CLASS and NAME of a dataset that is a dimension scale back the
 * terminator that hsload cut off. o has its attributes. */
int schema_dimension_scale(struct schema_ctx *ctx, struct object *o, struct err *err);

#endif
