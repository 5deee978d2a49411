/* SPDX-License-Identifier: Apache-2.0 */
/* See minimise.h. Without an operation the requests come in another order, so each smaller history
 * is tried in several orders. No state. */
#include "minimise.h"

#include <stdlib.h>

enum { ORDERS = 40 };

void trial_run(const struct trial *t, struct history *h, struct log *log, bool trace,
	       struct model_result *out)
{
	const struct model_gaps gaps = model_gaps_of(h);
	history_run(h, t->file, t->n, log, trace);
	model_check(h, &gaps, out);
	while (!out->nfaults && !out->undecided && h->part + 1 < h->parts) {
		if (t->each)
			t->each(t->ctx, h);
		model_release(out);
		history_run_next(h, t->file, t->n);
		model_check(h, &gaps, out);
	}
	if (t->each)
		t->each(t->ctx, h);
}

/* Whether a history fails in one of the orders, which h has then. */
static bool fails(const struct trial *t, struct history *h)
{
	struct history *copy = malloc(sizeof(*copy));
	bool found = false;
	if (!copy)
		abort();
	for (unsigned int i = 0; i < ORDERS && !found; i++) {
		struct model_result r;
		*copy = *h;
		copy->order = h->order + i * 1000003;
		trial_run(t, copy, NULL, false, &r);
		found = r.nfaults;
		if (found)
			h->order = copy->order;
		model_release(&r);
		history_release(copy);
	}
	free(copy);
	return found;
}

static void remove_op(struct history *h, unsigned int i)
{
	const unsigned int n = i + 1 < h->nops && h->ops[i + 1].inside ? 2 : 1;
	for (unsigned int k = i; k + n < h->nops; k++) {
		struct op *op = &h->ops[k];
		*op = h->ops[k + n];
		if (op->follows > i)
			op->follows = op->follows > i + n ? op->follows - n : 0;
	}
	h->nops -= n;
}

/* The smaller histories: without an operation, its fault, its wait. Returns false if there is
 * nothing to leave out. */
static bool reduce(struct history *h, unsigned int i, unsigned int what)
{
	struct op *op = &h->ops[i];
	switch (what) {
	case 0:
		remove_op(h, i);
		return true;
	case 1:
		op->fault = FAULT_NONE;
		return h->ops[i].at;
	default:
		op->waits = 0;
		return op->kind == OP_CHANGE || op->kind == OP_CREATE;
	}
}

static bool make_smaller(const struct trial *t, struct history *h, struct history *smaller)
{
	for (unsigned int what = 0; what < 3; what++)
		for (unsigned int i = 0; i < h->nops; i++) {
			*smaller = *h;
			if (what &&
			    ((what == 1 && !h->ops[i].fault) || (what == 2 && !h->ops[i].waits)))
				continue;
			if (!reduce(smaller, i, what) || !fails(t, smaller))
				continue;
			*h = *smaller;
			return true;
		}
	return false;
}

void minimise(const struct trial *t, struct history *h)
{
	struct history *smaller = malloc(sizeof(*smaller));
	if (!smaller)
		abort();
	while (make_smaller(t, h, smaller))
		;
	free(smaller);
}
