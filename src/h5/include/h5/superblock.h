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

/* Status flags. Old libraries leave the first two in closed files. Newer ones clear the first when
 * they close a file, and never set the second. */
enum {
	H5_STATUS_WRITING = 1 << 0,    /* a program has the file open for writing */
	H5_STATUS_CONSISTENT = 1 << 1, /* the file is consistent */
	H5_STATUS_SWMR = 1 << 2,       /* a program writes the file while others read it */
	H5_STATUS_KNOWN = H5_STATUS_WRITING | H5_STATUS_CONSISTENT | H5_STATUS_SWMR,
};

/* Returns whether a file with these flags is open for writing, or its writer was killed. */
static inline bool h5_status_is_open(uint8_t flags)
{
	return (flags & (H5_STATUS_WRITING | H5_STATUS_CONSISTENT)) == H5_STATUS_WRITING;
}

/* Returns whether libhdf5 refuses to open a file with these flags, if the superblock has version 3.
 */
static inline bool h5_status_is_locked(uint8_t flags)
{
	return flags & (H5_STATUS_WRITING | H5_STATUS_SWMR);
}

struct h5_superblock {
	uint8_t version;
	uint8_t status_flags;
	uint16_t leaf_k, internal_k, chunk_k; /* 4, 16, 32 if the version has no such field */
	uint64_t base, eof;
	uint64_t root;		     /* address of the root group's object header */
	uint64_t extension;	     /* address of the header of the extension, or H5_UNDEF */
	uint64_t driver_info;	     /* address of the driver information block, or H5_UNDEF */
	uint64_t free_info;	     /* versions 0 and 1: address of the free-space information */
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
