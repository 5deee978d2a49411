/* SPDX-License-Identifier: Apache-2.0 */
/* Superblock (Spec II.A). Encoded as version 0; decoded as version 0, 1, 2 and 3. */
#ifndef H5_SUPERBLOCK_H
#define H5_SUPERBLOCK_H

#include <h5/format.h>

enum { H5_SUPERBLOCK_SIZE = 96 };

struct h5_superblock {
	uint8_t version;
	uint8_t status_flags;		      /* byte 20: 1 while a writer has the file open */
	uint16_t leaf_k, internal_k, chunk_k; /* 4, 16, 32 where the version does not say */
	uint64_t base, eof;
	uint64_t root; /* address of the root group's object header */
};

void h5_superblock_encode(struct emit *e, const struct h5_superblock *sb);
int h5_superblock_decode(struct cursor *c, struct h5_superblock *sb, struct err *err);

#endif
