/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user block of a domain, in the document of its root group:
 *
 *   "hsmount": {"userBlock": {"size": 512, "value": "TUFUTEFCIDcuMw=="}}
 *   "hsmount": {"userBlock": {"size": 65536, "object": "<64>-<16>"}}
 *
 * `value` is the block in base64, without the zeros at its end. A block that is not small
 * (data/user_block.h) is an object below the storage, "db/<8>-<8>/.hsmount-userblock-<64>-<16>".
 * The 64 digits are the SHA-256 of its bytes, again without the zeros at the end. The other 16
 * digits are new for each block, so no key is used twice. The service ignores both. Pure.
 */
#ifndef HSDS_USER_BLOCK_MEMBER_H
#define HSDS_USER_BLOCK_MEMBER_H

#include <schema/schema.h>

#include "parse.h"
#include <json/writer.h>

/* Sets group.user_block of a root group from the member "userBlock". A large block has no bytes
 * yet. A block that is damaged is left out with a note. -ENOMEM. */
int schema_user_block_parse(struct schema_ctx *ctx, const json_t *v, struct object *o,
			    struct err *err);
/* Whether both blocks have the same text in a document. NULL stands for no block. */
bool schema_user_block_same(const struct user_block *a, const struct user_block *b);
/* The value of the member "userBlock". */
void schema_user_block_write(struct writer *w, const struct user_block *b);
/* Gives the block of a tree the name of its object, if it needs one and has none. nonce: for the
 * other 16 digits. -EIO: no digest can be made; -ENOMEM. */
int schema_user_block_name(struct tree *t, uint64_t nonce, struct err *err);
/* Whether text is the name of such an object. */
bool schema_user_block_is_name(const char *text);
/* schema_ops.take_user_block() */
int schema_user_block_take(struct tree *t, const void *bytes, size_t n, struct err *err);

#endif
