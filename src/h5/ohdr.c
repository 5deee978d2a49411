/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object headers, version 2 (Spec IV.A.1.b).
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
 *
 * The decoder reads each chunk once: it remembers their addresses, and a continuation to one of
 * them fails with -EIO.
 */
#include <string.h>

#include <base/checksum.h>
#include <h5/ohdr.h>

#include "addrset.h"
#include "msg.h"

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
	MAX_MESSAGES = 1 << 20,
	MAX_BYTES = 64 << 20,
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
	unsigned int width = size > UINT32_MAX	 ? 3
			     : size > UINT16_MAX ? 2
			     : size > UINT8_MAX	 ? 1
						 : 0;
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

struct extent {
	uint64_t addr, len;
};

struct reader {
	const struct h5_file *f;
	struct arena *a;
	struct h5_ohdr *h;
	struct bytes msgs;   /* of struct h5_msg */
	struct bytes chunks; /* of struct extent: continuation chunks in the order of messages */
	struct addrset seen;
	uint64_t total; /* bytes of all chunks */
	struct err *err;
};

static void reader_release(struct reader *r)
{
	bytes_release(&r->msgs);
	bytes_release(&r->chunks);
	addrset_release(&r->seen);
}

static int out_of_memory(struct reader *r)
{
	return err_set(r->err, -ENOMEM, "object header: out of memory");
}

/* Reads a chunk into the arena and checks its checksum. c: the bytes that the checksum covers. */
static int read_chunk(struct reader *r, struct extent x, struct cursor *c)
{
	if (x.len < SIGNATURE_LEN + CHECKSUM_LEN || x.len > MAX_BYTES - r->total)
		return err_set(r->err, -EIO,
			       "object header: chunk of %" PRIu64 " bytes, too small or too large",
			       x.len);
	r->total += x.len;
	int rc = addrset_add(&r->seen, x.addr);
	if (rc < 0)
		return out_of_memory(r);
	if (rc == 0)
		return err_set(r->err, -EIO,
			       "object header: two continuations lead to the same chunk");

	uint64_t end;
	if (!add_u64(x.addr, x.len, &end) || end > h5_file_size(r->f))
		return err_set(r->err, -EIO,
			       "object header: chunk at %" PRIu64 " is outside of the file",
			       x.addr);
	void *buf = arena_alloc(r->a, (size_t)x.len);
	if (!buf)
		return out_of_memory(r);
	rc = h5_file_read(r->f, x.addr, buf, (size_t)x.len, r->err);
	if (rc)
		return rc;
	struct cursor all = cursor_of(buf, (size_t)x.len);
	*c = cur_sub(&all, (size_t)x.len - CHECKSUM_LEN);
	if (checksum_lookup3(buf, (size_t)x.len - CHECKSUM_LEN, 0) != cur_u32(&all))
		return err_set(r->err, -EIO,
			       "object header: checksum of the chunk at %" PRIu64 " does not match",
			       x.addr);
	return 0;
}

static int add_continuation(struct reader *r, struct cursor *body)
{
	struct extent x = {.addr = h5_cur_addr(r->f, body)};
	x.len = h5_cur_len(r->f, body);
	int rc = h5_msg_end(body, "object header continuation", r->err);
	if (!rc && bytes_append(&r->chunks, &x, sizeof(x)))
		rc = out_of_memory(r);
	return rc;
}

static int add_message(struct reader *r, const struct h5_msg *m, struct cursor *body)
{
	if (m->type == H5_MSG_NIL)
		return 0;
	if (m->type == H5_MSG_CONTINUATION)
		return add_continuation(r, body);
	if (r->msgs.len / sizeof(*m) >= MAX_MESSAGES)
		return err_set(r->err, -EIO, "object header: more than %d messages", MAX_MESSAGES);
	return bytes_append(&r->msgs, m, sizeof(*m)) ? out_of_memory(r) : 0;
}

static int parse_messages(struct reader *r, struct cursor *c)
{
	while (cur_left(c) >= head_len(r->h)) {
		struct h5_msg m = {.type = cur_u8(c)};
		m.len = cur_u16(c);
		m.flags = cur_u8(c);
		if (r->h->attr_order_tracked)
			m.corder = cur_u16(c);
		struct cursor body = cur_sub(c, m.len);
		if (!cur_ok(c))
			return err_set(r->err, -EIO,
				       "object header: message 0x%02x of %" PRIu32
				       " bytes is longer than its chunk",
				       m.type, m.len);
		m.body = body.pos;
		int rc = add_message(r, &m, &body);
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
		return err_set(err, sig[0] == 1 ? -EOPNOTSUPP : -EIO,
			       sig[0] == 1 ? "object header: unsupported version 1"
					   : "object header: wrong signature");
	if (version != 2)
		return h5_msg_version(version, "object header", err);
	if (flags & FLAGS_RESERVED)
		return err_set(err, -EIO, "object header: invalid flags 0x%02x", flags);
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

static int read_first(struct reader *r, uint64_t addr)
{
	uint8_t buf[PREFIX_MAX];
	uint64_t left = addr < h5_file_size(r->f) ? h5_file_size(r->f) - addr : 0;
	size_t n = (size_t)min_u64(left, sizeof(buf));
	int rc = h5_file_read(r->f, addr, buf, n, r->err);
	if (rc)
		return rc;
	struct cursor c = cursor_of(buf, n);
	uint64_t chunk_size = 0;
	rc = parse_prefix(&c, r->h, &chunk_size, r->err);
	if (rc)
		return rc;
	size_t prefix = cur_pos(&c);
	struct extent x = {.addr = addr};
	if (!add_u64(chunk_size, prefix + CHECKSUM_LEN, &x.len))
		return err_set(r->err, -EIO, "object header: size of chunk 0 overflows");
	rc = read_chunk(r, x, &c);
	if (rc)
		return rc;
	cur_skip(&c, prefix);
	return parse_messages(r, &c);
}

static int read_continuation(struct reader *r, size_t at)
{
	struct extent x;
	struct cursor c;
	memcpy(&x, r->chunks.data + at, sizeof(x));
	int rc = read_chunk(r, x, &c);
	if (rc)
		return rc;
	if (memcmp(cur_bytes(&c, SIGNATURE_LEN), chunk_signature, SIGNATURE_LEN) != 0)
		return err_set(r->err, -EIO, "object header: continuation without signature");
	return parse_messages(r, &c);
}

static int read_all(struct reader *r, uint64_t addr)
{
	int rc = read_first(r, addr);
	for (size_t at = 0; !rc && at < r->chunks.len; at += sizeof(struct extent))
		rc = read_continuation(r, at);
	if (rc || !r->msgs.len)
		return rc;
	struct h5_msg *msgs = arena_alloc(r->a, r->msgs.len);
	if (!msgs)
		return out_of_memory(r);
	memcpy(msgs, r->msgs.data, r->msgs.len);
	r->h->msgs = msgs;
	r->h->n = (uint32_t)(r->msgs.len / sizeof(*msgs));
	return 0;
}

int h5_ohdr_decode(const struct h5_file *f, uint64_t addr, struct arena *a, struct h5_ohdr *h,
		   struct err *err)
{
	struct reader r = {.f = f, .a = a, .h = h, .err = err};
	*h = (struct h5_ohdr){.n = 0};
	int rc = read_all(&r, addr);
	reader_release(&r);
	return rc ? err_wrap(err, rc, "at %" PRIu64, addr) : 0;
}
