/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsers for the parts of an object's document. Their JSON is the same in schema v1 and v2. Each
 * parser turns one JSON member into a struct of the data layer. Inputs that all of them need are in
 * struct schema_ctx. err is never NULL here, except in schema_ctx_name(). All of them fail with
 * -EIO if the document has a defect, with the reason, or with -ENOMEM.
 */
#ifndef HSDS_PARSE_H
#define HSDS_PARSE_H

#include <errno.h>

#include <json/reader.h>

#include <schema/schema.h>

#include "id.h"

enum {
	/* Limit of the size of the value of one attribute or of a fill value, and of the memory
	 * that all values of one object take, in bytes. */
	SCHEMA_VALUES_MAX = 256 << 20,
	/* Limit of how many names of enum members are compared with values in one document. */
	SCHEMA_COMPARES_MAX = 1 << 26,
	/* Limit of the bytes of a name or path of a link, and of the name of an attribute. An HDF5
	 * file has 16-bit lengths for them. */
	SCHEMA_NAME_MAX = 65000,
};

struct schema_types; /* parse_object.h */

struct schema_ctx {
	struct arena *arena;
	struct arena *attributes; /* for what only attributes point to, but types may be shared */
	const struct schema_numbers *numbers;
	struct schema_types *types; /* NULL if types are not shared */
	enum schema_id_form form;   /* of the domain's ids */
	void (*skip)(void *ctx, const char *what, const struct err *why);
	void *skip_ctx;
	uint64_t budget;    /* what is left of SCHEMA_VALUES_MAX */
	uint64_t compares;  /* what is left of SCHEMA_COMPARES_MAX */
	struct bytes text;  /* scratch memory of schema_ctx_text() */
	struct bytes stack; /* elements of sequences that are being read, innermost last */
	/* The member "unset" of the value that is being read, see stored_form.c; NULL if no string
	 * is unset. */
	const json_t *unset;
};

/* Returns the code for a constructor of the data layer that has failed. Unless it ran out of
 * memory, the document has a defect. */
static inline int schema_defect(struct err *err)
{
	if (err->code != -ENOMEM)
		err->code = -EIO;
	return err->code;
}

/* Returns the index of a word in a list of n words, or -1. The word, and entries of the list, may
 * be NULL. */
static inline int schema_word_index(const char *word, const char *const *words, int n)
{
	int i = 0;
	while (word && i < n && !(words[i] && strcmp(words[i], word) == 0))
		i++;
	return word && i < n ? i : -1;
}
/* parse_dataset.c. The words of allocation times and fill times. */
extern const char *const schema_alloc_times[ALLOC_TIME_INCR + 1];
extern const char *const schema_fill_times[FILL_TIME_IFSET + 1];

/* Takes the result of a constructor of a type, which is NULL if it has failed. */
static inline int schema_built(const struct dtype *t, const struct dtype **out, struct err *err)
{
	*out = t;
	return t ? 0 : schema_defect(err);
}

/* Reports a part of the document that is left out to ctx->skip, if that is not NULL. */
void schema_skip(struct schema_ctx *ctx, const char *kind, const char *name, const struct err *why);
/* Ends a link or attribute whose parser has returned rc and why. If rc is 0, the part is counted;
 * otherwise it is reported as left out. Fails only if rc is -ENOMEM. */
int schema_part(struct schema_ctx *ctx, const char *kind, const char *name, int rc,
		const struct err *why, uint32_t *count, struct err *err);
/* Returns the number of the object with this id, or OBJECT_NONE if the domain has no such
 * object. */
uint32_t schema_number(const struct schema_ctx *ctx, const struct schema_id *id);
/* Returns the number + 1 of the object that the text of a reference names. Returns 0 for the null
 * reference and for unknown objects. */
uint64_t schema_reference(const struct schema_ctx *ctx, const char *text, size_t n);

/* Gets the text of a JSON string. It is valid until the next call. */
int schema_ctx_text(struct schema_ctx *ctx, const json_t *string, struct json_string *out,
		    struct err *err);
/* Gets the text of a JSON string or key of n encoded bytes, as a C string in the arena. Fails with
 * -EIO if it is not text, contains a NUL, or is longer than SCHEMA_NAME_MAX. Unless `any`
 * is true, a text with a lone surrogate fails with -EIO, too. */
