/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads foreign bytes through a bounded, sticky cursor. A read past the end sets `bad`, returns
 * zero (or NULL) and moves nothing. Every later read fails, too. A parser therefore reads a whole
 * structure and then checks cur_ok() once, before it uses any of it. Integers are little-endian, as
 * in all HDF5 metadata.
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
/* Reads an n-byte integer, 0 <= n <= 8. */
uint64_t cur_uint(struct cursor *c, unsigned int n);
/* Returns the next n bytes, borrowed from the cursor's, and skips them. Returns NULL, and the
 * cursor is bad, if fewer are left. */
const uint8_t *cur_bytes(struct cursor *c, size_t n);
void cur_skip(struct cursor *c, size_t n);
/* Returns a cursor over the next n bytes, and skips them. It is bad if fewer are left. */
struct cursor cur_sub(struct cursor *c, size_t n);
/* Returns the NUL-terminated string at the cursor and skips it with its NUL. *len becomes its
 * length; len may be NULL. Returns NULL, and the cursor is bad, if no NUL is left. */
const char *cur_cstr(struct cursor *c, size_t *len);
/* The same for a string whose length is known. Also returns NULL if it has another length. */
const char *cur_text(struct cursor *c, size_t len);
/* Skips all bytes that are left, up to the first one that is not zero. Returns whether all are
 * zero. */
bool cur_is_zero(struct cursor *c);

#endif
