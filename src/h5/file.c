/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a file: the superblock, its extension and the driver information block. The extension is
 * an object header. Its messages that matter to a reader are decoded here:
 *
 *   Shared message table, 0x0f (Spec IV.A.2.p):    B-tree K values, 0x13 (IV.A.2.t):
 *   +0 u8   version, 0                             +0 u8   version, 0
 *   +1 addr of the master table                    +1 u16  chunk B-tree K
 *      u8   number of indexes                      +3 u16  group B-tree K
 *                                                  +5 u16  symbol table node K
 *   Driver info, 0x14 (IV.A.2.u):
 *   +0 u8   version, 0                             Driver information block (Spec II.B):
 *   +1 8    name of the driver                     +0 u8   version, 0
 *   +9 u16  length                                 +1 3    reserved
 *           information                            +4 u32  length
 *                                                  +8 8    name of the driver
 *   Metadata cache image, 0x18:                            information
 *   +0 u8   version, 0
 *   +1 addr of the image; undefined: none
 *      len  bytes of the image
 *
 * Opening has no side effects besides reads of the source, so a caller can repeat it after -EAGAIN.
 */
#include <h5/file.h>

#include <errno.h>
#include <string.h>

#include <h5/claims.h>
#include <h5/ohdr.h>
#include <h5/superblock.h>

#include "msg.h"
#include "sohm.h"

enum {
	ARENA_LIMIT = 128 << 20,
	DRIVER_NAME = 8,
	DRIVER_BLOCK_HEAD = 16,
};

static int decode_table(struct h5_file *f, const struct h5_msg *m, struct err *err)
{
	struct cursor c = cursor_of(m->body, m->len);
	const uint8_t version = cur_u8(&c);
	f->sohm = h5_cur_addr(f, &c);
	f->sohm_indexes = cur_u8(&c);
	int rc = h5_msg_end_of(&c, version, 0, "shared message table", err);
	if (!rc && (!f->sohm_indexes || f->sohm_indexes > SOHM_MAX_INDEXES))
		rc = err_set(err, -EIO, "shared message table: %u indexes; the limit is %d",
			     f->sohm_indexes, SOHM_MAX_INDEXES);
	return rc;
}

static int decode_k(struct h5_file *f, const struct h5_msg *m, struct err *err)
{
	struct cursor c = cursor_of(m->body, m->len);
	const uint8_t version = cur_u8(&c);
	f->chunk_k = cur_u16(&c);
	f->internal_k = cur_u16(&c);
	f->leaf_k = cur_u16(&c);
	int rc = h5_msg_end_of(&c, version, 0, "B-tree K values", err);
	if (!rc && (!f->leaf_k || !f->internal_k || !f->chunk_k))
		rc = err_set(err, -EIO, "B-tree K values: a value is 0");
	return rc;
}

/* The multi-file driver spreads the structures of a file over several files, and the family driver
 * its bytes. Other drivers write one ordinary file. eof is the recorded size of the file. */
static int check_driver(const struct h5_file *f, const uint8_t *name, uint64_t eof, struct err *err)
{
	const bool multi = memcmp(name, "NCSAmult", DRIVER_NAME) == 0;
	const bool family = memcmp(name, "NCSAfami", DRIVER_NAME) == 0;
	if (multi || (family && eof > h5_file_size(f)))
		return err_set(err, -EOPNOTSUPP,
			       "driver information: the file is one of several of the %s driver",
			       multi ? "multi-file" : "family");
	return 0;
}

static int decode_driver(const struct h5_file *f, const struct h5_msg *m, uint64_t eof,
			 struct err *err)
{
	struct cursor c = cursor_of(m->body, m->len);
	const uint8_t version = cur_u8(&c);
	const uint8_t *name = cur_bytes(&c, DRIVER_NAME);
	cur_skip(&c, cur_u16(&c));
	int rc = h5_msg_end_of(&c, version, 0, "driver information", err);
	return rc ? rc : check_driver(f, name, eof, err);
}

/* In a file with an image, structures at their addresses are stale. */
static int decode_image(const struct h5_file *f, const struct h5_msg *m, struct err *err)
{
	struct cursor c = cursor_of(m->body, m->len);
	const uint8_t version = cur_u8(&c);
	const uint64_t addr = h5_cur_addr(f, &c);
	int rc = h5_msg_end_of(&c, version, 0, "metadata cache image", err);
	if (!rc && addr != H5_UNDEF)
		rc = err_set(err, -EOPNOTSUPP,
			     "metadata cache image: not supported; opening the file for writing "
			     "with HDF5 1.10 or later removes it");
	return rc;
}

