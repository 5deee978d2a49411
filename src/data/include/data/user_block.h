/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user block of a file: the bytes in front of its superblock (HDF5 File Format Specification,
 * II.A). Its size is 512 bytes or a larger power of two. HDF5 gives no meaning to its bytes: MATLAB
 * has a header of its own there, and h5jam puts any text there. Pure.
 */
#ifndef DATA_USER_BLOCK_H
#define DATA_USER_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>

struct arena;

enum {
	USER_BLOCK_MIN = 512,
	USER_BLOCK_MAX = 64 << 20, /* the largest that a domain can hold, bytes */
	/* A block with more bytes in front of the zeros at its end is an object of its own in the
	 * bucket. */
	USER_BLOCK_SMALL = 4096,
};

/* In the arena of a tree, with all that it points to. Constant. */
struct user_block {
	uint64_t size;
	/* Its first `len` bytes; all others are zeros. */
	const uint8_t *data;
	size_t len;
	const char *object; /* private to the schema: its object in the bucket, or NULL */
	/* The bytes of the object are lost or not known, and are shown as zeros. */
	bool is_unknown;
};

/* Returns whether a user block can have this size. */
bool user_block_is_size(uint64_t size);
bool user_block_is_small(const struct user_block *b);
/* Makes a block in an arena, with a copy of its first n bytes; the others are zeros. Requires
 * user_block_is_size(size) and n <= size. Returns -EFBIG if the block has more than USER_BLOCK_MAX
 * bytes, or -ENOMEM. */
int user_block_new(struct arena *a, uint64_t size, const void *data, size_t n,
		   struct user_block **out, struct err *err);
/* Returns whether two files have the same block. NULL stands for a file without a block. */
bool user_block_equal(const struct user_block *a, const struct user_block *b);
/* Copies bytes [at, at + n) of the block, at + n <= size. */
void user_block_read(const struct user_block *b, uint64_t at, void *buf, size_t n);

#endif
