/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot of a domain: its objects are in memory, its chunks are fetched when they are read.
 * Only this layer knows both the key of an object and the meaning of its bytes.
 *
 * An open takes as many rounds of parallel requests as the schema's loader needs, whatever the
 * depth of the tree. Usually these are three: the domain document, the listings, all object
 * documents. If the document is known, the first two are one round. Domains with variable-length
 * data may need a fourth and a fifth, because the layout of an image depends on the sizes of these
 * chunks. If the domain is too large for one page of a listing, the chunks of these datasets are
 * listed. If chunks are compressed, the first 16 bytes of each are read. If documents name objects
 * that no listing has shown, one more round asks whether these exist. A domain that changed between
 * the listings and the documents is loaded again, until it was loaded three times.
 *
 * A struct domain is constant after domain_open(): any thread may read it.
 */
#ifndef DOMAIN_DOMAIN_H
#define DOMAIN_DOMAIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/env.h>
#include <hsmount/err.h>
#include <data/chunk_source.h>
#include <data/domain_info.h>
#include <data/tree.h>
#include <store/store.h>

enum {
	DOMAIN_LISTING =
		1000, /* keys of one page: a domain with at most this many is listed whole */
	DOMAIN_KEPT_MAX = 4 << 20, /* bytes of documents that are kept for the next open */
};

struct domain;
struct file_finder;
struct domain_puts;
struct schema_document;
struct schema_listed;
struct schema_ops;

/* Changes that this process makes in place. While one is running, and after it, an earlier check of
 * a document proves nothing of an absent chunk. Zeroed at first. Any thread. */
struct domain_changes {
	atomic_uint running;
	atomic_uint_fast64_t ended;
};
static inline void domain_change_begin(struct domain_changes *c)
{
	atomic_fetch_add(&c->running, 1);
}
static inline void domain_change_end(struct domain_changes *c)
{
	atomic_fetch_add(&c->ended, 1);
	atomic_fetch_sub(&c->running, 1);
}

/* A bucket with domains. Everything is borrowed, and must outlive the domains; the struct itself is
 * copied. */
struct domain_bucket {
	const struct env *env;
	struct store *store;
	const struct schema_ops *const *schemas; /* of the bucket, ends with NULL */
	/* The HDF5 files that domains refer to; NULL if reading their data fails. */
	const struct file_finder *files;
	const struct domain_changes *changes; /* NULL if this process changes no domain in place */
};

/* For a caller that follows how a domain is opened. */
struct domain_plan {
	/* The domain is opened only if all its keys can be listed; otherwise domain_open() fails
	 * with -E2BIG after one listing, or without a request if its schema has no such listing. */
	bool whole_only;
	/* The caller only looks at the domain and does not keep it: problems are not logged, no
	 * texts are kept for the next open, and the requests of readers are sent first. */
	bool is_brief;
	/* Called when the keys of a domain without an earlier snapshot have been listed; with NULL
	 * if not all of them can be. A negative errno ends the call and is its result. */
	int (*listed)(void *ctx, const struct schema_listed *listed);
	void *ctx;
	/* NULL, or all keys of a domain that has at most DOMAIN_LISTING, in order, from a listing
	 * that was requested after its document had been read. The domain is not listed again.
	 * Taken over. For a domain that has no earlier snapshot, with whole_only. */
	struct store_page *keys;
	const atomic_bool *cancelled; /* NULL, or as in struct store_request */
	/* Filled in. failed: the store could not answer a request, which may pass; refused: it does
	 * not permit one; torn: the domain changed while it was loaded. If none is set, and
	 * memory was not short, a failure is a property of this version of the domain. */
	bool failed, refused, torn;
};

/* What the caller knows of a domain before it is opened; all members may be zero. */
struct domain_hint {
	/* From the look-up. If the bucket has the same version, a round is saved. Borrowed. */
	struct schema_document *document;
	/* The document was read during this open, and is not requested again. */
	bool is_fresh;
	/* An earlier snapshot. Unchanged parts are taken from it. If nothing has changed, it is
	 * the result. */
	struct domain *previous;
	/* What this process has put since `previous` (domain/puts.h), or NULL. Borrowed. */
	const struct domain_puts *puts;
	struct domain_plan *plan; /* or NULL */
};

