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

struct schema_ops {
	const char *name;    /* "hsds2" */
	const char *storage; /* "db/": everything that domains store lies below it */
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
	/* Key of a chunk. coords: in chunks, o->dataset.grid.rank of them. -EOPNOTSUPP: its bytes
	 * are a range of another file (layout *_REF). */
	int (*chunk_key)(const struct object *o, const struct schema_id *id, const uint64_t *coords,
			 char *key, size_t cap);
	/* What a chunk without an object of its own means: 0 the initializer or the fill value;
	 * -EOPNOTSUPP with the reason: its value is somewhere else (another file, or the service
	 * computes it when it is first read). Then no listing proves that a chunk is absent. */
	int (*chunk_absent)(const struct object *o, struct err *err);
	/* zlib with shuffle recorded is not shuffled (schema v1). */
	bool v1;
};

const struct schema_ops *schema_hsds2(void);

/* What the first listings of a place show. A zeroed struct is a place where nothing was seen. */
struct schema_survey {
	bool storage;	/* objects of schema v2 (db/) */
	bool v1;	/* objects of schema v1 */
	bool document;	/* the place's own document */
	bool has_root;	/* which names a root group */
	bool documents; /* documents of domains or folders in the place */
	bool anything;	/* any key */
};
/* Adds one key or prefix (with its slash) of a listing; keys are relative to the place. */
void schema_survey_key(struct schema_survey *s, const char *key);
/* Adds the content of the place's own document. A document that cannot be parsed has no root. */
void schema_survey_document(struct schema_survey *s, const void *json, size_t n);

enum schema_place {
	SCHEMA_PLACE_BUCKET,	/* of schema v2; objects of v1 may be there, too */
	SCHEMA_PLACE_BUCKET_V1, /* of schema v1 only */
	SCHEMA_PLACE_FOLDER,	/* of a bucket whose storage is elsewhere */
	SCHEMA_PLACE_DOMAIN,	/* one domain of such a bucket */
	SCHEMA_PLACE_EMPTY,
	SCHEMA_PLACE_OTHER,
};
/* within_bucket: a directory or prefix above the place is a bucket. */
enum schema_place schema_recognise(const struct schema_survey *s, bool within_bucket);

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
