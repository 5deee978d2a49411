/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live domain: its objects in memory, its chunks on demand. The only room that knows both which
 * key holds an object and what its bytes mean.
 *
 * Opening takes three rounds of parallel requests whatever the depth: the domain document; the
 * listings; all object documents. The first two are one where the root group is known. (Domains
 * with variable-length data may need a fourth and fifth: listings of those datasets' chunks when
 * the domain was too large for one page, and the first 16 bytes of compressed ones: sizes must be
 * known when an image is planned.)
 *
 * A model is a snapshot and constant after model_open(): any thread may read it.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/env.h>
#include <base/err.h>
#include <data/domain.h>
#include <data/object.h>

enum {
	MODEL_MAX_OBJECTS = 1 << 20,
	MODEL_LISTING = 1000, /* keys of a domain that are listed whole: one page */
	MODEL_CHUNK_MAX =
		1 << 28, /* bytes of a chunk, stored or decoded: many are in memory at once */
	MODEL_KEPT_MAX = 4 << 20, /* bytes of documents that a model keeps for the next opening */
};
/* Bytes of a dataset that may all have a place in a file. Of a larger one the stored chunks alone
 * have one. */
#define MODEL_DENSE_MAX (UINT64_C(1) << 50)

struct model;
struct schema_id;
struct schema_ops;
struct store;

struct model_object {
	struct object o;
	uint32_t refcount; /* hard links from reachable groups (root: +1), plus for committed types
			      each dataset and attribute that shares it */
	bool broken;	   /* its document could not be read: not in the image */
};

/* What is known of a domain before it is opened. A zeroed struct is nothing. */
struct model_hint {
	const struct schema_id *root; /* its document named this root group a moment ago: saves a
					 round when that is still so */
	struct model *previous;	      /* an earlier snapshot: what did not change is taken from it.
					 When nothing did, it is the result itself */
};

/* The domain as it is now. path: without slashes at its ends. hint: may be NULL. *out is the
 * caller's reference. Of an unchanged domain with an earlier snapshot this costs one round: the
 * document on condition, and one listing or (large domains of few objects) a head per document.
 * Errors: -ENOENT no domain document; -EISDIR a folder; -EIO with key and cause; -E2BIG;
 * -ENOMEM. */
int model_open(const struct env *env, struct store *store, const struct schema_ops *schema,
	       const char *path, const struct model_hint *hint, struct model **out,
	       struct err *err);
struct model *model_ref(struct model *m);
void model_unref(struct model *m);

/* An opening sees changes of chunks too (the domain was listed whole). */
bool model_sees_chunks(const struct model *m);
/* Memory that it holds, bytes: what it charges to the budget of its environment. */
uint64_t model_memory(const struct model *m);

const struct domain *model_domain(const struct model *m);
const char *model_path(const struct model *m);
int64_t model_modified_ns(const struct model *m); /* newest of all documents */

/* Reachable objects in breadth-first order of their first link; [0] is the root group. */
uint32_t model_count(const struct model *m);
uint32_t model_nth(const struct model *m, uint32_t i);
/* By number (not by order). */
const struct model_object *model_object(const struct model *m, uint32_t number);
const struct object_resolver *model_resolver(const struct model *m);
/* Upper limit of numbers, for tables indexed by number. */
uint32_t model_numbers(const struct model *m);

/* Objects and parts that were left out, for `hsimage info`: n-th text, NULL past the end. */
const char *model_problem(const struct model *m, uint32_t n);

/* What is known of a dataset's stored chunks. */
struct model_chunks {
	bool listed;  /* the list below is complete */
	bool unknown; /* variable-length, but the list could not be had: reading fails */
	uint64_t n;
	const uint64_t *numbers; /* ascending chunk numbers that exist */
	const uint64_t
		*decoded; /* variable-length datasets only (then listed is true): decoded
			     sizes in bytes, same order; UINT64_MAX: damaged, reading fails */
};
const struct model_chunks *model_chunks(const struct model *m, uint32_t number);
/* Place in the list of the first stored chunk from `number` on, n when there is none. */
uint64_t model_chunks_from(const struct model_chunks *chunks, uint64_t number);
/* Place in the list of the very chunk, n when it is not there. */
uint64_t model_chunks_find(const struct model_chunks *chunks, uint64_t number);

/* A chunk's elements, full chunk shape. absent: nothing is stored (and no initializer): all fill;
 * elems is empty then. */
struct model_chunk {
	int code;
	bool absent;
	struct elems elems; /* transferred to the callee */
	uint64_t fetched;   /* bytes that came from the store */
	struct err err;	    /* names the key */
};
typedef void (*model_chunk_done)(void *arg, struct model_chunk *chunk);
/* Asynchronous: decoding runs in a worker, done is called there. The model must outlive it.
 * unwanted: as in struct store_get. */
void model_get_chunk(struct model *m, uint32_t dataset, uint64_t number,
		     const atomic_bool *unwanted, model_chunk_done done, void *arg);

#endif
