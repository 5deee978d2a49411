/* SPDX-License-Identifier: Apache-2.0 */
/* See changes.h. */
#include "changes.h"

#include <stdlib.h>

#include <base/mem.h>

struct changes *changes_begin(struct frames_memory *memory, struct changes *before)
{
	struct changes *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->set.memory = memory;
	c->before = before;
	return c;
}

void changes_free(struct changes *c)
{
	while (c) {
		struct changes *before = c->before;
		frames_release(&c->set);
		free(c);
		c = before;
	}
}

int changes_add(struct changes *c, uint64_t start, uint64_t end)
{
	return c ? frames_add(&c->set, start, end) : 0;
}

uint64_t changes_next(const struct changes *c, uint64_t start, uint64_t end)
{
	for (; c && start < end; c = c->before)
		end = min_u64(end, frames_find(&c->set, start, true));
	return end;
}
