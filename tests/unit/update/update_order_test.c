/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of groups: whatever moves where, each object that stays in the domain is reachable
 * after each put. The test makes the puts on a model of the domain, in any order within a phase.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "update/update_internal.h"

struct rig {
	struct scan before, now;
	struct update u;
	struct arena *arena;
	uint32_t *first, *phase;
};

/* ---- trees ---- */

static struct tree *tree_of(uint32_t n, uint32_t links)
{
	struct tree *t = tree_new((size_t)1 << 30);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t number;
		assert_int_equal(tree_add(t, &number, NULL), 0);
		struct object *o = tree_edit(t, number);
		*o = (struct object){.kind = OBJECT_GROUP, .id = "a group"};
		o->group.links = arena_array(tree_arena(t), links, sizeof(*o->group.links));
		assert_non_null(o->group.links);
	}
	return t;
}

/* A link has the name of its target: so no link is replaced. */
static void link_to(struct tree *t, uint32_t group, uint32_t target)
{
	char name[16];
	struct object *o = tree_edit(t, group);
	const int n = snprintf(name, sizeof(name), "%u", target);
	for (uint32_t i = 0; i < o->group.nlinks; i++)
		if (o->group.links[i].target == target)
			return;
	o->group.links[o->group.nlinks++] =
		(struct link){.name = arena_strndup(tree_arena(t), name, (size_t)n),
			      .utf8 = true,
			      .cls = LINK_HARD,
			      .target = target};
}

/* The first `same` objects have the same numbers in both trees. */
static void rig_begin(struct rig *r, struct tree *before, struct tree *now, uint32_t same)
{
	struct err err = ERR_INIT;
	*r = (struct rig){.before.tree = before, .now.tree = now};
	r->arena = arena_new((size_t)1 << 30);
	r->u = (struct update){.before = &r->before, .now = &r->now, .arena = r->arena};
	r->u.same = arena_array(r->arena, tree_numbers(now), sizeof(*r->u.same));
	assert_int_equal(tree_finish(before, NULL), 0);
	assert_int_equal(tree_finish(now, NULL), 0);
	for (uint32_t i = 0; i < tree_numbers(now); i++)
		r->u.same[i] =
			i < same && tree_object(before, i)->linked && tree_object(now, i)->linked
				? i
				: OBJECT_NONE;
	if (tree_change(before, now, r->u.same, r->arena, &r->u.change, &err))
		fail_msg("%s", err.msg);
	r->first = calloc(r->u.change.nchanged + 1, sizeof(*r->first));
	r->phase = calloc(r->u.change.nchanged + 1, sizeof(*r->phase));
	if (update_order(&r->u, r->first, r->phase, &err))
		fail_msg("%s", err.msg);
}

static void rig_end(struct rig *r)
{
	tree_free(r->before.tree);
	tree_free(r->now.tree);
	arena_free(r->arena);
	free(r->first);
	free(r->phase);
}

/* The phases of a group; 0: it does not change. */
static uint32_t phase_of(const struct rig *r, uint32_t group, uint32_t *first)
{
	for (uint32_t i = 0; i < r->u.change.nchanged; i++) {
		if (r->u.change.changed[i].after != group)
			continue;
		*first = r->first[i];
		return r->phase[i];
	}
	return 0;
}

/* ---- a model of the domain ---- */

enum state { OLD = 1, NEW = 2 }; /* which links a group has */

struct model {
	const struct rig *r;
	uint8_t *state; /* by number */
	bool *seen;
	uint32_t *todo;
};

static void follow(struct model *m, const struct tree *t, uint32_t group, size_t *n)
{
	const struct object *o = &tree_object(t, group)->o;
	for (uint32_t i = 0; i < o->group.nlinks; i++) {
		const uint32_t target = o->group.links[i].target;
		if (m->seen[target])
			continue;
		m->seen[target] = true;
		m->todo[(*n)++] = target;
	}
}

