/* SPDX-License-Identifier: Apache-2.0 */
/* Transposes arrays: brings the elements of a chunk whose axes were stored in another order back to
 * C order. */
#ifndef CODEC_TRANSPOSE_H
#define CODEC_TRANSPOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <data/dtype.h>

enum { TRANSPOSE_MAX_RANK = DTYPE_MAX_RANK };

/* How to copy an array whose elements have `unit` bytes. It has only axes that need a loop. */
struct transpose {
	size_t unit; /* bytes that stay together */
	uint32_t rank;
	struct {
		size_t n;
		size_t from;	    /* bytes from one index to the next in the stored array */
		size_t to;	    /* and in the decoded one */
	} axes[TRANSPOSE_MAX_RANK]; /* in the order of the decoded array */
};

/* Plans a transposition. `rank` is at most TRANSPOSE_MAX_RANK. `shape` is that of the decoded
 * array, whose size in bytes fits a size_t. `order` is a permutation: axis i of the stored array is
 * axis order[i] of the decoded one. */
void transpose_plan(struct transpose *t, size_t elem_size, uint32_t rank, const uint64_t *shape,
		    const uint32_t *order);
/* Returns whether both arrays have the same bytes, so that nothing needs to be copied. */
static inline bool transpose_is_identity(const struct transpose *t)
{
	return t->rank == 0;
}
/* Copies a whole array that has elements. The plan is not the identity. `to` and `from` do not
 * overlap. */
void transpose_copy(const struct transpose *t, uint8_t *to, const uint8_t *from);

#endif
