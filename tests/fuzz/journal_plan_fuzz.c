/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of commits, as they are and with the right checksums. Property: what is accepted is what
 * the encoder writes for the same plan. */
#include "frames.h"

#include <journal/plan_codec.h>

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	decode(frames_copy(data, size, false), size);
	decode(frames_copy(data, size, true), size);
	return 0;
}
