/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Superblock (Spec II.A). Pure functions, but for the source. The tables are for sizes of offsets
 * and lengths of 8 bytes. Addresses have the size of offsets; the name offset has the size of
 * lengths.
 *
 * Versions 0 and 1 (version 1 has four more bytes at +24):
 *   +0  8   signature                        +16 u16  group leaf node K
 *   +8  u8  version                          +18 u16  group internal node K
 *   +9  u8  free space version, 0            +20 u32  consistency flags (low byte: status)
 *   +10 u8  root symbol table version, 0     [version 1: +24 u16 chunk B-tree K, +26 u16 reserved]
 *   +11 u8  reserved                         +24 u64  base address
 *   +12 u8  shared header version, 0         +32 u64  free-space info address
 *   +13 u8  size of offsets                  +40 u64  end of file
 *   +14 u8  size of lengths                  +48 u64  driver information address
 *   +15 u8  reserved                         +56 40   root group symbol table entry (Spec III.C):
 *                                                     u64 name offset, u64 header address,
 *                                                     u32 cache type, u32 reserved, 16 scratch
 *
 * Versions 2 and 3:
 *   +0  8   signature                        +20 u64  superblock extension address
 *   +8  u8  version                          +28 u64  end of file
 *   +9  u8  size of offsets                  +36 u64  root group object header address
 *   +10 u8  size of lengths                  +44 u32  checksum of [0, 44)
 *   +11 u8  consistency flags
 *   +12 u64 base address
 */
#include <string.h>

#include <base/checksum.h>
#include <base/source.h>
#include <data/user_block.h>
#include <h5/superblock.h>

#include "msg.h"

enum {
	SIGNATURE_LEN = 8,
	CHECKED_FIXED = 12, /* bytes under the checksum of versions 2 and 3, without 4 addresses */
	SMALLEST = 24,	    /* of any version with addresses of 2 bytes */
	SIZE_OF_OFFSETS = 8,
	SIZE_OF_LENGTHS = 8,
	SCRATCH_LEN = 16,
	DEFAULT_LEAF_K = 4,
	DEFAULT_INTERNAL_K = 16,
	DEFAULT_CHUNK_K = 32,
};

static const uint8_t signature[SIGNATURE_LEN] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

_Static_assert(SIGNATURE_LEN + 16 + 4 * 8 + 40 == H5_SUPERBLOCK_SIZE, "version 0 has 96 bytes");
_Static_assert(H5_SUPERBLOCK_SIZE + 4 == H5_SUPERBLOCK_MAX, "version 1 has 4 bytes more");
_Static_assert(CHECKED_FIXED + 4 * 2 + 4 == SMALLEST, "version 2 with addresses of 2 bytes");

void h5_superblock_encode(struct emit *e, const struct h5_superblock *sb)
{
	emit_bytes(e, signature, SIGNATURE_LEN);
	emit_zero(e, 5); /* versions of superblock, free space, symbol table, shared headers */
	emit_u8(e, SIZE_OF_OFFSETS);
	emit_u8(e, SIZE_OF_LENGTHS);
	emit_u8(e, 0);
	emit_u16(e, sb->leaf_k);
	emit_u16(e, sb->internal_k);
	emit_u32(e, sb->status_flags);
	emit_u64(e, sb->base);
	emit_u64(e, H5_UNDEF); /* no free-space info */
	emit_u64(e, sb->eof);
	emit_u64(e, H5_UNDEF); /* no driver info */
	emit_u64(e, 0);	       /* the root group has no name */
	emit_u64(e, sb->root);
	emit_u32(e, 0); /* the scratch pad is not used */
	emit_u32(e, 0);
	emit_zero(e, SCRATCH_LEN);
}

static bool is_size(uint8_t n)
{
	return n == 2 || n == 4 || n == 8;
}

static int decode_sizes(struct cursor *c, struct h5_superblock *sb, struct err *err)
{
	sb->addr_size = cur_u8(c);
	sb->len_size = cur_u8(c);
	if (is_size(sb->addr_size) && is_size(sb->len_size))
		return 0;
	return err_set(err, -EOPNOTSUPP,
		       "superblock: unsupported sizes of offsets %u and lengths %u", sb->addr_size,
		       sb->len_size);
}

static uint64_t cur_addr(struct cursor *c, const struct h5_superblock *sb)
{
	return h5_cur_undef(c, sb->addr_size);
}

