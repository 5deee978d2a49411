/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of datatypes share. */
#ifndef DATA_DTYPE_LOCAL_H
#define DATA_DTYPE_LOCAL_H

#include <data/dtype.h>

/* Elements and bytes of an array type. 0, -EINVAL (rank 0, a zero dimension) or -E2BIG. */
int dtype_array_extent(const struct dtype *base, uint32_t rank, const uint32_t *dims,
		       uint64_t *nelems, uint32_t *size, struct err *err);

/* Names of members, each not empty and UTF-8, no two equal: 0, -EINVAL, -ENOMEM. Sorts the array
 * of pointers, O(n log n). */
int dtype_check_names(const char **names, uint32_t n, struct err *err);

#endif
