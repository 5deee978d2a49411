/* SPDX-License-Identifier: Apache-2.0 */
/* See in_order.h. */
#include "in_order.h"

/* Takes the pieces that touch the run into it. */
static void join(struct in_order *o)
{
	for (unsigned int i = 0; i < o->n;) {
		const struct in_order_piece piece = o->pieces[i];

		if (piece.start > o->end) {
			i++;
			continue;
		}
		o->pieces[i] = o->pieces[--o->n];
		if (piece.end > o->end) {
			o->end = piece.end;
			i = 0;
		}
	}
}

static void begin(struct in_order *o, const struct in_order_file *f, uint64_t start, uint64_t end)
{
	*o = (struct in_order){.running = start < f->data, .end = end};
}

void in_order_skip(struct in_order *o, uint64_t to)
{
	if (!o->running || to <= o->end)
		return;
	o->end = to;
	join(o);
}

bool in_order_read(struct in_order *o, const struct in_order_file *f, uint64_t start, uint64_t end)
{
	if (!o->running || start > o->end + IN_ORDER_GAP ||
	    (start > o->end && o->n == IN_ORDER_PIECES)) {
		begin(o, f, start, end);
	} else if (start > o->end) {
		o->pieces[o->n++] = (struct in_order_piece){start, end};
	} else if (end > o->end) {
		o->end = end;
		join(o);
	}
	return o->running && o->end >= f->second + IN_ORDER_MARGIN;
}
