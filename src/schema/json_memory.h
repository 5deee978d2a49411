/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for documents that are parsed, read once and dropped. Jansson allocates each value by
 * itself: five million blocks for a group of a million links. Freeing them one by one takes as long
 * as parsing, and the gaps that they leave among longer-lived blocks are not given back. So while
 * an area is active, all that Jansson allocates in this thread is taken from a few large blocks.
 * schema_json_area_end() frees them all: json_decref() is not necessary before, and not allowed
 * afterwards.
 */
#ifndef SCHEMA_JSON_MEMORY_H
#define SCHEMA_JSON_MEMORY_H

#include <stddef.h>

enum { SCHEMA_JSON_BLOCKS = 64 }; /* each is twice as long as the one before, up to a limit */

struct schema_json_area {
	char *blocks[SCHEMA_JSON_BLOCKS];
	size_t lengths[SCHEMA_JSON_BLOCKS];
	size_t n, used; /* of the last block */
};

/* Areas of one thread do not overlap. */
void schema_json_area_begin(struct schema_json_area *area);
void schema_json_area_end(struct schema_json_area *area);

/* A place in the area that is active. schema_json_area_rewind() ends what was allocated after it.
 */
struct schema_json_mark {
	size_t n, used;
};
void schema_json_area_mark(struct schema_json_mark *mark);
void schema_json_area_rewind(const struct schema_json_mark *mark);

#endif
