/* SPDX-License-Identifier: Apache-2.0 */
/* See reader_memory.h. */
#include <json/reader_memory.h>

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include <jansson.h>

#include <base/mem.h>

enum { BLOCK_MAX = 64 << 20, ALIGNMENT = 16 };

static _Thread_local struct json_text_area *active;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Returns false if out of memory. */
static bool add_block(struct json_text_area *area, size_t least)
{
	const size_t before = area->lengths[area->n - 1];
	size_t length = before < BLOCK_MAX ? 2 * before : before;
	if (length < least)
		length = least;
	char *block = area->n < JSON_TEXT_BLOCKS ? malloc(length) : NULL;
	if (!block)
		return false;
	area->blocks[area->n] = block;
	area->lengths[area->n++] = length;
	area->used = 0;
	return true;
}

static void *take(size_t n)
{
	struct json_text_area *area = active;
	if (!area)
		return malloc(n);
	if (n > PTRDIFF_MAX)
		return NULL;
	n = (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	const bool has_room = n <= area->lengths[area->n - 1] - area->used;
	if (!has_room && !add_block(area, n))
		return NULL;
	void *p = area->blocks[area->n - 1] + area->used;
	area->used += n;
	return p;
}

static bool is_in(const struct json_text_area *area, const void *p)
{
	for (size_t i = area->n; i-- > 0;)
		if ((uintptr_t)p - (uintptr_t)area->blocks[i] < area->lengths[i])
			return true;
	return false;
}

static void give_back(void *p)
{
	if (!active || !is_in(active, p))
		free(p);
}

static void install(void)
{
	json_set_alloc_funcs(take, give_back);
}

void json_text_area_begin(struct json_text_area *area)
{
	pthread_once(&once, install);
	assert(!active);
	area->blocks[0] = area->first;
	area->lengths[0] = sizeof(area->first);
	area->n = 1;
	area->used = 0;
	active = area;
}

void json_text_area_mark(struct json_text_mark *mark)
{
	assert(active);
	*mark = (struct json_text_mark){active->n, active->used};
}

void json_text_area_rewind(const struct json_text_mark *mark)
{
	assert(active);
	while (active->n > mark->n)
		free(active->blocks[--active->n]);
	active->used = mark->used;
}

void json_text_area_end(struct json_text_area *area)
{
	assert(active == area);
	json_text_area_rewind(&(struct json_text_mark){.n = 1});
	active = NULL;
}
