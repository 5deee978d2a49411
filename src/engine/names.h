/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in the mount and paths in the bucket. They are the same but for one rule: the file of a
 * domain whose last component has no extension is called after it plus ".h5" (a "bare" domain).
 * Pure functions.
 */
#ifndef ENGINE_NAMES_H
#define ENGINE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#define NAMES_SUFFIX ".h5"

enum {
	NAMES_MAX = 255,   /* bytes of one name */
	NAMES_SUFFIXES = 3 /* a bare domain's name may grow by as many suffixes to be unique */
};

/* The last component. */
const char *names_last(const char *path);
/* Length of what is before the last component, without the slash; 0 at the top. */
size_t names_parent_len(const char *path);
/* A "." after the first character. */
bool names_has_extension(const char *name);
/* Ends with ".h5" and has something in front of it. */
bool names_has_suffix(const char *name);
/* Ends as files that programs write with libhdf5 or netCDF are called. */
bool names_is_hdf5(const char *name);
/* n bytes can be a name in a directory: no "/" or NUL, not "." or "..", not too long. */
bool names_ok(const char *name, size_t n);

/* Heap, NULL without memory. */
char *names_join(const char *dir, const char *name);
char *names_with_suffix(const char *path, unsigned int times);

/* image_file_name_fn: a domain's path to its file's path, in place. -ENAMETOOLONG. */
int names_of_domain(char *path, size_t cap);

#endif