static void check_reachable(struct model *m)
{
	const struct update *u = &m->r->u;
	const uint32_t total = tree_numbers(u->now->tree);
	size_t n = 1;
	memset(m->seen, 0, total * sizeof(*m->seen));
	m->seen[0] = true;
	m->todo[0] = 0;
	while (n) {
		const uint32_t group = m->todo[--n];
		if (m->state[group] & OLD && group < tree_numbers(u->before->tree))
			follow(m, u->before->tree, group, &n);
		if (m->state[group] & NEW)
			follow(m, u->now->tree, group, &n);
	}
	for (uint32_t i = 0; i < total; i++)
		if (u->same[i] != OBJECT_NONE && !m->seen[i])
			fail_msg("object %u cannot be reached", i);
}

static void make_phase(struct model *m, uint32_t phase, bool backwards)
{
	const struct rig *r = m->r;
	const uint32_t n = r->u.change.nchanged;
	for (uint32_t k = 0; k < n; k++) {
		const uint32_t i = backwards ? n - 1 - k : k;
		if (r->first[i] != phase && r->phase[i] != phase)
			continue;
		m->state[r->u.change.changed[i].after] = r->phase[i] == phase ? NEW : OLD | NEW;
		check_reachable(m);
	}
}

static void make_all(const struct rig *r, bool backwards)
{
	const uint32_t total = tree_numbers(r->now.tree);
	struct model m = {.r = r};
	uint32_t last = 0;
	m.state = malloc(total);
	m.seen = calloc(total, sizeof(*m.seen));
	m.todo = calloc(total, sizeof(*m.todo));
	for (uint32_t i = 0; i < total; i++)
		m.state[i] =
			i < tree_numbers(r->before.tree) && tree_object(r->before.tree, i)->linked
				? OLD
				: NEW;
	for (uint32_t i = 0; i < r->u.change.nchanged; i++) {
		assert_true(r->phase[i] >= PHASE_GROUPS);
		assert_true(!r->first[i] ||
			    (r->first[i] >= PHASE_GROUPS && r->first[i] < r->phase[i]));
		last = r->phase[i] > last ? r->phase[i] : last;
	}
	for (uint32_t p = PHASE_GROUPS; p <= last; p++)
		make_phase(&m, p, backwards);
	/* Those that have not changed have the same links in both states. */
	for (uint32_t i = 0; i < r->u.change.nchanged; i++)
		assert_int_equal(m.state[r->u.change.changed[i].after], NEW);
	free(m.state);
	free(m.seen);
	free(m.todo);
}

/* ---- cases ---- */

static void gains_come_before_losses(void **state)
{
	struct rig r;
	uint32_t first;
	struct tree *a = tree_of(4, 4), *b = tree_of(4, 4);
	for (int i = 0; i < 2; i++) {
		link_to(i ? b : a, 0, 1);
		link_to(i ? b : a, 0, 2);
		link_to(i ? b : a, i ? 2 : 1, 3);
	}
	rig_begin(&r, a, b, 4);
	assert_int_equal(phase_of(&r, 2, &first), PHASE_GROUPS);
	assert_int_equal(first, 0);
	assert_int_equal(phase_of(&r, 1, &first), PHASE_GROUPS + 2);
	assert_int_equal(first, 0);
	make_all(&r, false);
	rig_end(&r);
}

/* Two groups exchange what they have. */
static void a_circle_is_cut(void **state)
{
	struct rig r;
	uint32_t first[2];
	struct tree *a = tree_of(5, 4), *b = tree_of(5, 4);
	for (int i = 0; i < 2; i++) {
		link_to(i ? b : a, 0, 1);
		link_to(i ? b : a, 0, 2);
		link_to(i ? b : a, i ? 2 : 1, 3);
		link_to(i ? b : a, i ? 1 : 2, 4);
	}
	rig_begin(&r, a, b, 5);
	const uint32_t one = phase_of(&r, 1, &first[0]), two = phase_of(&r, 2, &first[1]);
	/* One of them is put twice, the other between. */
	assert_true(!first[0] != !first[1]);
	assert_int_equal(first[0] ? first[0] : first[1], PHASE_GROUPS);
	assert_int_equal(first[0] ? two : one, PHASE_GROUPS + 1);
	assert_int_equal(first[0] ? one : two, PHASE_GROUPS + 2);
	make_all(&r, false);
	rig_end(&r);
}

