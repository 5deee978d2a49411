/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two trees: objects by their position in the hierarchy, not by number or id. The texts
 * say how tree b differs from tree a: "is missing", "is additional", "int16 instead of int32".
 * Pure. */
#ifndef DATA_TREE_DIFF_H
#define DATA_TREE_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <data/tree.h>

enum tree_diff_flags {
	/* compare times of creation and modification, in seconds, where both are known */
	TREE_DIFF_TIMES = 1 << 0,
	TREE_DIFF_FILTERS = 1 << 1, /* compare the filters of datasets */
	TREE_DIFF_GRIDS = 1 << 2,   /* compare the shapes of chunks */
	/* compare the order of links, and of attributes where both objects track it */
	TREE_DIFF_ORDER = 1 << 3,
};
struct tree_diff_sink {
	/* Takes one difference. path is that of the object in both trees, or "(object N)" for a
	 * committed type without a link. text says what differs. A result other than 0 stops the
	 * comparison. */
	int (*difference)(void *ctx, const char *path, const char *text);
	/* Writes the file name that an external link of b must have if the link of a has this one.
	 * Returns 0, or a negative errno if no name corresponds. If it is NULL, the names must be
	 * the same. */
	int (*file_name)(void *ctx, const char *file, char *out, size_t room);
	/* Returns false if the fill value of this dataset of a is not compared. If it is NULL, all
	 * fill values are compared. */
	bool (*has_fill)(void *ctx, uint32_t number);
	void *ctx;
};
/* Reports all differences and stores their number in *n. Which hard links lead to the same object
 * must agree in both trees. Attribute and fill values are compared as elements: two NaNs are equal,
 * references are equal if their targets correspond, and a target without a counterpart corresponds
 * to the null reference. map may be NULL; otherwise it gets tree_numbers(a) numbers: the
 * corresponding objects of b, or OBJECT_NONE. Returns 0 or the result of a callback. Fails with
 * -ENOMEM. */
int tree_diff(const struct tree *a, const struct tree *b, unsigned int flags,
	      const struct tree_diff_sink *sink, uint32_t *map, uint64_t *n, struct err *err);

/* The same for two values of n elements, whose references correspond by map, or by number if map is
 * NULL. Returns the index of the first element that differs, or n if there is none. Bytes after the
 * NUL of a NUL-terminated string and between the members of a compound do not count. An empty
 * sequence equals one without a value; an empty variable-length string does not. */
uint64_t elems_diff(const struct dtype *t, uint64_t n, const struct elems *a, const struct elems *b,
		    const uint32_t *map);
/* Returns whether the two values are the same bit by bit: as above, but two NaNs may differ, bytes
 * after the NUL count, and a target without a counterpart corresponds to nothing. */
bool elems_identical(const struct dtype *t, uint64_t n, const struct elems *a,
		     const struct elems *b, const uint32_t *map);

#endif
