/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HDF5 objects in memory: a schema fills them in from the documents of a bucket, and an image
 * renders them. Objects are numbered; links, references and uses of committed types hold the number
 * of their target. What a struct object points to is in the arena of its tree, except for the
 * buffers of struct elems, which object_release() frees.
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
#include <data/reference.h>
#include <data/shard.h>
#include <data/user_block.h>

#define OBJECT_NONE UINT32_MAX

enum object_kind { OBJECT_GROUP, OBJECT_DATASET, OBJECT_DATATYPE };

struct attribute {
	const char *name; /* UTF-8, no NUL inside, not empty */
	const struct dtype *type;
	uint32_t committed; /* number of the committed type, or OBJECT_NONE */
	struct dspace space;
	struct elems value; /* space.nelems elements */
	int64_t created_ns; /* since the epoch; 0 if unknown */
};

/* Returns the bytes of the value in a file, including unset elements. */
static inline uint64_t attribute_bytes(const struct attribute *a)
{
	return a->space.nelems * a->type->size;
}

/* LINK_USER stands for a link class that a program has registered; only that program can follow it.
 */
enum link_class { LINK_HARD = 0, LINK_SOFT = 1, LINK_EXTERNAL = 64, LINK_USER = 65 };

struct link {
	const char *name; /* no "/" and no NUL inside, not empty; may be invalid UTF-8 */
	bool utf8;	  /* name is valid UTF-8 (ASCII included) */
	enum link_class cls;
	uint32_t target;    /* of a hard link: object number */
	const char *path;   /* of a soft or external link: path of the object */
	const char *domain; /* of an external link: as stored, an HSDS domain path or a file name */
	int64_t created_ns;
};

enum layout_class { LAYOUT_COMPACT, LAYOUT_CONTIGUOUS, LAYOUT_CHUNKED };
/* Where the raw data of a dataset are. Schemas only store RAW_STORED. */
enum raw_data {
	RAW_STORED,	/* in the domain or file itself */
	RAW_EXTERNAL,	/* in external files */
	RAW_VIRTUAL,	/* in other datasets: a virtual dataset */
	RAW_STRUCTURED, /* in structured chunks: layout version 5 */
};
enum alloc_time { ALLOC_TIME_EARLY = 1, ALLOC_TIME_LATE = 2, ALLOC_TIME_INCR = 3 };
enum fill_time { FILL_TIME_ALLOC = 0, FILL_TIME_NEVER = 1, FILL_TIME_IFSET = 2 };

/* Elements that are computed where no chunk is stored. */
enum initializer {
	INITIALIZER_NONE,
	INITIALIZER_ARANGE,
	/* A chunk table. Records of chunks of it that are not stored are in the chunk index of the
	 * file: see struct dataset.indexed. */
	INITIALIZER_CHUNK_LOCATOR,
};

struct codec_chain;

struct dataset {
	const struct dtype *type;
	uint32_t committed;
	struct dspace space;
	enum layout_class requested; /* of the creation properties; a hint */
	enum raw_data raw;
	/* The chunk shape of the creation properties, grid.rank numbers; NULL if it is that of the
	 * grid. */
	const uint32_t *requested_chunk;
	/* Grid of the stored chunks. For a scalar dataspace it has rank 1 and one chunk of one
	 * element. For a null dataspace or one without elements, nchunks is 0. */
	struct grid grid;
	uint32_t nfilters;
	const struct filter *filters; /* as recorded; see dataset_pipeline() */
	/* Of a dataset of a domain: how a stored chunk becomes elements (codec/chain.h). */
	const struct codec_chain *chain;
	/* The chunks begin behind a gap after the metadata, even if they are small: each costs a
	 * request. Only datasets of files that are never written have it. */
	bool keep_apart;
	bool fill_defined; /* the creation properties have a fill value */
	struct elems fill; /* one element, if fill_defined */
	enum alloc_time alloc_time;
	enum fill_time fill_time;
	enum initializer initializer;
	double arange_start, arange_step;
	const struct reference_file *indexed; /* of INITIALIZER_CHUNK_LOCATOR: file and dataset */
	const struct reference *reference;    /* NULL if the domain has the raw data itself */
	const struct shard *shard;	      /* the outermost shards; NULL if there are none */
	/* If it is NULL, a chunk that is not stored has computed elements or the fill value.
	 * Otherwise a listing cannot prove that a chunk is absent, and this is the reason. */
	const char *absence_unknown;
	/* The reason is a defect of the reference, of which there is a note. No chunk can be read.
	 */
	bool reference_damaged;
	const void *locator; /* private to the schema: how it finds chunks */
};

/* Gives the filters of a dataset as a struct pipeline, which is too large to be kept for each
 * dataset. */
static inline void dataset_pipeline(const struct dataset *ds, struct pipeline *out)
{
	out->n = ds->nfilters;
	for (uint32_t i = 0; i < ds->nfilters; i++)
		out->f[i] = ds->filters[i];
}

/* Returns whether chunks are ranges of objects or files, so that one request can read several. */
static inline bool dataset_is_in_ranges(const struct dataset *ds)
{
	return ds->reference || ds->shard;
}

struct object {
	enum object_kind kind;
	const char *id; /* of the service, for messages and extended attributes */
	int64_t created_ns, modified_ns;
	/* The comment, or NULL if the object has none. It has no NUL inside and is not empty; it
	 * may be invalid UTF-8. */
	const char *comment;
	bool attrs_ordered; /* attribute creation order is tracked */
	uint32_t nattrs;
	struct attribute *attrs; /* in creation order (ties by name) */
	union {
		struct {
			uint32_t nlinks;
			struct link *links; /* in creation order (ties by name) */
			/* Creation order of the links is tracked. If not, they are in the order of
			 * their names. */
			bool links_ordered;
			/* Of the root group: the user block of the file, or NULL if it has none. */
			const struct user_block *user_block;
		} group;
		struct dataset dataset;
		const struct dtype *datatype;
	};
};

/* Frees the values of the attributes. The object has none afterwards. */
void object_drop_attributes(struct object *o);
/* Frees the elems of an object. The object itself belongs to the arena. */
void object_release(struct object *o);

/* Turns the text of a reference ("datasets/d-…", "g-…") into object number + 1, or 0 if it is null
 * or unknown. A decoder of stored values gets one from its caller. */
struct object_resolver {
	uint64_t (*resolve)(void *ctx, const char *text, size_t n);
	void *ctx;
};
static inline uint64_t object_resolve(const struct object_resolver *r, const char *text, size_t n)
{
	return r && r->resolve ? r->resolve(r->ctx, text, n) : 0;
}

/* The reverse: writes the text of a reference, "datasets/d-…", for object number + 1 = ref. text
 * has OBJECT_REF_TEXT bytes, and the function pads them with NULs. 0 is the null reference, whose
 * text is empty. An encoder of stored values gets one from its caller. */
enum { OBJECT_REF_TEXT = 48 };
struct object_namer {
	void (*name)(void *ctx, uint64_t ref, char *text);
	void *ctx;
};

#endif
