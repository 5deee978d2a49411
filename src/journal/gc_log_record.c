/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the gc log, little-endian: a header, then records of GC_RECORD bytes. A record that
 * is not in use has zeros.
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
 *    +8  4  number of the record
 *   +12  4  zero
 *   +16  8  storage
 *   +24  8  storage to which the name leads then, or zero
 *   +32  8  when it is due, ns since the epoch
 *   +40     path with a NUL, zeros up to the end
 */
#include "gc_log_record.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <base/checksum.h>
#include <base/cursor.h>
#include <base/emit.h>
#include <base/mem.h>

enum { HEADER_CRC = 12, HEADER_CRC_END = 16, CRC_END = 4, TEXT = 40 };

_Static_assert(TEXT + GC_PATH + 1 <= GC_RECORD, "a path fits into a record");

static const uint8_t magic[8] = {'H', 'S', 'M', 'G', 'A', 'R', 'B', 'G'};

/* ---- the header ---- */

static uint32_t header_crc(const uint8_t bytes[GC_HEADER])
{
	const uint32_t crc = checksum_crc32c(bytes, HEADER_CRC, 0);
	return checksum_crc32c(bytes + HEADER_CRC_END, GC_HEADER - HEADER_CRC_END, crc);
}

void gc_log_header_encode(uint8_t bytes[GC_HEADER])
{
	struct emit e = emit_to(bytes, GC_HEADER);
	emit_bytes(&e, magic, sizeof(magic));
	emit_u32(&e, GC_VERSION);
	emit_zero(&e, GC_HEADER - e.pos);
	emit_patch_u32(&e, HEADER_CRC, header_crc(bytes));
}

int gc_log_header_decode(const void *bytes, size_t n, struct err *err)
{
	struct cursor c = cursor_of(bytes, min_u64(n, GC_HEADER));
	const uint8_t *begin = cur_bytes(&c, sizeof(magic));
	const uint32_t version = cur_u32(&c), crc = cur_u32(&c);
	if (n < GC_HEADER || memcmp(begin, magic, sizeof(magic)) != 0)
		return err_set(err, -EBADMSG, "it does not begin with HSMGARBG");
	if (crc != header_crc(bytes))
		return err_set(err, -EBADMSG, "its header does not have its checksum");
	if (version != GC_VERSION)
		return err_set(err, -ENOTSUP, "it has version %" PRIu32 " of the format", version);
	return cur_is_zero(&c)
		       ? 0
		       : err_set(err, -EBADMSG, "a reserved field of its header is not zero");
}

/* ---- records ---- */

int gc_log_encode(const struct gc_entry *entry, uint32_t number, uint8_t bytes[GC_RECORD])
{
	const size_t n = strlen(entry->path);
	struct emit e = emit_to(bytes, GC_RECORD);
	if (n == 0 || n > GC_PATH)
		return -ENAMETOOLONG;
	emit_u32(&e, 0);
	emit_u16(&e, (uint16_t)entry->state);
	emit_u16(&e, (uint16_t)n);
	emit_u32(&e, number);
	emit_u32(&e, 0);
	emit_u64(&e, entry->storage);
	emit_u64(&e, entry->next);
	emit_u64(&e, (uint64_t)entry->due_ns);
	emit_bytes(&e, entry->path, n + 1);
	emit_zero(&e, GC_RECORD - e.pos);
	emit_patch_u32(&e, 0, checksum_crc32c(bytes + CRC_END, GC_RECORD - CRC_END, 0));
	return 0;
}

int gc_log_decode(const uint8_t bytes[GC_RECORD], uint32_t number, struct gc_entry *out)
{
	struct cursor c = cursor_of(bytes, GC_RECORD), all = c;
	*out = (struct gc_entry){.path = ""};
	if (cur_is_zero(&all))
		return GC_FREE;
	const uint32_t crc = cur_u32(&c);
	const uint16_t state = cur_u16(&c), length = cur_u16(&c);
	const uint32_t stored = cur_u32(&c), zero = cur_u32(&c);
	size_t n = 0;
	out->storage = cur_u64(&c);
	out->next = cur_u64(&c);
	out->due_ns = (int64_t)cur_u64(&c);
	const char *path = cur_cstr(&c, &n);
	if (crc != checksum_crc32c(bytes + CRC_END, GC_RECORD - CRC_END, 0) || stored != number ||
	    zero || !path || n != length || n == 0 || n > GC_PATH || !cur_is_zero(&c) ||
	    state < GC_EXPECTED || state > GC_RENAMED)
		return -EBADMSG;
	out->state = (enum gc_state)state;
	out->path = path;
	return 0;
}
