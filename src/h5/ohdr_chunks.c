/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chunks of an object header while it is read. It remembers the addresses of chunks, and a
 * continuation to one of them fails with -EIO. So a chain of continuations ends.
 */
#include "ohdr_chunks.h"

#include "msg.h"

enum { MAX_MESSAGES = 1 << 20, MAX_BYTES = 64 << 20 };

void ohdr_reader_release(struct ohdr_reader *r)
{
	bytes_release(&r->msgs);
	bytes_release(&r->chunks);
	bytes_release(&r->todo);
	h5_addrs_release(&r->seen);
}

int ohdr_read_chunk(struct ohdr_reader *r, struct ohdr_extent x, size_t smallest, struct cursor *c)
{
	if (x.len < smallest || x.len > MAX_BYTES - r->total)
		return err_set(r->err, -EIO,
			       "object header: chunk of %" PRIu64 " bytes, too small or too large",
			       x.len);
	r->total += x.len;
	int rc = h5_addrs_add(&r->seen, x.addr, 0);
	if (rc < 0 || bytes_append(&r->chunks, &x, sizeof(x)))
		return err_no_memory(r->err);
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
		return err_no_memory(r->err);
	*c = cursor_of(buf, (size_t)x.len);
	return h5_file_read(r->f, x.addr, buf, (size_t)x.len, r->err);
}

int ohdr_add_message(struct ohdr_reader *r, const struct h5_msg *m, struct cursor *body)
{
	r->entries++; /* cannot overflow, because the bytes of messages are limited */
	if (m->type == H5_MSG_NIL)
		return 0;
	if (m->type == H5_MSG_CONTINUATION) {
		struct ohdr_extent x = {.addr = h5_cur_addr(r->f, body)};
		x.len = h5_cur_len(r->f, body);
		int rc = h5_msg_end(body, "object header continuation", r->err);
		if (!rc && bytes_append(&r->todo, &x, sizeof(x)))
			rc = err_no_memory(r->err);
		return rc;
	}
	if (m->type > H5_MSG_LAST_KNOWN && m->flags & H5_MSG_MUST_KNOW)
		return err_set(r->err, -EOPNOTSUPP,
			       "object header: a message of the unknown type 0x%02x, which a "
			       "reader must not ignore",
			       m->type);
	if (r->msgs.len / sizeof(*m) >= MAX_MESSAGES)
		return err_set(r->err, -EIO, "object header: more than %d messages", MAX_MESSAGES);
	return bytes_append(&r->msgs, m, sizeof(*m)) ? err_no_memory(r->err) : 0;
}

int ohdr_message_cut(struct ohdr_reader *r, unsigned int type, uint32_t len)
{
	return err_set(r->err, -EIO,
		       "object header: message 0x%02x of %" PRIu32
		       " bytes is longer than its chunk",
		       type, len);
}
