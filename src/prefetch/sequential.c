/* SPDX-License-Identifier: Apache-2.0 */
/* See prefetch/sequential.h. */
#include <prefetch/sequential.h>

/* Adds the pieces that touch the run to it. */
static void join(struct sequential *o)
{
	for (unsigned int i = 0; i < o->n;) {
		const struct sequential_piece piece = o->pieces[i];
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

void sequential_skip(struct sequential *o, uint64_t to)
{
	if (!o->running || to <= o->end)
		return;
	o->end = to;
	join(o);
}

bool sequential_read(struct sequential *o, const struct sequential_file *f, uint64_t start,
		     uint64_t end)
{
	if (!o->running || start > o->end + SEQUENTIAL_GAP ||
	    (start > o->end && o->n == SEQUENTIAL_PIECES)) {
		*o = (struct sequential){.running = start < f->data, .start = start, .end = end};
	} else if (start > o->end) {
		o->pieces[o->n++] = (struct sequential_piece){start, end};
	} else if (end > o->end) {
		o->end = end;
		join(o);
	}
	return o->running && o->end >= f->second + SEQUENTIAL_MARGIN;
}

uint64_t sequential_run(struct sequential *o, uint64_t start, uint64_t end)
{
	static const struct sequential_file any = {.data = UINT64_MAX};
	if (end + SEQUENTIAL_GAP < o->end) /* the program goes back */
		o->running = false;
	const struct sequential before = *o;
	sequential_read(o, &any, start, end);
	const bool continues = before.running && o->start == before.start;
	return continues && (o->end > before.end || o->n > before.n) ? o->end - o->start : 0;
}

uint64_t sequential_trial(const struct sequential *o, const struct sequential_file *f)
{
	const uint64_t first = f->second - f->data;
	if (!o->running || o->end < f->second - first / 4)
		return 0;
	return first / SEQUENTIAL_TRIAL;
}
