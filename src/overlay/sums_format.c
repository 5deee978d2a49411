/* SPDX-License-Identifier: Apache-2.0 */
/* See sums_format.h. */
#include "sums_format.h"

#include <errno.h>
#include <string.h>

#include <base/checksum.h>
#include <base/cursor.h>
#include <base/emit.h>
#include <base/frame.h>

enum {
	VERSION = 1,
	LENGTH_MASK = (1 << 17) - 1,
	UNKNOWN = 1 << 17,
	CHECK_SHIFT = 18,
};
#define IS_ENTRY (1u << 31)

static const char magic[] = "HSMDSUMS", is_final[8] = "HSMFINAL", is_not_final[8];

void sums_header_encode(bool final, uint8_t bytes[SUMS_HEADER])
{
	frame_seal_head(bytes, magic, VERSION);
	memcpy(bytes + FRAME_HEAD_SIZE, final ? is_final : is_not_final, sizeof(is_final));
}

int sums_header_decode(const uint8_t *bytes, size_t n, bool *final)
{
	struct cursor c = cursor_of(bytes, n);
	const int rc = frame_take_head(&c, magic, VERSION, NULL);
	const uint8_t *const word = cur_bytes(&c, sizeof(is_final));
	if (rc || !word)
		return -EBADMSG;
	*final = memcmp(word, is_final, sizeof(is_final)) == 0;
	return *final || memcmp(word, is_not_final, sizeof(is_not_final)) == 0 ? 0 : -EBADMSG;
}

/* The bits of an entry's second word without the check. */
static uint32_t word_of(const struct sum_entry *entry)
{
	return entry->length | (entry->unknown ? UNKNOWN : 0);
}

/* The upper 13 bits of a CRC, at their place in the word. The generation and the number of the
 * frame are part of it, so that an entry at a wrong place is noticed. */
static uint32_t check_of(uint32_t generation, uint32_t frame, const struct sum_entry *entry)
{
	uint8_t bytes[16];
	struct emit e = emit_to(bytes, sizeof(bytes));
	emit_u32(&e, generation);
	emit_u32(&e, frame);
	emit_u32(&e, entry->crc);
	emit_u32(&e, word_of(entry));
	return checksum_crc32c(bytes, sizeof(bytes), 0) >> (CHECK_SHIFT + 1) << CHECK_SHIFT;
}

void sum_entry_encode(uint32_t generation, uint32_t frame, const struct sum_entry *entry,
		      uint8_t bytes[SUMS_ENTRY])
{
	struct emit e = emit_to(bytes, SUMS_ENTRY);
	const bool none = !entry->unknown && !entry->length;
	const uint32_t check = none ? 0 : IS_ENTRY | check_of(generation, frame, entry);
	emit_u32(&e, entry->crc);
	emit_u32(&e, word_of(entry) | check);
}

int sum_entry_decode(uint32_t generation, uint32_t frame, const uint8_t bytes[SUMS_ENTRY],
		     struct sum_entry *entry)
{
	struct cursor c = cursor_of(bytes, SUMS_ENTRY);
	uint8_t again[SUMS_ENTRY];
	entry->crc = cur_u32(&c);
	const uint32_t word = cur_u32(&c);
	entry->length = word & LENGTH_MASK;
	entry->unknown = word & UNKNOWN;
	if (entry->length > SUMS_FRAME)
		return -EBADMSG;
	if ((entry->unknown || !entry->length) && (entry->length || entry->crc))
		return -EBADMSG;
	sum_entry_encode(generation, frame, entry, again);
	return memcmp(again, bytes, sizeof(again)) == 0 ? 0 : -EBADMSG;
}
