/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Superblocks, as they are and with the checksum of versions 2 and 3 set right (or no mutation
 * would get past it). Property: what decodes, encodes as version 0 and decodes to the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <h5/superblock.h>

enum { CHECKSUM_AT = 44 };

static void require(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void check(const uint8_t *data, size_t size)
{
	struct h5_superblock sb, again;
	struct cursor c = cursor_of(data, size);
	if (h5_superblock_decode(&c, &sb, NULL))
		return;

	uint8_t buf[H5_SUPERBLOCK_SIZE];
	struct emit e = emit_to(buf, sizeof(buf));
	h5_superblock_encode(&e, &sb);
	require(!e.bad && e.pos == sizeof(buf), "a version 0 superblock has 96 bytes");
	c = cursor_of(buf, sizeof(buf));
	require(!h5_superblock_decode(&c, &again, NULL), "what was encoded does not decode");
	require(again.version == 0 && again.status_flags == sb.status_flags &&
			again.leaf_k == sb.leaf_k && again.internal_k == sb.internal_k &&
			again.base == sb.base && again.eof == sb.eof && again.root == sb.root,
		"superblock has changed");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check(data, size);
	if (size < CHECKSUM_AT + 4)
		return 0;
	auto_free uint8_t *copy = malloc(size);
	require(copy != NULL, "out of memory");
	memcpy(copy, data, size);
	struct emit e = emit_to(copy, size);
	e.pos = CHECKSUM_AT;
	emit_checksum(&e, 0);
	check(copy, size);
	return 0;
}
