/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers for whole documents, whose JSON is the same in every version of the service's schema.
 * Pure. */
#ifndef HSDS_PARSE_OBJECT_H
#define HSDS_PARSE_OBJECT_H

#include <schema/schema.h>

#include "id.h"

/* Parses the document of a domain or folder. Strings are in the arena. Fails with -EIO or
 * -ENOMEM. */
int schema_domain_parse(struct arena *a, const void *json, size_t n, struct domain_info *out,
			struct err *err);
/* The latest simple types of documents, so that the objects of a domain share them. All of them are
 * in one arena. A zeroed struct has none. */
struct schema_types {
	const struct dtype *known[16];
	unsigned int next; /* index of the entry that is replaced next */
};

/* Parses the document of an object. `id` is known from the key of the document. A document with
 * another id, or with another root than `root`, is damaged. A damaged attribute or link is left out
 * and reported to `skip`, and so is a hard link to an unknown object. `types` is NULL, or the types
 * of other documents in the same arena. What only attributes point to is in the arena `attributes`,
 * which may be the same. *out is zeroed first. Fails with -EIO if the document is
 * damaged, with -E2BIG if the description of its type is too long for a file, and with -ENOMEM. */
int schema_object_parse(struct arena *a, struct arena *attributes, const struct schema_id *id,
			const struct schema_id *root, const void *json, size_t n,
			const struct schema_numbers *numbers, struct schema_types *types,
			void (*skip)(void *ctx, const char *what, const struct err *why),
			void *skip_ctx, struct object *out, struct err *err);
/* Parses the summary of a domain. Fails with -EIO if it is damaged, or with -ENOMEM. */
int schema_info_parse(const void *json, size_t n, struct schema_info *out, struct err *err);

#endif
