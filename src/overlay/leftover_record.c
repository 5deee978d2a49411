/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of leftovers, little-endian: a header, then records of LEFTOVER_RECORD bytes, one for each
 * slot. A record of zeros is a slot that is not in use.
 *
 * Header:
 *    +0  8  "HSMGARBG"
 *    +8  4  version: 1
 *   +12  4  CRC-32C of +0 to +12 and +16 to the end
 *   +16     zeros
 *
 * Record:
 *    +0  4  CRC-32C of +4 to the end
 *    +4  2  state: 1 expected, 2 removed, 3 renamed
 *    +6  2  length of the path
 *    +8  4  number of the slot
 *   +12  4  zero
 *   +16  8  storage
 *   +24  8  storage to which the name leads then, or zero
 *   +32  8  when it is due, ns since the epoch
 *   +40     path with a NUL, zeros up to the end
 */
#include "leftover_record.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <base/checksum.h>
#include <base/cursor.h>
#include <base/emit.h>
#include <base/mem.h>

enum { HEADER_CRC = 12, HEADER_CRC_END = 16, CRC_END = 4, TEXT = 40 };

_Static_assert(TEXT + LEFTOVER_PATH + 1 <= LEFTOVER_RECORD, "a path fits into a record");

static const uint8_t magic[8] = {'H', 'S', 'M', 'G', 'A', 'R', 'B', 'G'};

static bool is_zero(struct cursor *c)
{
	while (cur_left(c) > 0)
		if (cur_u8(c) != 0)
			return false;
	return true;
}

/* ---- the header ---- */

static uint32_t header_crc(const uint8_t bytes[LEFTOVER_HEADER])
{
	const uint32_t crc = checksum_crc32c(bytes, HEADER_CRC, 0);
	return checksum_crc32c(bytes + HEADER_CRC_END, LEFTOVER_HEADER - HEADER_CRC_END, crc);
}

void leftover_header_encode(uint8_t bytes[LEFTOVER_HEADER])
{
	struct emit e = emit_to(bytes, LEFTOVER_HEADER);
	emit_bytes(&e, magic, sizeof(magic));
	emit_u32(&e, LEFTOVER_VERSION);
	emit_zero(&e, LEFTOVER_HEADER - e.pos);
	emit_patch_u32(&e, HEADER_CRC, header_crc(bytes));
}

int leftover_header_decode(const void *bytes, size_t n, struct err *err)
{
	struct cursor c = cursor_of(bytes, min_u64(n, LEFTOVER_HEADER));
	const uint8_t *begin = cur_bytes(&c, sizeof(magic));
	const uint32_t version = cur_u32(&c), crc = cur_u32(&c);
	if (n < LEFTOVER_HEADER || memcmp(begin, magic, sizeof(magic)) != 0)
		return err_set(err, -EBADMSG, "it does not begin with HSMGARBG");
	if (crc != header_crc(bytes))
		return err_set(err, -EBADMSG, "its header does not have its checksum");
	if (version != LEFTOVER_VERSION)
		return err_set(err, -ENOTSUP, "it has version %" PRIu32 " of the format", version);
	return is_zero(&c) ? 0
			   : err_set(err, -EBADMSG, "a reserved field of its header is not zero");
}

/* ---- records ---- */

int leftover_encode(const struct leftover *entry, uint32_t slot, uint8_t bytes[LEFTOVER_RECORD])
{
	const size_t n = strlen(entry->path);
	struct emit e = emit_to(bytes, LEFTOVER_RECORD);
	if (n == 0 || n > LEFTOVER_PATH)
		return -ENAMETOOLONG;
	emit_u32(&e, 0);
	emit_u16(&e, (uint16_t)entry->state);
	emit_u16(&e, (uint16_t)n);
	emit_u32(&e, slot);
	emit_u32(&e, 0);
	emit_u64(&e, entry->storage);
	emit_u64(&e, entry->next);
	emit_u64(&e, (uint64_t)entry->due_ns);
	emit_bytes(&e, entry->path, n + 1);
	emit_zero(&e, LEFTOVER_RECORD - e.pos);
	emit_patch_u32(&e, 0, checksum_crc32c(bytes + CRC_END, LEFTOVER_RECORD - CRC_END, 0));
	return 0;
}

int leftover_decode(const uint8_t bytes[LEFTOVER_RECORD], uint32_t slot, struct leftover *out)
{
	struct cursor c = cursor_of(bytes, LEFTOVER_RECORD), all = c;
	*out = (struct leftover){.path = ""};
	if (is_zero(&all))
		return LEFTOVER_FREE;
	const uint32_t crc = cur_u32(&c);
	const uint16_t state = cur_u16(&c), length = cur_u16(&c);
	const uint32_t number = cur_u32(&c), zero = cur_u32(&c);
	size_t n = 0;
	out->storage = cur_u64(&c);
	out->next = cur_u64(&c);
	out->due_ns = (int64_t)cur_u64(&c);
	const char *path = cur_cstr(&c, &n);
	if (crc != checksum_crc32c(bytes + CRC_END, LEFTOVER_RECORD - CRC_END, 0) ||
	    number != slot || zero || !path || n != length || n == 0 || n > LEFTOVER_PATH ||
	    !is_zero(&c) || state < LEFTOVER_EXPECTED || state > LEFTOVER_RENAMED)
		return -EBADMSG;
	out->state = (enum leftover_state)state;
	out->path = path;
	return 0;
}
