/* SPDX-License-Identifier: Apache-2.0 */
/* See player.h. */
#include "player.h"

#include <errno.h>
#include <stdarg.h>

#include <base/mem.h>

#include "baton.h"

uint64_t player_moment(const struct player *g)
{
	return scheduler_moment(g->box->line.scheduler);
}

bool player_is_dead(const struct player *g)
{
	return g->box->line.dead;
}

void player_wait(const struct player *g)
{
	g->wait(g->ctx);
}

struct order_act *player_begin(struct player *g, const char *what, unsigned int at, unsigned int to)
{
	struct order_act *a = order_act(g->order, what, g->box->number, at, to);
	if (a) {
		a->begin_ns = baton_now();
		a->begin = player_moment(g);
	}
	return a;
}

void player_end(struct player *g, struct order_act *a)
{
	a->end_ns = baton_now();
	a->end = player_moment(g);
}

/* Since when an act, which has ended, proves what its engine knows of a register; 0: not at all. An
 * attempt that has failed proves nothing, and neither does that one of two registers has a value.
 */
static uint64_t proves_since(const struct order_act *a, unsigned int at)
{
	const struct order_step *s = a->steps;
	const bool is_absent = s->kind == ORDER_NEITHER || s->kind == ORDER_BARE ||
			       (s->kind == ORDER_SHOW && !s->value);
	uint64_t since = 0;
	for (; s->kind && !is_absent && !s->may; s++)
		if (!s->skip && !s->rest && s->kind != ORDER_SOME &&
		    (s->at == at ||
		     (s->to == at && (s->kind == ORDER_LINK || s->kind == ORDER_GIVE))))
			since = max_u64(since, s->from);
	return since;
}

/* Whether a second act of the same engine may use what the first one has been told. A look-up may
 * take minutes, and its answer is valid for a second. */
static bool may_use(const struct player *g, const struct order_act *second,
		    const struct order_act *first)
{
	return first->engine == second->engine &&
	       (!first->end || first->end_ns + g->box->ttl_ns >= second->begin_ns);
}

uint64_t player_since(const struct player *g, const struct order_act *act, unsigned int at,
		      uint64_t from)
{
	uint64_t oldest = from, used = 0;
	for (unsigned int i = 0; i < g->order->n; i++) {
		const struct order_act *a = &g->order->acts[i];
		if (a == act)
			continue;
		if (a->engine == act->engine && a->end && a->end <= from)
			used = max_u64(used, proves_since(a, at));
		if (a->begin_ns + g->box->ttl_ns >= act->begin_ns || may_use(g, act, a))
			oldest = min_u64(oldest, a->begin);
	}
	return g->box->ttl_ns ? max_u64(oldest, used) : from;
}

struct order_step *player_look(struct player *g, struct order_act *a, enum order_kind kind,
			       uint16_t value, uint64_t from)
{
	struct order_step *s = order_step(a, kind, value, from, player_moment(g), false);
	s->absent_from = player_since(g, a, a->at, from);
	return s;
}

bool player_note(struct player *g, const char *what, const char *name, int rc)
{
	scheduler_note(g->box->line.scheduler, "engine %u: %s %s: %d", g->box->number, what, name,
		       rc);
	return !player_is_dead(g);
}

bool player_is_answer(int rc)
{
	return !rc || rc == -ENOENT || rc == -ESTALE || rc == -EEXIST || rc == -EBUSY;
}

bool player_has_repeated(const struct player *g, unsigned int repeated)
{
	return g->box->line.repeated != repeated;
}

void player_fault(struct str *faults, const char *who, const char *fmt, ...)
{
	va_list ap;
	str_addf(faults, "  %s: ", who);
	va_start(ap, fmt);
	str_addv(faults, fmt, ap);
	va_end(ap);
	str_addf(faults, "\n");
}
