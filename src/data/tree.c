/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finishing a tree: hard links without a usable target are dropped, and the objects that are
 * reachable from the root group get a breadth-first order and reference counts. Other objects are
 * not rendered. HDF5 permits cycles of groups, so each object is visited once.
 */
#include <data/tree.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_OBJECTS = 16 };

struct problem {
	const char *text;
	enum tree_problem_kind kind;
	struct problem *next;
};

struct tree {
	struct arena *arena, *attributes;
	uint32_t numbers, capacity;
	struct tree_object *objects; /* by number */
	uint32_t *order;
	uint32_t count, missing;
	struct problem *problems, **problems_end;
	uint32_t nproblems[TREE_PROBLEM_KINDS];
};

struct tree *tree_new(size_t limit)
{
	struct tree *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->problems_end = &t->problems;
	t->arena = arena_new(limit);
	t->attributes = arena_new(limit);
	if (!t->arena || !t->attributes) {
		tree_free(t);
		return NULL;
	}
	return t;
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->numbers; i++)
		object_release(&t->objects[i].o);
	free(t->objects);
	free(t->order);
	arena_free(t->arena);
	arena_free(t->attributes);
	free(t);
}

struct arena *tree_arena(struct tree *t)
{
	return t->arena;
}

struct arena *tree_attributes_arena(struct tree *t)
{
	return t->attributes;
}

int tree_add(struct tree *t, uint32_t *number, struct err *err)
{
	if (t->numbers == TREE_MAX_OBJECTS)
		return err_set(err, -E2BIG, "more than %u objects", TREE_MAX_OBJECTS);
	if (t->numbers == t->capacity) {
		uint32_t capacity = t->capacity ? 2 * t->capacity : FIRST_OBJECTS;
		struct tree_object *objects =
			reallocarray(t->objects, capacity, sizeof(*t->objects));
		if (!objects)
			return err_set(err, -ENOMEM, "out of memory: %u objects", capacity);
		t->objects = objects;
		t->capacity = capacity;
	}
	memset(&t->objects[t->numbers], 0, sizeof(*t->objects));
	*number = t->numbers++;
	return 0;
}

struct object *tree_edit(struct tree *t, uint32_t number)
{
	return &t->objects[number].o;
}

void tree_break(struct tree *t, uint32_t number, const char *id)
{
	struct tree_object *object = &t->objects[number];
	object_release(&object->o);
	*object = (struct tree_object){.o = {.id = id}, .broken = true};
}

void tree_leave_unread(struct tree *t, uint32_t number)
{
	struct tree_object *object = &t->objects[number];
	const char *id = object->o.id;
	object_release(&object->o);
	object->o =
		(struct object){.id = id, .kind = OBJECT_DATASET, .dataset.committed = OBJECT_NONE};
	object->unread = true;
}

void tree_mark_read(struct tree *t, uint32_t number)
{
	t->objects[number].unread = false;
}

void tree_note(struct tree *t, enum tree_problem_kind kind, const char *fmt, ...)
{
	char raw[ERR_MAX];
	struct err printable = ERR_INIT; /* err_set() replaces bytes that cannot be printed */
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	t->nproblems[kind]++;
	if (tree_problems(t) > TREE_MAX_PROBLEMS)
		return;
	err_set(&printable, -EIO, "%s", raw);
	struct problem *problem = arena_alloc(t->arena, sizeof(*problem));
	if (!problem)
		return;
	problem->kind = kind;
	problem->text = arena_strndup(t->arena, printable.msg, strlen(printable.msg));
	if (!problem->text)
		return;
	*t->problems_end = problem;
	t->problems_end = &problem->next;
}

static bool usable(const struct tree *t, uint32_t number)
{
	return number < t->numbers && !t->objects[number].broken;
}

static void enqueue(struct tree *t, uint32_t number)
{
	if (t->objects[number].linked)
		return;
	t->objects[number].linked = true;
	t->order[t->count++] = number;
}

static void drop_dangling(struct tree *t, struct object *group)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < group->group.nlinks; i++) {
		struct link *link = &group->group.links[i];
		if (link->cls == LINK_HARD && !usable(t, link->target)) {
			const char *id = NULL;
			if (link->target < t->numbers) {
				t->objects[link->target].missing = true;
				id = t->objects[link->target].o.id;
			}
			tree_note(t, TREE_DAMAGE,
				  "group %s: hard link \"%s\" is left out: no usable object %s",
				  group->id, link->name, id ? id : "");
			continue;
		}
		group->group.links[kept++] = *link;
	}
	group->group.nlinks = kept;
}

/* Shares the committed type if it is in the tree and equal. Otherwise the object uses the copy in
 * its document. */
