/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes LZ4 (filter 32004), in its registered layout:
 *
 *   +0  u64 BE  bytes decoded
 *   +8  u32 BE  bytes of a block, decoded; the last block may be shorter
 *   +12         blocks
 *
 *   block:      +0 u32 BE  size in bytes; if it is the decoded size, the block is stored
 *               +4         LZ4 block, or the stored bytes
 */
#include "undo.h"

#include <errno.h>
#include <lz4.h>
#include <string.h>

#include <base/cursor.h>

enum { RATIO = 255 /* one byte of LZ4 decodes to at most this many */ };

static int decode_block(struct cursor *c, uint8_t *to, size_t size, struct err *err)
{
	const uint32_t len = cur_u32be(c);
	const uint8_t *bytes = cur_bytes(c, len);
	if (!bytes)
		return err_set(err, -EIO, "lz4: a block states %u bytes, more than the chunk has",
			       len);
	if (len == size) {
		memcpy(to, bytes, size);
		return 0;
	}
	if (len > INT32_MAX || size > INT32_MAX)
		return err_set(err, -EIO, "lz4: a block of %u bytes for %zu", len, size);
	const int got = LZ4_decompress_safe((const char *)bytes, (char *)to, (int)len, (int)size);
	if (got < 0 || (size_t)got != size)
		return err_set(err, -EIO, "lz4: damaged block of %u bytes for %zu", len, size);
	return 0;
}

int undo_lz4(const struct undo *u, const uint8_t *in, size_t n, struct bytes *out, struct err *err)
{
	struct cursor c = cursor_of(in, n);
	const uint64_t total = cur_u64be(&c);
	const uint32_t block = cur_u32be(&c);
	if (!cur_ok(&c) || (block == 0 && total > 0))
		return err_set(err, -EIO, "lz4: %zu bytes have no valid header", n);
	if (total > u->limit || total / RATIO > n)
		return err_set(err, -EIO, "lz4: %zu bytes state %llu, at most %llu are expected", n,
			       (unsigned long long)total, (unsigned long long)u->limit);
	int rc = bytes_reserve(out, total ? (size_t)total : 1);
	if (rc)
		return err_errno(err, rc, "lz4");
	while (out->len < total && rc == 0) {
		const size_t size = (size_t)min_u64(block, total - out->len);
		rc = decode_block(&c, out->data + out->len, size, err);
		out->len += size;
	}
	return rc;
}
