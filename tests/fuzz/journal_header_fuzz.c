/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a draft, as it is and with the right checksums. Property: what is accepted is
 * what the encoder writes for the same description. */
#include "frames.h"

#include <journal/draft_header.h>

static void decode(uint8_t *data, size_t size)
{
	struct header h;
	uint8_t again[HEADER_SIZE];
	struct err err = ERR_INIT;
	if (draft_header_decode(data, size, &h, &err)) {
		require(err.msg[0] != '\0');
	} else {
		require(size == HEADER_SIZE);
		require(draft_header_encode(&h, again, NULL) == 0);
		require(memcmp(again, data, HEADER_SIZE) == 0);
	}
	free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	decode(frames_copy(data, size, false), size);
	decode(frames_copy(data, size, true), size);
	return 0;
}
