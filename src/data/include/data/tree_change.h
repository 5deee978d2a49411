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

/* A part of an object that has changed: an attribute or a link. before and after are its index in
 * the object of each tree, or CHANGE_NONE.
 *
 * A part with only `after` was added, and one with only `before` was removed. A part with both and
 * the same name has another value or target. A part with both and different names was renamed, and
 * has the same value or target; its time of creation stays.
 *
 * If the order is tracked, a part that was renamed is still at its position in the order. A part
 * with a new name at another position counts as removed and added. If the order is not tracked,
 * removed and added parts with the same content count as renamed only if there are as many of the
 * one as of the other. They are then paired in their order. */
struct part_change {
	uint32_t before, after;
};

/* A surviving object that differs. What is not named is equal. */
struct object_change {
	uint32_t before, after; /* numbers of the object in each tree */
	bool shape;		/* the current dimensions of a dataset differ */
	bool user_block;	/* that of the file, which belongs to the root group */
	bool comment;		/* the comment was set, changed or removed */
	/* Both trees track the order of the attributes or links, and the new order is not the usual
	 * one: those that stay or were renamed in their old order, and then those that were added.
	 */
	bool reordered;
	uint32_t nattrs, nlinks;
	/* Removed ones first, then in the order of the new tree. */
	const struct part_change *attrs, *links;
};

struct tree_change {
	uint32_t nchanged, nadded, nremoved;
	const struct object_change *changed; /* in the order of the new tree */
	const uint32_t *added;		     /* numbers in the new tree, in its order */
	const uint32_t *removed;	     /* numbers in the old tree, in its order */
};

/* same has, for each number of the new tree, the number of the same object in the old tree, or
 * OBJECT_NONE. It is a one-to-one relation of objects of one kind; the root groups are the same.
 * Types, ranks, maximum dimensions, fill values and creation properties of surviving datasets are
 * equal (the caller has compared them). No object of the new tree is missing: one that could not be
 * read would look as if it were removed.
 *
 * A dataset that is unread in the new tree has not changed. If it is read in the new tree, it must
 * be read in the old one.
 *
 * Only linked objects are compared. An object that is linked in one of the trees only is added or
 * removed. Values are compared bit by bit, but not between the members of compounds. References are
 * equal if their targets are the same or both are null. Of a user-defined link only the class and
 * the name are known. *out is in the arena. Returns -EINVAL if a tree is not finished or the above
 * does not hold (fill values and creation properties are not checked), or -ENOMEM. */
int tree_change(const struct tree *before, const struct tree *after, const uint32_t *same,
		struct arena *arena, struct tree_change *out, struct err *err);

#endif
