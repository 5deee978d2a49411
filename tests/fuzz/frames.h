/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that consist of framed records (base/frame.h). */
#ifndef TESTS_FUZZ_FRAMES_H
#define TESTS_FUZZ_FRAMES_H

#include <stdlib.h>
#include <string.h>

#include <base/cursor.h>
#include <base/frame.h>

#include "require.h"

/* Copies an input to the heap, and gives each whole record its checksum if `repair` is set. */
static inline uint8_t *frames_copy(const uint8_t *data, size_t size, bool repair)
{
	uint8_t *copy = calloc(1, size ? size : 1);
	require(copy);
	if (size)
		memcpy(copy, data, size);
	struct cursor c = cursor_of(copy, size);
	while (repair && cur_left(&c) >= FRAME_HEADER) {
		uint8_t *frame = copy + cur_pos(&c);
		const uint16_t type = cur_u16(&c);
		cur_skip(&c, 2);
		const uint32_t n = cur_u32(&c);
		cur_skip(&c, 4);
		if (n > cur_left(&c))
			break;
		frame_seal(frame, type, n);
		cur_skip(&c, n);
	}
	return copy;
}

#endif
