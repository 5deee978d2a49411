/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One dataset of an HDF5 file, found by its path. Only the structures on the way are read: the
 * superblock, the headers and link structures of the groups of the path, the header of the dataset,
 * and of its chunk index the nodes that lead to the chunk that is asked for.
 *
 * All functions that read may fail with -EAGAIN; see base/source.h. They can then be called again
 * with the same arguments. One thread at a time.
 */
#ifndef H5FILE_ONE_H
#define H5FILE_ONE_H

#include <stdbool.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/source.h>
#include <h5file/h5file.h>

struct h5file_one;

/* Opens the dataset at an absolute path, or one with a leading slash left out. Soft links are
 * followed, at most 16. source: borrowed until h5file_one_close(). -ENOENT: a link of the path does
 * not exist; -EINVAL: the object is no dataset; -EIO: damaged; -EOPNOTSUPP; -ENOMEM; -EAGAIN. */
int h5file_one_open(struct source *source, const char *path, struct h5file_one **out,
		    struct err *err);
void h5file_one_close(struct h5file_one *one); /* NULL is fine */

/* Type, dataspace, grid, pipeline and layout. Valid until close. */
const struct h5file_dataset *h5file_one_dataset(const struct h5file_one *one);
const struct dataset *h5file_one_description(const struct h5file_one *one);

/* The offset in the source to which addresses of chunks are relative: the size of the user block.
 */
uint64_t h5file_one_base(const struct h5file_one *one);

/* Finds chunk `number` of the file's grid. Of a contiguous or compact dataset, the one chunk of its
 * cut (see h5file.h). *stored false: it is absent. */
int h5file_one_chunk(struct h5file_one *one, uint64_t number, bool *stored,
		     struct h5file_chunk *out, struct err *err);

#endif
