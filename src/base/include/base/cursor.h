/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one way to read foreign bytes: a bounded, sticky cursor. A read past the end sets bad,
 * returns zero (or NULL) and moves nothing; every later read fails too, so a parser reads a whole
 * structure and asks cur_ok() once before it trusts any of it. Integers are little-endian, as
 * everywhere in HDF5 metadata.
 */
#ifndef BASE_CURSOR_H
#define BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor {
	const uint8_t *start;
	const uint8_t *pos;
	const uint8_t *end;
	bool bad;
};

struct cursor cursor_of(const void *bytes, size_t n);
static inline bool cur_ok(const struct cursor *c)
{
	return !c->bad;
}
size_t cur_left(const struct cursor *c); /* 0 when bad */
size_t cur_pos(const struct cursor *c);	 /* bytes consumed since start */

uint8_t cur_u8(struct cursor *c);
uint16_t cur_u16(struct cursor *c);
uint32_t cur_u24(struct cursor *c);
uint32_t cur_u32(struct cursor *c);
uint64_t cur_u64(struct cursor *c);
uint32_t cur_u32be(struct cursor *c);
uint64_t cur_u64be(struct cursor *c);
/* An n-byte integer, 0 <= n <= 8. */
uint64_t cur_uint(struct cursor *c, unsigned int n);
/* Borrowed from the cursor's bytes; NULL (and bad) when fewer than n are left. */
const uint8_t *cur_bytes(struct cursor *c, size_t n);
void cur_skip(struct cursor *c, size_t n);
/* Skips to the next multiple of align (a power of two) counted from start. */
void cur_align(struct cursor *c, size_t align);
/* A cursor over the next n bytes, which this one skips. Bad when fewer are left. */
struct cursor cur_sub(struct cursor *c, size_t n);
/* Length of the NUL-terminated string at the cursor; consumes it with its NUL. NULL (and bad)
 * when no NUL is left. */
const char *cur_cstr(struct cursor *c, size_t *len);

#endif
