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

/* Opens the dataset at an absolute path, whose leading slash may be left out. At most 16 soft links
 * are followed. source is borrowed until h5file_one_close(). Fails with -ENOENT if a link of the
 * path does not exist, with -EINVAL if the object is no dataset, with -EIO if a structure is
 * damaged, with -EOPNOTSUPP, with -ENOMEM, and with -EAGAIN. */
int h5file_one_open(struct source *source, const char *path, struct h5file_one **out,
		    struct err *err);
void h5file_one_close(struct h5file_one *one); /* one may be NULL */

/* Returns the grid, the pipeline and the layout in the file. Valid until h5file_one_close(). */
const struct h5file_dataset *h5file_one_dataset(const struct h5file_one *one);

/* Returns the offset in the source to which addresses of chunks are relative: the size of the user
 * block. */
uint64_t h5file_one_base(const struct h5file_one *one);

/* Finds chunk `number` of the file's grid; a contiguous or compact dataset has the chunks of its
 * cut (see h5file.h). Sets *stored to false if the chunk is absent. */
int h5file_one_chunk(struct h5file_one *one, uint64_t number, bool *stored,
		     struct h5file_chunk *out, struct err *err);

#endif
