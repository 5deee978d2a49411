/* SPDX-License-Identifier: Apache-2.0 */
/* Describes HDF5 types, shapes, filters, sizes and paths for people. */
#ifndef DATA_DESCRIBE_H
#define DATA_DESCRIBE_H

#include <base/str.h>
#include <data/tree.h>

void describe_type(struct str *out, const struct dtype *t);
/* Describes the first difference of two types that are not dtype_equal(): what b has instead of
 * what a has, such as "member \"x\": int16 instead of int32". */
void describe_type_diff(struct str *out, const struct dtype *a, const struct dtype *b);
void describe_space(struct str *out, const struct dspace *s);
void describe_chunk(struct str *out, const struct grid *g);
/* Describes filters as "shuffle, deflate(6)" or "none". */
void describe_filters(struct str *out, const struct pipeline *p);

/* Describes a size as "999 bytes" or "1.2 MB", where 1 MB is a million bytes. */
void describe_size(struct str *out, uint64_t bytes);

/* The first link to each object, in breadth-first order. */
struct object_paths;
/* Returns NULL if out of memory. */
struct object_paths *object_paths_new(const struct tree *t);
/* Makes paths without links, for a walk that adds each link when it follows it. The root is object
 * 0. Returns NULL if out of memory. */
struct object_paths *object_paths_none(uint32_t numbers);
/* Adds a link to an object, unless one is known. name is borrowed. */
void object_paths_add(struct object_paths *p, uint32_t number, uint32_t parent, const char *name);
void object_paths_free(struct object_paths *p);
/* Describes the path of an object by its number: "/a/b". Control characters in names are escaped.
 */
void describe_path(struct str *out, const struct object_paths *p, uint32_t number);

#endif
