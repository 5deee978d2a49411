/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of all chunk indexes share: see h5/index.h. */
#ifndef H5_INDEX_WALK_H
#define H5_INDEX_WALK_H

#include <h5/index.h>

struct index_walk {
	const struct h5_file *f;
	const struct h5_layout *layout;
	const struct dspace *space;
	const struct grid *grid;
	bool filtered;
	uint64_t chunk_bytes;		  /* of a chunk that is not filtered */
	uint64_t first, end;		  /* first < end <= grid->nchunks */
	uint64_t lo[DSPACE_MAX_RANK];	  /* coordinates of chunk `first` */
	uint64_t hi[DSPACE_MAX_RANK];	  /* coordinates of chunk `end` - 1 */
	uint64_t stride[DSPACE_MAX_RANK]; /* what a coordinate adds to the number of a chunk */
	const struct h5_bt1_known *known; /* or NULL */
	h5_index_fn fn;
	void *ctx;
};

/* Checks a chunk of the range, and calls fn. If its addr is H5_UNDEF, the chunk is absent. */
int index_found(const struct index_walk *w, const struct h5_chunk *chunk, struct err *err);
/* The same for a chunk at coordinates that may be outside of the range or of the extent. */
int index_found_at(const struct index_walk *w, const uint64_t *coords, struct h5_chunk *chunk,
		   struct err *err);

/* Decodes the fields of an entry after its address, if the chunks are filtered; otherwise the size
 * is that of every chunk. */
void index_entry(const struct index_walk *w, struct cursor *c, struct h5_chunk *chunk);
/* Returns the bytes of an entry. */
unsigned int index_entry_size(const struct index_walk *w);

#endif
