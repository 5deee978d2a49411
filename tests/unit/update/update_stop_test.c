/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates that stop after each of their operations. The numbered invariants of update/update.h are
 * checked with another reader of the bucket. Then the update is completed, by the same process or
 * by a later one, and the bucket must have the same content as without the stop.
 */
#include "update_edits.h"
#include <overlay/draft_plan.h>

/* The sanitizers are slow: with them, an update stops only after some of its operations. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { EVERY = 4 };
#else
enum { EVERY = 1 };
#endif

/* ---- cases ---- */

static void no_preparation(struct draft *d)
{
}

/* Two groups have objects with the same name. */
static void equal_names(struct draft *d)
{
	edit_rename(d, edit_path(d, "b"), "inner", "empty");
}

static void exchange_targets(struct draft *d)
{
	const uint64_t a = edit_path(d, "a"), b = edit_path(d, "b");
	const uint64_t x = edit_target(d, a, "empty"), y = edit_target(d, b, "empty");
	edit_relink(d, a, "empty", y);
	edit_relink(d, b, "empty", x);
}

static void exchange_links(struct draft *d)
{
	const uint64_t a = edit_path(d, "a"), b = edit_path(d, "b");
	const uint64_t x = edit_target(d, a, "empty"), y = edit_target(d, b, "empty");
	edit_unlink(d, a, "empty");
	edit_unlink(d, b, "empty");
	edit_add_link(d, a, "empty", 50, y);
	edit_add_link(d, b, "empty", 51, x);
}

/* Three groups pass their objects on. */
static void three_equal_names(struct draft *d)
{
	equal_names(d);
	edit_rename(d, edit_path(d, "d"), "again", "empty");
}

static void pass_on(struct draft *d)
{
	const char *const groups[] = {"a", "b", "d"};
	uint64_t group[3], target[3];
	for (unsigned int i = 0; i < 3; i++) {
		group[i] = edit_path(d, groups[i]);
		target[i] = edit_target(d, group[i], "empty");
	}
	for (unsigned int i = 0; i < 3; i++)
		edit_relink(d, group[i], "empty", target[(i + 1) % 3]);
}

/* The dataset has lost a part, and has its shape again. */
static void lose_and_grow_back(struct draft *d)
{
	edit_lose_chunk(d);
	edit_fill_chunk(d);
}

/* Chunks at the edge are only a part of the shape. */
static void cut_through_chunks(struct draft *d)
{
	edit_resize(d, edit_path(d, "grid"), 0, 3);
}

/* All chunks of the shape that shrinks and grows are written. */
static void shrink_grow_and_fill(struct draft *d)
{
	for (unsigned int i = 0; i < 5; i++)
		fill_chunk(d, i, (int32_t)(500 + i));
	edit_resize(d, edit_path(d, "grid"), 1, 3);
	edit_resize(d, edit_path(d, "grid"), 0, 9);
}

static const struct {
	const char *name;
	void (*prepare)(struct draft *d);
	void (*make)(struct draft *d);
} more[] = {
	{"equal names lead elsewhere", equal_names, exchange_targets},
	{"equal names are made again", equal_names, exchange_links},
	{"three groups pass objects on", three_equal_names, pass_on},
	{"a dataset shrinks and grows back", no_preparation, lose_and_grow_back},
	{"a dataset with new chunks shrinks and grows", no_preparation, shrink_grow_and_fill},
	{"chunks at the edge grow and shrink", cut_through_chunks, shrink_grow_and_fill},
};
enum { MORE = sizeof(more) / sizeof(more[0]) };

struct stop_case {
	const char *name;
	void (*prepare)(struct draft *d);
	void (*make)(struct draft *d);
};

static struct stop_case case_of(unsigned int i)
{
	if (i < EDITS)
		return (struct stop_case){edits[i].name, no_preparation, edits[i].make};
	return (struct stop_case){more[i - EDITS].name, more[i - EDITS].prepare,
				  more[i - EDITS].make};
}

static struct world *begin(const struct stop_case *c)
{
	struct world *w = world_begin();
	if (c->prepare != no_preparation) {
		c->prepare(w->draft);
		gate_open(w->gate);
		if (world_update(w))
			fail_msg("%s: %s", c->name, w->err.msg);
	}
	w->begun = 0;
	return w;
}

/* ---- the domain at some time ---- */

static uint32_t find_id(const struct tree *t, const char *id)
{
	for (uint32_t i = 0; i < tree_count(t); i++)
		if (strcmp(tree_object(t, tree_nth(t, i))->o.id, id) == 0)
			return tree_nth(t, i);
	return OBJECT_NONE;
}

