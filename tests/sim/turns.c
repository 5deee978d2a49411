/* SPDX-License-Identifier: Apache-2.0 */
/* See turns.h. */
#include "turns.h"

void turns_init(struct turns *t)
{
	*t = (struct turns){.of = {{{.used = false}}}};
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, NULL);
}

static unsigned int names_of(const struct history *h, const struct op *op)
{
	unsigned int names = op->kind <= OP_READ && op->kind != OP_MKDIR && op->kind != OP_LIST
				     ? 1u << op->name
				     : 0;
	if (op->kind == OP_RENAME)
		names |= 1u << op->to;
	if (op->kind >= OP_PLAIN && op->kind <= OP_MIXED)
		names = 1u << (TURN_PLAIN + op->kind - OP_PLAIN);
	return history_has_inside(h, op) ? names | names_of(h, op + 1) : names;
}

/* A reader sees the last commit while a program changes the file, but a new file whose name is free
 * is shown as it grows. */
static bool hides(const struct op *op)
{
	return op->kind != OP_CHANGE;
}

static bool writes(const struct op *op)
{
	return op->kind == OP_CREATE || op->kind == OP_CHANGE;
}

static bool moves(const struct op *op)
{
	return op->kind == OP_REMOVE || op->kind == OP_RENAME;
}

static bool must_wait_locked(const struct history *h, const struct op *op, unsigned int names)
{
	const struct turn *t = h->turns.of[op->engine];
	for (unsigned int i = 0; i < TURN_NAMES; i++)
		if (names & 1u << i &&
		    (op->kind == OP_READ ? t[i].written
					 : t[i].used || (t[i].movers && !moves(op)) ||
						   (writes(op) && hides(op) && t[i].readers)))
			return true;
	return false;
}

static void enter_locked(struct history *h, const struct op *op, unsigned int names, bool begins)
{
	struct turn *t = h->turns.of[op->engine];
	for (unsigned int i = 0; i < TURN_NAMES; i++) {
		if (!(names & 1u << i))
			continue;
		if (op->kind == OP_READ) {
			t[i].readers += begins ? 1 : -1u;
		} else if (moves(op)) {
			t[i].movers += begins ? 1 : -1u;
		} else {
			t[i].used = begins;
			t[i].written = begins && writes(op) && hides(op);
		}
	}
}

void turns_take(struct history *h, const struct op *op)
{
	const unsigned int names = names_of(h, op);
	pthread_mutex_lock(&h->turns.lock);
	while (must_wait_locked(h, op, names))
		pthread_cond_wait(&h->turns.changed, &h->turns.lock);
	enter_locked(h, op, names, true);
	pthread_mutex_unlock(&h->turns.lock);
}

void turns_return(struct history *h, const struct op *op)
{
	pthread_mutex_lock(&h->turns.lock);
	enter_locked(h, op, names_of(h, op), false);
	pthread_cond_broadcast(&h->turns.changed);
	pthread_mutex_unlock(&h->turns.lock);
}
