/* SPDX-License-Identifier: Apache-2.0 */
/* See base/frame.h. */
#include <base/frame.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <base/checksum.h>
#include <base/emit.h>

enum { CRC_AT = 8 };

static uint32_t crc_of(const uint8_t header[FRAME_HEADER], const void *body, size_t n)
{
	return checksum_crc32c(body, n, checksum_crc32c(header, CRC_AT, 0));
}

void frame_seal(uint8_t *frame, uint16_t type, uint32_t n)
{
	struct emit e = emit_to(frame, FRAME_HEADER);
	emit_u16(&e, type);
	emit_u16(&e, 0);
	emit_u32(&e, n);
	emit_u32(&e, 0);
	emit_patch_u32(&e, CRC_AT, crc_of(frame, frame + FRAME_HEADER, n));
}

int frame_emit(struct bytes *out, uint16_t type, void (*body)(struct emit *e, const void *ctx),
	       const void *ctx)
{
	struct emit e = emit_count();
	body(&e, ctx);
	const size_t n = e.pos;
	if (e.bad || n > UINT32_MAX)
		return -E2BIG;
	if (bytes_reserve(out, FRAME_HEADER + n))
		return -ENOMEM;
	uint8_t *frame = out->data + out->len;
	e = emit_to(frame + FRAME_HEADER, n);
	body(&e, ctx);
	frame_seal(frame, type, (uint32_t)n);
	out->len += FRAME_HEADER + n;
	return 0;
}

static void emit_piece(struct emit *e, const void *ctx)
{
	const struct piece *p = ctx;
	emit_bytes(e, p->data, p->n);
}

int frame_append(struct bytes *out, uint16_t type, const void *body, size_t n)
{
	const struct piece piece = {body, n};
	return frame_emit(out, type, emit_piece, &piece);
}

int frame_next(struct cursor *c, uint16_t *type, struct cursor *body)
{
	struct cursor at = *c;
	if (cur_left(c) == 0)
		return c->bad ? -EBADMSG : 0;
	const uint8_t *header = at.pos;
	*type = cur_u16(&at);
	const uint16_t zero = cur_u16(&at);
	const uint32_t n = cur_u32(&at), crc = cur_u32(&at);
	*body = cur_sub(&at, n);
	if (!cur_ok(&at) || zero || crc != crc_of(header, body->pos, n))
		return -EBADMSG;
	*c = at;
	return 1;
}

void frame_seal_head(uint8_t head[FRAME_HEAD_SIZE], const char *magic, uint32_t version)
{
	struct emit e = emit_to(head + FRAME_HEADER, FRAME_HEAD_SIZE - FRAME_HEADER);
	emit_bytes(&e, magic, FRAME_MAGIC);
	emit_u32(&e, version);
	frame_seal(head, FRAME_HEAD, FRAME_HEAD_SIZE - FRAME_HEADER);
}

int frame_put_head(struct bytes *out, const char *magic, uint32_t version)
{
	if (bytes_reserve(out, FRAME_HEAD_SIZE))
		return -ENOMEM;
	frame_seal_head(out->data + out->len, magic, version);
	out->len += FRAME_HEAD_SIZE;
	return 0;
}

int frame_take_head(struct cursor *c, const char *magic, uint32_t version, struct err *err)
{
	struct cursor body;
	uint16_t type = 0;
	const int rc = frame_next(c, &type, &body);
	const uint8_t *name = rc == 1 ? cur_bytes(&body, FRAME_MAGIC) : NULL;
	const uint32_t found = rc == 1 ? cur_u32(&body) : 0;
	if (type != FRAME_HEAD || !name || memcmp(name, magic, FRAME_MAGIC) != 0 || !cur_ok(&body))
		return err_set(err, -EBADMSG, "it does not begin with the record %.*s", FRAME_MAGIC,
			       magic);
	if (found > version)
		return err_set(err, -ENOTSUP, "it has version %" PRIu32 " of the format", found);
	if (cur_left(&body))
		return err_set(err, -EBADMSG, "the record %.*s is too long", FRAME_MAGIC, magic);
	return 0;
}
