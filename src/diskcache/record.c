/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An item of a record, little-endian:
 *
 *   +0   2  bytes of the name, without NUL
 *   +2   2  bytes of the version, without NUL
 *   +4   4  bytes that follow them
 *   +8      name, NUL, version, NUL, bytes
 */
#include <diskcache/record.h>

#include <errno.h>
#include <string.h>

#include <base/emit.h>
#include <store/store.h>

enum { HEAD = 8 };

int record_add(struct bytes *record, const struct record_item *item)
{
	const size_t name = strlen(item->name), version = strlen(item->version);
	uint8_t head[HEAD];
	struct emit e = emit_to(head, sizeof(head));
	if (name == 0 || name > STORE_KEY_MAX || version >= STORE_ETAG_MAX || item->n > UINT32_MAX)
		return -EINVAL;
	emit_u16(&e, (uint16_t)name);
	emit_u16(&e, (uint16_t)version);
	emit_u32(&e, (uint32_t)item->n);
	if (bytes_reserve(record, HEAD + name + version + 2 + item->n))
		return -ENOMEM;
	bytes_append(record, head, HEAD);
	bytes_append(record, item->name, name + 1);
	bytes_append(record, item->version, version + 1);
	return item->n ? bytes_append(record, item->bytes, item->n) : 0;
}

/* Takes a text of n bytes and its NUL, which is the only one. */
static const char *take_text(struct cursor *c, size_t n)
{
	const void *text = cur_bytes(c, n + 1);
	return cur_ok(c) && memchr(text, '\0', n + 1) == (const char *)text + n ? text : NULL;
}

bool record_next(struct cursor *c, struct record_item *item)
{
	if (!cur_ok(c) || cur_left(c) == 0)
		return false;
	const size_t name = cur_u16(c), version = cur_u16(c);
	item->n = cur_u32(c);
	item->name = take_text(c, name);
	item->version = take_text(c, version);
	item->bytes = cur_bytes(c, item->n);
	if (cur_ok(c) && item->name && item->version && name && name <= STORE_KEY_MAX &&
	    version < STORE_ETAG_MAX)
		return true;
	c->bad = true;
	return false;
}
