/* SPDX-License-Identifier: Apache-2.0 */
/* Raw data in external files. */
#ifndef H5FILE_EXTERNAL_H
#define H5FILE_EXTERNAL_H

#include "h5file_internal.h"

/* Reads the external file list of a dataset whose raw data have `need` bytes, and opens the files.
 * Fails with -EIO if the list is damaged or its entries have fewer bytes, with -EOPNOTSUPP if a
 * file cannot be used or is far too short, and with -ENOMEM. */
int external_open(struct h5file *f, struct cursor *message, uint64_t need,
		  const struct h5file_pieces **out, struct err *err);
/* Reads n bytes of the raw data, within `need`. Any thread may call this function. */
int external_read(const struct h5file_pieces *p, uint64_t offset, uint8_t *to, size_t n,
		  struct err *err);

#endif