int schema_ctx_name(struct schema_ctx *ctx, const char *s, size_t n, const char **out, bool any,
		    struct err *err);
/* The same for a JSON string whose lone surrogates U+DC80 to U+DCFF stand for the bytes 80 to FF,
 * as write_text() writes bytes that are not UTF-8. Also fails with -EIO if the value is no string,
 * or contains another lone surrogate. The limit applies to the bytes of the result. */
int schema_ctx_bytes(struct schema_ctx *ctx, const json_t *string, const char **out,
		     struct err *err);
/* Gets the id of a group, as text in the arena. *out stays as it is if v is missing or null. Fails
 * with -EIO, and names the member `what`, if v is something else. */
int schema_group_id(struct schema_ctx *ctx, const json_t *v, const char *what, const char **out,
		    struct err *err);
/* Converts seconds since the epoch to nanoseconds. Returns 0 if the value is not a time. */
int64_t schema_time_ns(const json_t *seconds);
/* Gets a JSON integer. Returns false if v is not an integer, or is negative. */
bool schema_count(const json_t *v, uint64_t *out);
/* Returns true if the creator of the object has requested that the creation order of attributes is
 * tracked. */
bool schema_tracks_order(const json_t *creation_properties);

/* parse_type.c. *committed becomes the number of the committed datatype that the member "id" names,
 * or OBJECT_NONE. Also fails with -E2BIG if the description of the type is too long for a file. */
int schema_type(struct schema_ctx *ctx, const json_t *v, const struct dtype **out,
		uint32_t *committed, struct err *err);
/* parse_space.c. The first function parses a dataspace, the second one a list of dimensions. */
int schema_space(struct arena *a, const json_t *shape, struct dspace *out, struct err *err);
int schema_dims(const json_t *list, uint32_t *rank, uint64_t dims[static DSPACE_MAX_RANK],
		struct err *err);

/* Takes n bytes from ctx->budget. Fails with -EIO if fewer are left. */
int schema_spend(struct schema_ctx *ctx, uint64_t n, struct err *err);

/* parse_value.c. Parses the value of an attribute. `value` and `encoding` may be NULL. *out is
 * zeroed first. On success the caller releases it with elems_release(); on error it is empty. */
int schema_value(struct schema_ctx *ctx, const struct dtype *t, const struct dspace *space,
		 const json_t *value, const char *encoding, struct elems *out, struct err *err);
/* Parses a fill value, like schema_value() for a scalar. But a single value may stand for all
 * elements of an array type. */
int schema_fill_value(struct schema_ctx *ctx, const struct dtype *t, const json_t *value,
		      const char *encoding, struct elems *out, struct err *err);

/* stored_form.c. Decodes n elements from the bytes in which the service stores them. *out must be
 * empty before. */
int schema_stream(struct schema_ctx *ctx, const struct dtype *t, uint64_t n, const uint8_t *bytes,
		  size_t len, struct elems *out, struct err *err);

/* parse_attr.c, parse_link.c, parse_pipeline.c and parse_dataset.c. `doc` is the whole document of
 * the object. */
int schema_attributes(struct schema_ctx *ctx, const json_t *doc, struct object *o, struct err *err);
/* `json` is the document, from which "links" is kept apart. */
int schema_links(struct schema_ctx *ctx, const struct json_text *json, struct object *o,
		 struct err *err);
/* Gets the name of the link that a member of "links" describes. `key` is the name of the member,
 * and v is its value. */
int schema_link_name(struct schema_ctx *ctx, const char *key, const json_t *v, const char **out,
		     struct err *err);
int schema_pipeline(struct schema_ctx *ctx, const json_t *filters, struct pipeline *out,
		    struct err *err);
/* service_filters.c. `filters` are those of the service. Fails with -ENOMEM only. */
int schema_service_filters(struct schema_ctx *ctx, const json_t *filters,
			   struct service_filters *out, struct err *err);
int schema_dataset(struct schema_ctx *ctx, const json_t *doc, const struct schema_id *id,
		   struct object *o, struct err *err);

/* dimension_scale.c. Restores the terminators of CLASS and NAME of a dimension scale, which hsload
 * removes. The attributes of o must have been parsed. */
int schema_dimension_scale(struct schema_ctx *ctx, const json_t *doc, struct object *o,
			   struct err *err);

#endif
