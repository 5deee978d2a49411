/* SPDX-License-Identifier: Apache-2.0 */
/* The documents whose JSON is the same in every version of the service's schema. Pure. */
#ifndef SCHEMA_OBJECT_H
#define SCHEMA_OBJECT_H

#include <schema/schema.h>

#include "id.h"

/* A domain's or folder's document, in the arena. -EIO, -ENOMEM. */
int schema_domain_parse(struct arena *a, const void *json, size_t n, struct domain_info *out,
			struct err *err);
/* One object's document. id: what its key says; a document that says otherwise, or another root, is
 * refused (-EIO, as all defects). A broken part that can be left out alone (one attribute, one
 * link) is left out and told to `skip`; hard links to unknown objects likewise. out is zeroed
 * first. */
int schema_object_parse(struct arena *a, const struct schema_id *id, const struct schema_id *root,
			const void *json, size_t n, const struct schema_numbers *numbers,
			void (*skip)(void *ctx, const char *what, const struct err *why),
			void *skip_ctx, struct object *out, struct err *err);
/* The summary. -EIO when it is damaged. */
int schema_info_parse(const void *json, size_t n, struct schema_info *out, struct err *err);

#endif
