/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object headers, version 2 (Spec IV.A.1.b); version 1 is in ohdr1.c.
 *
 *   +0 4    "OHDR"
 *   +4 u8   version, 2
 *   +5 u8   flags: 0-1 width of the size of chunk 0 (1 << n bytes), 2 attribute creation order
 *           tracked, 3 indexed, 4 phase change values stored, 5 times stored
 *      u32  access, modification, change, birth time (flag bit 5)
 *      u16  most compact, fewest dense attributes    (flag bit 4)
 *      ..   size of chunk 0: its messages and gap
 *           messages, gap
 *      u32  checksum of all bytes before it
 *
 *   Continuation chunk: "OCHK", messages, gap, u32 checksum.
 *
 *   A message:
 *   +0 u8   type
 *   +1 u16  size of body
 *   +3 u8   flags
 *   +4 u16  creation order (flag bit 2 of the header)
 *           body
 *
 * The gap is what remains at the end of a chunk if it is smaller than the head of a message.
 */
#include <string.h>

#include <base/checksum.h>
#include <h5/claims.h>
#include <h5/message.h>
#include <h5/ohdr.h>

#include "msg.h"
#include "ohdr1.h"

enum {
	SIGNATURE_LEN = 4,
	CHECKSUM_LEN = 4,
	PREFIX_MAX = SIGNATURE_LEN + 2 + 16 + 4 + 8,
	WIDTH_MASK = 3,
	FLAG_TRACKED = 1 << 2,
	FLAG_INDEXED = 1 << 3,
	FLAG_PHASE = 1 << 4,
	FLAG_TIMES = 1 << 5,
	FLAGS_RESERVED = 0xc0,
	MSG_HEAD = 4,
	MSG_CORDER = 2,
};

static const char header_signature[SIGNATURE_LEN] = {'O', 'H', 'D', 'R'};
static const char chunk_signature[SIGNATURE_LEN] = {'O', 'C', 'H', 'K'};

static size_t head_len(const struct h5_ohdr *h)
{
	return MSG_HEAD + (h->attr_order_tracked ? MSG_CORDER : 0);
}

static void encode_prefix(struct emit *e, const struct h5_ohdr *h)
{
	uint64_t size = 0;
	for (uint32_t i = 0; i < h->n; i++)
		size += head_len(h) + h->msgs[i].len;
	const unsigned int width = h5_msg_width(size);
	emit_bytes(e, header_signature, SIGNATURE_LEN);
	emit_u8(e, 2);
	emit_u8(e, (uint8_t)(width | (h->attr_order_tracked ? FLAG_TRACKED : 0) |
			     (h->attr_order_indexed ? FLAG_INDEXED : 0) |
			     (h->has_phase ? FLAG_PHASE : 0) | (h->has_times ? FLAG_TIMES : 0)));
	if (h->has_times) {
		emit_u32(e, h->atime);
		emit_u32(e, h->mtime);
		emit_u32(e, h->ctime);
		emit_u32(e, h->btime);
	}
	if (h->has_phase) {
		emit_u16(e, h->max_compact);
		emit_u16(e, h->min_dense);
	}
	emit_uint(e, size, 1U << width);
}

void h5_ohdr_encode(struct emit *e, const struct h5_ohdr *h)
{
	size_t from = e->pos;
	encode_prefix(e, h);
	for (uint32_t i = 0; i < h->n; i++) {
		const struct h5_msg *m = &h->msgs[i];
		emit_u8(e, m->type);
		h5_emit_len16(e, m->len);
		emit_u8(e, m->flags);
		if (h->attr_order_tracked)
			emit_u16(e, m->corder);
		h5_emit_raw(e, m->body, m->len);
	}
	emit_checksum(e, from);
}

/* Reads a chunk and checks its checksum. *c becomes the bytes that the checksum covers. */
static int read_chunk(struct ohdr_reader *r, struct ohdr_extent x, struct cursor *c)
{
	int rc = ohdr_read_chunk(r, x, SIGNATURE_LEN + CHECKSUM_LEN, c);
	if (rc)
		return rc;
	struct cursor all = *c;
	*c = cur_sub(&all, (size_t)x.len - CHECKSUM_LEN);
	if (checksum_lookup3(c->pos, (size_t)x.len - CHECKSUM_LEN, 0) != cur_u32(&all))
		return err_set(r->err, -EIO,
			       "object header: checksum of the chunk at %" PRIu64 " does not match",
			       x.addr);
	return 0;
}

static int parse_messages(struct ohdr_reader *r, struct cursor *c)
{
	while (cur_left(c) >= head_len(r->h)) {
		struct h5_msg m = {.type = cur_u8(c)};
		m.len = cur_u16(c);
		m.flags = cur_u8(c);
		if (r->h->attr_order_tracked)
			m.corder = cur_u16(c);
		struct cursor body = cur_sub(c, m.len);
		if (!cur_ok(c))
			return ohdr_message_cut(r, m.type, m.len);
		m.body = body.pos;
		int rc = ohdr_add_message(r, &m, &body);
		if (rc)
			return rc;
	}
	return 0;
}

