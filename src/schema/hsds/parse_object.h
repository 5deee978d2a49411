/* SPDX-License-Identifier: Apache-2.0 */
/* Documents whose JSON is the same in every version of the service's schema. Pure. */
#ifndef HSDS_PARSE_OBJECT_H
#define HSDS_PARSE_OBJECT_H

#include <schema/schema.h>

#include "id.h"

/* Parses the document of a domain or folder. Strings are in the arena. -EIO, -ENOMEM. */
int schema_domain_parse(struct arena *a, const void *json, size_t n, struct domain_info *out,
			struct err *err);
/* The latest simple types of documents, so that the objects of a domain share them. All of them are
 * in one arena. Zeroed: none. */
struct schema_types {
	const struct dtype *known[16];
	unsigned int next; /* is replaced next */
};

/* Parses the document of an object. id: from its key. A document with another id or another root is
 * damaged (-EIO). A damaged attribute or link, and a hard link to an unknown object, is left out
 * and reported to `skip`. types: NULL, or what other documents of the same arena have. out is
 * zeroed first. */
int schema_object_parse(struct arena *a, const struct schema_id *id, const struct schema_id *root,
			const void *json, size_t n, const struct schema_numbers *numbers,
			struct schema_types *types,
			void (*skip)(void *ctx, const char *what, const struct err *why),
			void *skip_ctx, struct object *out, struct err *err);
/* Parses the summary of a domain. -EIO if it is damaged. */
int schema_info_parse(const void *json, size_t n, struct schema_info *out, struct err *err);

#endif
