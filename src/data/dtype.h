/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the files of datatypes share. */
#ifndef DATA_DTYPE_LOCAL_H
#define DATA_DTYPE_LOCAL_H

#include <data/dtype.h>

/* Computes the number of elements and bytes of an array type. Fails with -EINVAL if the rank or a
 * dimension is 0, and with -E2BIG. */
int dtype_array_extent(const struct dtype *base, uint32_t rank, const uint32_t *dims,
		       uint64_t *nelems, uint32_t *size, struct err *err);

/* Checks that the names of members are not empty and all different, and returns -EINVAL if not.
 * Sorts the array of pointers. Takes O(n log n) time. */
int dtype_check_names(const char **names, uint32_t n, struct err *err);

#endif
