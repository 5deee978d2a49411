/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of domain/ share. load.c and open.c fill struct domain. It is
 * constant afterwards, except for its reference count, and for the rechecks, the versions of chunks
 * and the ranges, which have locks. */
#ifndef DOMAIN_DOMAIN_INTERNAL_H
#define DOMAIN_DOMAIN_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <base/env.h>
#include <base/mem.h>
#include <domain/domain.h>
#include <schema/schema.h>
#include <store/store.h>

#include <ranges/place_index.h>
#include <ranges/references.h>
#include <ranges/shards.h>

/* The datasets whose documents were checked again while the snapshot was in use (recheck.c). */
struct domain_rechecks {
	pthread_mutex_t lock;	    /* guards the table and its entries */
	struct rechecked *datasets; /* uthash, by number */
};

/* The versions of chunks that no listing names (chunk_version.c). */
struct domain_versions {
	pthread_mutex_t lock;	      /* guards the table and `began` */
	struct chunk_version *chunks; /* uthash */
	uint64_t began;		      /* increases with each domain_forget_chunks() */
	atomic_bool changed;	      /* a chunk was found in two versions, or was lost */
};

struct domain {
	atomic_uint refs;
	const struct env *env;
	struct store *store;
	struct store *disk;		      /* may be NULL */
	const struct domain_changes *changes; /* may be NULL */
	const struct schema_ops *schema;      /* of the document */
	char *path;
	struct tree *tree;
	struct arena *arena; /* the tree's */

	struct schema_document *document;
	struct schema_space *space; /* in the arena */
	struct arena *texts;	    /* of documents, for the next open; NULL if none are kept */
	struct chunk_list *chunks;  /* by number */

	/* The complete listing of everything below listed_prefix, which is NULL if there is none.
	 */
	struct store_page listing;
	const char *listed_prefix; /* in the arena */

	struct object_resolver resolver;
	uint64_t values; /* bytes of attribute and fill values so far */
	struct budget_charge charge;

	struct domain_rechecks rechecks;
	struct domain_versions versions;
	struct domain_plan *plan; /* of the hint, while the domain is loaded */
	bool lists_chunks;	  /* requests have listed the chunks of some datasets */
	bool is_torn;		  /* changed while it was loaded: see struct schema_loader */
	bool missing_chunks_fail, forbidden_chunks_absent,
		keeps_texts; /* of struct domain_bucket */
	atomic_bool forbidden_logged;
	atomic_bool has_copy;	      /* see domain_has_copy() */
	atomic_uint_fast64_t summary; /* see domain_summary() */
	struct ranges ranges;
};

/* Returns true if all chunks of the dataset together have more than DATASET_DENSE_MAX bytes. */
bool domain_is_vast(const struct dataset *ds);
/* Returns the bytes of memory of the attribute values and the fill value of an object. */
static inline uint64_t domain_value_memory(const struct object *o)
{
	uint64_t sum = 0;
	if (o->kind == OBJECT_DATASET)
		sum += o->dataset.fill.fixed.cap + o->dataset.fill.heap.cap;
	for (uint32_t i = 0; i < o->nattrs; i++)
		sum += o->attrs[i].value.fixed.cap + o->attrs[i].value.heap.cap;
	return sum;
}
/* Charges the domain's current memory to the budget. If the budget does not have as much, the texts
 * of documents are dropped. Fails with -ENOMEM if it still has not. */
int domain_charge(struct domain *d, struct err *err);
/* Returns true if the document of the dataset names all stored chunks, which are ranges of a file.
 */
bool domain_names_chunks(const struct dataset *ds);
/* Returns true if a listing can show which of the dataset's chunks are stored. */
bool domain_can_list(const struct domain *d, const struct object *o);
/* Returns true if the listing covers this key or prefix. A key that it does not name is then
 * absent. */
bool domain_was_listed(const struct domain *d, const char *key);
/* Returns the index of the first item of the listing whose key is `key` or comes after it. */
size_t domain_listed_from(const struct domain *d, const char *key);
/* Returns a key's item in the listing, or NULL. */
const struct store_item *domain_listed(const struct domain *d, const char *key);
/* Returns the version of a key in the listing, or NULL if it is not known. Borrowed from the
 * domain. */
const char *domain_listed_etag(const struct domain *d, const char *key);

/* Gets the answer to a request in the form that schemas use. It is borrowed from the request. */
void domain_answer(const struct store_request *req, struct schema_answer *out);
/* load.c: notes in a plan why a request has failed. plan may be NULL. code is 0 if the request has
 * not failed. */
