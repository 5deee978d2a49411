/* SPDX-License-Identifier: Apache-2.0 */
/* See process.h. No state. */
#include "process.h"

#include <stdlib.h>

unsigned int process_number(const struct actor *a, const struct op *op)
{
	return a->h->part * OPS_MAX + (unsigned int)(op - a->h->ops);
}

void process_begin(struct actor *a, const struct op *op, unsigned int attempt)
{
	const uint64_t number = process_number(a, op);
	a->process = calloc(1, sizeof(*a->process));
	box_init(a->process, &a->h->world, PROCESS_ENGINE,
		 a->h->seed + 1000 * (number + 1) + attempt, true);
}

void process_end(struct actor *a)
{
	box_release(a->process);
	free(a->process);
	a->process = NULL;
}