/* The states of a domain: before the update, at a stop, and after the update. */
struct states {
	const char *name;
	unsigned int stop;
	struct opened before, now;
	const struct opened *after;
};

static const struct object *object_at(const struct opened *o, uint32_t number)
{
	return &tree_object(domain_tree(o->domain), number)->o;
}

/* 1. A link never names an object whose document is not there. 4. A domain document names a root
 * whose whole tree is there. */
static void check_1_and_4(struct world *w, struct states *s)
{
	opened_begin(w, &s->now); /* fails if something is missing or damaged */
}

/* 3. An object that stays is reachable at every moment. */
static void check_3(const struct states *s)
{
	const struct tree *before = domain_tree(s->before.domain);
	for (uint32_t i = 0; i < tree_count(before); i++) {
		const char *id = tree_object(before, tree_nth(before, i))->o.id;
		if (find_id(domain_tree(s->after->domain), id) != OBJECT_NONE &&
		    find_id(domain_tree(s->now.domain), id) == OBJECT_NONE)
			fail_msg("%s, stop %u: object %s cannot be reached", s->name, s->stop, id);
	}
}

static const struct link *find_link(const struct object *group, const char *name)
{
	for (uint32_t i = 0; i < group->group.nlinks; i++)
		if (strcmp(group->group.links[i].name, name) == 0)
			return &group->group.links[i];
	return NULL;
}

/* A link that stays has its name and its target. All links of the file are hard links. */
static void check_links(const struct states *s, const struct object *a, const struct opened *o,
			const struct object *b)
{
	for (uint32_t i = 0; i < a->group.nlinks; i++) {
		const struct link *x = &a->group.links[i], *y = find_link(b, x->name);
		if (!y ||
		    strcmp(object_at(&s->before, x->target)->id, object_at(o, y->target)->id) != 0)
			continue;
		assert_int_not_equal(x->created_ns, 0);
		if (x->created_ns != y->created_ns)
			fail_msg("%s, stop %u: link %s of %s has another time of creation", s->name,
				 s->stop, x->name, a->id);
	}
}

/* 5. The object of an id keeps its type, its chunk shape and its time of creation, and so do links
 * that stay. o: at a stop, or after the update. */
static void check_5(const struct states *s, const struct opened *o)
{
	const struct tree *before = domain_tree(s->before.domain);
	for (uint32_t i = 0; i < tree_count(before); i++) {
		const struct object *a = &tree_object(before, tree_nth(before, i))->o;
		const uint32_t number = find_id(domain_tree(o->domain), a->id);
		if (number == OBJECT_NONE)
			continue;
		const struct object *b = object_at(o, number);
		assert_int_equal(a->kind, b->kind);
		assert_int_not_equal(a->created_ns, 0);
		assert_int_equal(a->created_ns, b->created_ns);
		if (a->kind == OBJECT_GROUP)
			check_links(s, a, o, b);
		if (a->kind != OBJECT_DATASET)
			continue;
		assert_true(dtype_equal(a->dataset.type, b->dataset.type));
		assert_int_equal(a->dataset.grid.rank, b->dataset.grid.rank);
		assert_memory_equal(a->dataset.grid.chunk, b->dataset.grid.chunk,
				    a->dataset.grid.rank * sizeof(a->dataset.grid.chunk[0]));
	}
}

/* ---- 2. elements ---- */

/* One chunk of a dataset at one time. */
struct part {
	const struct dataset *ds;
	struct elems elems;
	bool has;
};

/* What a reader finds in the chunk at these coordinates; ds is NULL if there is no dataset. */
static struct part part_of(const struct opened *o, const char *id, const struct grid *grid,
			   uint64_t chunk)
{
	struct part p = {.ds = NULL};
	uint64_t coords[DSPACE_MAX_RANK];
	const uint32_t number = find_id(domain_tree(o->domain), id);
	if (number == OBJECT_NONE)
		return p;
	p.ds = &object_at(o, number)->dataset;
	const uint32_t at = h5file_at(o->file, image_header(o->image, number));
	grid_coords(grid, chunk, coords);
	for (uint32_t i = 0; i < grid->rank; i++)
		if (coords[i] >= p.ds->grid.count[i])
			return p;
	p.has = world_elements(o->file, at, grid_number(&p.ds->grid, coords), &p.elems);
	return p;
}

static bool is_inside(const struct dataset *ds, const uint64_t *at)
{
	for (uint32_t i = 0; ds && i < ds->grid.rank; i++)
		if (at[i] >= ds->grid.dims[i])
			return false;
	return ds != NULL;
}