static int decode_extension(struct h5_file *f, const struct h5_ohdr *header, uint64_t eof,
			    struct err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < header->n; i++) {
		const struct h5_msg *m = &header->msgs[i];
		if (m->type == H5_MSG_SHARED_TABLE)
			rc = decode_table(f, m, err);
		else if (m->type == H5_MSG_BTREE_K)
			rc = decode_k(f, m, err);
		else if (m->type == H5_MSG_DRIVER_INFO)
			rc = decode_driver(f, m, eof, err);
		else if (m->type == H5_MSG_CACHE_IMAGE)
			rc = decode_image(f, m, err);
	}
	return rc;
}

/* The caller frees *a, also after a failure. */
static int read_extension(const struct h5_file *f, struct arena **a, struct h5_ohdr *header,
			  struct err *err)
{
	*a = arena_new(ARENA_LIMIT);
	int rc = *a ? h5_ohdr_decode(f, f->extension, *a, header, err) : err_no_memory(err);
	return rc ? err_wrap(err, rc, "superblock extension") : 0;
}

static int open_extension(struct h5_file *f, uint64_t eof, struct err *err)
{
	struct arena *a;
	struct h5_ohdr header;
	int rc = read_extension(f, &a, &header, err);
	if (!rc) {
		rc = decode_extension(f, &header, eof, err);
		if (rc)
			err_wrap(err, rc, "superblock extension");
	}
	arena_free(a);
	return rc;
}

/* Reads the head of the driver information block. *size becomes the bytes of the block. */
static int read_driver(const struct h5_file *f, uint8_t *name, uint64_t *size, struct err *err)
{
	uint8_t raw[DRIVER_BLOCK_HEAD];
	int rc = h5_file_read(f, f->driver_info, raw, sizeof(raw), err);
	if (rc)
		return err_wrap(err, rc, "driver information at %" PRIu64, f->driver_info);
	struct cursor c = cursor_of(raw, sizeof(raw));
	const uint8_t version = cur_u8(&c);
	cur_skip(&c, 3);
	*size = DRIVER_BLOCK_HEAD + (uint64_t)cur_u32(&c);
	memcpy(name, cur_bytes(&c, DRIVER_NAME), DRIVER_NAME);
	if (version != 0)
		return h5_msg_version(version, "driver information", err);
	if (*size > h5_file_size(f) - f->driver_info)
		return err_set(err, -EIO,
			       "driver information at %" PRIu64 " extends past the end of the file",
			       f->driver_info);
	return 0;
}

int h5_file_open(struct h5_file *f, struct source *s, struct err *err)
{
	uint8_t raw[H5_SUPERBLOCK_MAX];
	uint8_t driver[DRIVER_NAME];
	struct h5_superblock sb;
	uint64_t at, driver_size;
	bool found;
	*f = h5_file_of(s);
	int rc = h5_superblock_find(s, &at, &found, err);
	if (!rc && !found)
		rc = err_set(err, -EIO, "superblock: not an HDF5 file");
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
	f->leaf_k = sb.leaf_k;
	f->internal_k = sb.internal_k;
	f->chunk_k = sb.chunk_k;
	f->superblock_size = (uint32_t)cur_pos(&c);
	f->version = sb.version;
	f->status_flags = sb.status_flags;
	/* It counts from where the recorded base is. */
	f->recorded_end = sb.eof == H5_UNDEF || sb.eof < sb.base ? H5_UNDEF : sb.eof - sb.base;
	f->extension = sb.extension;
	f->driver_info = sb.driver_info;
	f->free_info = sb.free_info;
	if (f->driver_info != H5_UNDEF)
		rc = read_driver(f, driver, &driver_size, err);
	if (!rc && f->driver_info != H5_UNDEF)
		rc = check_driver(f, driver, sb.eof, err);
	if (!rc && f->extension != H5_UNDEF)
		rc = open_extension(f, sb.eof, err);
	return rc;
}

/* Reads first and claims last, because a source may interrupt it, and then it starts again. */
int h5_file_claim(const struct h5_file *f, struct err *err)
{
	uint8_t name[DRIVER_NAME];
	uint64_t driver_size = 0;
	struct arena *a = NULL;
	struct h5_ohdr header;
	int rc = 0;
	if (f->driver_info != H5_UNDEF)
		rc = read_driver(f, name, &driver_size, err);
	if (!rc && f->extension != H5_UNDEF)
		rc = read_extension(f, &a, &header, err);
	arena_free(a);
	if (!rc)
		rc = h5_claim(f->claims, 0, f->superblock_size, "superblock", err);
	if (!rc)
		rc = h5_claim(f->claims, f->driver_info, driver_size, "driver information", err);
	return rc;
}
