/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schema v2: its keys, the data that a dataset needs to compute the keys of its chunks, and the
 * loader. The JSON is the same in v1; see parse.h. The files hsds_*.c serve both schemas.
 */
#ifndef HSDS_HSDS2_H
#define HSDS_HSDS2_H

#include <hsds/hsds.h>

#include "id.h"

/* dataset.locator, in both schemas. */
struct hsds2_locator {
	struct schema_id id;
	/* The layout refers to other files, and dataset.absence_unknown says why they cannot be
	 * read. */
	bool is_ref;
	/* number of folders among which the chunks are distributed; 1 if there are no folders */
	uint32_t partition_count;
};

/* ---- hsds2_key.c. Functions that write a key or a prefix return its length. They fail with
 * -ENAMETOOLONG. ---- */

/* Writes the key of a domain's document. The path has no slashes at its ends; "" is the root of the
 * bucket. */
int hsds2_domain_key(const char *path, char *key, size_t cap);
/* Returns true if the key is that of a domain's document. Then the path of the domain is the first
 * *path_len bytes of the key. */
bool hsds2_is_domain_key(const char *key, size_t *path_len);
/* Returns true if the first component of the key is "db". */
bool hsds2_is_storage(const char *key);
/* Writes the prefix of all objects of the domain with this root group: "db/8-8/". */
int hsds2_storage_prefix(const struct schema_id *root, char *prefix, size_t cap);
/* Writes the i-th of the prefixes g/, d/ and t/ of a domain. A listing of such a prefix with a
 * delimiter shows all objects of a kind. Returns 0 if there are no more prefixes. */
enum { HSDS2_OBJECT_PREFIXES = 3 };
int hsds2_object_prefix(const struct schema_id *root, unsigned int i, char *prefix, size_t cap);
/* Gets the id of an object from its prefix in such a listing ("db/8-8/g/4-6-6/"). Returns false if
 * the prefix is not that of an object. */
bool hsds2_object_of_prefix(const char *prefix, struct schema_id *id);
int hsds2_object_key(const struct schema_id *id, char *key, size_t cap);
/* Writes the key of a chunk of a dataset. `coords` are its coordinates in the grid. The dataset
 * must have a locator. */
int hsds2_chunk_key(const struct object *o, const uint64_t *coords, char *key, size_t cap);
/* Returns the folder of a chunk of a dataset with `count` folders. In v1, this is the partition. */
uint32_t hsds2_partition(uint32_t count, uint32_t rank, const uint64_t *coords);
bool hsds2_is_root(const struct schema_id *id);
int hsds2_info_key(const struct schema_id *root, char *key, size_t cap);

/* What a key below the storage prefix of a domain names. */
enum hsds2_key_class { HSDS2_KEY_OBJECT, HSDS2_KEY_CHUNK, HSDS2_KEY_OTHER };
struct hsds2_key {
	enum hsds2_key_class cls;
	struct schema_id id; /* of the object, or of the chunk's dataset */
	uint32_t rank;	     /* of a chunk: number of coordinates */
	uint64_t coords[DSPACE_MAX_RANK];
};
void hsds2_key_classify(const char *key, struct hsds2_key *out);

extern const struct schema_ops hsds2_ops;
#define HSDS_SUFFIX ".h5" /* of both schemas */
/* domain_document.c: of both schemas. */
extern const struct schema_documents hsds_documents;

int hsds2_locate(const struct object *o, const struct object *table, uint64_t number,
		 unsigned int *step, const struct schema_answer *answer, struct chunk_place *place,
		 struct err *err);
int hsds2_chunk_prefix(const struct object *o, char *prefix, size_t cap);
bool hsds2_chunk_of_key(const struct object *o, const char *key, uint64_t *number);

int hsds2_loader_new(const struct schema_load *load, struct schema_loader **out, struct err *err);
int hsds2_round(struct schema_loader *l, uint32_t *n, struct err *err);
bool hsds2_request(struct schema_loader *l, uint32_t i, struct schema_request *req);
int hsds2_answer(struct schema_loader *l, uint32_t i, const struct schema_answer *answer,
		 struct err *err);
void hsds2_loader_free(struct schema_loader *l);

/* ---- hsds2_new.c: see schema_editor, schema_writer and schema_storage ---- */

int hsds2_adopt(struct tree *t, const struct storage *storage, int64_t now_ns, struct err *err);
const void *hsds2_copy_locator(const void *locator, struct arena *a);
int hsds2_adopt_new(struct tree *t, uint64_t seed, int64_t now_ns, struct err *err);
/* The functions that write a key or a prefix return its length, or -ENAMETOOLONG. They also return
 * -EINVAL if an object has no id, if an id or name is not valid, or if there is no such chunk. */
int hsds2_new_object_key(const struct tree *t, uint32_t number, char *key, size_t room);
int hsds2_key_of_id(const char *root, const char *id, char *key, size_t room, size_t *folder);
int hsds2_user_block_key(const struct tree *t, char *key, size_t room);
int hsds2_new_chunk_key(const struct tree *t, uint32_t number, uint64_t chunk, char *key,
			size_t room);
int hsds2_storage_of_root(const char *root, struct storage *out, struct err *err);
void hsds2_storage_of_number(uint64_t number, struct storage *out);
uint64_t hsds2_storage_number(const char *key);
#define HSDS2_NAMES	    ".hsmount-names"
#define HSDS2_COPY	    ".summary.json"
#define HSDS2_SUMMARY	    ".info.json"
#define HSDS2_USER_BLOCK    ".hsmount-userblock-"
#define HSDS2_IMPORT_PREFIX "db/.import-"
int hsds2_import_key(const char *path, char *key, size_t room);

/* ---- tally.c, see struct schema_tally_ops ---- */
int hsds2_tally_new(const struct tree *tree, struct schema_tally **out, struct err *err);
void hsds2_tally_add(struct schema_tally *t, const char *key, uint64_t size);
void hsds2_tally_link(struct schema_tally *t, uint32_t dataset, uint64_t chunks, uint64_t bytes);
void hsds2_tally_describe(struct schema_tally *t, uint32_t dataset, const struct dataset *ds);
int hsds2_tally_emit(const struct schema_tally *t, const struct schema_scan *scan,
		     struct bytes *out, struct err *err);
void hsds2_tally_free(struct schema_tally *t);

#endif
