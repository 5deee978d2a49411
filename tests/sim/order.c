/* SPDX-License-Identifier: Apache-2.0 */
/* See order.h. States that were visited are kept in a hash table, so each is looked at once. No
 * state of its own. */
#include "order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATES_MAX = 1 << 21 };

struct state {
	uint16_t has[ORDER_REGISTERS];
	uint16_t seen[ORDER_ACTS];
	uint8_t done[ORDER_ACTS];
};

struct search {
	const struct order *o;
	const uint16_t *end;
	bool is_asked[ORDER_ACTS]; /* another act asks what this one has noted */
	struct state *visited;	   /* done[0] plus one, so an empty place has a zero there */
	unsigned int nvisited;
	bool too_large;
};

struct order_act *order_act(struct order *o, const char *what, unsigned int engine, unsigned int at,
			    unsigned int to)
{
	if (o->n == ORDER_ACTS)
		return NULL;
	struct order_act *a = &o->acts[o->n++];
	*a = (struct order_act){.at = at, .to = to, .engine = engine, .what = what};
	return a;
}

struct order_step *order_step(struct order_act *a, enum order_kind kind, uint16_t value,
			      uint64_t from, uint64_t until, bool may)
{
	unsigned int i = 0;
	while (a->steps[i].kind)
		i++;
	if (i == ORDER_STEPS)
		abort();
	a->steps[i] = (struct order_step){.kind = kind,
					  .at = a->at,
					  .to = a->to,
					  .also = a->to,
					  .value = value,
					  .from = from,
					  .until = may ? ORDER_NEVER : until,
					  .absent_from = from,
					  .may = may};
	return &a->steps[i];
}

struct order_step *order_last(struct order_act *a)
{
	unsigned int i = 0;
	while (a->steps[i + 1].kind)
		i++;
	return &a->steps[i];
}

void order_describe(const struct order *o, unsigned int i, char *text, size_t size)
{
	const struct order_act *a = &o->acts[i];
	int n = snprintf(text, size, "%2u [%llu, %llu] engine %u: %s %u %u:", i,
			 (unsigned long long)a->begin, (unsigned long long)a->end, a->engine,
			 a->what, a->at, a->to);
	for (const struct order_step *s = a->steps; s->kind && n < (int)size; s++)
		n += snprintf(text + n, size - (size_t)n, " %s%u/%u", s->may ? "perhaps " : "",
			      s->kind, s->value);
}

/* Whether it is about what another act has noted. */
static bool asks(const struct order_step *step)
{
	return step->kind == ORDER_DRAFT || step->kind == ORDER_BARE ||
	       (step->may && (step->kind == ORDER_TOP_RENEW || step->kind == ORDER_TOP_CLEAR));
}

/* Does a step, or returns false if it is not possible. */
static bool take(unsigned int i, const struct order_step *step, struct state *s)
{
	uint16_t *at = &s->has[step->at], *to = &s->has[step->to], *seen = &s->seen[i];
	if (step->kind >= ORDER_TOP)
		return order_take_half(step, at, to, asks(step) ? &s->seen[step->of] : seen);
	switch (step->kind) {
	case ORDER_SEE:
		*seen = *at;
		return true;
	case ORDER_FIND:
		*seen = *at;
		return *at;
	case ORDER_SHOW:
		if (*at != step->value)
			return false;
		*seen = *at;
		return true;
	case ORDER_DRAFT:
		return *at == step->value || !*at || !s->seen[step->of];
	case ORDER_BARE:
		return !*at && s->seen[step->of];
	case ORDER_THERE:
		return *at;
	case ORDER_SOME:
		return *at || *to || s->has[step->also];
	case ORDER_NEITHER:
		return !*at && !*to && !s->has[step->also];
	case ORDER_MAKE:
	case ORDER_FILL:
		if (*at)
			return step->kind == ORDER_FILL;
		*at = step->value;
		return true;
	case ORDER_REPLACE:
	case ORDER_RENEW:
		if (*at != *seen && (*at || step->kind == ORDER_REPLACE))
			return false;
		*at = step->value;
		if (!step->may && !step->skip)
			*seen = step->value;
		return true;
	case ORDER_SET:
		if (!*at)
			return false;
		*at = step->value;
		return true;
	case ORDER_PUT:
		*at = step->value;
		return true;
	case ORDER_REMOVE:
		if (!*at)
			return false;
		*at = 0;
		return true;
	case ORDER_DROP:
		if (!*at || *at != *seen)
			return false;
		*at = 0;
		return true;
	case ORDER_CHECK:
		return *at && *at == *seen;
	case ORDER_WIPE:
		*at = 0;
		return true;
	case ORDER_FLIP:
		*at = *at ? 0 : step->value;
		return true;
	case ORDER_LINK:
		if (!*at)
			return false;
		*seen = *to = *at;
		return true;
	case ORDER_CARRY:
		if (*at && *to)
			return false;
		*seen = *at;
		*to = *at ? *at : *to;
		return true;
	case ORDER_LEAVE:
		if (*seen && *at != *seen)
			return false;
		*at = *seen ? 0 : *at;
		return true;
	default:
		if (!*seen)
			return false;
		*to = *seen;
		return true;
	}
}

