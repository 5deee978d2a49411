/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files in which an imported HDF5 file has raw data (external file lists). They are found below
 * one directory only. Any thread may read them once they are open.
 */
#ifndef ENGINE_EXTERNAL_FILES_H
#define ENGINE_EXTERNAL_FILES_H

#include <h5file/h5file.h>

struct external_files;

/* Opens the directory dir. Returns -ENOTDIR and other codes of open(2). */
int external_files_new(const char *dir, struct external_files **out, struct err *err);
void external_files_free(struct external_files *x); /* x may be NULL */
/* Returns the access for h5file_open(), which is valid as long as x. A name is a path below the
 * directory, or an absolute path into it. Its open() returns -EOPNOTSUPP if the name leads out of
 * the directory, or if there is no regular file. */
const struct h5file_external *external_files_access(struct external_files *x);
/* Returns -ESTALE if a file that has been opened is not the same any more. */
int external_files_check(const struct external_files *x, struct err *err);

#endif
