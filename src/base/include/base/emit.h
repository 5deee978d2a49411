/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes bytes through a bounded emitter. Without a buffer it only counts, so the same encoder
 * first computes its size and then fills a buffer. A write past the capacity sets `bad` and writes
 * nothing. Integers are little-endian.
 */
#ifndef BASE_EMIT_H
#define BASE_EMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct emit {
	uint8_t *buf; /* NULL while it counts */
	size_t pos;
	size_t cap; /* ignored while counting */
	bool bad;
};

struct emit emit_count(void);
struct emit emit_to(void *buf, size_t cap);

void emit_u8(struct emit *e, uint8_t v);
void emit_u16(struct emit *e, uint16_t v);
void emit_u24(struct emit *e, uint32_t v);
void emit_u32(struct emit *e, uint32_t v);
void emit_u64(struct emit *e, uint64_t v);
/* Emits the low n bytes of v, 0 <= n <= 8. */
void emit_uint(struct emit *e, uint64_t v, unsigned int n);
void emit_bytes(struct emit *e, const void *bytes, size_t n);
void emit_zero(struct emit *e, size_t n);
/* Writes zeros up to the next multiple of align (a power of two), counted from `from`. */
void emit_align(struct emit *e, size_t from, size_t align);
/* Writes the lookup3 checksum (4 bytes) of the bytes [from, pos). */
void emit_checksum(struct emit *e, size_t from);
/* Overwrites 4 bytes at an earlier position. */
void emit_patch_u32(struct emit *e, size_t at, uint32_t v);

#endif
