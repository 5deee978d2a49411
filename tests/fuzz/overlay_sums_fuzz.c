/* SPDX-License-Identifier: Apache-2.0 */
/* The checksums of a spool, as they are, and with the right checksums of the header and the
 * entries. Properties: what is accepted is what the encoder writes for the same checksums, and an
 * entry of which one bit is changed is not accepted. */
#include <base/checksum.h>
#include <base/frame.h>
#include <string.h>

#include "overlay/sums_format.h"
#include "require.h"

enum { GENERATION = 3 /* of the seed files */, CHECK_SHIFT = 18 };

static uint32_t load(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void store(uint8_t *p, uint32_t v)
{
	for (unsigned int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static void decode_header(const uint8_t *data, size_t size)
{
	uint8_t again[SUMS_HEADER];
	bool final = false;
	if (sums_header_decode(data, size, &final))
		return;
	require(size >= SUMS_HEADER);
	sums_header_encode(final, again);
	require(memcmp(again, data, sizeof(again)) == 0);
}

static void decode_entry(uint8_t bytes[SUMS_ENTRY], uint32_t generation, uint32_t frame)
{
	uint8_t again[SUMS_ENTRY];
	struct sum_entry entry;
	if (sum_entry_decode(generation, frame, bytes, &entry))
		return;
	require(entry.length <= SUMS_FRAME);
	sum_entry_encode(generation, frame, &entry, again);
	require(memcmp(again, bytes, sizeof(again)) == 0);
	for (unsigned int bit = 0; bit < 8 * SUMS_ENTRY; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		require(sum_entry_decode(generation, frame, bytes, &entry) != 0);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

/* Gives the entry the check of its other bits. */
static void mend_entry(uint8_t bytes[SUMS_ENTRY], uint32_t generation, uint32_t frame)
{
	const uint32_t word = load(bytes + 4) & ((1u << CHECK_SHIFT) - 1);
	uint8_t all[16];
	store(all, generation);
	store(all + 4, frame);
	memcpy(all + 8, bytes, 4);
	store(all + 12, word);
	const uint32_t check = checksum_crc32c(all, sizeof(all), 0) >> (CHECK_SHIFT + 1);
	store(bytes + 4, word | check << CHECK_SHIFT | 1u << 31);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	require(copy);
	memcpy(copy, data, size);
	decode_header(copy, size);
	for (size_t at = SUMS_HEADER; at + SUMS_ENTRY <= size; at += SUMS_ENTRY) {
		const uint32_t frame = (uint32_t)((at - SUMS_HEADER) / SUMS_ENTRY);
		decode_entry(copy + at, GENERATION, frame);
		mend_entry(copy + at, GENERATION, frame);
		decode_entry(copy + at, GENERATION, frame);
	}
	if (size >= SUMS_HEADER) {
		frame_seal(copy, FRAME_HEAD, FRAME_HEAD_SIZE - FRAME_HEADER);
		decode_header(copy, size);
	}
	free(copy);
	return 0;
}
