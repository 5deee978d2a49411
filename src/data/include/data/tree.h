/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree: the objects of one domain or file in memory, numbered from 0, the root group. It depends
 * neither on its source nor on how it is rendered. A loader adds objects, fills them in and
 * finishes the tree. tree_finish() finds which objects are reachable, orders them and counts
 * references.
 *
 * One thread fills a tree. A finished tree is constant, and any thread may read it.
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
	/* Hard links in reachable groups, one more for the root group. For a committed type also
	 * every dataset and attribute that shares it. */
	uint32_t refcount;
	bool broken;  /* it could not be read */
	bool linked;  /* it is reachable and in tree_order() */
	bool missing; /* it is broken, and a reachable group has a hard link to it */
	/* A dataset that the loader has not read, because the caller does not need its content. It
	 * has no type and no attributes. */
	bool unread;
};

struct tree;

/* limit is the size of the tree's arena in bytes. Returns NULL if out of memory. */
struct tree *tree_new(size_t limit);
void tree_free(struct tree *t);

/* ---- filling ---- */

/* The arena has everything that objects point to, and other data with the lifetime of the tree. */
struct arena *tree_arena(struct tree *t);
/* The arena for what only attributes point to. tree_drop_attributes() frees it. */
struct arena *tree_attributes_arena(struct tree *t);
/* Adds an object. The first one is the root group. Returns -E2BIG if there are TREE_MAX_OBJECTS, or
 * -ENOMEM. */
int tree_add(struct tree *t, uint32_t *number, struct err *err);
/* Returns the object, for the loader to fill in. The pointer is valid until the next tree_add().
 * What the object points to is in the arena; the tree takes ownership of its elems. */
struct object *tree_edit(struct tree *t, uint32_t number);
/* Marks an object as broken: it could not be read. Releases its contents; tree_finish() drops links
 * to it. id is for messages, and is in the arena. */
void tree_break(struct tree *t, uint32_t number, const char *id);
/* Makes the object a dataset that is unread, and releases its contents. The loader may fill it in
 * later, and mark it as read. */
void tree_leave_unread(struct tree *t, uint32_t number);
void tree_mark_read(struct tree *t, uint32_t number);
/* Why the tree leaves something out, or shows it in another form than it is stored in. */
enum tree_problem_kind {
	TREE_DAMAGE,	  /* it is damaged */
	TREE_UNSUPPORTED, /* it may be sound, but this program cannot read it */
	TREE_ALTERED,	  /* it is sound, and a file cannot show it as it is */
};
enum { TREE_PROBLEM_KINDS = TREE_ALTERED + 1 };
/* Records a problem of an object or of a part of one. */
void tree_note(struct tree *t, enum tree_problem_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Drops hard links to broken objects, orders the reachable objects and counts references. A type is
 * shared only if the committed type is in the tree and equal. May be called again after objects
 * were broken or links were removed. Returns -EIO if the root object is not a group, or -ENOMEM. */
int tree_finish(struct tree *t, struct err *err);
/* Frees the attributes of all objects. No other thread may use the tree meanwhile. Before that,
 * take() is called with each reachable object, the i-th in the order of the tree. It may take over
 * values of the object's attributes, and leaves empty ones. */
void tree_drop_attributes(struct tree *t, void (*take)(void *ctx, uint32_t i, struct object *o),
			  void *ctx);

/* ---- reading ---- */

/* All numbers are less than this value, which is the size of a table indexed by number. */
uint32_t tree_numbers(const struct tree *t);
/* Returns the object with a number, also before the tree is finished. */
const struct tree_object *tree_object(const struct tree *t, uint32_t number);
/* Returns the user block of the file, or NULL if it has none. */
const struct user_block *tree_user_block(const struct tree *t);
/* Returns the number of reachable objects. They are in breadth-first order of their first link. */
uint32_t tree_count(const struct tree *t);
/* Returns the number of the i-th reachable object; the 0-th is the root group. */
uint32_t tree_nth(const struct tree *t, uint32_t i);
/* Returns how many objects are missing. */
uint32_t tree_missing(const struct tree *t);
/* Returns the numbers of the reachable objects, and then of the missing ones. They are borrowed. */
const uint32_t *tree_order(const struct tree *t);
/* Return the n-th problem and its kind. The text is NULL past the end, where there is no kind. The
 * tree keeps the first TREE_MAX_PROBLEMS. */
enum { TREE_MAX_PROBLEMS = 1000 };
const char *tree_problem(const struct tree *t, uint32_t n);
enum tree_problem_kind tree_problem_kind(const struct tree *t, uint32_t n);
/* Return how many problems there are, and how many of one kind, including those that are not
 * kept. */
uint32_t tree_problems(const struct tree *t);
uint32_t tree_problems_of(const struct tree *t, enum tree_problem_kind kind);
/* Returns the bytes of memory of the tree, without the values of attributes and fill values. */
uint64_t tree_memory(const struct tree *t);

#endif