/* Opens the current version. path: without slashes at its ends. hint: may be NULL. *out is the
 * caller's reference. If hint->previous is still current, this takes one round: a conditional
 * request for the document, with one listing or (in large domains of few objects) a head for each
 * document. The same is true if hint->puts are all that has changed. Errors: -ENOENT no domain
 * document; -EISDIR a folder; -EIO with key and cause; -E2BIG; -ENOMEM; other errors of the store.
 */
int domain_open(const struct domain_bucket *bucket, const char *path,
		const struct domain_hint *hint, struct domain **out, struct err *err);
struct domain *domain_ref(struct domain *d);
void domain_unref(struct domain *d);

/* The domain was listed whole, so the next open notices changed chunks, too. */
bool domain_sees_chunks(const struct domain *d);
/* What this listing has shown; NULL if the domain was not listed whole. Borrowed. */
const struct schema_listed *domain_listed_keys(const struct domain *d);
/* A file that the domain refers to has another version than when the domain was opened, and reads
 * of it fail with -EIO; or a chunk has another version than when it was read first, and fails with
 * -ESTALE. The next open does not use this snapshot as hint->previous. */
bool domain_is_outdated(const struct domain *d);
/* Drops the chunks of chunk tables that are in memory, and the versions of chunks: later reads
 * fetch them again. For a snapshot whose chunks may have changed (see domain_sees_chunks()), and
 * that nobody has open. Any thread. */
void domain_forget_chunks(struct domain *d);
/* Bytes of memory that the domain has charged to the budget of its environment. */
uint64_t domain_memory(const struct domain *d);

const struct domain_info *domain_info(const struct domain *d);
const char *domain_path(const struct domain *d);
int64_t domain_modified_ns(const struct domain *d); /* newest of all documents */

/* The layout of the domain in the bucket, and its document; borrowed. */
const struct schema_ops *domain_schema(const struct domain *d);
const struct schema_document *domain_document(const struct domain *d);
/* Write the key of the document of an object, or of a chunk of a dataset. They return its length,
 * or a negative errno if there is no such key. */
int domain_object_key(const struct domain *d, uint32_t number, char *key, size_t room);
int domain_chunk_key(const struct domain *d, uint32_t dataset, uint64_t chunk, char *key,
		     size_t room);

/* The objects, constant. The tree's problems name the objects and parts that were left out. */
const struct tree *domain_tree(const struct domain *d);

/* The chunks. A chunk is decoded in a worker, which then calls the request's done. The domain must
 * outlive the requests. */
struct chunk_source domain_chunk_source(struct domain *d);
/* What is known of a dataset's stored chunks. */
const struct chunk_list *domain_chunks(const struct domain *d, uint32_t number);
/* Whether this is a list of its own, made when the domain was opened, while the version of the
 * domain covers no chunks. */
bool domain_has_own_list(const struct domain *d, uint32_t number);

/* The version of the object of a chunk as far as it is known: that of the listing, or else that of
 * the loads of the chunk through this snapshot. "" if it is not known. *absent: the listing of the
 * open proves that there is no such object. Makes no request. Without a listing, a load that finds
 * another version than an earlier one fails with -ESTALE, if the earlier version is still kept.
 * Chunks that are in an HDF5 file have no version. -EINVAL if there is no such chunk. Any thread.
 */
int domain_chunk_version(struct domain *d, uint32_t dataset, uint64_t chunk,
			 char etag[STORE_ETAG_MAX], bool *absent);
/* The version of the document of an object; "" if not known. *text: its *len bytes in this version,
 * or NULL, if they are not in memory (see DOMAIN_KEPT_MAX). Borrowed. */
const char *domain_object_version(const struct domain *d, uint32_t number, const void **text,
				  size_t *len);

#endif
