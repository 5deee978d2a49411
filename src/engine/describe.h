/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HDF5 objects in words, for people: types, shapes, filters, and the path by which an object is
 * reached. All return 0 or -ENOMEM.
 */
#ifndef ENGINE_DESCRIBE_H
#define ENGINE_DESCRIBE_H

#include <base/mem.h>
#include <data/object.h>
#include <data/tree.h>

int describe_type(struct bytes *out, const struct dtype *t);
int describe_space(struct bytes *out, const struct dspace *s);
int describe_chunk(struct bytes *out, const struct grid *g);
/* "shuffle, deflate(6)"; "none". */
int describe_filters(struct bytes *out, const struct pipeline *p);

/* By which link each object is reached first. */
struct object_paths;
struct object_paths *object_paths_new(const struct tree *t); /* NULL without memory */
void object_paths_free(struct object_paths *p);
/* "/a/b" of an object by number; control characters of names are escaped. */
int describe_path(struct bytes *out, const struct object_paths *p, uint32_t number);

#endif
