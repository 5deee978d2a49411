/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounded, sticky cursor over foreign bytes. Invariants: start <= pos <= end; once `bad` is
 * set, pos does not change. All readers except cur_cstr() use cur_bytes(), which checks the bounds.
 */
#include <base/cursor.h>

#include <string.h>

struct cursor cursor_of(const void *bytes, size_t n)
{
	/* Arithmetic on NULL would be undefined. */
	static const uint8_t nothing;
	const uint8_t *p = bytes ? bytes : &nothing;
	return (struct cursor){.start = p, .pos = p, .end = bytes ? p + n : p};
}

size_t cur_left(const struct cursor *c)
{
	return c->bad ? 0 : (size_t)(c->end - c->pos);
}

size_t cur_pos(const struct cursor *c)
{
	return (size_t)(c->pos - c->start);
}

const uint8_t *cur_bytes(struct cursor *c, size_t n)
{
	const uint8_t *p = c->pos;
	if (c->bad || n > (size_t)(c->end - c->pos)) {
		c->bad = true;
		return NULL;
	}
	c->pos += n;
	return p;
}

uint64_t cur_uint(struct cursor *c, unsigned int n)
{
	const uint8_t *p;
	uint64_t v = 0;
	if (n > sizeof(v)) {
		c->bad = true;
		return 0;
	}
	p = cur_bytes(c, n);
	if (!p)
		return 0;
	while (n-- > 0)
		v = v << 8 | p[n];
	return v;
}

uint8_t cur_u8(struct cursor *c)
{
	return (uint8_t)cur_uint(c, 1);
}

uint16_t cur_u16(struct cursor *c)
{
	return (uint16_t)cur_uint(c, 2);
}

uint32_t cur_u24(struct cursor *c)
{
	return (uint32_t)cur_uint(c, 3);
}

uint32_t cur_u32(struct cursor *c)
{
	return (uint32_t)cur_uint(c, 4);
}

uint64_t cur_u64(struct cursor *c)
{
	return cur_uint(c, 8);
}

uint32_t cur_u32be(struct cursor *c)
{
	return __builtin_bswap32(cur_u32(c));
}

uint64_t cur_u64be(struct cursor *c)
{
	return __builtin_bswap64(cur_u64(c));
}

void cur_skip(struct cursor *c, size_t n)
{
	cur_bytes(c, n);
}

struct cursor cur_sub(struct cursor *c, size_t n)
{
	const uint8_t *p = cur_bytes(c, n);
	struct cursor sub = cursor_of(p, p ? n : 0);
	sub.bad = !p;
	return sub;
}

const char *cur_cstr(struct cursor *c, size_t *len)
{
	const uint8_t *p = c->pos;
	size_t left = cur_left(c);
	const uint8_t *nul = left ? memchr(p, 0, left) : NULL;
	if (len)
		*len = nul ? (size_t)(nul - p) : 0;
	if (!nul) {
		c->bad = true;
		return NULL;
	}
	c->pos = nul + 1;
	return (const char *)p;
}

const char *cur_text(struct cursor *c, size_t len)
{
	size_t length = 0;
	const char *text = cur_cstr(c, &length);
	return text && length == len ? text : NULL;
}

bool cur_is_zero(struct cursor *c)
{
	while (cur_left(c) > 0)
		if (cur_u8(c) != 0)
			return false;
	return true;
}