static int parse_prefix(struct cursor *c, struct h5_ohdr *h, uint64_t *chunk_size, struct err *err)
{
	const uint8_t *sig = cur_bytes(c, SIGNATURE_LEN);
	uint8_t version = cur_u8(c), flags = cur_u8(c);
	if (!cur_ok(c))
		return h5_msg_end(c, "object header", err);
	if (memcmp(sig, header_signature, SIGNATURE_LEN) != 0)
		return err_set(err, -EIO, "object header: wrong signature");
	if (version != 2)
		return h5_msg_version(version, "object header", err);
	if (flags & FLAGS_RESERVED)
		return err_set(err, -EIO, "object header: invalid flags 0x%02x", flags);
	h->version = version;
	h->attr_order_tracked = flags & FLAG_TRACKED;
	h->attr_order_indexed = flags & FLAG_INDEXED;
	h->has_phase = flags & FLAG_PHASE;
	h->has_times = flags & FLAG_TIMES;
	if (h->has_times) {
		h->atime = cur_u32(c);
		h->mtime = cur_u32(c);
		h->ctime = cur_u32(c);
		h->btime = cur_u32(c);
	}
	if (h->has_phase) {
		h->max_compact = cur_u16(c);
		h->min_dense = cur_u16(c);
	}
	*chunk_size = cur_uint(c, 1U << (flags & WIDTH_MASK));
	return h5_msg_end(c, "object header", err);
}

/* Reads chunk 0 of a version 2 header. raw has its first n bytes. */
static int read_first(struct ohdr_reader *r, uint64_t addr, const uint8_t *raw, size_t n)
{
	struct cursor c = cursor_of(raw, n);
	uint64_t chunk_size = 0;
	int rc = parse_prefix(&c, r->h, &chunk_size, r->err);
	if (rc)
		return rc;
	size_t prefix = cur_pos(&c);
	struct ohdr_extent x = {.addr = addr};
	if (!add_u64(chunk_size, prefix + CHECKSUM_LEN, &x.len))
		return err_set(r->err, -EIO, "object header: size of chunk 0 overflows");
	rc = read_chunk(r, x, &c);
	if (rc)
		return rc;
	cur_skip(&c, prefix);
	return parse_messages(r, &c);
}

static int read_continuation(struct ohdr_reader *r, struct ohdr_extent x)
{
	struct cursor c;
	int rc = read_chunk(r, x, &c);
	if (rc)
		return rc;
	if (memcmp(cur_bytes(&c, SIGNATURE_LEN), chunk_signature, SIGNATURE_LEN) != 0)
		return err_set(r->err, -EIO, "object header: continuation without signature");
	return parse_messages(r, &c);
}

static int read_chunks(struct ohdr_reader *r, uint64_t addr)
{
	uint8_t raw[PREFIX_MAX] = {0};
	uint64_t left = addr < h5_file_size(r->f) ? h5_file_size(r->f) - addr : 0;
	size_t n = (size_t)min_u64(left, sizeof(raw));
	int rc = h5_file_read(r->f, addr, raw, n, r->err);
	if (rc)
		return rc;
	const bool old = raw[0] == 1;
	rc = old ? ohdr1_read_first(r, addr) : read_first(r, addr, raw, n);
	for (size_t at = 0; !rc && at < r->todo.len; at += sizeof(struct ohdr_extent)) {
		struct ohdr_extent x;
		memcpy(&x, r->todo.data + at, sizeof(x));
		rc = old ? ohdr1_read_continuation(r, x) : read_continuation(r, x);
	}
	return rc || !old ? rc : ohdr1_end(r);
}

static int keep_messages(struct ohdr_reader *r)
{
	if (!r->msgs.len)
		return 0;
	struct h5_msg *msgs = arena_alloc(r->a, r->msgs.len);
	if (!msgs)
		return err_no_memory(r->err);
	memcpy(msgs, r->msgs.data, r->msgs.len);
	r->h->msgs = msgs;
	r->h->n = (uint32_t)(r->msgs.len / sizeof(*msgs));
	return 0;
}

/* Version 2 has a message for a reference count other than 1. */
static int find_refcount(struct ohdr_reader *r)
{
	const struct h5_msg *m = h5_ohdr_find(r->h, H5_MSG_REFCOUNT);
	if (r->h->version == 1)
		return 0;
	r->h->refcount = 1;
	if (!m)
		return 0;
	struct cursor c = cursor_of(m->body, m->len);
	return h5_refcount_decode(&c, &r->h->refcount, r->err);
}

int h5_ohdr_decode(const struct h5_file *f, uint64_t addr, struct arena *a, struct h5_ohdr *h,
		   struct err *err)
{
	struct ohdr_reader r = {.f = f, .a = a, .h = h, .err = err};
	*h = (struct h5_ohdr){.n = 0};
	int rc = read_chunks(&r, addr);
	if (!rc)
		rc = keep_messages(&r);
	if (!rc)
		rc = find_refcount(&r);
	/* Claims are made last, because a decoder that a source has interrupted starts again. */
	const struct ohdr_extent *chunks = (const void *)r.chunks.data;
	for (size_t i = 0; !rc && i < r.chunks.len / sizeof(*chunks); i++)
		rc = h5_claim(f->claims, chunks[i].addr, chunks[i].len, "object header", err);
	ohdr_reader_release(&r);
	if (!rc)
		return 0;
	*h = (struct h5_ohdr){.n = 0};
	return err_wrap(err, rc, "at %" PRIu64, addr);
}

const struct h5_msg *h5_ohdr_find(const struct h5_ohdr *h, enum h5_msg_type type)
{
	for (uint32_t i = 0; i < h->n; i++)
		if (h->msgs[i].type == type)
			return &h->msgs[i];
	return NULL;
}

bool h5_ohdr_kind(const struct h5_ohdr *h, enum object_kind *kind)
{
	const bool has_type = h5_ohdr_find(h, H5_MSG_DATATYPE);
	if (h5_ohdr_find(h, H5_MSG_SYMBOL_TABLE) || h5_ohdr_find(h, H5_MSG_LINK_INFO))
		*kind = OBJECT_GROUP;
	else if (has_type && h5_ohdr_find(h, H5_MSG_DATASPACE))
		*kind = OBJECT_DATASET;
	else if (has_type)
		*kind = OBJECT_DATATYPE;
	else
		return false;
	return true;
}