static uint8_t byte_of(const struct part *p, uint64_t element, uint64_t k)
{
	const uint64_t size = p->ds->type->size;
	if (p->has)
		return p->elems.fixed.data[element * size + k];
	return k < p->ds->fill.fixed.len ? p->ds->fill.fixed.data[k] : 0;
}

static bool same_element(const struct part *a, const struct part *b, uint64_t element)
{
	for (uint64_t k = 0; k < a->ds->type->size; k++)
		if (byte_of(a, element, k) != byte_of(b, element, k))
			return false;
	return true;
}

/* Each element that a reader sees is the old one or the new one at its place. */
static void check_chunk(const struct states *s, const char *id, const struct grid *grid,
			uint64_t chunk)
{
	uint64_t first[DSPACE_MAX_RANK], at[DSPACE_MAX_RANK];
	struct part now = part_of(&s->now, id, grid, chunk);
	struct part old = part_of(&s->before, id, grid, chunk);
	struct part new = part_of(s->after, id, grid, chunk);
	grid_coords(grid, chunk, first);
	for (uint64_t e = 0; e < grid->chunk_elems; e++) {
		uint64_t rest = e;
		for (uint32_t i = grid->rank; i-- > 0; rest /= grid->chunk[i])
			at[i] = first[i] * grid->chunk[i] + rest % grid->chunk[i];
		if (!is_inside(now.ds, at) ||
		    (is_inside(old.ds, at) && same_element(&now, &old, e)) ||
		    (is_inside(new.ds, at) && same_element(&now, &new, e)))
			continue;
		fail_msg("%s, stop %u: element %llu of chunk %llu of %s is neither old nor new",
			 s->name, s->stop, (unsigned long long)e, (unsigned long long)chunk, id);
	}
	elems_release(&now.elems);
	elems_release(&old.elems);
	elems_release(&new.elems);
}

/* 2. A document never describes a shape within which there are chunks of another shape. */
static void check_2(const struct states *s)
{
	const struct tree *t = domain_tree(s->now.domain);
	for (uint32_t i = 0; i < tree_count(t); i++) {
		const struct object *o = &tree_object(t, tree_nth(t, i))->o;
		if (o->kind != OBJECT_DATASET || o->dataset.type->has_vlen ||
		    o->dataset.type->has_ref)
			continue;
		for (uint64_t k = 0; k < o->dataset.grid.nchunks; k++)
			check_chunk(s, o->id, &o->dataset.grid, k);
	}
}

/* ---- the journal ---- */

/* 6. Nothing is put before the plan and its bodies are durable, and nothing is forgotten before it
 * is done. */
static void check_6(struct world *w, const struct states *s, unsigned int changes)
{
	struct plan plan;
	unsigned int done = 0;
	const int rc = draft_get_plan(w->draft, &plan, NULL);
	if (rc) {
		assert_int_equal(changes, 0);
		return;
	}
	for (uint32_t i = 0; i < plan.count; i++)
		done += plan.operations[i].done;
	if (done > changes)
		fail_msg("%s, stop %u: %u operations are noted, %u were made", s->name, s->stop,
			 done, changes);
	plan_release(&plan);
}

/* ---- stops ---- */

/* What an update does that nothing stops. */
struct whole {
	char *content; /* of the bucket */
	/* first: the number of the first PUT or DELETE. All of them follow each other. */
	unsigned int requests, changes, first;
	struct world *w;
	struct opened after;
};

/* An opened domain has pointers to itself, so it is not copied. */
static void run_whole(const struct stop_case *c, struct whole *all)
{
	all->w = begin(c);
	c->make(all->w->draft);
	gate_open(all->w->gate);
	if (world_update(all->w))
		fail_msg("%s: %s", c->name, all->w->err.msg);
	all->requests = all->w->gate->n;
	all->changes = world_changes(all->w);
	all->first = all->w->gate->last_change + 1 - all->changes;
	all->content = gate_content(all->w->gate, "");
	opened_begin(all->w, &all->after);
}

static void complete(struct world *w, const struct states *s, bool same_process)
{
	if (!same_process) {
		world_recover(w);
	} else if (world_update(w)) {
		fail_msg("%s, stop %u: %s", s->name, s->stop, w->err.msg);
	}
}

/* Request n does not come back, and none follows. lost: it has reached the bucket, so it will be
 * made twice (invariant 7). */
