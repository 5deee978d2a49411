/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounded emitter. Invariants: pos <= cap unless it only counts; once `bad` is set, nothing is
 * written and pos does not change. All writers use room(), which checks the bounds.
 */
#include <base/emit.h>

#include <string.h>

#include <base/checksum.h>

struct emit emit_count(void)
{
	return (struct emit){.buf = NULL};
}

struct emit emit_to(void *buf, size_t cap)
{
	/* Without `bad`, an emitter without a buffer would count instead of failing. */
	return (struct emit){.buf = buf, .cap = cap, .bad = !buf};
}

/* Reserves the next n bytes. Returns false if nothing can be written, because there is no room or
 * because e only counts. */
static bool room(struct emit *e, size_t n, uint8_t **at)
{
	size_t cap = e->buf ? e->cap : SIZE_MAX;
	if (e->bad || n > cap - e->pos) {
		e->bad = true;
		return false;
	}
	*at = e->buf ? e->buf + e->pos : NULL;
	e->pos += n;
	return e->buf != NULL;
}

static void put(uint8_t *p, uint64_t v, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++, v >>= 8)
		p[i] = (uint8_t)v;
}

void emit_uint(struct emit *e, uint64_t v, unsigned int n)
{
	uint8_t *p;
	if (n > sizeof(v)) {
		e->bad = true;
		return;
	}
	if (room(e, n, &p))
		put(p, v, n);
}

void emit_u8(struct emit *e, uint8_t v)
{
	emit_uint(e, v, 1);
}

void emit_u16(struct emit *e, uint16_t v)
{
	emit_uint(e, v, 2);
}

void emit_u24(struct emit *e, uint32_t v)
{
	emit_uint(e, v, 3);
}

void emit_u32(struct emit *e, uint32_t v)
{
	emit_uint(e, v, 4);
}

void emit_u64(struct emit *e, uint64_t v)
{
	emit_uint(e, v, 8);
}

void emit_bytes(struct emit *e, const void *bytes, size_t n)
{
	uint8_t *p;
	if (room(e, n, &p) && n)
		memcpy(p, bytes, n);
}

void emit_zero(struct emit *e, size_t n)
{
	uint8_t *p;
	if (room(e, n, &p) && n)
		memset(p, 0, n);
}

void emit_align(struct emit *e, size_t from, size_t align)
{
	if (from > e->pos)
		e->bad = true;
	emit_zero(e, -(e->pos - from) & (align - 1));
}

void emit_checksum(struct emit *e, size_t from)
{
	uint32_t sum = 0;
	if (from > e->pos)
		e->bad = true;
	if (!e->bad && e->buf)
		sum = checksum_lookup3(e->buf + from, e->pos - from, 0);
	emit_u32(e, sum);
}

void emit_patch_u32(struct emit *e, size_t at, uint32_t v)
{
	if (at > e->pos || sizeof(v) > e->pos - at)
		e->bad = true;
	if (!e->bad && e->buf)
		put(e->buf + at, v, sizeof(v));
}
