/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes in memory that are seldom read, compressed in blocks. Each read decodes the blocks that it
 * touches. Constant; any thread may read.
 */
#ifndef CODEC_PACKED_BYTES_H
#define CODEC_PACKED_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>

enum { PACKED_BLOCK = 64 << 10 /* bytes of a block before compression */ };

struct packed_bytes;
/* Compresses n bytes, n > 0, in place: `data` is from malloc() and is taken over. Fails with
 * -ENOMEM, and leaves the bytes as they are. */
int packed_bytes_new(uint8_t *data, size_t n, struct packed_bytes **out);
void packed_bytes_free(struct packed_bytes *p); /* p may be NULL */
/* Copies bytes [at, at + n), which exist. Fails with -ENOMEM. */
int packed_bytes_read(const struct packed_bytes *p, size_t at, void *buf, size_t n,
		      struct err *err);
size_t packed_bytes_memory(const struct packed_bytes *p);

#endif
