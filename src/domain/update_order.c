/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which groups are put, so that an object that moves is reachable at every moment: a
 * group that gains a link to the object is put before the group that loses it.
 *
 * These requirements may form a circle, as when two objects swap their places. Then one group of
 * the circle is put twice: first with the links of both states, and again when all others have been
 * put. So from the first put on it has all objects that it gains, and until the second put it has
 * all objects that it loses. There is one exception: if a link keeps its name and gets another
 * object, a document cannot have both links. Then the first put leaves the old one.
 */
#include "update_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* "from" has to be put before "to". Both are indexes in change.changed. */
struct edge {
	uint32_t from, to;
};

struct order {
	const struct update *u;
	uint32_t n;		 /* change.nchanged: changed objects, of which some are groups */
	struct bytes edges;	 /* of struct edge */
	uint32_t *losers;	 /* by number in the new scan: index + 1 of a group that loses it */
	struct bytes more;	 /* of struct edge: object, further group that loses it */
	uint32_t *waits;	 /* by index: groups that have to be put before */
	uint32_t *first, *phase; /* see update_order() */
	struct err *err;
};

static int out_of_memory(struct order *o)
{
	return err_set(o->err, -ENOMEM, "out of memory");
}

static const struct object *object_of(const struct scan *s, uint32_t number)
{
	return &tree_object(s->tree, number)->o;
}

static bool is_group(const struct order *o, uint32_t i)
{
	return object_of(o->u->now, o->u->change.changed[i].after)->kind == OBJECT_GROUP;
}

/* ---- lists of edges ---- */

