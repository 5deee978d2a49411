/* SPDX-License-Identifier: Apache-2.0 */
/* See layers.h. */
#include "layers.h"

#include <errno.h>
#include <stdlib.h>

#include <base/mem.h>

static uint64_t block_down(uint64_t offset)
{
	return offset & ~(uint64_t)(ROOM_BLOCK - 1);
}

static uint64_t block_up(uint64_t offset)
{
	return align_u64(offset, ROOM_BLOCK);
}

static int push(struct layers *l, uint32_t generation, struct spool *spool)
{
	struct layer *top = calloc(1, sizeof(*top));
	if (!top)
		return -ENOMEM;
	*top = (struct layer){.below = l->top,
			      .generation = generation,
			      .limit = l->size,
			      .written.memory = l->memory,
			      .stored.memory = l->memory,
			      .spool = spool};
	l->top = top;
	l->n++;
	l->highest = generation;
	return 0;
}

int layers_init(struct layers *l, struct frames_memory *memory, uint64_t beneath)
{
	*l = (struct layers){.size = beneath, .beneath = beneath, .memory = memory};
	return push(l, 0, NULL);
}

int layers_begin(struct layers *l, uint32_t generation, struct spool *spool)
{
	return l->n == LAYERS_MAX ? -E2BIG : push(l, generation, spool);
}

/* Removes the top layer. */
static void drop_top(struct layers *l)
{
	struct layer *top = l->top;
	frames_release(&top->written);
	frames_release(&top->stored);
	spool_unref(top->spool);
	l->top = top->below;
	l->n--;
	free(top);
}

void layers_release(struct layers *l)
{
	while (l->top)
		drop_top(l);
}

/* ---- changes ---- */

static int store(struct layers *l, uint64_t start, uint64_t end, uint64_t *added)
{
	struct frames *stored = &l->top->stored;
	const uint64_t before = stored->bytes;
	int rc = frames_add(stored, block_down(start), block_up(end));
	*added += stored->bytes - before;
	return rc;
}

static int write_range(struct layers *l, uint64_t start, uint64_t end)
{
	int rc = changes_add(l->changes, start, end);
	if (rc == 0)
		rc = frames_add(&l->top->written, start, end);
	if (rc)
		return rc;
	l->top->least = max_u64(l->top->least, end);
	l->size = max_u64(l->size, end);
	return 0;
}

static int cut(struct layer *layer, uint64_t size)
{
	int rc = frames_remove(&layer->written, size, FRAMES_LIMIT);
	if (rc == 0)
		rc = frames_remove(&layer->stored, block_up(size), FRAMES_LIMIT);
	if (rc)
		return rc;
	layer->limit = min_u64(layer->limit, size);
	layer->least = min_u64(layer->least, block_up(size));
	return 0;
}

static int resize(struct layers *l, uint64_t size)
{
	int rc = changes_add(l->changes, min_u64(size, l->size), max_u64(size, l->size));
	if (rc == 0 && size < l->size)
		rc = cut(l->top, size);
	if (rc == 0)
		l->size = size;
	return rc;
}

static int zero(struct layers *l, uint64_t start, uint64_t end)
{
	struct layer *top = l->top;
	const uint64_t border = min_u64(max_u64(start, top->limit), end);
	int rc = changes_add(l->changes, start, end);
	if (rc == 0)
		rc = frames_add(&top->written, start, border);
	if (rc == 0)
		rc = frames_remove(&top->written, border, end);
	if (rc == 0 && block_up(start) < block_down(end))
		rc = frames_remove(&top->stored, block_up(start), block_down(end));
	return rc;
}

static int add_all(struct frames *to, const struct frames *from)
{
	uint64_t end;
	int rc = 0;
	for (uint64_t at = frames_find(from, 0, true); rc == 0 && at != FRAMES_NONE;
	     at = frames_find(from, end, true)) {
		end = frames_find(from, at, false);
		rc = frames_add(to, at, end);
	}
	return rc;
}

/* What the lower spool has at or after the limit is not shown any more, but still takes its room.
 */
static int merge(struct layers *l)
{
	const struct layer *upper = l->top;
	struct layer *lower = upper->below;
	int rc = frames_remove(&lower->written, upper->limit, FRAMES_LIMIT);
	if (rc)
		return rc;
	lower->limit = min_u64(lower->limit, upper->limit);
	rc = add_all(&lower->written, &upper->written);
	return rc ? rc : add_all(&lower->stored, &upper->stored);
}

int layers_change(struct layers *l, enum layers_change change, uint64_t start, uint64_t end,
		  uint64_t *added)
{
	switch (change) {
	case LAYERS_STORE:
		return store(l, start, end, added);
	case LAYERS_WRITE:
		return write_range(l, start, end);
	case LAYERS_RESIZE:
		return resize(l, end);
	case LAYERS_ZERO:
		return zero(l, start, end);
	case LAYERS_MERGE:
		return merge(l);
	}
	return -EINVAL;
}

uint64_t layers_merge_need(const struct layers *l)
{
	const struct frames *upper = &l->top->stored, *lower = &l->top->below->stored;
	uint64_t need = 0, end;
	for (uint64_t at = frames_find(upper, 0, true); at != FRAMES_NONE;
	     at = frames_find(upper, end, true)) {
		end = frames_find(upper, at, false);
		need += end - at - frames_count(lower, at, end);
	}
	return need;
}

void layers_pop(struct layers *l)
{
	drop_top(l);
}

uint64_t layers_stored(const struct layers *l)
{
	uint64_t bytes = 0;
	for (const struct layer *layer = l->top; layer; layer = layer->below)
		bytes += layer->stored.bytes;
	return bytes;
}

/* ---- reading ---- */

struct run layers_find(const struct layers *l, uint64_t at, uint64_t end)
{
	for (const struct layer *layer = l->top; layer; layer = layer->below) {
		const uint64_t written = frames_find(&layer->written, at, true);
		if (written == at)
			return (struct run){
				.kind = RUN_SPOOL,
				.spool = layer->spool,
				.end = min_u64(end, frames_find(&layer->written, at, false)),
			};
		end = min_u64(end, written);
		if (at >= layer->limit)
			return (struct run){.kind = RUN_ZERO, .end = end};
		end = min_u64(end, layer->limit);
	}
	if (at >= l->beneath)
		return (struct run){.kind = RUN_ZERO, .end = end};
	return (struct run){.kind = RUN_BENEATH, .end = min_u64(end, l->beneath)};
}
