/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is peculiar to schema v2: its keys, and what a dataset must remember to name its chunks.
 * The JSON itself is the same in v1 (parse.h).
 */
#ifndef SCHEMA_HSDS2_H
#define SCHEMA_HSDS2_H

#include <schema/schema.h>

/* dataset.locator. */
struct hsds2_locator {
	struct schema_id id;
	/* The bytes are in another HDF5 file (layout *_REF, *_REF_INDIRECT): no chunk has a key. */
	bool is_ref;
	/* Folders that the chunks are spread over; 1: none. */
	uint32_t partition_count;
};

int hsds2_domain_key(const char *path, char *key, size_t cap);
bool hsds2_is_domain_key(const char *key, size_t *path_len);
bool hsds2_is_hidden(const char *key);
int hsds2_storage_prefix(const struct schema_id *root, char *prefix, size_t cap);
int hsds2_object_prefix(const struct schema_id *root, unsigned int i, char *prefix, size_t cap);
bool hsds2_object_of_prefix(const char *prefix, struct schema_id *id);
int hsds2_object_key(const struct schema_id *id, char *key, size_t cap);
void hsds2_key_classify(const char *key, struct schema_key *out);
int hsds2_info_key(const struct schema_id *root, char *key, size_t cap);
int hsds2_locate(const struct object *o, uint64_t number, struct schema_locate *state,
		 const struct schema_answer *answer, struct chunk_place *place, struct err *err);
int hsds2_chunk_prefix(const struct object *o, char *prefix, size_t cap);
bool hsds2_chunk_of_key(const struct object *o, const char *key, uint64_t *number);

#endif
