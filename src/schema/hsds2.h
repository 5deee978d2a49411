/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is peculiar to schema v2: its keys, what a dataset must remember to name its chunks, and how
 * a domain is loaded. The JSON itself is the same in v1 (parse.h).
 */
#ifndef SCHEMA_HSDS2_H
#define SCHEMA_HSDS2_H

#include <schema/schema.h>

#include "id.h"

/* dataset.locator. */
struct hsds2_locator {
	struct schema_id id;
	/* The bytes are in another HDF5 file (layout *_REF, *_REF_INDIRECT): no chunk has a key. */
	bool is_ref;
	/* Folders that the chunks are spread over; 1: none. */
	uint32_t partition_count;
};

/* ---- hsds2_key.c. All key writers return the length, or -ENAMETOOLONG. ---- */

/* Key of a domain's document: path without slashes at its ends, "" for the bucket's root. */
int hsds2_domain_key(const char *path, char *key, size_t cap);
/* True for a key that names a domain document: its path is the first *path_len bytes. */
bool hsds2_is_domain_key(const char *key, size_t *path_len);
/* True when the first component of a key is storage (db/). */
bool hsds2_is_storage(const char *key);
/* Prefix of everything that the domain with this root stores ("db/8-8/"). */
int hsds2_storage_prefix(const struct schema_id *root, char *prefix, size_t cap);
/* i = 0, 1, 2: prefixes whose delimited listings name all objects (g/, d/, t/); 0 when there are no
 * more. */
enum { HSDS2_OBJECT_PREFIXES = 3 };
int hsds2_object_prefix(const struct schema_id *root, unsigned int i, char *prefix, size_t cap);
/* From a folded prefix of such a listing ("db/8-8/g/4-6-6/") to the object's id. */
bool hsds2_object_of_prefix(const char *prefix, struct schema_id *id);
int hsds2_object_key(const struct schema_id *id, char *key, size_t cap);
int hsds2_info_key(const struct schema_id *root, char *key, size_t cap);

/* What a key below a domain's storage prefix is. */
enum hsds2_key_class { HSDS2_KEY_OBJECT, HSDS2_KEY_CHUNK, HSDS2_KEY_OTHER };
struct hsds2_key {
	enum hsds2_key_class cls;
	struct schema_id id; /* of the object, or of the chunk's dataset */
	uint32_t rank;	     /* chunk: coordinates */
	uint64_t coords[DSPACE_MAX_RANK];
};
void hsds2_key_classify(const char *key, struct hsds2_key *out);

/* ---- ops ---- */

extern const struct schema_ops hsds2_ops;

int hsds2_locate(const struct object *o, uint64_t number, unsigned int *step,
		 const struct schema_answer *answer, struct chunk_place *place, struct err *err);
int hsds2_chunk_prefix(const struct object *o, char *prefix, size_t cap);
bool hsds2_chunk_of_key(const struct object *o, const char *key, uint64_t *number);

int hsds2_loader_new(const struct schema_load *load, struct schema_loader **out, struct err *err);
int hsds2_round(struct schema_loader *l, uint32_t *n, struct err *err);
bool hsds2_ask(struct schema_loader *l, uint32_t i, struct schema_ask *ask);
int hsds2_give(struct schema_loader *l, uint32_t i, const struct schema_answer *answer,
	       struct err *err);
void hsds2_loader_free(struct schema_loader *l);

/* ---- hsds2_space.c: ids and numbers ---- */

struct hsds2_entry {
	struct schema_id id;
	bool absent;	  /* the store has proved that it has no document */
	const char *etag; /* of its document: as it was read, before that as listed; "" unknown */
	const void *text; /* of its document; NULL when it is not kept */
	size_t text_len;
};

struct hsds2_space {
	struct schema_space base;
	struct schema_id root;
	uint32_t n;
	struct hsds2_entry *entries; /* by number */
	uint32_t *table, mask;	     /* of numbers + 1, by id; 0: free */
	uint64_t digest;	     /* of the whole listing */
	int listing_code;	     /* why the domain was not listed whole */
};

/* Fills the table in, when all entries are there. -ENOMEM. */
int hsds2_space_index(struct hsds2_space *s, struct arena *a);
/* OBJECT_NONE when the domain has no such object. */
uint32_t hsds2_number(const struct hsds2_space *s, const struct schema_id *id);
int hsds2_space_key(const struct schema_space *s, uint32_t number, char *key, size_t room,
		    const char **etag);
uint64_t hsds2_resolve(const struct schema_space *s, const char *text, size_t n);

#endif
