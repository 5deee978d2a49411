/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schema v1, in which HSDS stored domains until 2018: its keys, its catalogs and its loader. The
 * documents have the same form as in v2 (parse.h), and a dataset has the same locator (hsds2.h). No
 * new domains are made in this schema.
 */
#ifndef HSDS_HSDS1_H
#define HSDS_HSDS1_H

#include <hsds/hsds.h>

#include "id.h"

/* ---- hsds1_key.c. Functions that write a key return its length. They fail with -ENAMETOOLONG, or
 * with -EOPNOTSUPP if OpenSSL refuses MD5. ---- */

int hsds1_object_key(const struct schema_id *id, char *key, size_t cap);
/* Writes the key of a chunk of a dataset. `coords` are its coordinates in the grid. The dataset
 * must have a locator. */
int hsds1_chunk_key(const struct object *o, const uint64_t *coords, char *key, size_t cap);
/* Writes the key of the catalog of the objects of a kind. It is in the folder of the domain's
 * document. */
int hsds1_catalog_key(const char *path, enum object_kind kind, char *key, size_t cap);

/* Returns true if the key has the form of a key of an object or chunk. The digits of the hash are
 * not compared. */
bool hsds1_is_object(const char *key);
/* Returns true for the same keys, and for the files of the service at the root of the bucket. */
bool hsds1_is_storage(const char *key);
/* Returns true if the key is that of a catalog. */
bool hsds1_is_catalog(const char *key);

int hsds1_locate(const struct object *o, const struct object *table, uint64_t number,
		 unsigned int *step, const struct schema_answer *answer, struct chunk_place *place,
		 struct err *err);
int hsds1_chunk_prefix(const struct object *o, char *prefix, size_t cap);
bool hsds1_chunk_of_key(const struct object *o, const char *key, uint64_t *number);

/* ---- hsds1_catalog.c ---- */

/* Calls fn for each id of this kind in the first n bytes of a catalog. Other lines are ignored. If
 * fn does not return 0, the function stops and returns that value. */
int hsds1_catalog_parse(const char *text, size_t n, enum object_kind kind,
			int (*fn)(void *ctx, const struct schema_id *id), void *ctx);

/* ---- hsds1_text.c ---- */

int hsds1_chunk_text(const struct schema_space *s, const struct object *o, const void *text,
		     size_t n, uint64_t size, struct bytes *out, struct err *err);

/* ---- hsds1_load.c ---- */

int hsds1_loader_new(const struct schema_load *load, struct schema_loader **out, struct err *err);
int hsds1_round(struct schema_loader *l, uint32_t *n, struct err *err);
bool hsds1_request(struct schema_loader *l, uint32_t i, struct schema_request *req);
int hsds1_answer(struct schema_loader *l, uint32_t i, const struct schema_answer *answer,
		 struct err *err);
void hsds1_loader_free(struct schema_loader *l);

extern const struct schema_ops hsds1_ops;

#endif
