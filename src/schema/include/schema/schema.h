/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How domains lie in a bucket: one struct schema_ops per layout (hsds2 now; hsds1, zarr to come).
 * Pure: keys and documents in, data out; nothing here reads a store. Lenient as the service is in
 * what JSON values look like (doc/BUCKET.md), strict in sizes, ids, shapes and depth.
 */
#ifndef SCHEMA_SCHEMA_H
#define SCHEMA_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>
#include <data/chunk_place.h>
#include <data/domain_info.h>
#include <data/object.h>

enum {
	SCHEMA_KEY_MAX = 1024,
	SCHEMA_ID_MAX = 40,	     /* "g-8-8-4-6-6" and NUL */
	SCHEMA_JSON_MAX = 256 << 20, /* bytes of one document */
	SCHEMA_JSON_DEPTH = 128,
};

/* Object id, parsed: kind and 16 bytes. */
struct schema_id {
	enum object_kind kind;
	uint8_t b[16];
};

/* A .domain.json. In an arena. */
struct schema_domain {
	struct domain_info info;
	struct schema_id root; /* unless info.is_folder */
};

/* What a key below a domain's storage prefix is. */
enum schema_key_class { SCHEMA_KEY_OBJECT, SCHEMA_KEY_CHUNK, SCHEMA_KEY_OTHER };
struct schema_key {
	enum schema_key_class cls;
	struct schema_id id; /* of the object, or of the chunk's dataset */
	uint32_t rank;	     /* chunk: coordinates */
	uint64_t coords[DSPACE_MAX_RANK];
};

/* Turns an id into its object number, OBJECT_NONE when the domain has no such object. */
struct schema_numbers {
	uint32_t (*number)(void *ctx, const struct schema_id *id);
	void *ctx;
};

/* What came of a request. */
struct schema_answer {
	bool absent; /* the store has proved that there is no such object */
	const void *body;
	size_t len;
};

/* Of a machine that asks. */
enum { SCHEMA_ASKS = 1 };
struct schema_locate {
	unsigned int step;
	uint64_t u[2];
};

struct schema_ops {
	const char *name; /* "hsds2" */
	/* Key of a domain's document: path without slashes at its ends, "" for the bucket's root.
	 * All key writers return the length, or -ENAMETOOLONG. */
	int (*domain_key)(const char *path, char *key, size_t cap);
	/* True for a key that names a domain document: its path is the first *path_len bytes. */
	bool (*is_domain_key)(const char *key, size_t *path_len);
	/* True when the first component of a key is storage, hidden from the name space (db/). */
	bool (*is_hidden)(const char *key);
	int (*domain_parse)(struct arena *a, const void *json, size_t n, struct schema_domain *out,
			    struct err *err);
	/* Prefix of everything that the domain with this root stores ("db/8-8/"). */
	int (*storage_prefix)(const struct schema_id *root, char *prefix, size_t cap);
	/* i = 0, 1, 2 …: prefixes whose delimited listings name all objects (g/, d/, t/); 0 when
	 * there are no more. */
	int (*object_prefix)(const struct schema_id *root, unsigned int i, char *prefix,
			     size_t cap);
	/* From a folded prefix of such a listing ("db/8-8/g/4-6-6/") to the object's id. */
	bool (*object_of_prefix)(const char *prefix, struct schema_id *id);
	int (*object_key)(const struct schema_id *id, char *key, size_t cap);
	/* Classifies any key below a storage prefix. */
	void (*key_classify)(const char *key, struct schema_key *out);
	/* Summary kept by the service (".info.json"); 0 length when the schema has none. */
	int (*info_key)(const struct schema_id *root, char *key, size_t cap);
	/* One object's document. id: what its key says; a document that says otherwise, or another
	 * root, is refused (-EIO, as all defects). A broken part that can be left out alone (one
	 * attribute, one link) is left out and told to `skip`; hard links to unknown objects
	 * likewise. out is zeroed first. */
	int (*object_parse)(struct arena *a, const struct schema_id *id,
			    const struct schema_id *root, const void *json, size_t n,
			    const struct schema_numbers *numbers,
			    void (*skip)(void *ctx, const char *what, const struct err *why),
			    void *skip_ctx, struct object *out, struct err *err);
	/* Where chunk `number` of a dataset is. A state machine: SCHEMA_ASKS, and the caller reads
	 * what *place names and calls again with the answer; 0, and *place is the chunk's. answer:
	 * NULL at first; borrowed, also place->key may be of the same memory as before. state: the
	 * machine's, zeroed at first. The caller gives place key and room, and else zeros.
	 * -EOPNOTSUPP: the bytes are where nothing can read them, with the reason. */
	int (*locate)(const struct object *o, uint64_t number, struct schema_locate *state,
		      const struct schema_answer *answer, struct chunk_place *place,
		      struct err *err);
	/* What a listing must cover to show which chunks of a dataset are stored. -EOPNOTSUPP: no
	 * listing shows that. */
	int (*chunk_prefix)(const struct object *o, char *prefix, size_t cap);
	/* The chunk whose place a key in such a listing is; false for all other keys. */
	bool (*chunk_of_key)(const struct object *o, const char *key, uint64_t *number);
};

const struct schema_ops *schema_hsds2(void);

/* "d-1b2c…" or "datasets/d-1b2c…" (n bytes, NUL or space padded) -> id. False for anything else,
 * the empty (null) reference included. */
bool schema_id_parse(const char *text, size_t n, struct schema_id *id);
void schema_id_format(const struct schema_id *id, char text[static SCHEMA_ID_MAX]);
bool schema_id_equal(const struct schema_id *a, const struct schema_id *b);
/* The summary's totals, for estimates before a domain is opened. -EIO when it is damaged. */
struct schema_info {
	uint64_t num_objects, num_chunks, allocated_bytes, logical_bytes, metadata_bytes;
	int64_t modified_ns;
};
int schema_info_parse(const void *json, size_t n, struct schema_info *out, struct err *err);

#endif
