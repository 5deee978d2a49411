/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of removed objects, as they are and with the right checksum. Property: what is accepted is
 * what the encoder writes for the same list. */
#include <base/checksum.h>
#include <stdlib.h>
#include <string.h>

#include "journal/gc_objects_codec.h"
#include "require.h"

static void decode(const uint8_t *file, size_t size)
{
	struct gc_objects_list list;
	struct err err = ERR_INIT;
	auto_bytes struct bytes again = {0};
	if (gc_objects_decode(file, size, &list, &err)) {
		require(err.msg[0] != '\0' && !list.objects);
		return;
	}
	require(gc_objects_encode(&list, &again, NULL) == 0);
	require(again.len == size && memcmp(again.data, file, size) == 0);
	free(list.objects);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file = calloc(1, size ? size : 1);
	require(file);
	if (size)
		memcpy(file, data, size);
	decode(file, size);
	if (size >= 16) {
		const uint32_t crc =
			checksum_crc32c(file + 16, size - 16, checksum_crc32c(file, 12, 0));
		for (unsigned int i = 0; i < 4; i++)
			file[12 + i] = (uint8_t)(crc >> 8 * i);
		decode(file, size);
	}
	free(file);
	return 0;
}
