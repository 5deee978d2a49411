/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source of bytes that are read at offsets: a file, an object in a bucket, an image, memory.
 *
 * A source need not have all of its bytes at hand. If it would have to wait, read_at answers
 * -EAGAIN instead, and source_read() notes the range. The caller then gets that range (or more)
 * in its own way and starts the pure walk that wanted it again from its beginning. What a walk
 * that fails with -EAGAIN has given to its callbacks so far is void.
 *
 * A source is used by one thread at a time, because of the range that it notes.
 */
#ifndef BASE_SOURCE_H
#define BASE_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>

struct source {
	uint64_t size; /* bytes */
	/* All n bytes at offset, or a negative errno; -EAGAIN: they are not at hand, with no reason
	 * in err. Called by source_read() alone, n > 0, never past size. */
	int (*read_at)(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err);
	void *ctx;
	/* The range that the last read with -EAGAIN wanted. */
	uint64_t wanted, wanted_len;
};

/* All n bytes at offset. -EIO: they are not inside of the source; -EAGAIN: s->wanted; else what the
 * source says. */
int source_read(struct source *s, uint64_t offset, void *buf, size_t n, struct err *err);

#endif
