/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a shard.
 *
 *   +0  u8   bit 0: the index is at the start; 1: big-endian; 2: with a checksum
 *   +1  u8   inner chunks - 1
 *   +2  u16  most bytes of an inner chunk
 *   +4       the bytes of the shard
 *
 * If the index is valid, each entry is absent, refused, or a range of the shard beside the index,
 * whose numbers are those of the bytes. The checksum is made right, because a fuzzer does not find
 * it; the index is then valid if the shard is long enough.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/checksum.h>
#include <base/cursor.h>
#include <codec/shard_index.h>

#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t number_at(const uint8_t *p, bool big_endian)
{
	uint64_t n = 0;
	for (unsigned int i = 0; i < 8; i++)
		n = n << 8 | p[big_endian ? i : 7 - i];
	return n;
}

static void check_entry(const struct shard *s, const uint8_t *index, uint32_t i, uint64_t size)
{
	const uint64_t n = shard_index_size(s);
	const uint64_t offset = number_at(index + 16 * i, s->big_endian);
	const uint64_t length = number_at(index + 16 * i + 8, s->big_endian);
	struct shard_entry e;
	struct err err = ERR_INIT;
	const int rc = codec_shard_entry(s, index, i, size, &e, &err);
	require(rc == err.code && (rc == 0 || rc == -EIO));
	const bool fits =
		length > 0 && length <= s->largest && offset <= size && length <= size - offset;
	const bool beside = s->at_start ? offset >= n : offset + length <= size - n;
	if (offset == UINT64_MAX && length == UINT64_MAX) {
		require(rc == 0 && e.absent);
	} else {
		require((rc == 0) == (fits && beside));
		require(rc || (!e.absent && e.offset == offset && e.length == length));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_of(data, size);
	const uint8_t flags = cur_u8(&c);
	struct shard s = {
		.at_start = flags & 1, .big_endian = flags & 2, .has_checksum = flags & 4};
	s.nchunks = cur_u8(&c) + 1u;
	s.largest = cur_u16(&c);
	if (!cur_ok(&c))
		return 0;
	const size_t left = cur_left(&c), index = shard_index_size(&s);
	const uint8_t *shard = data + cur_pos(&c);
	if (left < index) {
		require(codec_shard_index(&s, shard, left, NULL) == -EIO);
		return 0;
	}
	/* A block of exactly n bytes, so that a sanitizer sees a read beyond them. */
	uint8_t *bytes = malloc(index);
	require(bytes != NULL);
	memcpy(bytes, s.at_start ? shard : shard + left - index, index);
	const uint32_t crc = checksum_crc32c(bytes, (size_t)s.nchunks * SHARD_ENTRY, 0);
	for (unsigned int i = 0; s.has_checksum && i < SHARD_CHECKSUM; i++)
		bytes[s.nchunks * SHARD_ENTRY + i] = (uint8_t)(crc >> 8 * i);
	require(codec_shard_index(&s, bytes, index, NULL) == 0);
	for (uint32_t i = 0; i < s.nchunks; i++)
		check_entry(&s, bytes, i, left);
	free(bytes);
	return 0;
}
