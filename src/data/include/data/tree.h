/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree: the objects of one domain or file in memory, numbered from 0, the root group. It knows
 * neither where it came from nor how it is shown. A loader adds objects, fills them in and finishes
 * the tree; what follows from all objects together is found then: which of them are reachable, in
 * which order, and by how many links.
 *
 * One thread fills a tree. From when it is handed on it is constant, and any thread may read it.
 */
#ifndef DATA_TREE_H
#define DATA_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>
#include <data/object.h>

enum { TREE_MAX_OBJECTS = 1 << 20 };

struct tree_object {
	struct object o;
	uint32_t refcount; /* hard links from reachable groups (root: +1), plus for committed types
			      each dataset and attribute that shares it */
	bool broken;	   /* it could not be read: not reachable */
	bool linked;	   /* it is in the order */
	bool missed;	   /* a hard link leads to it, but it is broken */
};

struct tree;

/* limit: bytes of the tree's arena. NULL without memory. */
struct tree *tree_new(size_t limit);
void tree_free(struct tree *t);

/* ---- filling ---- */

/* For all that the objects point at, and what else lives as long as the tree. */
struct arena *tree_arena(struct tree *t);
/* A new object; the first is the root group. -E2BIG, -ENOMEM. */
int tree_add(struct tree *t, uint32_t *number, struct err *err);
/* To be filled in. Valid until the next tree_add(). What it points at must be the arena's, but for
 * elems, which become the tree's. */
struct object *tree_edit(struct tree *t, uint32_t number);
/* The object could not be read: whatever it holds is released, and links to it will be left out.
 * id: for messages; the arena's. */
void tree_break(struct tree *t, uint32_t number, const char *id);
/* Notes a problem: an object or a part that was left out. */
void tree_note(struct tree *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Drops hard links to broken objects, orders what is reachable, counts references, and keeps shared
 * types where the committed type is there and the same. -EIO: the root object is not a group;
 * -ENOMEM. */
int tree_finish(struct tree *t, struct err *err);

/* ---- reading ---- */

/* Upper limit of numbers, for tables indexed by number. */
uint32_t tree_numbers(const struct tree *t);
/* Of any number; also before the tree is finished. */
const struct tree_object *tree_object(const struct tree *t, uint32_t number);
/* Reachable objects in breadth-first order of their first link; [0] is the root group. */
uint32_t tree_count(const struct tree *t);
uint32_t tree_nth(const struct tree *t, uint32_t i);
/* Objects that would be reachable if they could be read. */
uint32_t tree_missed(const struct tree *t);
/* All that are reachable, and behind them all that are missed; borrowed. */
const uint32_t *tree_order(const struct tree *t);
/* The n-th problem, NULL past the end. At most TREE_MAX_PROBLEMS are kept. */
enum { TREE_MAX_PROBLEMS = 1000 };
const char *tree_problem(const struct tree *t, uint32_t n);
/* Problems, also those that are not kept. */
uint32_t tree_problems(const struct tree *t);
/* Memory that it holds, but for the values of attributes and fill values; bytes. */
uint64_t tree_memory(const struct tree *t);

#endif
