/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HDF5 objects in words, for people: types, shapes, filters, and the path by which an object is
 * reached.
 */
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

/* By which link each object is reached first. */
struct object_paths;
struct object_paths *object_paths_new(const struct tree *t); /* NULL without memory */
void object_paths_free(struct object_paths *p);
/* "/a/b" of an object by number; control characters of names are escaped. */
void describe_path(struct str *out, const struct object_paths *p, uint32_t number);

#endif
