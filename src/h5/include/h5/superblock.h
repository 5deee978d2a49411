/* SPDX-License-Identifier: Apache-2.0 */
/* Superblock (Spec II.A). Encoded as version 0; decoded as version 0, 1, 2 and 3. */
#ifndef H5_SUPERBLOCK_H
#define H5_SUPERBLOCK_H

#include <stdbool.h>

#include <h5/format.h>

enum {
	H5_SUPERBLOCK_SIZE = 96, /* as it is encoded */
	H5_SUPERBLOCK_MAX = 100, /* of any version */
	H5_SIGNATURE_LEN = 8,
};

struct h5_superblock {
	uint8_t version;
	uint8_t status_flags;		      /* byte 20: 1 while a writer has the file open */
	uint16_t leaf_k, internal_k, chunk_k; /* 4, 16, 32 where the version does not say */
	uint64_t base, eof;
	uint64_t root;		     /* address of the root group's object header */
	uint64_t extension;	     /* of the superblock extension's; H5_UNDEF: none */
	uint8_t addr_size, len_size; /* 8 in what is encoded */
};

void h5_superblock_encode(struct emit *e, const struct h5_superblock *sb);
/* Sizes of addresses and lengths other than 2, 4 and 8: -EOPNOTSUPP. */
int h5_superblock_decode(struct cursor *c, struct h5_superblock *sb, struct err *err);

/* The first H5_SIGNATURE_LEN bytes of a superblock? */
bool h5_is_signature(const uint8_t *bytes);

#endif
