/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user block of a domain, in the document of its root group:
 *
 *   "hsmount": {"userBlock": {"size": 512, "value": "TUFUTEFCIDcuMw=="}}
 *   "hsmount": {"userBlock": {"size": 65536, "object": "<64>-<16>"}}
 *
 * `value` is the block in base64, without the zeros at its end. A block that is not small
 * (data/user_block.h) is an object in the storage, "db/<8>-<8>/.hsmount-userblock-<64>-<16>". The
 * 64 digits are the SHA-256 of its bytes, again without the zeros at the end. The other 16 digits
 * are new for each block, so no key is used twice. The service ignores the member and the object.
 * Pure.
 */
#ifndef HSDS_USER_BLOCK_MEMBER_H
#define HSDS_USER_BLOCK_MEMBER_H

#include <schema/schema.h>

#include "parse.h"
#include <json/writer.h>

/* Sets group.user_block of a root group from the member "userBlock". A block that is in an object
 * has no bytes yet. A damaged block is left out with a note. Fails with -ENOMEM only. */
int schema_user_block_parse(struct schema_ctx *ctx, const json_t *v, struct object *o,
			    struct err *err);
/* Returns whether two blocks have the same text in a document. NULL stands for no block. */
bool schema_user_block_same(const struct user_block *a, const struct user_block *b);
/* Writes the value of the member "userBlock". */
void schema_user_block_write(struct writer *w, const struct user_block *b);
/* Gives the user block of a tree the name of its object, if it needs one and has none. The other 16
 * digits are those of `nonce`. Fails with -EIO if the digest cannot be computed, or with
 * -ENOMEM. */
int schema_user_block_name(struct tree *t, uint64_t nonce, struct err *err);
/* Returns whether text is the name of such an object. */
bool schema_user_block_is_name(const char *text);
/* See schema_ops.take_user_block(). */
int schema_user_block_take(struct tree *t, const void *bytes, size_t n, struct err *err);

#endif
