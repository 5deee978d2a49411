/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Zarr store keeps after it is loaded, and the ops that use it: those for keys of documents
 * and chunks (array_key.c), and those of the loader (store_load.c).
 */
#ifndef ZARR_ZARR_SPACE_H
#define ZARR_ZARR_SPACE_H

#include <zarr/zarr.h>

#include "model.h"

#define ZARR_SUFFIX ".nc"

/* The version of one document. */
struct zarr_version {
	const char *key;  /* relative to the store */
	const char *etag; /* "" if unknown */
};

struct zarr_versions {
	struct zarr_version *v;
	uint32_t n, room;
};

/* In the arena of the tree. */
struct zarr_space {
	struct schema_space base;
	const char *store; /* path in the bucket */
	/* The documents of the objects, by number; the key is "" if the object has none. */
	struct zarr_version *objects;
	uint32_t nobjects;
	/* The documents that were read, or that did not exist (etag NULL), and the groups that were
	 * listed, with a digest of the listing. If neither a listing of all keys nor consolidated
	 * metadata show whether the store has changed, they are compared one by one. */
	struct zarr_versions documents, groups;
	bool is_consolidated;
};

/* ---- array_key.c ---- */

/* Writes the path of a store, a slash, and the rest of a key. If one of the two is empty, the slash
 * is left out. Returns the length, or -ENAMETOOLONG. */
int zarr_key(const char *store, const char *rest, char *key, size_t room);
int zarr_locate(const struct object *o, const struct object *table, uint64_t number,
		unsigned int *step, const struct schema_answer *answer, struct chunk_place *place,
		struct err *err);
int zarr_chunk_prefix(const struct object *o, char *prefix, size_t room);
bool zarr_chunk_of_key(const struct object *o, const char *key, uint64_t *number);
bool zarr_chunk_part(const struct object *o, uint64_t number, struct chunk_place *place);
bool zarr_next_part(const struct object *o, uint64_t *number);

/* ---- store_load.c ---- */

int zarr_loader_new(const struct schema_load *load, struct schema_loader **out, struct err *err);
int zarr_round(struct schema_loader *l, uint32_t *n, struct err *err);
bool zarr_request(struct schema_loader *l, uint32_t i, struct schema_request *req);
int zarr_answer(struct schema_loader *l, uint32_t i, const struct schema_answer *answer,
		struct err *err);
void zarr_loader_free(struct schema_loader *l);

#endif
