/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files in which an imported HDF5 file has raw data (external file lists). They are found below
 * one directory only. Any thread may read them once they are open.
 */
#ifndef ENGINE_EXTERNAL_FILES_H
#define ENGINE_EXTERNAL_FILES_H

#include <h5file/h5file.h>

struct external_files;

/* dir: a directory. -ENOTDIR and other codes of open(2). */
int external_files_new(const char *dir, struct external_files **out, struct err *err);
void external_files_free(struct external_files *x); /* NULL is fine */
/* For h5file_open(). Valid as long as x. A name is a path below the directory, or an absolute path
 * into it. -EOPNOTSUPP: the name leads out of the directory, or there is no regular file. */
const struct h5file_external *external_files_access(struct external_files *x);
/* -ESTALE: a file that has been opened is not the same any more. */
int external_files_check(const struct external_files *x, struct err *err);

#endif
