/* SPDX-License-Identifier: Apache-2.0 */
/* Describes HDF5 types, shapes, filters, sizes and paths for people. */
#ifndef ENGINE_DESCRIBE_H
#define ENGINE_DESCRIBE_H

#include <base/str.h>
#include <data/object.h>
#include <data/tree.h>

void describe_type(struct str *out, const struct dtype *t);
void describe_space(struct str *out, const struct dspace *s);
void describe_chunk(struct str *out, const struct grid *g);
/* "shuffle, deflate(6)"; "none". */
void describe_filters(struct str *out, const struct pipeline *p);

/* "999 bytes", "1.2 MB" (a million bytes). */
void describe_size(struct str *out, uint64_t bytes);

/* The first link to each object, in breadth-first order. */
struct object_paths;
struct object_paths *object_paths_new(const struct tree *t); /* NULL: out of memory */
void object_paths_free(struct object_paths *p);
/* The path of an object by its number: "/a/b". Control characters in names are escaped. */
void describe_path(struct str *out, const struct object_paths *p, uint32_t number);

#endif