static uint64_t hash_of(const struct state *s)
{
	const uint8_t *p = (const uint8_t *)s;
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < sizeof(*s); i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h ^ (h >> 29);
}

/* Whether the state is new. */
static bool visit(struct search *s, const struct state *state)
{
	struct state key = *state;
	key.done[0]++;
	for (uint64_t i = hash_of(&key);; i++) {
		struct state *at = &s->visited[i % STATES_MAX];
		if (!at->done[0]) {
			*at = key;
			s->too_large = ++s->nvisited >= STATES_MAX / 2;
			return true;
		}
		if (memcmp(at, &key, sizeof(key)) == 0)
			return false;
	}
}

static const struct order_step *next_step(const struct search *s, const struct state *state,
					  unsigned int i)
{
	return &s->o->acts[i].steps[state->done[i]];
}

/* The first moment at which a step that is not done must be done. */
static uint64_t deadline(const struct search *s, const struct state *state)
{
	uint64_t first = ORDER_NEVER;
	for (unsigned int i = 0; i < s->o->n; i++) {
		const struct order_step *step = next_step(s, state, i);
		if (step->kind && !step->may && step->until < first)
			first = step->until;
	}
	return first;
}

/* Whether a step that must not happen after this moment may be the next one. */
static bool is_due(const struct order_step *step, const struct state *state, uint64_t until)
{
	return step->kind && (state->has[step->at] ? step->from : step->absent_from) <= until;
}

/* Counts steps as done. What an act has noted matters no more when it is over. */
static void advance(const struct search *s, struct state *state, unsigned int i, uint8_t n)
{
	state->done[i] += n;
	if (!next_step(s, state, i)->kind && !s->is_asked[i])
		state->seen[i] = 0;
}

static bool only_looks(const struct order_step *step)
{
	return (step->kind >= ORDER_SHOW && step->kind <= ORDER_CHECK) || step->kind == ORDER_TOP ||
	       step->kind == ORDER_TOP_LACKS;
}

/* Does all steps that see what is so, and change nothing: to wait with them helps nobody. */
static void observe(const struct search *s, struct state *state, uint64_t until)
{
	for (unsigned int i = 0; i < s->o->n; i++) {
		const struct order_step *step = next_step(s, state, i);
		while (only_looks(step) && is_due(step, state, until) && take(i, step, state)) {
			advance(s, state, i, 1);
			step = next_step(s, state, i);
		}
	}
}

static bool is_end(const struct search *s, const struct state *state)
{
	for (unsigned int i = 0; i < ORDER_REGISTERS; i++)
		if (s->end[i] != state->has[i] && s->end[i] != ORDER_ANY)
			return false;
	return true;
}

static bool is_repeatable(const struct order_step *step)
{
	return step->kind == ORDER_FLIP ||
	       (step->may && (step->kind == ORDER_REPLACE || step->kind == ORDER_RENEW ||
			      step->kind == ORDER_TOP_RENEW));
}

/* Those of the act from this one on. */
static uint8_t count_steps(const struct order_step *step)
{
	uint8_t n = 0;
	while (step[n].kind)
		n++;
	return n;
}

static bool search_from(struct search *s, const struct state *before)
{
	struct state now = *before, *state = &now;
	uint64_t until = 0;
	while (until != deadline(s, state)) {
		until = deadline(s, state);
		observe(s, state, until);
	}
	if (until == ORDER_NEVER && is_end(s, state))
		return true;
	if (s->too_large || !visit(s, state))
		return false;
	for (unsigned int i = 0; i < s->o->n; i++) {
		const struct order_step *step = next_step(s, state, i);
		struct state next = *state, after = *state;
		if (!is_due(step, state, until))
			continue;
		advance(s, &after, i, step->rest ? count_steps(step) : 1);
		if ((step->skip || step->rest) && search_from(s, &after))
			return true;
		if (!take(i, step, &next))
			continue;
		advance(s, &next, i, !is_repeatable(step));
		if (search_from(s, &next))
			return true;
	}
	return false;
}

enum order_result order_search(const struct order *o, const uint16_t first[ORDER_REGISTERS],
			       const uint16_t end[ORDER_REGISTERS])
{
	struct search s = {.o = o, .end = end, .visited = calloc(STATES_MAX, sizeof(*s.visited))};
	struct state state = {.done = {0}};
	if (!s.visited)
		abort();
	memcpy(state.has, first, sizeof(state.has));
	for (unsigned int i = 0; i < o->n; i++)
		for (const struct order_step *step = o->acts[i].steps; step->kind; step++)
			if (asks(step))
				s.is_asked[step->of] = true;
	const bool found = search_from(&s, &state);
	free(s.visited);
	return found ? ORDER_FOUND : s.too_large ? ORDER_TOO_LARGE : ORDER_IMPOSSIBLE;
}
