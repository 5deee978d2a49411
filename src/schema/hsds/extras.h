/* SPDX-License-Identifier: Apache-2.0 */
/* The member "hsmount" of the document of an object, see extras.c. */
#ifndef HSDS_EXTRAS_H
#define HSDS_EXTRAS_H

#include "parse.h"
#include <json/writer.h>

#define SCHEMA_EXTRAS "hsmount"
/* The members of "hsmount". */
enum schema_extra { SCHEMA_EXTRA_COMMENT, SCHEMA_EXTRA_USER_BLOCK, SCHEMA_EXTRAS_N };
extern const char *const schema_extra_names[SCHEMA_EXTRAS_N];

/* Reads the member "hsmount" of a document into the object, whose other members must have been set.
 * `is_root` says whether the object is the root group. Fails with -ENOMEM only. */
int schema_extras(struct schema_ctx *ctx, const json_t *doc, bool is_root, struct object *o,
		  struct err *err);
/* Writes the member "hsmount" if the object has anything for it. */
void schema_extras_emit(struct writer *w, const struct object *o);

bool schema_has_extra(enum schema_extra which, const struct object *o);
/* Writes one member of "hsmount", with its name, if the object has it. */
void schema_extra_emit(struct writer *w, enum schema_extra which, const struct object *o);
/* Returns whether two objects have the same text for a member. */
bool schema_same_extra(enum schema_extra which, const struct object *a, const struct object *b);

#endif