static int compare(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

static void sort(struct bytes *edges)
{
	if (edges->len)
		qsort(edges->data, edges->len / sizeof(struct edge), sizeof(struct edge), compare);
}

/* The first edge that begins at `from` or later. */
static size_t find_from(const struct bytes *edges, uint32_t from)
{
	const struct edge *e = (const void *)edges->data;
	size_t low = 0, high = edges->len / sizeof(*e);
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (e[middle].from < from)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- who loses what ---- */

static int add_loser(struct order *o, uint32_t object, uint32_t group)
{
	if (!o->losers[object]) {
		o->losers[object] = group + 1;
		return 0;
	}
	const struct edge more = {object, group};
	return bytes_append(&o->more, &more, sizeof(more)) ? out_of_memory(o) : 0;
}

/* The number in the new scan of each object of the old one. */
static uint32_t *invert(const struct order *o)
{
	const struct update *u = o->u;
	uint32_t *now = calloc(tree_numbers(u->before->tree), sizeof(*now));
	for (uint32_t i = 0; now && i < tree_numbers(u->now->tree); i++)
		if (u->same[i] != OBJECT_NONE)
			now[u->same[i]] = i + 1;
	return now;
}

static int find_losers(struct order *o)
{
	auto_free uint32_t *now = invert(o);
	int rc = now ? 0 : out_of_memory(o);
	for (uint32_t i = 0; !rc && i < o->n; i++) {
		const struct object_change *c = &o->u->change.changed[i];
		const struct object *old = object_of(o->u->before, c->before);
		for (uint32_t k = 0; !rc && is_group(o, i) && k < c->nlinks; k++) {
			const uint32_t before = c->links[k].before;
			if (before == CHANGE_NONE || old->group.links[before].cls != LINK_HARD)
				continue;
			const uint32_t target = now[old->group.links[before].target];
			if (target)
				rc = add_loser(o, target - 1, i);
		}
	}
	return rc;
}

/* ---- who gains it ---- */

static int add_edge(struct order *o, uint32_t from, uint32_t to)
{
	const struct edge e = {from, to};
	if (from == to)
		return 0;
	return bytes_append(&o->edges, &e, sizeof(e)) ? out_of_memory(o) : 0;
}

static int add_edges(struct order *o, uint32_t gains, uint32_t object)
{
	const struct edge *more = (const void *)o->more.data;
	const size_t n = o->more.len / sizeof(*more);
	int rc = o->losers[object] ? add_edge(o, gains, o->losers[object] - 1) : 0;
	for (size_t i = find_from(&o->more, object); !rc && i < n && more[i].from == object; i++)
		rc = add_edge(o, gains, more[i].to);
	return rc;
}

/* A group that gains a link to a new group gains what that has. */
static int gain(struct order *o, uint32_t group, uint32_t first, uint32_t *seen)
{
	auto_bytes struct bytes todo = {0};
	int rc = bytes_append(&todo, &first, sizeof(first)) ? out_of_memory(o) : 0;
	while (!rc && todo.len) {
		uint32_t object;
		todo.len -= sizeof(object);
		memcpy(&object, todo.data + todo.len, sizeof(object));
		if (o->u->same[object] != OBJECT_NONE) {
			rc = add_edges(o, group, object);
			continue;
		}
		const struct object *new = object_of(o->u->now, object);
		if (new->kind != OBJECT_GROUP || seen[object] == group + 1)
			continue;
		seen[object] = group + 1;
		for (uint32_t i = 0; !rc && i < new->group.nlinks; i++)
			if (new->group.links[i].cls == LINK_HARD &&
			    bytes_append(&todo, &new->group.links[i].target, sizeof(object)))
				rc = out_of_memory(o);
	}
	return rc;
}

static int find_edges(struct order *o)
{
	/* By number: the last group that has gained this new group, + 1. */
	auto_free uint32_t *seen = calloc(tree_numbers(o->u->now->tree), sizeof(*seen));
	int rc = seen ? 0 : out_of_memory(o);
	for (uint32_t i = 0; !rc && i < o->n; i++) {
		const struct object_change *c = &o->u->change.changed[i];
		const struct object *new = object_of(o->u->now, c->after);
		if (!is_group(o, i))
			continue;
		for (uint32_t k = 0; !rc && k < c->nlinks; k++) {
			const uint32_t after = c->links[k].after;
			if (after != CHANGE_NONE && new->group.links[after].cls == LINK_HARD)
				rc = gain(o, i, new->group.links[after].target, seen);
		}
	}
	return rc;
}

/* ---- phases ---- */

/* Removes what occurs twice, and counts for whom each group waits. */
static void count_waits(struct order *o)
{
	struct edge *e = (void *)o->edges.data;
	size_t n = o->edges.len / sizeof(*e), kept = 0;
	sort(&o->edges);
	for (size_t i = 0; i < n; i++)
		if (!kept || compare(&e[i], &e[kept - 1]) != 0)
			e[kept++] = e[i];
	o->edges.len = kept * sizeof(*e);
	for (size_t i = 0; i < kept; i++)
		o->waits[e[i].to]++;
}

/* The groups that wait for this one go on. ready: gets those that wait for nobody else. */
static size_t release(struct order *o, uint32_t group, uint32_t *ready, size_t n)
{
	const struct edge *e = (const void *)o->edges.data;
	const size_t end = o->edges.len / sizeof(*e);
	for (size_t i = find_from(&o->edges, group); i < end && e[i].from == group; i++)
		if (--o->waits[e[i].to] == 0 && !o->first[e[i].to])
			ready[n++] = e[i].to;
	return n;
}

/* A group of a circle, or UINT32_MAX: all have their phase. */
static uint32_t next_waiting(const struct order *o, uint32_t from)
{
	while (from < o->n && (!o->waits[from] || o->first[from] || !is_group(o, from)))
		from++;
	return from < o->n ? from : UINT32_MAX;
}

static int give_phases(struct order *o)
{
	auto_free uint32_t *ready = calloc((size_t)o->n + 1, sizeof(*ready));
	auto_free uint32_t *next = calloc((size_t)o->n + 1, sizeof(*next));
	uint32_t phase = PHASE_GROUPS, from = 0;
	size_t n = 0;
	if (!ready || !next)
		return out_of_memory(o);
	for (uint32_t i = 0; i < o->n; i++)
		if (is_group(o, i) && !o->waits[i])
			ready[n++] = i;
	for (;; phase++) {
		size_t m = 0;
		if (n == 0) {
			from = next_waiting(o, from);
			if (from == UINT32_MAX)
				break;
			o->first[from] = phase;
			ready[n++] = from;
		}
		for (size_t i = 0; i < n; i++) {
			o->phase[ready[i]] = phase;
			m = release(o, ready[i], next, m);
		}
		memcpy(ready, next, m * sizeof(*ready));
		n = m;
	}
	for (uint32_t i = 0; i < o->n; i++)
		if (o->first[i])
			o->phase[i] = phase;
	return 0;
}

int update_order(const struct update *u, uint32_t *first, uint32_t *phase, struct err *err)
{
	struct order o = {
		.u = u, .n = u->change.nchanged, .first = first, .phase = phase, .err = err};
	o.losers = calloc(tree_numbers(u->now->tree), sizeof(*o.losers));
	o.waits = calloc((size_t)o.n + 1, sizeof(*o.waits));
	int rc = o.losers && o.waits ? find_losers(&o) : out_of_memory(&o);
	sort(&o.more);
	if (!rc)
		rc = find_edges(&o);
	if (!rc) {
		count_waits(&o);
		rc = give_phases(&o);
	}
	free(o.losers);
	free(o.waits);
	bytes_release(&o.edges);
	bytes_release(&o.more);
	return rc;
}
