/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a draft, as it is and with the right checksum. Property: what is accepted is
 * what the encoder writes for the same description. */
#include <base/checksum.h>
#include <string.h>

#include <journal/draft_header.h>
#include "require.h"

static void decode(const uint8_t *data, size_t size)
{
	struct header h;
	uint8_t again[HEADER_SIZE];
	struct err err = ERR_INIT;
	if (draft_header_decode(data, size, &h, &err)) {
		require(err.msg[0] != '\0');
		return;
	}
	require(size == HEADER_SIZE);
	require(draft_header_encode(&h, again, NULL) == 0);
	require(memcmp(again, data, HEADER_SIZE) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	decode(data, size);
	if (size != HEADER_SIZE)
		return 0;
	uint8_t *fixed = malloc(size);
	require(fixed);
	memcpy(fixed, data, size);
	const uint32_t crc = checksum_crc32c(fixed + 16, size - 16, checksum_crc32c(fixed, 12, 0));
	for (unsigned int i = 0; i < 4; i++)
		fixed[12 + i] = (uint8_t)(crc >> 8 * i);
	decode(fixed, size);
	free(fixed);
	return 0;
}
