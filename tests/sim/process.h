/* SPDX-License-Identifier: Apache-2.0 */
/* A process of its own beside the mounts, which runs a command (`hsimage`). It has no journal. The
 * faults and kills of the operation are those of this process. */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

#include "actor.h"

/* The engine of operations that are commands: no actor uses it. */
enum { PROCESS_ENGINE = ENGINES_MAX - 1 };

static inline bool process_has(const struct op *op)
{
	return op->kind == OP_IMPORT || op->kind == OP_CHECK;
}

/* Begins actor.process. attempt: of this operation, from 0. */
void process_begin(struct actor *a, const struct op *op, unsigned int attempt);
void process_end(struct actor *a);
/* The number of an operation in all parts of a history. */
unsigned int process_number(const struct actor *a, const struct op *op);

#endif
