/* SPDX-License-Identifier: Apache-2.0 */
/* See changes.h. */
#include "changes.h"

#include <stdlib.h>

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

bool changes_any(const struct changes *c, uint64_t start, uint64_t end)
{
	for (; c; c = c->before)
		if (frames_find(&c->set, start, true) < end)
			return true;
	return false;
}
