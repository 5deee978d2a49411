/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Link message, 0x06 (Spec IV.A.2.g), version 1. Pure functions.
 *
 *   +0 u8   version, 1
 *   +1 u8   flags: 0-1 width of the name length (1 << n bytes), 2 creation order present,
 *           3 link type present, 4 character set present
 *      u8   link type       (flag bit 3; hard when absent)
 *      i64  creation order  (flag bit 2)
 *      u8   character set   (flag bit 4; ASCII when absent)
 *      ..   length of name
 *           name, without NUL
 *   hard:     u64 address of the object header
 *   soft:     u16 length, path without NUL
 *   external: u16 length, u8 version and flags (0), file name with NUL, path with NUL
 *   user-defined (types 65 to 255): u16 length, data, which only the program that has registered
 *             the type understands
 */
#include <string.h>

#include <h5/message.h>

#include "msg.h"

enum {
	WIDTH_MASK = 3,
	FLAG_CORDER = 1 << 2,
	FLAG_TYPE = 1 << 3,
	FLAG_CSET = 1 << 4,
	FLAGS_RESERVED = 0xe0,
	FIRST_USER_TYPE = 64,
};

static void encode_external(struct emit *e, const struct h5_link *l)
{
	size_t file = strlen(l->file) + 1, path = strlen(l->path) + 1;
	h5_emit_len16(e, 1 + (uint64_t)file + path);
	emit_u8(e, 0);
	emit_bytes(e, l->file, file);
	emit_bytes(e, l->path, path);
}

void h5_link_encode(struct emit *e, const struct h5_link *l)
{
	unsigned int width = h5_msg_width(l->name_len);
	emit_u8(e, 1);
	emit_u8(e, (uint8_t)(width | (l->has_corder ? FLAG_CORDER : 0) |
			     (l->cls != LINK_HARD ? FLAG_TYPE : 0) | (l->utf8 ? FLAG_CSET : 0)));
	if (l->cls != LINK_HARD)
		emit_u8(e, (uint8_t)l->cls);
	if (l->has_corder)
		emit_u64(e, (uint64_t)l->corder);
	if (l->utf8)
		emit_u8(e, DTYPE_CSET_UTF8);
	emit_uint(e, l->name_len, 1U << width);
	emit_bytes(e, l->name, l->name_len);
	switch (l->cls) {
	case LINK_HARD:
		emit_u64(e, l->addr);
		break;
	case LINK_SOFT:
		h5_emit_len16(e, strlen(l->path));
		emit_bytes(e, l->path, strlen(l->path));
		break;
	case LINK_EXTERNAL:
		encode_external(e, l);
		break;
	case LINK_USER: /* images contain none */
		e->bad = true;
		break;
	}
}

/* Copies a text of n bytes to the arena. Fails with -EIO if it is empty or contains a NUL. (libhdf5
 * would show another name than this project.) */
static int decode_text(struct cursor *c, uint64_t n, struct arena *a, const char **out,
		       struct err *err)
{
	if (n > cur_left(c))
		return err_set(err, -EIO,
			       "link: a text of %" PRIu64 " bytes is longer than the message", n);
	const uint8_t *text = cur_bytes(c, (size_t)n);
	if (!n || memchr(text, 0, (size_t)n))
		return err_set(err, -EIO, "link: a text is empty or contains a NUL");
	*out = arena_strndup(a, (const char *)text, (size_t)n);
	return *out ? 0 : err_set(err, -ENOMEM, "link: out of memory");
}

static int decode_external(struct cursor *c, struct arena *a, struct h5_link *l, struct err *err)
{
	struct cursor value = cur_sub(c, cur_u16(c));
	uint8_t version = cur_u8(&value);
	size_t file_len = 0, path_len = 0;
	const char *file = cur_cstr(&value, &file_len);
	const char *path = cur_cstr(&value, &path_len);
	if (!cur_ok(&value))
		return err_set(err, -EIO, "link: the value of an external link is too short");
	if (version)
		return err_set(err, -EOPNOTSUPP,
			       "link: external link: unsupported version and flags 0x%02x",
			       version);
	l->file = arena_strndup(a, file, file_len);
	l->path = arena_strndup(a, path, path_len);
	return l->file && l->path ? 0 : err_set(err, -ENOMEM, "link: out of memory");
}

static int decode_value(const struct h5_file *f, struct cursor *c, uint8_t type, struct arena *a,
			struct h5_link *l, struct err *err)
{
	switch (type) {
	case LINK_HARD:
		l->cls = LINK_HARD;
		l->addr = h5_cur_addr(f, c);
		return h5_msg_end(c, "link", err);
	case LINK_SOFT:
		l->cls = LINK_SOFT;
		return decode_text(c, cur_u16(c), a, &l->path, err);
	case LINK_EXTERNAL:
		l->cls = LINK_EXTERNAL;
		return decode_external(c, a, l, err);
	}
	if (type < FIRST_USER_TYPE)
		return err_set(err, -EIO, "link: invalid type %u", type);
	l->cls = LINK_USER;
	cur_skip(c, cur_u16(c));
	return h5_msg_end(c, "link", err);
}

int h5_link_decode(const struct h5_file *f, struct cursor *c, struct arena *a, struct h5_link *l,
		   struct err *err)
{
	*l = (struct h5_link){.addr = H5_UNDEF};
	uint8_t version = cur_u8(c), flags = cur_u8(c);
	if (!cur_ok(c))
		return h5_msg_end(c, "link", err);
	if (version != 1)
		return h5_msg_version(version, "link", err);
	if (flags & FLAGS_RESERVED)
		return err_set(err, -EIO, "link: invalid flags 0x%02x", flags);

	uint8_t type = flags & FLAG_TYPE ? cur_u8(c) : LINK_HARD;
	l->has_corder = flags & FLAG_CORDER;
	if (l->has_corder)
		l->corder = (int64_t)cur_u64(c);
	uint8_t cset = flags & FLAG_CSET ? cur_u8(c) : DTYPE_CSET_ASCII;
	uint64_t name_len = cur_uint(c, 1U << (flags & WIDTH_MASK));
	if (!cur_ok(c))
		return h5_msg_end(c, "link", err);
	if (cset > DTYPE_CSET_UTF8)
		return err_set(err, -EIO, "link: invalid character set %u", cset);
	l->utf8 = cset == DTYPE_CSET_UTF8;
	int rc = decode_text(c, name_len, a, &l->name, err);
	if (rc)
		return rc;
	l->name_len = (size_t)name_len;
	return decode_value(f, c, type, a, l, err);
}
