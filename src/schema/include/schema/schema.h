/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How domains lie in a bucket: one struct schema_ops per layout (hsds2 now; hsds1, zarr to come),
 * chosen for each domain. Which keys there are, what a document says and which document is needed
 * next is known here and nowhere else.
 *
 * Pure: nothing here reads a store. What has to be read in between makes a state machine: it names
 * what it asks for, the caller reads that and calls again with the answer. There are three:
 * schema_classify() (what is behind a path), the loader (a domain's objects as a tree), and locate
 * (where a chunk is).
 *
 * Lenient as the service is in what JSON values look like (doc/BUCKET.md), strict in sizes, ids,
 * shapes and depth.
 */
#ifndef SCHEMA_SCHEMA_H
#define SCHEMA_SCHEMA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>
#include <data/chunk_place.h>
#include <data/domain_info.h>
#include <data/tree.h>

enum {
	SCHEMA_KEY_MAX = 1024,
	SCHEMA_JSON_MAX = 256 << 20, /* bytes of one document */
	SCHEMA_JSON_DEPTH = 128,
};

struct schema_ops;

/* ---- questions and answers ---- */

/* What a function of a machine returns that is neither 0 nor an error. */
enum {
	SCHEMA_ASKS = 1,   /* it needs an answer to go on */
	SCHEMA_ENOUGH = 1, /* no more answers of this round are needed */
};

enum schema_op { SCHEMA_GET, SCHEMA_HEAD, SCHEMA_LIST };

/* The caller gives key and room, and else zeros. Strings are valid until the answer is given. */
struct schema_ask {
	enum schema_op op;
	char *key; /* of a listing: the prefix; in the caller's buffer of `room` bytes */
	size_t room;
	const char *etag;   /* get: NULL, or: `unchanged` is enough for this version */
	const char *listed; /* get: NULL, or the version that a listing has just named */
	/* Listings are complete: all of up to `limit` items, or -E2BIG. */
	bool delimit;
	uint32_t limit;
};

struct schema_item {
	const char *key, *etag; /* etag: "" unknown */
	bool is_prefix;
	uint64_t size;
};

struct schema_answer {
	bool absent;	/* the store has proved that there is no such object */
	bool unchanged; /* it is still the version that was asked for; no body */
	int code;	/* 0, or why it could not be asked, as err says */
	const struct err *err;
	const char *etag; /* "" unknown */
	const void *body;
	size_t len;
	/* A listing, in the order of keys. */
	size_t nitems;
	void (*item)(const void *items, size_t i, struct schema_item *out);
	const void *items;
};

/* ---- what is behind a path ---- */

/* What a domain's or folder's document says. Constant and shared; one block of memory. */
struct schema_document {
	atomic_uint refs;
	const struct schema_ops *schema;
	struct domain_info info;
	const char *etag; /* of what schema_classify() asks for first; "" unknown */
};
/* A copy, of no schema yet. NULL without memory. */
struct schema_document *schema_document_new(const struct domain_info *info, const char *etag);
struct schema_document *schema_document_ref(struct schema_document *d);
void schema_document_unref(struct schema_document *d); /* NULL is fine */

/* Zeroed, a machine that begins with the first schema. */
struct schema_classify {
	unsigned int schema; /* the one that asks */
	unsigned int step;
};
/* The document of a path (without slashes at its ends, "" for the bucket's root): what the first
 * schema that knows it says. schemas: ends with NULL. answer: NULL at first, never one with a code.
 * SCHEMA_ASKS; 0 with *out, which is NULL when there is nothing; -EIO with the reason; -ENOMEM. */
int schema_classify(const struct schema_ops *const *schemas, const char *path,
		    struct schema_classify *state, const struct schema_answer *answer,
		    struct schema_ask *ask, struct schema_document **out, struct err *err);
/* All schemas, in the order in which they are tried; ends with NULL. */
const struct schema_ops *const *schema_all(void);
/* The key is that of a document, or a part of what a schema stores: hidden from the name space. */
bool schema_is_document(const struct schema_ops *const *schemas, const char *key);
bool schema_is_storage(const struct schema_ops *const *schemas, const char *key);

/* ---- is a place a bucket? ---- */

/* Everything that domains of the usual schema store lies below this prefix: a place that has it is
 * a bucket. */
extern const char schema_survey_storage[];
/* Key of the document that a domain or folder at this path would have. -ENAMETOOLONG. */
int schema_survey_document_key(const char *path, char *key, size_t room);
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
/* The place stores objects, of whatever schema. */
bool schema_survey_stores(const struct schema_survey *s);
/* Why a place that stores objects cannot be read: what it is a bucket of, as the end of a sentence;
 * NULL when it can. */
const char *schema_survey_unsupported(const struct schema_survey *s);
/* within_bucket: a directory or prefix above the place is a bucket. */
enum schema_place schema_recognise(const struct schema_survey *s, bool within_bucket);

/* A service's summary of a domain, for estimates before it is opened. */
struct schema_info {
	uint64_t num_objects, num_chunks, allocated_bytes, logical_bytes, metadata_bytes;
	int64_t modified_ns;
};

/* ---- a domain's objects ---- */

/* What must be known of a domain once its tree is there: which document an object comes from.
 * Begins what a schema knows itself, in the arena of the tree, and is constant like it. */
struct schema_space {
	const struct tree *tree;
	bool listed_whole;   /* all keys were listed */
	int64_t modified_ns; /* of the newest document */
	uint64_t kept;	     /* bytes of documents that are kept for the next loader */
};

/* What a loader is given. Borrowed, except for the tree it fills. */
struct schema_load {
	const struct schema_document *document;
	struct tree *tree;
	const struct schema_space *previous; /* NULL, or an earlier one, of the same schema */
	bool reload;			     /* even if nothing has changed since `previous` */
	uint32_t list_limit; /* of a domain with more keys, not every key is needed */
	uint64_t keep_limit; /* bytes of documents that may be kept */
	/* Looks at an object as soon as it was read; it is left out when that fails. */
	int (*accept)(void *ctx, struct object *o, struct err *err);
	void *ctx;
};

/* Begins every schema's own loader. */
struct schema_loader {
	struct schema_load load;
	const struct schema_space *space; /* of the tree, when it has ended */
	bool same; /* when it has ended: `previous` is still the domain, and the tree is empty */
};

struct schema_ops {
	const char *name; /* "hsds2" */
	bool (*is_document)(const char *key);
	bool (*is_storage)(const char *key);
	/* As schema_classify(), for one schema. */
	int (*classify)(const char *path, unsigned int *step, const struct schema_answer *answer,
			struct schema_ask *ask, struct schema_document **out, struct err *err);
	/* Key and content of the summary. 0: this domain has none. -EIO when it is damaged. */
	int (*info_key)(const struct schema_document *d, char *key, size_t room);
	int (*info_parse)(const void *text, size_t n, struct schema_info *out, struct err *err);

	/* A loader works in rounds. round() says how many requests the next one has, 0: it has
	 * ended. ask() describes one of them; false: there is nothing to ask, and the answer that
	 * is given is NULL. give() takes the answers, in their order; SCHEMA_ENOUGH ends the round.
	 * Documents that are broken in part leave out that part, with a note in the tree; what may
	 * pass, and what concerns the domain as a whole, is an error. */
	int (*loader_new)(const struct schema_load *load, struct schema_loader **out,
			  struct err *err);
	int (*round)(struct schema_loader *l, uint32_t *n, struct err *err);
	bool (*ask)(struct schema_loader *l, uint32_t i, struct schema_ask *ask);
	int (*give)(struct schema_loader *l, uint32_t i, const struct schema_answer *answer,
		    struct err *err);
	void (*loader_free)(struct schema_loader *l); /* NULL is fine */

	/* The document that an object was made of: its key, and its version, "" unknown. The length
	 * of the key, or -ENAMETOOLONG. */
	int (*object_key)(const struct schema_space *s, uint32_t number, char *key, size_t room,
			  const char **etag);
	/* A reference as a stored chunk has it -> object number + 1; 0: null or unknown. */
	uint64_t (*resolve)(const struct schema_space *s, const char *text, size_t n);

	/* Where chunk `number` of a dataset is. SCHEMA_ASKS: the caller gets what *place names and
	 * calls again with the answer; 0: *place is the chunk's. answer: NULL at first, never one
	 * with a code. step: 0 at first. The caller gives place key and room, and else zeros.
	 * -EOPNOTSUPP: nothing can read it there, with the reason. */
	int (*locate)(const struct object *o, uint64_t number, unsigned int *step,
		      const struct schema_answer *answer, struct chunk_place *place,
		      struct err *err);
	/* What a listing must cover to show which chunks of a dataset are stored. -EOPNOTSUPP: no
	 * listing shows that. */
	int (*chunk_prefix)(const struct object *o, char *prefix, size_t room);
	/* The chunk whose place a key in such a listing is; false for all other keys. */
	bool (*chunk_of_key)(const struct object *o, const char *key, uint64_t *number);
};

#endif
