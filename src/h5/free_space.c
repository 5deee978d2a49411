/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Header of a free-space manager (Spec III.H), with addresses and lengths of 8 bytes:
 *
 *    +0  "FSHD", u8 version 0       +42  u16  percentage at which the list grows
 *    +5  u8   client                +44  u16  bits of the address space
 *    +6  u64  bytes that are free   +46  u64  largest section
 *   +14  u64  sections              +54  u64  address of the list, undefined if there is none
 *   +22  u64  sections in the list  +62  u64  bytes of the list that are used
 *   +30  u64  other sections        +70  u64  bytes of the list
 *   +38  u16  classes of sections   +78  u32  checksum of the bytes before it
 *   +40  u16  percentage at which the list shrinks
 *
 * The list begins with "FSSE". Its content is not read.
 */
#include <h5/free_space.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <base/checksum.h>
#include <h5/claims.h>

enum {
	HEADER_MAX = 82,
	LENS = 7,
	OTHER = 4 + 2 + 4 * 2 + 4, /* bytes besides lengths and the address */
};

static int decode(const struct h5_file *f, const uint8_t *raw, size_t n, uint64_t *list,
		  uint64_t *list_size, struct err *err)
{
	struct cursor c = cursor_of(raw, n);
	const uint8_t *magic = cur_bytes(&c, 4);
	const uint8_t version = cur_u8(&c);
	cur_skip(&c, 1 + 4 * (size_t)f->len_size + 4 * 2 + f->len_size);
	*list = h5_cur_addr(f, &c);
	cur_skip(&c, f->len_size);
	*list_size = h5_cur_len(f, &c);
	const size_t used = cur_pos(&c);
	const uint32_t stored = cur_u32(&c);
	if (!cur_ok(&c) || memcmp(magic, "FSHD", 4) != 0)
		return err_set(err, -EIO, "wrong signature");
	if (version != 0)
		return err_set(err, -EOPNOTSUPP, "unsupported version %d", version);
	if (stored != checksum_lookup3(raw, used, 0))
		return err_set(err, -EIO, "wrong checksum");
	return 0;
}

int h5_free_space_claim(const struct h5_file *f, uint64_t addr, struct err *err)
{
	uint8_t raw[HEADER_MAX];
	const size_t n = OTHER + LENS * (size_t)f->len_size + f->addr_size;
	uint64_t list = H5_UNDEF, list_size = 0;
	if (addr == H5_UNDEF || !f->claims)
		return 0;
	int rc = h5_file_read(f, addr, raw, n, err);
	if (!rc)
		rc = decode(f, raw, n, &list, &list_size, err);
	if (!rc && list != H5_UNDEF &&
	    (list > h5_file_size(f) || list_size > h5_file_size(f) - list))
		rc = err_set(err, -EIO, "its list is outside of the file");
	if (!rc)
		rc = h5_claim(f->claims, addr, n, "free-space manager", err);
	if (!rc && list != H5_UNDEF)
		rc = h5_claim(f->claims, list, list_size, "list of free space", err);
	return rc ? err_wrap(err, rc, "free-space manager at %" PRIu64, addr) : 0;
}