static void share_committed(struct tree *t, uint32_t *committed, const struct dtype *type,
			    const char *id, const char *what)
{
	if (*committed == OBJECT_NONE)
		return;
	const struct tree_object *target = usable(t, *committed) ? &t->objects[*committed] : NULL;
	if (!target || target->o.kind != OBJECT_DATATYPE ||
	    !dtype_equal(target->o.datatype, type)) {
		tree_note(t, TREE_DAMAGE,
			  "object %s: %s: the committed type %s; the copy in the object is used",
			  id, what, target ? "differs" : "is not in the domain");
		*committed = OBJECT_NONE;
		return;
	}
	t->objects[*committed].refcount++;
	enqueue(t, *committed);
}

static void visit_object(struct tree *t, uint32_t number)
{
	struct object *o = &t->objects[number].o;
	for (uint32_t i = 0; i < o->nattrs; i++)
		share_committed(t, &o->attrs[i].committed, o->attrs[i].type, o->id,
				o->attrs[i].name);
	if (o->kind == OBJECT_DATASET) {
		share_committed(t, &o->dataset.committed, o->dataset.type, o->id, "dataset");
	} else if (o->kind == OBJECT_GROUP) {
		drop_dangling(t, o);
		for (uint32_t i = 0; i < o->group.nlinks; i++) {
			const struct link *link = &o->group.links[i];
			if (link->cls != LINK_HARD)
				continue;
			t->objects[link->target].refcount++;
			enqueue(t, link->target);
		}
	}
}

int tree_finish(struct tree *t, struct err *err)
{
	if (t->numbers == 0 || t->objects[0].o.kind != OBJECT_GROUP || t->objects[0].broken)
		return err_set(err, -EIO, "the root object is not a group");
	/* The results of an earlier tree_finish() do not count. */
	free(t->order);
	t->order = NULL;
	t->count = t->missing = 0;
	for (uint32_t i = 0; i < t->numbers; i++) {
		struct tree_object *o = &t->objects[i];
		o->refcount = 0;
		o->linked = o->missing = false;
	}
	t->order = calloc(t->numbers, sizeof(*t->order));
	if (!t->order)
		return err_set(err, -ENOMEM, "out of memory: %u objects", t->numbers);
	/* Free the memory for objects that were never added. */
	struct tree_object *objects = reallocarray(t->objects, t->numbers, sizeof(*t->objects));
	if (objects) {
		t->objects = objects;
		t->capacity = t->numbers;
	}
	t->objects[0].refcount = 1;
	enqueue(t, 0);
	for (uint32_t i = 0; i < t->count; i++)
		visit_object(t, t->order[i]);
	for (uint32_t number = 0; number < t->numbers; number++)
		if (t->objects[number].missing)
			t->order[t->count + t->missing++] = number;
	return 0;
}

void tree_drop_attributes(struct tree *t, void (*take)(void *ctx, uint32_t i, struct object *o),
			  void *ctx)
{
	for (uint32_t i = 0; i < t->count; i++)
		take(ctx, i, &t->objects[t->order[i]].o);
	for (uint32_t i = 0; i < t->numbers; i++)
		object_drop_attributes(&t->objects[i].o);
	arena_free(t->attributes);
	t->attributes = NULL;
}

uint32_t tree_numbers(const struct tree *t)
{
	return t->numbers;
}

const struct tree_object *tree_object(const struct tree *t, uint32_t number)
{
	return &t->objects[number];
}

const struct user_block *tree_user_block(const struct tree *t)
{
	const struct object *root = tree_numbers(t) ? &tree_object(t, 0)->o : NULL;
	return root && root->kind == OBJECT_GROUP ? root->group.user_block : NULL;
}

uint32_t tree_count(const struct tree *t)
{
	return t->count;
}

uint32_t tree_missing(const struct tree *t)
{
	return t->missing;
}

uint32_t tree_nth(const struct tree *t, uint32_t i)
{
	return t->order[i];
}

const uint32_t *tree_order(const struct tree *t)
{
	return t->order;
}

static const struct problem *nth_problem(const struct tree *t, uint32_t n)
{
	const struct problem *problem = t->problems;
	while (problem && n--)
		problem = problem->next;
	return problem;
}

const char *tree_problem(const struct tree *t, uint32_t n)
{
	const struct problem *problem = nth_problem(t, n);
	return problem ? problem->text : NULL;
}

enum tree_problem_kind tree_problem_kind(const struct tree *t, uint32_t n)
{
	return nth_problem(t, n)->kind;
}

uint32_t tree_problems(const struct tree *t)
{
	uint32_t n = 0;
	for (size_t kind = 0; kind < TREE_PROBLEM_KINDS; kind++)
		n += t->nproblems[kind];
	return n;
}

uint32_t tree_problems_of(const struct tree *t, enum tree_problem_kind kind)
{
	return t->nproblems[kind];
}

uint64_t tree_memory(const struct tree *t)
{
	return sizeof(*t) + arena_used(t->arena) + (t->attributes ? arena_used(t->attributes) : 0) +
	       (uint64_t)t->capacity * sizeof(*t->objects) + t->count * sizeof(*t->order);
}
