/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file `draft`: 4,096 bytes, little-endian. Magic, version and CRC stay where they are in every
 * version.
 *
 *    +0  8  "HSMDRAFT"
 *    +8  4  version: 4 with an identity and a layout, 3 with an identity, 2 without one, or 1 if
 *           spools may lack the files of checksums
 *   +12  4  CRC-32C of +0 to +12 and +16 to the end
 *   +16 16  boot id of the machine
 *   +32  4  kind: 1 new, 2 replace, 3 change
 *   +36  4  layout of what lies beneath, in version 4, else zero
 *   +40  8  size of what lies beneath
 *   +48  8  time of creation, ns since the epoch
 *   +56  2  length of the path in the bucket
 *   +58  2  length of the name in the mount
 *   +60  2  length of the version of what is replaced or lies beneath
 *   +62  2  length of the identity of what lies beneath: 32 from version 3 on, else zero
 *   +64     path, name, version, each with a NUL; the identity; zeros up to the end
 */
#include <journal/draft_header.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <base/checksum.h>
#include <base/cursor.h>
#include <base/emit.h>

enum { FIXED = 64, CRC_AT = 12, CRC_END = 16 };

static const uint8_t magic[8] = {'H', 'S', 'M', 'D', 'R', 'A', 'F', 'T'};

static uint32_t crc_of(const uint8_t bytes[HEADER_SIZE])
{
	const uint32_t crc = checksum_crc32c(bytes, CRC_AT, 0);
	return checksum_crc32c(bytes + CRC_END, HEADER_SIZE - CRC_END, crc);
}

/* Returns the length of the identity, or 0 if it is not known what lies beneath. */
static size_t identity_of(const struct draft_about *about)
{
	static const uint8_t unknown[DRAFT_BENEATH_ID];
	const bool is_known = about->kind == DRAFT_CHANGE &&
			      memcmp(about->beneath_id, unknown, sizeof(unknown)) != 0;
	return is_known ? sizeof(unknown) : 0;
}

static uint32_t version_of(const struct header *h)
{
	if (!h->sums)
		return HEADER_NO_SUMS;
	if (!identity_of(&h->about))
		return HEADER_NO_IDENTITY;
	return h->about.layout ? HEADER_VERSION : HEADER_NO_LAYOUT;
}

int draft_header_encode(const struct header *h, uint8_t bytes[HEADER_SIZE], struct err *err)
{
	const struct draft_about *about = &h->about;
	const size_t path = strlen(about->path), name = strlen(about->name);
	const size_t version = strlen(about->version), identity = identity_of(about);
	const size_t room = HEADER_SIZE - FIXED - 3 - identity;
	if (path > room || name > room - path || version > room - path - name)
		return err_set(err, -ENAMETOOLONG, "path and name are too long for the journal");
	struct emit e = emit_to(bytes, HEADER_SIZE);
	emit_bytes(&e, magic, sizeof(magic));
	emit_u32(&e, version_of(h));
	emit_u32(&e, 0);
	emit_bytes(&e, h->boot, sizeof(h->boot));
	emit_u32(&e, about->kind);
	emit_u32(&e, version_of(h) == HEADER_VERSION ? about->layout : 0);
	emit_u64(&e, about->beneath);
	emit_u64(&e, (uint64_t)about->created_ns);
	emit_u16(&e, (uint16_t)path);
	emit_u16(&e, (uint16_t)name);
	emit_u16(&e, (uint16_t)version);
	emit_u16(&e, (uint16_t)identity);
	emit_bytes(&e, about->path, path + 1);
	emit_bytes(&e, about->name, name + 1);
	emit_bytes(&e, about->version, version + 1);
	emit_bytes(&e, about->beneath_id, identity);
	emit_zero(&e, HEADER_SIZE - e.pos);
	emit_patch_u32(&e, CRC_AT, crc_of(bytes));
	return 0;
}

static int damaged(struct err *err, const char *why)
{
	return err_set(err, -EBADMSG, "the file `draft` %s", why);
}

static int decode_identity(struct cursor *c, size_t length, bool has, struct draft_about *about,
			   struct err *err)
{
	if (length != (has ? DRAFT_BENEATH_ID : 0))
		return damaged(err, "has an identity of another length than its version says");
	if (length > cur_left(c))
		return damaged(err, "has no room for its identity");
	if (has)
		memcpy(about->beneath_id, cur_bytes(c, length), length);
	return !has || identity_of(about) ? 0 : damaged(err, "has an identity of nothing");
}

static int decode_fields(struct cursor *c, uint32_t format, struct header *h, struct err *err)
{
	struct draft_about *about = &h->about;
	memcpy(h->boot, cur_bytes(c, JOURNAL_BOOT), JOURNAL_BOOT);
	about->kind = cur_u32(c);
	about->layout = cur_u32(c);
	about->beneath = cur_u64(c);
	about->created_ns = (int64_t)cur_u64(c);
	const size_t path = cur_u16(c), name = cur_u16(c), version = cur_u16(c);
	const size_t identity = cur_u16(c);
	about->path = cur_text(c, path);
	about->name = cur_text(c, name);
	about->version = cur_text(c, version);
	if (!about->path || !about->name || !about->version)
		return damaged(err, "has a text of another length than it says");
	int rc = decode_identity(c, identity, format >= HEADER_NO_LAYOUT, about, err);
	if (rc)
		return rc;
	if ((about->layout && format < HEADER_VERSION) || !cur_is_zero(c))
		return damaged(err, "has a reserved field that is not zero");
	if (!about->layout && format == HEADER_VERSION)
		return damaged(err, "does not say in which layout it is");
	if (about->kind < DRAFT_NEW || about->kind > DRAFT_CHANGE)
		return damaged(err, "has an unknown kind");
	if (about->kind != DRAFT_CHANGE && about->beneath != 0)
		return damaged(err, "has something beneath, but its kind is not `change`");
	return 0;
}

int draft_header_decode(const void *bytes, size_t n, struct header *h, struct err *err)
{
	struct cursor c = cursor_of(bytes, n);
	*h = (struct header){.about.kind = 0};
	if (n != HEADER_SIZE)
		return err_set(err, -EBADMSG, "the file `draft` has %zu bytes instead of %d", n,
			       HEADER_SIZE);
	if (memcmp(cur_bytes(&c, sizeof(magic)), magic, sizeof(magic)) != 0)
		return damaged(err, "does not begin with HSMDRAFT");
	const uint32_t version = cur_u32(&c), crc = cur_u32(&c);
	if (crc != crc_of(bytes))
		return damaged(err, "does not have its checksum");
	if (version < HEADER_NO_SUMS || version > HEADER_VERSION)
		return err_set(err, -ENOTSUP,
			       "the draft has version %" PRIu32 " of the format, this program "
			       "reads versions %d to %d; use the program that wrote it",
			       version, HEADER_NO_SUMS, HEADER_VERSION);
	h->sums = version != HEADER_NO_SUMS;
	return decode_fields(&c, version, h, err);
}