static void stop_at(const struct stop_case *c, const struct whole *all, unsigned int n, bool lost,
		    bool same_process)
{
	struct states s = {.name = c->name, .stop = n, .after = &all->after};
	struct world *w = begin(c);
	opened_begin(w, &s.before);
	c->make(w->draft);
	gate_fail(w->gate, n, -EHOSTUNREACH);
	w->gate->later = true;
	w->gate->after = lost;
	assert_int_equal(world_update(w), -EHOSTUNREACH);
	const unsigned int done = n + 1 - all->first - (lost ? 0 : 1);
	const unsigned int changes = done < all->changes ? done : all->changes;
	gate_open(w->gate);
	assert_int_equal(w->begun, 1);
	check_1_and_4(w, &s);
	check_2(&s);
	check_3(&s);
	check_5(&s, &s.now);
	check_5(&s, s.after);
	check_6(w, &s, changes);
	complete(w, &s, same_process);
	auto_free char *end = gate_content(w->gate, "");
	if (strcmp(end, all->content) != 0)
		fail_msg("%s, stop %u: the bucket is not the same", c->name, n);
	/* What was removed is known, whoever has completed the update. */
	assert_int_equal(w->result.removed != GC_NONE, all->w->result.removed != GC_NONE);
	opened_end(&s.now);
	opened_end(&s.before);
	world_end(w);
}

static void stop_everywhere(bool lost, bool same_process)
{
	for (unsigned int i = 0; i < EDITS + MORE; i++) {
		const struct stop_case c = case_of(i);
		struct whole all;
		run_whole(&c, &all);
		/* After the changes, the update asks whether the domain still has them. */
		for (unsigned int n = all.first + i % EVERY; all.changes && n <= all.requests;
		     n += EVERY)
			stop_at(&c, &all, n, lost, same_process);
		free(all.content);
		opened_end(&all.after);
		world_end(all.w);
	}
}

static void invariants_1_to_6_hold_before_each_operation(void **state)
{
	stop_everywhere(false, true);
}

static void a_later_process_completes_each_stop(void **state)
{
	stop_everywhere(false, false);
}

static void invariant_7_each_operation_may_be_done_twice(void **state)
{
	stop_everywhere(true, true);
	stop_everywhere(true, false);
}

/* 8. A failed condition ends the update: no further operation begins, and the plan stays. */
static void invariant_8_a_failed_condition_ends_the_update(void **state)
{
	char key[SCHEMA_KEY_MAX + 1];
	struct plan plan;
	struct world *w = world_begin();
	edit_circle(w->draft);
	gate_open(w->gate);
	gate_fail(w->gate, 3, -EHOSTUNREACH); /* both documents were read */
	w->gate->later = true;
	assert_int_equal(world_update(w), -EHOSTUNREACH);
	gate_open(w->gate);
	world_key(w, "b", key);
	gate_put(w->gate, key, "{}", 2);
	world_key(w, "a", key);
	gate_put(w->gate, key, "{}", 2);
	assert_int_equal(world_update(w), -ESTALE);
	assert_int_equal(draft_get_plan(w->draft, &plan, NULL), 0);
	for (uint32_t i = 0; i < plan.count; i++)
		assert_false(plan.operations[i].done);
	plan_release(&plan);
	auto_free char *text = world_text(w, key);
	assert_string_equal(text, "{}");
	world_end(w);
}

/* Nothing is put if another program has changed one of many documents, or one that is removed. All
 * documents are asked for in one round. */
static void versions_are_asked_for_first(void **state)
{
	const char *const paths[] = {"b", "b/inner"}; /* removed, and removed with it */
	for (unsigned int i = 0; i < 2; i++) {
		char key[SCHEMA_KEY_MAX + 1];
		struct world *w = world_begin();
		edit_delete_group(w->draft);
		world_key(w, paths[i], key);
		auto_free char *text = world_text(w, key);
		auto_free char *more_text = NULL;
		assert_true(asprintf(&more_text, "%s ", text) > 0);
		gate_put(w->gate, key, more_text, strlen(more_text));
		world_must_fail(w, -ESTALE, false);
		/* The root group, and the four objects that are removed. */
		assert_int_equal(w->gate->ops[STORE_GET], 1);
		assert_in_range(w->gate->ops[STORE_HEAD], 1, 4);
		world_end(w);
	}
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(invariants_1_to_6_hold_before_each_operation),
		TEST(a_later_process_completes_each_stop),
		TEST(invariant_7_each_operation_may_be_done_twice),
		TEST(invariant_8_a_failed_condition_ends_the_update),
		TEST(versions_are_asked_for_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
