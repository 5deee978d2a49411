/* SPDX-License-Identifier: Apache-2.0 */
/* See model.h: datasets that grow. No state. */
#include "model_internal.h"

#include <string.h>

struct growth {
	const struct history *h;
	enum content_part part;
	uint64_t uid;
	struct content_chunks end;
	bool used[OPS_MAX];
};

enum { CHUNKS_MAX = CONTENT_ROWS / CONTENT_CHUNK * CONTENT_GRID };

static bool has_shape(const struct content_chunks *a, const struct content_chunks *b)
{
	return a->n[0] == b->n[0] && a->n[1] == b->n[1];
}

/* Chunks have numbers that do not depend on the shape. */
static bool has(const struct content_chunks *c, unsigned int chunk)
{
	return chunk / CONTENT_GRID < c->n[0] && chunk % CONTENT_GRID < c->n[1];
}

static uint64_t value_of(const struct content_chunks *c, unsigned int chunk)
{
	return c->value[chunk / CONTENT_GRID][chunk % CONTENT_GRID];
}

static bool is_grower_of(const struct growth *g, const struct op *op, unsigned int chunk,
			 uint64_t value)
{
	const struct content_chunks before = content_chunks(&op->before, g->part),
				    after = content_chunks(&op->after, g->part);
	return op->kind == OP_CHANGE && !has(&before, chunk) && has(&after, chunk) &&
	       value_of(&after, chunk) == value;
}

/* Whether a grower that was not acknowledged has put this chunk. Until it has withdrawn it, or its
 * journal is recovered, the chunk is visible if another grower's shape has it: see "Growth" in
 * doc/DETAILS.md. */
static bool is_of_loser(const struct growth *g, unsigned int chunk, uint64_t value)
{
	for (unsigned int i = 0; i < g->h->nops; i++)
		if (g->h->ops[i].status != OP_DONE && is_grower_of(g, &g->h->ops[i], chunk, value))
			return true;
	return false;
}

/* What a change makes of a state. False: its program has not read this state. */
static bool change(const struct growth *g, const struct op *op, const struct content_chunks *state,
		   struct content_chunks *out)
{
	const struct content_chunks before = content_chunks(&op->before, g->part);
	*out = content_chunks(&op->after, g->part);
	if (!has_shape(&before, state))
		return false;
	for (unsigned int i = 0; i < CHUNKS_MAX; i++) {
		const uint64_t seen = value_of(&before, i), is = value_of(state, i);
		if (!has(state, i) || seen == is)
			continue;
		if (seen && !is_of_loser(g, i, seen))
			return false;
		if (has(out, i))
			out->value[i / CONTENT_GRID][i % CONTENT_GRID] = is;
	}
	return true;
}

/* Whether a chunk is of a grower that was killed when its shape was on the way, while another one
 * put its own: then it stays (DETAILS.md, "Growth"). */
static bool is_of_killed(const struct growth *g, unsigned int chunk, uint64_t value)
{
	for (unsigned int i = 0; i < g->h->nops; i++) {
		const struct op *op = &g->h->ops[i];
		if (op->status != OP_MAYBE || op->fault < FAULT_KILL ||
		    !is_grower_of(g, op, chunk, value))
			continue;
		for (unsigned int k = 0; k < g->h->nops; k++)
			if (g->h->ops[k].kind == OP_CHANGE && g->h->ops[k].status == OP_DONE &&
			    g->h->ops[k].begin < op->end && g->h->ops[k].end > op->begin)
				return true;
	}
	return false;
}

static bool is_end(const struct growth *g, const struct content_chunks *state)
{
	bool all = has_shape(state, &g->end);
	for (unsigned int i = 0; all && i < CHUNKS_MAX; i++) {
		const uint64_t v = value_of(state, i), end = value_of(&g->end, i);
		all = !has(state, i) || v == end || (!v && is_of_killed(g, i, end));
	}
	return all;
}

/* Whether a change that is not yet part of the order gives the dataset another shape. */
static bool is_open(const struct growth *g, unsigned int i)
{
	const struct op *op = &g->h->ops[i];
	const struct content_chunks before = content_chunks(&op->before, g->part),
				    after = content_chunks(&op->after, g->part);
	return !g->used[i] && model_is_change_of(g->h, op, g->uid) && !has_shape(&before, &after);
}

static bool follow(struct growth *g, const struct content_chunks *state)
{
	bool all = is_end(g, state);
	for (unsigned int i = 0; i < g->h->nops && all; i++)
		all = g->h->ops[i].status != OP_DONE || !is_open(g, i);
	for (unsigned int i = 0; i < g->h->nops && !all; i++) {
		struct content_chunks next;
		if (!is_open(g, i) || !change(g, &g->h->ops[i], state, &next))
			continue;
		g->used[i] = true;
		all = follow(g, &next);
		g->used[i] = false;
	}
	return all;
}

bool model_explains_growth(const struct history *h, const struct content *end,
			   enum content_part part)
{
	struct growth g = {.h = h, .part = part, .uid = end->uid, .end = content_chunks(end, part)};
	struct content first;
	history_first(h, end->uid, &first);
	const struct content_chunks state = content_chunks(&first, part);
	return follow(&g, &state);
}
