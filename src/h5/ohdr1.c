/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object headers, version 1 (Spec IV.A.1.a). Only a decoder.
 *
 *   +0 u8   version, 1
 *   +1 u8   reserved
 *   +2 u16  number of messages in all chunks, including NIL and continuation
 *   +4 u32  object reference count
 *   +8 u32  bytes of messages in chunk 0
 *   +12 4   padding
 *   +16     messages
 *
 *   A message, at a multiple of 8:
 *   +0 u16  type
 *   +2 u16  size of body, a multiple of 8
 *   +4 u8   flags
 *   +5 3    reserved
 *   +8      body
 *
 * A continuation chunk only consists of messages. Nothing has a signature or a checksum. Messages
 * have no creation order.
 *
 * libhdf5 merges NIL messages when it reads a header, and some releases wrote a smaller number of
 * messages than the chunks have. A larger number means that messages are missing.
 */
#include "ohdr1.h"

#include "msg.h"

enum { PREFIX = 16, MSG_HEAD = 8, ALIGN = 8, TYPE_OTHER = 0xff };

static int parse_messages(struct ohdr_reader *r, struct cursor *c)
{
	while (cur_left(c)) {
		const uint16_t type = cur_u16(c);
		struct h5_msg m = {.type = (uint8_t)min_u64(type, TYPE_OTHER)};
		m.len = cur_u16(c);
		m.flags = cur_u8(c);
		cur_skip(c, 3);
		struct cursor body = cur_sub(c, m.len);
		if (!cur_ok(c))
			return ohdr_message_cut(r, type, m.len);
		if (m.len % ALIGN)
			return err_set(r->err, -EIO,
				       "object header: message 0x%02x has %" PRIu32
				       " bytes, not a multiple of 8",
				       type, m.len);
		m.body = body.pos;
		int rc = ohdr_add_message(r, &m, &body);
		if (rc)
			return rc;
	}
	return 0;
}

int ohdr1_read_first(struct ohdr_reader *r, uint64_t addr)
{
	uint8_t raw[PREFIX];
	int rc = h5_file_read(r->f, addr, raw, sizeof(raw), r->err);
	if (rc)
		return rc;
	struct cursor c = cursor_of(raw, sizeof(raw));
	r->h->version = cur_u8(&c);
	cur_skip(&c, 1);
	r->count = cur_u16(&c);
	r->h->refcount = cur_u32(&c);
	const struct ohdr_extent x = {.addr = addr, .len = PREFIX + (uint64_t)cur_u32(&c)};
	rc = ohdr_read_chunk(r, x, PREFIX, &c);
	if (rc)
		return rc;
	cur_skip(&c, PREFIX);
	return parse_messages(r, &c);
}

int ohdr1_read_continuation(struct ohdr_reader *r, struct ohdr_extent x)
{
	struct cursor c;
	int rc = ohdr_read_chunk(r, x, MSG_HEAD, &c);
	return rc ? rc : parse_messages(r, &c);
}

int ohdr1_end(struct ohdr_reader *r)
{
	if (r->f->is_strict && !r->count && r->entries)
		return err_set(r->err, -EIO,
			       "object header: no messages are recorded, but there are %" PRIu32,
			       r->entries);
	if (r->count <= r->entries)
		return 0;
	return err_set(r->err, -EIO,
		       "object header: %" PRIu32 " messages are recorded, but there are %" PRIu32,
		       r->count, r->entries);
}