void domain_note_failure(struct domain_plan *plan, int code);
/* load.c: loads the document and the tree. *same becomes true if the hint's earlier snapshot is
 * still current; d is then not filled. If the result is LOAD_INCOMPLETE, d is of no use, and the
 * domain must be loaded without the puts of the hint. If it is LOAD_ROOT_ABSENT, err has the reason
 * with the code -EIO; but the document may have been replaced or deleted since it was read. */
enum { LOAD_INCOMPLETE = 1, LOAD_ROOT_ABSENT };
int domain_load(struct domain *d, const struct schema_ops *const *schemas,
		const struct domain_hint *hint, bool *same, struct err *err);
/* accept.c: the loader calls it for each object. ctx is the domain. */
int domain_accept(void *ctx, struct object *o, struct err *err);
/* chunk_inventory.c: finds which chunks exist, and the decoded sizes of variable-length ones. */
int domain_list_chunks(struct domain *d, struct err *err);
/* chunk_fetch.c: as struct chunk_source.get. */
void domain_fetch_chunk(void *domain, const struct chunk_request *request, chunk_done done,
			void *arg);
/* find_chunks.c: finds out which chunks of a dataset are stored; see struct chunk_source. */
int domain_find_chunks(struct domain *d, uint32_t number, struct chunk_list *out, struct err *err);

/* chunk_measure.c: a stored chunk of variable length. */
struct chunk_probe {
	uint64_t number;
	uint64_t stored;  /* bytes of the object */
	uint64_t decoded; /* bytes; UINT64_MAX if the chunk is damaged */
	bool absent;
};
/* Measures n chunks of a dataset, whose numbers the caller sets. first_bytes is how many bytes of
 * each chunk are requested first. If must_exist is true, an absent chunk was deleted, and the call
 * fails with -ESTALE. Otherwise it fails with an error of the store or with -ENOMEM. */
int domain_measure_chunks(struct domain *d, uint32_t number, struct chunk_probe *probes, size_t n,
			  uint64_t first_bytes, bool must_exist, struct err *err);
/* Requests and measures every chunk of a dataset, and makes its chunk_list. Fails with -E2BIG if
 * its grid has too many chunks. */
int domain_probe_chunks(struct domain *d, uint32_t number, struct err *err);

/* recheck.c: checks whether a dataset's document is still the version of the snapshot. */
struct domain_recheck {
	const atomic_bool *cancelled; /* as in struct store_request */
	/* Is called in any thread, possibly before domain_recheck() returns. code is 0 if the
	 * document was the same less than a second ago, and after the last change that this process
	 * has made. It is -ESTALE if the document has changed or is gone. With any other code, the
	 * request failed. */
	void (*done)(void *arg, int code, const struct err *err);
	void *arg;
	/* These belong to recheck.c. */
	uint64_t head; /* the number of the first HEAD whose answer counts */
	struct domain_recheck *next;
};
/* Sends at most one request a second for each dataset, as long as this process changes no domain.
 * The caller has found that the chunk is absent before it calls this function. r is borrowed until
 * done is called. */
void domain_recheck(struct domain *d, uint32_t dataset, struct domain_recheck *r);
/* Returns true if an earlier check found that the document has changed. This stays so for this
 * snapshot. */
bool domain_is_stale(struct domain *d, uint32_t dataset);
void domain_rechecks_init(struct domain *d);
void domain_rechecks_release(struct domain *d);

/* chunk_version.c */
void domain_versions_init(struct domain *d);
void domain_versions_release(struct domain *d);
/* Begins a load of a chunk. The caller passes the result to domain_versions_note(). */
uint64_t domain_versions_begin(struct domain *d);
/* Keeps the version of a chunk that was loaded from an object of its own. Fails with -ESTALE if an
 * earlier load has found another version. */
int domain_versions_note(struct domain *d, uint64_t began, uint32_t dataset, uint64_t chunk,
			 const char *etag, struct err *err);
/* Is called when a chunk is absent. Returns whether an earlier load has found it. */
bool domain_versions_lost(struct domain *d, uint32_t dataset, uint64_t chunk);
/* Is called with the chunks of a dataset that are stored. Returns whether an earlier load has found
 * another one. */
bool domain_versions_lost_any(struct domain *d, uint32_t dataset, const struct chunk_list *stored);
/* Gets the version that is kept of a chunk, or "" if there is none. */
void domain_versions_get(struct domain *d, uint32_t dataset, uint64_t chunk,
			 char etag[STORE_ETAG_MAX]);

#endif
