/* SPDX-License-Identifier: Apache-2.0 */
/* The documents whose JSON is the same in every schema: ops of schema.h under their own names. */
#ifndef SCHEMA_OBJECT_H
#define SCHEMA_OBJECT_H

#include <schema/schema.h>

int schema_domain_parse(struct arena *a, const void *json, size_t n, struct schema_domain *out,
			struct err *err);
int schema_object_parse(struct arena *a, const struct schema_id *id, const struct schema_id *root,
			const void *json, size_t n, const struct schema_numbers *numbers,
			void (*skip)(void *ctx, const char *what, const struct err *why),
			void *skip_ctx, struct object *out, struct err *err);

#endif
