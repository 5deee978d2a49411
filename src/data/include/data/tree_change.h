/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a change of a file means for its objects: compares two trees of which it is known which
 * objects are the same. Both trees were read in the same way, so that equal content gives equal
 * elements. Pure.
 */
#ifndef DATA_TREE_CHANGE_H
#define DATA_TREE_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include <base/mem.h>
#include <data/tree.h>
#include <hsmount/err.h>

#define CHANGE_NONE UINT32_MAX

/* An attribute or a link. before, after: its index in the object of each tree, or CHANGE_NONE.
 * Both: it has another value or target (or another name, if the names differ: a rename, whose time
 * of creation stays). */
struct part_change {
	uint32_t before, after;
};

/* A surviving object that differs. What is not named is equal. */
struct object_change {
	uint32_t before, after; /* numbers of the object in each tree */
	bool shape;		/* the current dimensions of a dataset differ */
	bool reordered;		/* the order of the links or attributes that both have differs */
	uint32_t nattrs, nlinks;
	const struct part_change *attrs,
		*links; /* removed ones first, then in the order of `after` */
};

struct tree_change {
	uint32_t nchanged, nadded, nremoved;
	const struct object_change *changed; /* in the order of the new tree */
	const uint32_t *added;		     /* numbers in the new tree, in its order */
	const uint32_t *removed;	     /* numbers in the old tree, in its order */
};

/* same: for each number of the new tree the number of the same object in the old tree, or
 * OBJECT_NONE. It is a one-to-one relation of objects of one kind; the root groups are the same.
 * Types, fill values and creation properties of surviving datasets are equal (the caller has
 * compared them). Values: NaN equals NaN bit by bit; references are equal if their targets are the
 * same. *out is in the arena. -ENOMEM. */
int tree_change(const struct tree *before, const struct tree *after, const uint32_t *same,
		struct arena *arena, struct tree_change *out, struct err *err);

#endif
