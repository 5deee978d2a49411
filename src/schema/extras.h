/* SPDX-License-Identifier: Apache-2.0 */
/* The member "hsmount" of the document of an object; see extras.c. */
#ifndef SCHEMA_EXTRAS_H
#define SCHEMA_EXTRAS_H

#include "parse.h"
#include "write.h"

#define SCHEMA_EXTRAS	     "hsmount"
#define SCHEMA_EXTRA_COMMENT "comment"

/* Reads the members of a document into the object, whose other members are set. -ENOMEM. */
int schema_extras(struct schema_ctx *ctx, const json_t *doc, struct object *o, struct err *err);
/* Writes the member, if the object has anything for it. */
void schema_extras_emit(struct writer *w, const struct object *o);

#endif