static bool is_signature(const uint8_t *bytes)
{
	return memcmp(bytes, signature, SIGNATURE_LEN) == 0;
}

static int decode_old(struct cursor *c, struct h5_superblock *sb, struct err *err)
{
	uint8_t free_space = cur_u8(c), symbol_table = cur_u8(c);
	cur_skip(c, 1);
	uint8_t shared = cur_u8(c);
	int rc = decode_sizes(c, sb, err);
	if (rc)
		return rc;
	cur_skip(c, 1);
	sb->leaf_k = cur_u16(c);
	sb->internal_k = cur_u16(c);
	sb->status_flags = (uint8_t)cur_u32(c);
	if (sb->version == 1) {
		sb->chunk_k = cur_u16(c);
		cur_skip(c, 2);
	}
	sb->base = cur_addr(c, sb);
	sb->free_info = cur_addr(c, sb);
	sb->eof = cur_addr(c, sb);
	sb->driver_info = cur_addr(c, sb);
	cur_skip(c, sb->len_size); /* name offset */
	sb->root = cur_addr(c, sb);
	cur_skip(c, 4 + 4 + SCRATCH_LEN);
	rc = h5_msg_end(c, "superblock", err);
	if (rc)
		return rc;
	if (free_space || symbol_table || shared)
		return err_set(err, -EOPNOTSUPP,
			       "superblock: unsupported versions of free space %u, symbol table %u "
			       "or shared header %u",
			       free_space, symbol_table, shared);
	return 0;
}

static int decode_new(struct cursor *c, const uint8_t *checked, struct h5_superblock *sb,
		      struct err *err)
{
	int rc = decode_sizes(c, sb, err);
	if (rc)
		return rc;
	sb->status_flags = cur_u8(c);
	sb->base = cur_addr(c, sb);
	sb->extension = cur_addr(c, sb);
	sb->eof = cur_addr(c, sb);
	sb->root = cur_addr(c, sb);
	uint32_t sum = cur_u32(c);
	rc = h5_msg_end(c, "superblock", err);
	if (rc)
		return rc;
	if (checksum_lookup3(checked, CHECKED_FIXED + 4U * sb->addr_size, 0) != sum)
		return err_set(err, -EIO, "superblock: checksum does not match");
	return 0;
}

int h5_superblock_decode(struct cursor *c, struct h5_superblock *sb, struct err *err)
{
	struct cursor peek = *c;
	const uint8_t *checked = cur_bytes(&peek, SMALLEST);
	if (!checked)
		return err_set(err, -EIO, "superblock: file ends too early");
	if (!is_signature(cur_bytes(c, SIGNATURE_LEN)))
		return err_set(err, -EIO, "superblock: not an HDF5 file");

	*sb = (struct h5_superblock){
		.version = cur_u8(c),
		.leaf_k = DEFAULT_LEAF_K,
		.internal_k = DEFAULT_INTERNAL_K,
		.chunk_k = DEFAULT_CHUNK_K,
		.extension = H5_UNDEF,
		.driver_info = H5_UNDEF,
		.free_info = H5_UNDEF,
	};
	if (sb->version > 3)
		return h5_msg_version(sb->version, "superblock", err);
	int rc = sb->version < 2 ? decode_old(c, sb, err) : decode_new(c, checked, sb, err);
	if (rc)
		return rc;
	if (!sb->leaf_k || !sb->internal_k || !sb->chunk_k)
		return err_set(err, -EIO, "superblock: a K of a B-tree is 0");
	if (sb->root == H5_UNDEF)
		return err_set(err, -EIO, "superblock: there is no root group");
	return 0;
}

uint64_t h5_superblock_next(uint64_t at)
{
	if (at > UINT64_MAX / 2)
		return UINT64_MAX;
	return at ? at * 2 : USER_BLOCK_MIN;
}

int h5_superblock_find(struct source *s, uint64_t *at, bool *found, struct err *err)
{
	uint8_t bytes[SIGNATURE_LEN];
	*found = false;
	for (*at = 0; *at < s->size && s->size - *at >= sizeof(bytes);
	     *at = h5_superblock_next(*at)) {
		int rc = source_read(s, *at, bytes, sizeof(bytes), err);
		*found = !rc && is_signature(bytes);
		if (rc || *found)
			return rc;
	}
	return 0;
}
