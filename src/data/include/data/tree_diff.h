/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two trees: objects by their place in the hierarchy, not by number or id. Pure. */
#ifndef DATA_TREE_DIFF_H
#define DATA_TREE_DIFF_H

#include <stdint.h>

#include <hsmount/err.h>
#include <data/tree.h>

enum tree_diff_flags {
	TREE_DIFF_TIMES = 1 << 0,   /* compare times of creation and modification, in seconds */
	TREE_DIFF_FILTERS = 1 << 1, /* compare the filters of datasets */
	TREE_DIFF_GRIDS = 1 << 2,   /* compare the shapes of chunks */
	TREE_DIFF_ORDER = 1 << 3,   /* compare the order of links and attributes */
};
struct tree_diff_sink {
	/* One difference. path: of the object, in both trees. text: what differs. Non-zero stops.
	 */
	int (*difference)(void *ctx, const char *path, const char *text);
	void *ctx;
};
/* Reports all differences and stores their number in *n. Which hard links lead to the same object
 * must agree in both trees. Attribute and fill values are compared as elements: two NaNs are equal,
 * references are equal if their targets correspond. map: NULL, or tree_numbers(a) numbers that
 * become the corresponding objects of b (OBJECT_NONE: none). -ENOMEM, or the result of a callback.
 */
int tree_diff(const struct tree *a, const struct tree *b, unsigned int flags,
	      const struct tree_diff_sink *sink, uint32_t *map, uint64_t *n, struct err *err);

/* The same for two values of n elements, whose references correspond by map (NULL: by number).
 * Returns the index of the first element that differs; n: none. */
uint64_t elems_diff(const struct dtype *t, uint64_t n, const struct elems *a, const struct elems *b,
		    const uint32_t *map);

#endif
