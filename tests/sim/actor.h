/* SPDX-License-Identifier: Apache-2.0 */
/* What the actors of a history share: history.c runs their operations, operations.c carries one
 * out. */
#ifndef SIM_ACTOR_H
#define SIM_ACTOR_H

#include "history.h"

/* A thread. It uses only its own engine and its own operations. */
struct actor {
	struct history *h;
	unsigned int number, engine;
	const uint8_t *file;
	size_t n;
	struct box *process; /* see process.h */
};

static inline struct engine *actor_engine(const struct actor *a)
{
	return a->h->boxes[a->engine].engine;
}

static inline uint64_t actor_moment(struct actor *a)
{
	return scheduler_moment(&a->h->world.scheduler);
}

/* Lets others run. */
void actor_take_steps(struct actor *a, unsigned int n);
/* Runs an operation: also one inside of another. */
void actor_run(struct actor *a, struct op *op);

/* Carries an operation out, and fills in what it has seen. Returns what its call has returned. */
int operation_carry_out(struct actor *a, struct op *op, struct err *err);
/* From now on requests and calls of the disk may fail. */
void operation_arm(struct box *b, struct op *op);
void operation_disarm(struct box *b, struct op *op);
/* Makes one of the files that exist at first. */
int operation_create(struct actor *a, struct op *op, struct err *err);

#endif
