/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HDF5 objects of one domain as plain data: what a schema reads from a bucket and what an
 * image is rendered from. Objects are numbered; a link, a reference and a committed type name
 * their target by number. Everything a struct object points at lives in the domain's arena, except
 * struct elems (own buffers, released by object_release).
 */
#ifndef DATA_OBJECT_H
#define DATA_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <data/dspace.h>
#include <data/dtype.h>
#include <data/elems.h>
#include <data/filter.h>

#define OBJECT_NONE UINT32_MAX

enum object_kind { OBJECT_GROUP, OBJECT_DATASET, OBJECT_DATATYPE };

struct attribute {
	const char *name; /* UTF-8, no NUL inside, not empty */
	const struct dtype *type;
	uint32_t committed; /* number of the committed type, or OBJECT_NONE */
	struct dspace space;
	struct elems value; /* space.nelems elements */
	int64_t created_ns; /* since the epoch; 0 unknown */
};

/* Bytes of its value: all of it, set or not. */
static inline uint64_t attribute_bytes(const struct attribute *a)
{
	return a->space.nelems * a->type->size;
}

enum link_class { LINK_HARD = 0, LINK_SOFT = 1, LINK_EXTERNAL = 64 };

struct link {
	const char *name; /* no "/" and no NUL inside, not empty; may be invalid UTF-8 */
	bool utf8;	  /* name is valid UTF-8 (ASCII included) */
	enum link_class cls;
	uint32_t target;    /* hard: object number */
	const char *path;   /* soft, external: path of the object */
	const char *domain; /* external: as stored, an HSDS domain path or a file name */
	int64_t created_ns;
};

enum layout_class { LAYOUT_COMPACT, LAYOUT_CONTIGUOUS, LAYOUT_CHUNKED };
enum alloc_time { ALLOC_TIME_EARLY = 1, ALLOC_TIME_LATE = 2, ALLOC_TIME_INCR = 3 };
enum fill_time { FILL_TIME_ALLOC = 0, FILL_TIME_NEVER = 1, FILL_TIME_IFSET = 2 };

/* Elements that are computed where no chunk is stored. */
enum initializer { INITIALIZER_NONE, INITIALIZER_ARANGE };

struct dataset {
	const struct dtype *type;
	uint32_t committed;
	struct dspace space;
	enum layout_class requested; /* what the creator asked for; a hint */
	struct grid grid; /* the stored chunks; scalar: rank 1, one chunk of one element; null and
			     zero-size dataspaces: nchunks 0 */
	uint32_t nfilters;
	const struct filter *filters; /* as recorded; see dataset_pipeline() */
	bool fill_defined;	      /* a fill value was given */
	struct elems fill;	      /* one element, when fill_defined */
	enum alloc_time alloc_time;
	enum fill_time fill_time;
	enum initializer initializer;
	double arange_start, arange_step;
	/* NULL: a chunk that is not stored has computed elements or the fill value. Else why its
	 * value cannot be known: no listing proves that such a chunk is absent. */
	const char *elsewhere;
	const void *locator; /* the schema's own: where chunks are */
};

/* A dataset holds no more filters than it has; what works on pipelines gets one made for it. */
static inline void dataset_pipeline(const struct dataset *ds, struct pipeline *out)
{
	out->n = ds->nfilters;
	for (uint32_t i = 0; i < ds->nfilters; i++)
		out->f[i] = ds->filters[i];
}

struct object {
	enum object_kind kind;
	const char *id; /* as the service names it, for messages and xattrs */
	int64_t created_ns, modified_ns;
	bool attrs_ordered; /* attribute creation order is tracked */
	uint32_t nattrs;
	struct attribute *attrs; /* in creation order (ties by name) */
	union {
		struct {
			uint32_t nlinks;
			struct link *links; /* in creation order (ties by name) */
		} group;
		struct dataset dataset;
		const struct dtype *datatype;
	};
};

/* Frees the elems inside; the object itself stays the arena's. */
void object_release(struct object *o);

/* From the text of a reference ("datasets/d-…", "g-…") to object number + 1; 0 = null or unknown.
 * Handed to whoever meets references in foreign bytes. */
struct object_resolver {
	uint64_t (*resolve)(void *ctx, const char *text, size_t n);
	void *ctx;
};
static inline uint64_t object_resolve(const struct object_resolver *r, const char *text, size_t n)
{
	return r && r->resolve ? r->resolve(r->ctx, text, n) : 0;
}

#endif
