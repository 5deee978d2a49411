/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Superblocks. The target decodes the input unchanged and with a correct checksum of versions 2 and
 * 3, because few mutations keep a checksum valid. Property: a decoded superblock can be encoded as
 * version 0 and decoded to the same values.
 */
#include <stdlib.h>
#include <string.h>

#include <h5/superblock.h>

#include "require.h"

enum { CHECKSUM_AT = 44 };

static void check(const uint8_t *data, size_t size)
{
	struct h5_superblock sb, again;
	struct cursor c = cursor_of(data, size);
	if (h5_superblock_decode(&c, &sb, NULL))
		return;

	uint8_t buf[H5_SUPERBLOCK_SIZE];
	struct emit e = emit_to(buf, sizeof(buf));
	h5_superblock_encode(&e, &sb);
	require(!e.bad && e.pos == sizeof(buf));
	c = cursor_of(buf, sizeof(buf));
	require(!h5_superblock_decode(&c, &again, NULL));
	require(again.version == 0 && again.status_flags == sb.status_flags &&
		again.leaf_k == sb.leaf_k && again.internal_k == sb.internal_k &&
		again.base == sb.base && again.eof == sb.eof && again.root == sb.root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check(data, size);
	if (size < CHECKSUM_AT + 4)
		return 0;
	auto_free uint8_t *copy = malloc(size);
	require(copy != NULL);
	memcpy(copy, data, size);
	struct emit e = emit_to(copy, size);
	e.pos = CHECKSUM_AT;
	emit_checksum(&e, 0);
	check(copy, size);
	return 0;
}
