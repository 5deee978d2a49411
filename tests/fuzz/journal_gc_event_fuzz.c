/* SPDX-License-Identifier: Apache-2.0 */
/* The log of what is to be deleted, as it is and with the right checksums. Property: an event that
 * is accepted is what the encoder writes for it. One of version 1 lacks the time and the document
 * at its end, which are then zeros. */
#include "frames.h"

#include <journal/gc_event.h>

enum { OLD_LACKS = 9 /* bytes */ };

static void check_event(const uint8_t *frame, size_t n, uint16_t type, const struct cursor *body)
{
	struct gc_event event;
	uint32_t number;
	auto_bytes struct bytes again = {0};
	if (gc_event_decode(type, *body, &number, &event)) {
		require(!event.objects);
		return;
	}
	require(gc_event_encode(&event, number, &again, NULL) == 0);
	const bool is_old = again.len == n + OLD_LACKS;
	const size_t from = is_old ? FRAME_HEADER : 0;
	require(is_old || again.len == n);
	require(memcmp(again.data + from, frame + from, n - from) == 0);
	free(event.objects);
}

static void decode(uint8_t *data, size_t size)
{
	struct cursor c = cursor_of(data, size), body;
	struct err err = ERR_INIT;
	uint16_t type;
	size_t at;
	if (frame_take_head(&c, GC_MAGIC, GC_VERSION, &err))
		require(err.msg[0] != '\0');
	while (at = cur_pos(&c), frame_next(&c, &type, &body) > 0)
		check_event(data + at, cur_pos(&c) - at, type, &body);
	free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	decode(frames_copy(data, size, false), size);
	decode(frames_copy(data, size, true), size);
	return 0;
}
