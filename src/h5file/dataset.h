/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets. */
#ifndef H5FILE_DATASET_H
#define H5FILE_DATASET_H

#include "object_header.h"

/* Fills in the object h->number of the tree as a dataset, and *info, which it allocates. References
 * in the fill value keep the addresses of the file. */
int dataset_read(struct h5file *f, const struct header *h, struct dataset_info **info,
		 struct err *err);

#endif
