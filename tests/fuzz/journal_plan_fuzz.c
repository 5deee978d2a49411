/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of commits, as they are and with the right checksum. Property: what is accepted is what the
 * encoder writes for the same plan. */
#include <base/checksum.h>
#include <string.h>

#include <journal/plan_codec.h>
#include "require.h"

/* Owns file. */
static void decode(uint8_t *file, size_t size)
{
	struct plan plan;
	struct err err = ERR_INIT;
	auto_bytes struct bytes again = {0};
	if (plan_decode(file, size, &plan, &err)) {
		require(err.msg[0] != '\0');
		free(file);
		return;
	}
	for (uint32_t i = 0; i < plan.count; i++)
		require(!plan.operations[i].done);
	require(plan_encode(&plan, &again, NULL) == 0);
	require(again.len == size && memcmp(again.data, file, size) == 0);
	/* Any bytes may be records of what is done. */
	plan_apply_notes(&plan, file, size);
	plan_release(&plan);
}

static uint8_t *copy(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size ? size : 1);
	require(bytes);
	if (size)
		memcpy(bytes, data, size);
	return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	decode(copy(data, size), size);
	if (size < 16)
		return 0;
	uint8_t *fixed = copy(data, size);
	const uint32_t crc = checksum_crc32c(fixed + 16, size - 16, checksum_crc32c(fixed, 12, 0));
	for (unsigned int i = 0; i < 4; i++)
		fixed[12 + i] = (uint8_t)(crc >> 8 * i);
	decode(fixed, size);
	return 0;
}
