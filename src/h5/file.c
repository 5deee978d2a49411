/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a file: the superblock and its extension. The extension is an object header. Its shared
 * message table message (0x0f; Spec IV.A.2.p) is decoded here:
 *
 *   +0 u8   version, 0
 *   +1 addr of the master table of shared messages
 *      u8   number of indexes
 *
 * Has no side effects besides reads of the source, so a caller can repeat it after -EAGAIN.
 */
#include <h5/file.h>

#include <errno.h>
#include <string.h>

#include <h5/ohdr.h>
#include <h5/superblock.h>

#include "msg.h"

enum { USER_BLOCK_MIN = 512, ARENA_LIMIT = 128 << 20 };

/* Finds the first offset with the signature of a superblock. */
static int find_superblock(struct source *s, uint64_t *at, struct err *err)
{
	uint8_t found[H5_SIGNATURE_LEN];
	for (*at = 0; *at < s->size && s->size - *at >= sizeof(found);
	     *at = *at ? *at * 2 : USER_BLOCK_MIN) {
		int rc = source_read(s, *at, found, sizeof(found), err);
		if (rc || h5_is_signature(found))
			return rc;
		if (*at > UINT64_MAX / 2)
			break;
	}
	return err_set(err, -EIO, "superblock: not an HDF5 file");
}

static int decode_table(struct h5_file *f, const struct h5_msg *m, struct err *err)
{
	struct cursor c = cursor_of(m->body, m->len);
	const uint8_t version = cur_u8(&c);
	f->sohm = h5_cur_addr(f, &c);
	int rc = h5_msg_end(&c, "shared message table", err);
	if (!rc && version != 0)
		rc = h5_msg_version(version, "shared message table", err);
	return rc;
}

static int read_extension(struct h5_file *f, uint64_t addr, struct err *err)
{
	struct arena *a = arena_new(ARENA_LIMIT);
	struct h5_ohdr header;
	if (!a)
		return err_set(err, -ENOMEM, "superblock extension: out of memory");
	int rc = h5_ohdr_decode(f, addr, a, &header, err);
	for (uint32_t i = 0; !rc && i < header.n; i++)
		if (header.msgs[i].type == H5_MSG_SHARED_TABLE)
			rc = decode_table(f, &header.msgs[i], err);
	arena_free(a);
	return rc ? err_wrap(err, rc, "superblock extension") : 0;
}

int h5_file_open(struct h5_file *f, struct source *s, struct err *err)
{
	uint8_t raw[H5_SUPERBLOCK_MAX];
	struct h5_superblock sb;
	uint64_t at = 0;
	*f = h5_file_of(s);
	int rc = find_superblock(s, &at, err);
	if (rc)
		return rc;
	const size_t n = (size_t)min_u64(s->size - at, sizeof(raw));
	rc = source_read(s, at, raw, n, err);
	if (rc)
		return rc;
	struct cursor c = cursor_of(raw, n);
	rc = h5_superblock_decode(&c, &sb, err);
	if (rc)
		return rc;
	/* Like libhdf5, use the actual offset of the superblock instead of its base address: a user
	 * block may have been added or removed. */
	f->base = at;
	f->root = sb.root;
	f->addr_size = sb.addr_size;
	f->len_size = sb.len_size;
	return sb.extension == H5_UNDEF ? 0 : read_extension(f, sb.extension, err);
}