/* A group and the one in it change places. */
static void a_group_goes_into_its_own(void **state)
{
	struct rig r;
	struct tree *a = tree_of(3, 4), *b = tree_of(3, 4);
	link_to(a, 0, 1);
	link_to(a, 1, 2);
	link_to(b, 0, 2);
	link_to(b, 2, 1);
	rig_begin(&r, a, b, 3);
	make_all(&r, false);
	make_all(&r, true);
	rig_end(&r);
}

/* New groups of new groups have the moved object. */
static void new_groups_carry_objects(void **state)
{
	struct rig r;
	uint32_t first;
	struct tree *a = tree_of(4, 4), *b = tree_of(6, 4);
	for (int i = 0; i < 2; i++) {
		link_to(i ? b : a, 0, 1);
		link_to(i ? b : a, 0, 2);
	}
	link_to(a, 1, 3);
	link_to(b, 2, 4);
	link_to(b, 4, 5);
	link_to(b, 5, 3);
	link_to(b, 5, 4); /* a circle of new groups */
	rig_begin(&r, a, b, 4);
	assert_true(phase_of(&r, 2, &first) < phase_of(&r, 1, &first));
	make_all(&r, false);
	rig_end(&r);
}

/* ---- random trees ---- */

static uint32_t below(uint64_t *seed, uint32_t n)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33) % n;
}

/* Each object but some has a link in a group that is reachable without it. */
static struct tree *random_links(uint64_t *seed, uint32_t n)
{
	struct tree *t = tree_of(n, n);
	uint32_t order[64];
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	for (uint32_t i = n - 1; i > 1; i--) {
		const uint32_t k = 1 + below(seed, i), old = order[i];
		order[i] = order[k];
		order[k] = old;
	}
	const uint32_t used = n - below(seed, n / 4 + 1);
	for (uint32_t i = 1; i < used; i++) {
		link_to(t, order[below(seed, i)], order[i]);
		if (below(seed, 4) == 0)
			link_to(t, order[below(seed, used)], order[i]);
	}
	return t;
}

static void any_objects_may_move(void **state)
{
	uint64_t seed = 1;
	for (unsigned int i = 0; i < 2000; i++) {
		struct rig r;
		const uint32_t n = 3 + below(&seed, 20), more = below(&seed, 5);
		struct tree *before = random_links(&seed, n);
		rig_begin(&r, before, random_links(&seed, n + more), n);
		make_all(&r, false);
		make_all(&r, true);
		rig_end(&r);
	}
}

/* ---- many: one step for each pair of groups would outlast the time limit of the test ---- */

enum { MANY = 100000 };

static void order_many(bool is_circle)
{
	struct rig r;
	struct tree *a = tree_of(2 * MANY + 1, 2), *b = tree_of(2 * MANY + 1, 2);
	struct tree *both[] = {a, b};
	for (unsigned int k = 0; k < 2; k++) {
		struct object *root = tree_edit(both[k], 0);
		root->group.links =
			arena_array(tree_arena(both[k]), MANY, sizeof(*root->group.links));
		root->group.nlinks = MANY;
		for (uint32_t i = 0; i < MANY; i++) {
			char name[16];
			const int n = snprintf(name, sizeof(name), "%06u", i);
			root->group.links[i] = (struct link){
				.name = arena_strndup(tree_arena(both[k]), name, (size_t)n),
				.utf8 = true,
				.cls = LINK_HARD,
				.target = i + 1};
		}
	}
	/* Each group gives its object to the next one. */
	for (uint32_t i = 0; i < MANY; i++) {
		link_to(a, 1 + i, 1 + MANY + i);
		if (is_circle || i + 1 < MANY)
			link_to(b, 1 + (i + 1) % MANY, 1 + MANY + i);
		else
			link_to(b, 1 + i, 1 + MANY + i);
	}
	rig_begin(&r, a, b, 2 * MANY + 1);
	assert_in_range(r.u.change.nchanged, MANY - 1, MANY);
	rig_end(&r);
}

static void many_groups_are_ordered(void **state)
{
	order_many(false);
	order_many(true);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(gains_come_before_losses),	 TEST(a_circle_is_cut),
		TEST(a_group_goes_into_its_own), TEST(new_groups_carry_objects),
		TEST(any_objects_may_move),	 TEST(many_groups_are_ordered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
