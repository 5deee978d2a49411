/* SPDX-License-Identifier: Apache-2.0 */
/* See minimise.h. Without an operation the requests come in another order, so each smaller history
 * is tried in several orders. No state. */
#include "minimise.h"

#include <stdlib.h>

enum { ORDERS = 40, LONG_ORDERS = 4 /* of a history of several parts */ };

void trial_run(const struct trial *t, struct history *h, bool trace, struct model_result *out)
{
	const struct model_gaps gaps = model_gaps_of(h);
	history_run(h, t->file, t->n, t->log, trace);
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

/* Whether a history fails in one of the orders, which h has then. Its parts after the one that
 * fails are cut off. */
static bool fails(const struct trial *t, struct history *h)
{
	const unsigned int orders = h->parts > 1 ? LONG_ORDERS : ORDERS;
	struct history *copy = malloc(sizeof(*copy));
	bool found = false;
	if (!copy)
		abort();
	for (unsigned int i = 0; i < orders && !found; i++) {
		struct model_result r;
		*copy = *h;
		copy->order = h->order + i * 1000003;
		trial_run(t, copy, false, &r);
		found = r.nfaults;
		if (found) {
			h->order = copy->order;
			h->parts = copy->part + 1;
		}
		model_release(&r);
		history_release(copy);
	}
	free(copy);
	return found;
}

/* The smaller histories: without an operation, its fault, its wait. Returns false if there is
 * nothing to leave out. */
static bool reduce(struct history *h, unsigned int i, unsigned int what)
{
	struct op *op = &h->ops[i];
	switch (what) {
	case 0:
		history_remove_op(h, i);
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

/* Tries the history without some more operations of a part. */
static bool leave_out(const struct trial *t, struct history *h, struct history *smaller,
		      unsigned int part, uint64_t ops)
{
	if ((h->left_out[part] | ops) == h->left_out[part])
		return false;
	*smaller = *h;
	smaller->left_out[part] |= ops;
	if (!fails(t, smaller))
		return false;
	*h = *smaller;
	return true;
}

/* The operations of later parts are made while the history runs, so they are left out by number:
 * first all of a part, then one after the other. */
static void make_parts_smaller(const struct trial *t, struct history *h, struct history *smaller)
{
	if (!fails(t, h))
		return;
	for (unsigned int part = 0; part < h->parts; part++)
		leave_out(t, h, smaller, part, UINT64_MAX);
	for (unsigned int part = 0; part < h->parts; part++)
		for (unsigned int i = 0; i < OPS_MAX; i++)
			leave_out(t, h, smaller, part, UINT64_C(1) << i);
}

void minimise(const struct trial *t, struct history *h)
{
	struct history *smaller = malloc(sizeof(*smaller));
	if (!smaller)
		abort();
	if (h->parts > 1)
		make_parts_smaller(t, h, smaller);
	if (h->parts == 1) {
		history_leave_out(h);
		h->left_out[0] = 0;
	}
	while (h->parts == 1 && make_smaller(t, h, smaller))
		;
	free(smaller);
}
