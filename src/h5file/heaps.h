/* SPDX-License-Identifier: Apache-2.0 */
/* The global heap collections to which elements refer. */
#ifndef H5FILE_HEAPS_H
#define H5FILE_HEAPS_H

#include "h5file_internal.h"

/* Calls fn for each collection from which values_decode() would read items of n elements, once. *in
 * has n * h5_dtype_file_size() bytes, which are changed. Returns 0 or the result of fn. Fails with
 * -EIO if a heap reference is damaged, and with -ENOMEM. */
int heaps_visit(struct h5file *f, const struct dtype *t, struct bytes *in, uint64_t n,
		int (*fn)(void *ctx, uint64_t addr, uint64_t size), void *ctx, struct err *err);

#endif
