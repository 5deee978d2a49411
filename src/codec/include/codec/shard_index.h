/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of a shard (Zarr v3, "sharding_indexed"): an entry for each inner chunk, in row-major
 * order of the stored axes, in the byte order that the document names.
 *
 *   +0   u64  offset of the inner chunk in the shard
 *   +8   u64  its length; 2^64 - 1 in both: it is not stored
 *   …
 *   end  u32  LE, a CRC-32C of the entries, if the index has a checksum
 *
 * An entry is checked when it is used. So an entry that is damaged concerns only its own inner
 * chunk, and those of inner chunks outside of the array, which nobody uses, are not checked. The
 * entries stay as they are stored, because a copy of a large index would take as much memory again.
 *
 * Pure; any thread may call the functions.
 */
#ifndef CODEC_SHARD_INDEX_H
#define CODEC_SHARD_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>
#include <data/shard.h>

/* Checks n bytes, which are what the shard has at the place of its index. Fails with -EIO if they
 * are fewer than an index has, or if the checksum is wrong. */
int codec_shard_index(const struct shard *s, const void *bytes, size_t n, struct err *err);
/* Gets the entry of an inner chunk from an index that was checked. shard_size is the number of
 * bytes of the whole shard. Fails with -EIO if the entry is damaged: if only one of its numbers is
 * 2^64 - 1, the length is 0 or longer than that of any encoded chunk, or the range is not in the
 * shard, or overlaps its index. */
int codec_shard_entry(const struct shard *s, const void *index, uint32_t inner, uint64_t shard_size,
		      struct shard_entry *out, struct err *err);
/* Decodes a shard that is encoded as a whole (struct shard.around), in place. Fails with -EIO if
 * the bytes are damaged or decode to more than CHUNK_BYTES_MAX, with -EOPNOTSUPP if a compressor is
 * not built in, and with -ENOMEM. */
int codec_shard_decode(const struct shard *s, struct bytes *bytes, struct err *err);

#endif
