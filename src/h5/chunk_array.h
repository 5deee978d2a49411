/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What indexes that are arrays share (implicit, fixed array, extensible array): the numbering of
 * their elements, and the reading of blocks.
 *
 * The elements of an array are the chunks of the maximum extent in row-major order. An extensible
 * array has one dimension without a limit, which is the slowest one, so that elements keep their
 * numbers when the dataset grows. A "digit" is a coordinate of a chunk in this order of dimensions.
 */
#ifndef H5_CHUNK_ARRAY_H
#define H5_CHUNK_ARRAY_H

#include "index_walk.h"

enum {
	ARRAY_MAX_BLOCK =
		64 << 20, /* bytes of a block that is read at once; pages have a few KiB */
	ARRAY_MAX_BOXES = 2 * DSPACE_MAX_RANK + 1,
	ARRAY_CHECKSUM = 4,
};

/* Digits lo[i] to hi[i], both included. */
struct chunk_box {
	uint64_t lo[DSPACE_MAX_RANK], hi[DSPACE_MAX_RANK];
};

struct chunk_array {
	const struct index_walk *walk;
	const char *what;	       /* "fixed array", for messages */
	uint64_t addr;		       /* of the header, to which blocks point */
	uint8_t client;		       /* id in headers and blocks; 1 if the chunks are filtered */
	uint32_t dim[DSPACE_MAX_RANK]; /* the dimension of each digit */
	uint64_t stride[DSPACE_MAX_RANK]; /* what a digit adds to the number of an element */
	uint64_t needed;		  /* elements up to the last one of the range */
	uint32_t nboxes;		  /* the range as boxes that do not intersect */
	struct chunk_box box[ARRAY_MAX_BOXES];
};

/* slowest is the dimension of the first digit. Fails with -EOPNOTSUPP if there are more than 2^64
 * elements. */
int array_init(struct chunk_array *a, const struct index_walk *w, const char *what,
	       uint32_t slowest, struct err *err);

/* Elements of the range that follow each other. */
struct array_run {
	uint64_t element, n;
	uint64_t number, step; /* of the first chunk, and from chunk to chunk */
};
/* Finds the first elements of the range that are not before `element`. */
bool array_next(const struct chunk_array *a, uint64_t element, struct array_run *run);
/* Returns true if any of these elements is in the range. */
bool array_wanted(const struct chunk_array *a, uint64_t element, uint64_t end);
/* Passes on the chunks in an array of entries, whose first element is `element`. */
int array_entries(const struct chunk_array *a, uint64_t element, struct cursor entries,
		  struct err *err);

/* Reads n bytes, the last of which are a checksum, and checks it. Unless magic is NULL (a page),
 * checks the signature, version and client id, too. The caller frees *raw, also after a failure. *c
 * gets the bytes after those, without the checksum. */
int array_read(const struct chunk_array *a, uint64_t addr, uint64_t n, const char *magic,
	       uint8_t **raw, struct cursor *c, struct err *err);
/* Returns the bytes of signature, version, client id and the address of the header. */
unsigned int array_prefix(const struct chunk_array *a);
/* Checks the address of the header in a block. */
int array_owner(const struct chunk_array *a, uint64_t addr, struct cursor *c, struct err *err);
int array_damaged(const struct chunk_array *a, uint64_t addr, const char *why, struct err *err);

int farray_walk(const struct index_walk *w, struct err *err);
int earray_walk(const struct index_walk *w, struct err *err);

#endif
