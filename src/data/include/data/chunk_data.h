/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of one chunk, from its decoder to its last reader: first its elements, then, in an
 * image, the slot that is made of them. Readers ask for ranges. Besides the decoders, those look at
 * `elems` who follow the items of variable-length elements or change them in place: image/load_slot
 * (file form), ranges/place_index (one record) and check/ (comparison). They get whole elements as
 * they are in memory, because they do not accept shuffled ones.
 *
 * Constant while several threads read it.
 */
#ifndef DATA_CHUNK_DATA_H
#define DATA_CHUNK_DATA_H

#include <data/elems.h>

struct chunk_data {
	struct elems elems; /* in a slot, the heap has global heap collections of the file */
	/* How elems.fixed gives the bytes. If both sizes are 0: as they are in memory. */
	uint32_t shuffled; /* size of an element: byte 0 of every element comes first, and so on */
	uint32_t run;	   /* size of an element: all elements are equal, and elems has one */
	bool has_adler;	   /* the adler32 (RFC 1950) of elems.fixed is known */
	uint32_t adler32;  /* and is this */
};

/* Copies bytes [at, at + n), as they are in memory. Bytes past the end are zeros, except that all
 * bytes of shuffled elements must exist. */
void chunk_data_read(const struct chunk_data *d, uint64_t at, void *out, size_t n);
/* Does the same with the bytes of the heap. */
void chunk_data_read_heap(const struct chunk_data *d, uint64_t at, void *out, size_t n);
/* Makes a run of a plain element of `size` bytes. Its bytes are borrowed as long as the run is
 * used. NULL is an element of zeros. */
struct chunk_data chunk_data_run(const struct elems *element, uint32_t size);
/* Returns the bytes of memory that are freed with the chunk. */
size_t chunk_data_memory(const struct chunk_data *d);
void chunk_data_release(struct chunk_data *d); /* d may be NULL */

#endif
