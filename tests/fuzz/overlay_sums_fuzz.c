/* SPDX-License-Identifier: Apache-2.0 */
/* The checksums of a spool, as they are and with the right checksum of the file. Property: what is
 * accepted is what the encoder writes for the same checksums. */
#include <base/checksum.h>
#include <string.h>

#include "overlay/sums.h"
#include "require.h"

enum { CRC_AT = 12, GENERATION_AT = 16 };

static void decode(const uint8_t *data, size_t size)
{
	struct sums s;
	bool final = false;
	size_t n;
	uint32_t generation = 0;
	for (size_t i = 0; i < 4 && size >= GENERATION_AT + 4; i++)
		generation |= (uint32_t)data[GENERATION_AT + i] << 8 * i;
	sums_init(&s, -1, generation, NULL);
	if (sums_decode(&s, data, size, &final) == 0) {
		uint8_t *again = sums_encode(&s, final, &n);
		require(again && n == size && memcmp(again, data, size) == 0);
		free(again);
	}
	sums_release(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	require(copy);
	memcpy(copy, data, size);
	decode(copy, size);
	if (size >= CRC_AT + 4) {
		const uint32_t head = checksum_crc32c(copy, CRC_AT, 0);
		const uint32_t crc = checksum_crc32c(copy + CRC_AT + 4, size - CRC_AT - 4, head);
		for (unsigned int i = 0; i < 4; i++)
			copy[CRC_AT + i] = (uint8_t)(crc >> 8 * i);
		decode(copy, size);
	}
	free(copy);
	return 0;
}
