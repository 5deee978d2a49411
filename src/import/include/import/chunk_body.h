/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object of one chunk, from the chunks of an HDF5 file. Callers are an import and the commit of
 * a changed domain.
 */
#ifndef IMPORT_CHUNK_BODY_H
#define IMPORT_CHUNK_BODY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/mem.h>
#include <codec/chain.h>
#include <data/tree.h>
#include <h5file/h5file.h>
#include <schema/schema.h>

/* The file. It is constant, except for is_damaged, and borrowed. */
struct chunk_origin {
	struct h5file *file;
	const struct tree *tree; /* of the file; its objects have the ids of the domain */
	const struct schema_ops *schema;
	const char *const *paths; /* by number: of the objects in the file, or NULL */
	/* Becomes true if the bytes of the file are the reason of an error. Any thread. */
	atomic_bool *is_damaged;
};

/* A dataset whose chunks are put. Constant, except for its references: one of the thread that
 * makes the parts, and one of each chunk. */
struct chunk_context {
	atomic_uint refs;
	struct chunk_origin from;
	uint32_t number; /* of the dataset */
	const struct dataset *ds;
	const struct h5file_dataset *file;
	struct codec_plan new_form;	 /* of new chunk objects */
	const struct codec_chain *chain; /* how chunk objects are encoded */
	bool is_joined;			 /* the grids differ */
	bool may_pass;			 /* stored bytes may be put as they are */
	bool is_filtered;		 /* new chunk objects are compressed */
	uint64_t plain_size;		 /* bytes of a whole chunk as elements */
	struct object_namer namer;
	uint8_t *fill; /* one element; NULL if its bytes are zeros */
};
/* Returns NULL if out of memory. */
struct chunk_context *chunk_context_new(const struct chunk_origin *from, uint32_t number);
/* Called for a dataset that the domain has already, whose chunks the service may have written. From
 * now on chunks are encoded as the service does, unless it can read the form in which an import
 * stores them. Call it before the first chunk is made. */
void chunk_context_serve(struct chunk_context *c);
void chunk_context_unref(struct chunk_context *c); /* c may be NULL */

/* One chunk of the domain, from n chunks of the file. */
struct chunk_parts {
	struct chunk_context *context; /* a reference */
	uint64_t number;	       /* in the grid of the domain */
	/* Set by chunk_make() if the body is the first bytes of the only part, as the file has
	 * them. */
	bool is_verbatim;
	uint32_t n;
	struct h5file_chunk parts[];
};
/* Adds a chunk of the file to the parts of chunk `number`; if *parts is NULL, it is the first one.
 * Its data, if it has any, are borrowed from the file. Returns -ENOMEM if out of memory. */
int chunk_add_part(struct chunk_parts **parts, struct chunk_context *context, uint64_t number,
		   const struct h5file_chunk *part);
void chunk_free(void *parts); /* parts may be NULL */
/* Returns how many bytes making the body needs at most. */
uint64_t chunk_memory(const struct chunk_parts *c);
/* These functions are for struct put; arg is a struct chunk_parts. */
int chunk_make(void *arg, struct bytes *body, struct err *err);
bool chunk_find(void *arg, uint64_t min, struct source_part *part);
void chunk_explain(void *arg, struct err *err);
/* Adds to an error which chunk of a grid it is about. path is that of the dataset. */
void chunk_explain_number(const char *path, const struct grid *grid, uint64_t number,
			  struct err *err);

#endif
