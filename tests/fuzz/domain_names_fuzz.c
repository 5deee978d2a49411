/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of names of a storage, as they are and with the right checksums. Property: what is accepted
 * is what the encoder writes for the same list. */
#include <base/checksum.h>
#include <stdlib.h>
#include <string.h>

#include <storage/storage_names.h>
#include "require.h"

static void decode(const uint8_t *file, size_t size)
{
	auto_names struct storage_names names = {0};
	struct err err = ERR_INIT;
	auto_bytes struct bytes again = {0};
	require(storage_names_init(&names, &(struct storage){.prefix = "db/1/"}, NULL) == 0);
	if (storage_names_parse(file, size, &names, &err)) {
		require(err.msg[0] != '\0');
		return;
	}
	require(storage_names_emit(&names, &again) == 0);
	/* The order of the records is free, and the head may be of an earlier version. */
	require(again.len == size);
}

/* Gives each record the checksum of its bytes. */
static void mend(uint8_t *file, size_t size)
{
	for (size_t at = 0; at + 12 <= size;) {
		const uint32_t n = (uint32_t)file[at + 4] | (uint32_t)file[at + 5] << 8 |
				   (uint32_t)file[at + 6] << 16 | (uint32_t)file[at + 7] << 24;
		if (n > size - at - 12)
			return;
		const uint32_t crc =
			checksum_crc32c(file + at + 12, n, checksum_crc32c(file + at, 8, 0));
		for (unsigned int i = 0; i < 4; i++)
			file[at + 8 + i] = (uint8_t)(crc >> 8 * i);
		at += 12 + n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file = calloc(1, size ? size : 1);
	require(file);
	if (size)
		memcpy(file, data, size);
	decode(file, size);
	mend(file, size);
	decode(file, size);
	free(file);
	return 0;
}
