/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file `draft`: 4,096 bytes. Framed records (base/frame.h), and then zeros. The first record is
 * HSMDRAFT, version 1; the other one has type 1, and is little-endian:
 *
 *    +0 16  boot id of the machine
 *   +16  4  kind: 1 new, 2 replace, 3 change
 *   +20  4  layout of what lies beneath, or zero
 *   +24  8  size of what lies beneath
 *   +32  8  time of creation, ns since the epoch
 *   +40     path in the bucket, name in the mount, and version of what is replaced or lies beneath,
 *           each with a NUL; then the identity of what lies beneath, 32 bytes, if it is known
 */
#include <journal/draft_header.h>

#include <errno.h>
#include <string.h>

#include <base/frame.h>

enum { VERSION = 1, ABOUT = 1 };

static const char magic[] = "HSMDRAFT";

/* Returns the length of the identity, or 0 if it is not known what lies beneath. */
static size_t identity_of(const struct draft_about *about)
{
	static const uint8_t unknown[DRAFT_BENEATH_ID];
	const bool is_known = about->kind == DRAFT_CHANGE &&
			      memcmp(about->beneath_id, unknown, sizeof(unknown)) != 0;
	return is_known ? sizeof(unknown) : 0;
}

static void emit_about(struct emit *e, const void *ctx)
{
	const struct header *h = ctx;
	const struct draft_about *about = &h->about;
	emit_bytes(e, h->boot, sizeof(h->boot));
	emit_u32(e, about->kind);
	emit_u32(e, identity_of(about) ? about->layout : 0);
	emit_u64(e, about->beneath);
	emit_u64(e, (uint64_t)about->created_ns);
	emit_bytes(e, about->path, strlen(about->path) + 1);
	emit_bytes(e, about->name, strlen(about->name) + 1);
	emit_bytes(e, about->version, strlen(about->version) + 1);
	emit_bytes(e, about->beneath_id, identity_of(about));
}

int draft_header_encode(const struct header *h, uint8_t bytes[HEADER_SIZE], struct err *err)
{
	auto_bytes struct bytes file = {0};
	int rc = frame_put_head(&file, magic, VERSION);
	if (!rc)
		rc = frame_emit(&file, ABOUT, emit_about, h);
	if (rc)
		return err_set(err, rc, "out of memory");
	if (file.len > HEADER_SIZE)
		return err_set(err, -ENAMETOOLONG, "path and name are too long for the journal");
	memcpy(bytes, file.data, file.len);
	memset(bytes + file.len, 0, HEADER_SIZE - file.len);
	return 0;
}

static int damaged(struct err *err, const char *why)
{
	return err_set(err, -EBADMSG, "the file `draft` %s", why);
}

static int decode_fields(struct cursor *c, struct header *h, struct err *err)
{
	struct draft_about *about = &h->about;
	const uint8_t *boot = cur_bytes(c, JOURNAL_BOOT);
	about->kind = cur_u32(c);
	about->layout = cur_u32(c);
	about->beneath = cur_u64(c);
	about->created_ns = (int64_t)cur_u64(c);
	about->path = cur_cstr(c, NULL);
	about->name = cur_cstr(c, NULL);
	about->version = cur_cstr(c, NULL);
	const size_t identity = cur_left(c);
	if (!about->version || (identity && identity != DRAFT_BENEATH_ID))
		return damaged(err, "has a damaged text or identity");
	memcpy(h->boot, boot, JOURNAL_BOOT);
	if (identity)
		memcpy(about->beneath_id, cur_bytes(c, identity), identity);
	if (about->kind < DRAFT_NEW || about->kind > DRAFT_CHANGE)
		return damaged(err, "has an unknown kind");
	if (identity != identity_of(about) || (about->layout && !identity))
		return damaged(err, "has an identity of nothing");
	if (about->kind != DRAFT_CHANGE && about->beneath != 0)
		return damaged(err, "has something beneath, but its kind is not `change`");
	return 0;
}

int draft_header_decode(const void *bytes, size_t n, struct header *h, struct err *err)
{
	struct cursor c = cursor_of(bytes, n), body;
	uint16_t type;
	*h = (struct header){.about.kind = 0};
	if (n != HEADER_SIZE)
		return err_set(err, -EBADMSG, "the file `draft` has %zu bytes instead of %d", n,
			       HEADER_SIZE);
	int rc = frame_take_head(&c, magic, VERSION, err);
	if (rc == -ENOTSUP)
		return err_wrap(err, rc, "use the version of hsmount that wrote the draft");
	if (rc)
		return err_wrap(err, rc, "the file `draft`");
	if (frame_next(&c, &type, &body) != 1 || type != ABOUT)
		return damaged(err, "does not have its checksum");
	if (!cur_is_zero(&c))
		return damaged(err, "has bytes behind its last record");
	return decode_fields(&body, h, err);
}
