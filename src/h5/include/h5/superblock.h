/* SPDX-License-Identifier: Apache-2.0 */
/* Superblock (Spec II.A). The encoder writes version 0; the decoder reads versions 0 to 3. */
#ifndef H5_SUPERBLOCK_H
#define H5_SUPERBLOCK_H

#include <stdbool.h>

#include <h5/format.h>

enum {
	H5_SUPERBLOCK_SIZE = 96, /* of version 0 with addresses of 8 bytes */
	H5_SUPERBLOCK_MAX = 100, /* of any version */
};

struct h5_superblock {
	uint8_t version;
	uint8_t status_flags;		      /* bit 0 is set while a writer has the file open */
	uint16_t leaf_k, internal_k, chunk_k; /* 4, 16, 32 if the version has no such field */
	uint64_t base, eof;
	uint64_t root;		     /* address of the root group's object header */
	uint64_t extension;	     /* address of the header of the extension, or H5_UNDEF */
	uint64_t driver_info;	     /* address of the driver information block, or H5_UNDEF */
	uint8_t addr_size, len_size; /* the encoder writes 8 */
};

void h5_superblock_encode(struct emit *e, const struct h5_superblock *sb);
/* Fails with -EOPNOTSUPP, also for sizes of addresses or lengths other than 2, 4 and 8. */
int h5_superblock_decode(struct cursor *c, struct h5_superblock *sb, struct err *err);

/* A superblock is at offset 0, or behind a user block of 512 * 2^n bytes. Returns the next offset
 * after `at` at which it can be, or UINT64_MAX if there are no more. */
uint64_t h5_superblock_next(uint64_t at);
struct source;
/* Finds the superblock, at the start or after a user block of 512 * 2^n bytes. Fails only if the
 * source does. */
int h5_superblock_find(struct source *s, uint64_t *at, bool *found, struct err *err);

#endif
