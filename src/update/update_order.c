/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which groups are put, so that an object that stays in the domain is reachable at
 * every moment:
 *
 *   1  put groups that only gain links; put groups that gain and lose links with the links of both
 *      states
 *   2  put one of the groups that gain and lose links
 *   3  put groups that only lose links; put the other groups that gain and lose links again
 *
 * Until step 2, every group has all links of the old state, so the old paths lead to all objects.
 * From then on, every group has all links of the new state, so the new paths do. It is not enough
 * that a group that gains an object is put before the group that loses it: the first group may
 * itself be reachable only through a link that a third one loses.
 *
 * If a link keeps its name and gets another object, a document cannot have both links under this
 * name. In step 1, the new object has another name (update_between.c). Step 2 puts a group with
 * such links, so a single one needs no other name.
 */
#include "update_internal.h"

#include <stdlib.h>

enum { GAIN, TURN, LOSE }; /* the steps, as phases after PHASE_GROUPS */

struct order {
	const struct update *u;
	uint32_t *now; /* by number in the old tree: that in the new one + 1, or 0 */
};

/* What a change means for the reachability of other objects. */
struct effect {
	bool gains, loses, replaces;
};

/* Returns the target of a hard link, or OBJECT_NONE if there is no such link. */
static uint32_t target_of(const struct object *group, uint32_t i)
{
	if (i == CHANGE_NONE || group->group.links[i].cls != LINK_HARD)
		return OBJECT_NONE;
	return group->group.links[i].target;
}

/* Return whether paths to objects that stay may lead through the old, or the new link. A group that
 * was removed or is new may have links to them. */
static bool matters_before(const struct order *o, uint32_t target)
{
	return target != OBJECT_NONE &&
	       (o->now[target] || object_of(o->u->before, target)->kind == OBJECT_GROUP);
}

static bool matters_now(const struct order *o, uint32_t target)
{
	return target != OBJECT_NONE && (o->u->same[target] != OBJECT_NONE ||
					 object_of(o->u->now, target)->kind == OBJECT_GROUP);
}

static struct effect effect_of(const struct order *o, const struct object_change *c)
{
	const struct object *old = object_of(o->u->before, c->before);
	const struct object *new = object_of(o->u->now, c->after);
	struct effect e = {false};
	for (uint32_t i = 0; i < c->nlinks; i++) {
		const uint32_t before = target_of(old, c->links[i].before);
		const uint32_t now = target_of(new, c->links[i].after);
		const bool is_lost = matters_before(o, before);
		const bool is_gained = matters_now(o, now);
		/* A link with another name. */
		if (is_lost && is_gained && o->now[before] == now + 1)
			continue;
		e.loses |= is_lost;
		e.gains |= is_gained;
		e.replaces |= is_gained && c->links[i].before != CHANGE_NONE;
	}
	return e;
}

static void give_phases(const struct order *o, uint32_t *first, uint32_t *phase)
{
	const struct tree_change *change = &o->u->change;
	uint32_t turn = UINT32_MAX;
	bool replaces = false;
	for (uint32_t i = 0; i < change->nchanged; i++) {
		if (object_of(o->u->now, change->changed[i].after)->kind != OBJECT_GROUP)
			continue;
		const struct effect e = effect_of(o, &change->changed[i]);
		phase[i] = PHASE_GROUPS + (e.loses ? LOSE : GAIN);
		if (!e.loses || !e.gains)
			continue;
		first[i] = PHASE_GROUPS + GAIN;
		if (turn == UINT32_MAX || (e.replaces && !replaces))
			turn = i;
		replaces |= e.replaces;
	}
	if (turn != UINT32_MAX) {
		first[turn] = 0;
		phase[turn] = PHASE_GROUPS + TURN;
	}
}

int update_order(const struct update *u, uint32_t *first, uint32_t *phase, struct err *err)
{
	auto_free uint32_t *now = calloc(tree_numbers(u->before->tree), sizeof(*now));
	const struct order o = {.u = u, .now = now};
	if (!now)
		return err_no_memory(err);
	for (uint32_t i = 0; i < tree_numbers(u->now->tree); i++)
		if (u->same[i] != OBJECT_NONE)
			now[u->same[i]] = i + 1;
	give_phases(&o, first, phase);
	return 0;
}
