/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for documents that are parsed, read once and dropped. Jansson allocates each value by
 * itself: five million blocks for a group of a million links. Freeing them one by one takes as long
 * as parsing, and the gaps that they leave among longer-lived blocks are not given back. So while
 * an area is active, all that Jansson allocates in this thread is taken from a few large blocks.
 * The first of them is part of the area, so a small document takes no other memory.
 * json_text_area_end() frees them all: json_decref() is not necessary before, and not allowed
 * afterwards.
 */
#ifndef JSON_READER_MEMORY_H
#define JSON_READER_MEMORY_H

#include <stddef.h>

enum {
	JSON_TEXT_BLOCKS = 64,	    /* each is twice as long as the one before, up to a limit */
	JSON_TEXT_FIRST = 16 << 10, /* bytes of the first block */
};

struct json_text_area {
	_Alignas(16) char first[JSON_TEXT_FIRST];
	char *blocks[JSON_TEXT_BLOCKS];
	size_t lengths[JSON_TEXT_BLOCKS];
	size_t n, used; /* of the last block */
};

/* Areas of one thread do not overlap. */
void json_text_area_begin(struct json_text_area *area);
void json_text_area_end(struct json_text_area *area);

/* A position in the area that is active. json_text_area_rewind() ends what was allocated after
 * it. */
struct json_text_mark {
	size_t n, used;
};
void json_text_area_mark(struct json_text_mark *mark);
void json_text_area_rewind(const struct json_text_mark *mark);

#endif
