/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot of a domain. Its objects are in memory; its chunks are fetched when they are read.
 * Only this layer knows both the key of an object and the meaning of its bytes.
 *
 * To open a domain takes as many rounds of parallel requests as the loader of its schema needs,
 * whatever the depth of the tree. Usually there are three rounds: the domain document, the
 * listings, and all object documents. If the document is known, the first two are one round.
 * Domains with variable-length data may need a fourth and a fifth round, because the layout of an
 * image depends on the sizes of their chunks. If the domain is too large for one page of a listing,
 * the chunks of these datasets are listed. If chunks are compressed, the first 16 bytes of each are
 * read. If documents name objects that no listing has shown, one more round checks whether these
 * exist. If a domain has changed between the listings and the documents, it is loaded again, three
 * times at most.
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
		1000, /* keys of one page; a domain with at most this many is listed whole */
	DOMAIN_TEXTS_MIN = 4 << 20, /* bytes of document texts that are kept for the next open */
};

struct domain;
struct file_finder;
struct domain_puts;
struct schema_document;
struct schema_listed;
struct schema_ops;

/* The changes that this process makes in place. While a change is running, and after it, an earlier
 * check of a document says nothing about an absent chunk. It is zeroed at first. Any thread may
 * call the functions. */
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
	struct store *disk; /* the disk cache in `store` (diskcache/diskcache.h), or NULL */
	const struct schema_ops *const *schemas; /* of the bucket; ends with NULL */
	/* Finds the HDF5 files that domains refer to. If it is NULL, reads of their data fail. */
	const struct file_finder *files;
	const struct domain_changes *changes; /* NULL if this process changes no domain in place */
	/* As in struct engine_options. They apply to domains that a listing shows (struct
	 * schema_mark). */
	bool missing_chunks_fail, forbidden_chunks_absent;
	/* This process changes domains, so most opens of a changed domain follow a commit. Then a
	 * domain keeps more texts of documents than DOMAIN_TEXTS_MIN if there is memory. */
	bool keeps_texts;
};

/* For a caller that follows how a domain is opened. */
struct domain_plan {
	/* If true, the domain is opened only if all its keys can be listed. Otherwise domain_open()
	 * fails with -E2BIG after one listing, or without a request if its schema has no such
	 * listing. */
	bool whole_only;
	/* If true, the domain is opened only if its document alone shows what a file needs: a Zarr
	 * store with consolidated metadata. Its keys are not listed. Otherwise domain_open() fails
	 * with -E2BIG after the request for the document. There must be no earlier snapshot. */
	bool document_only;
	/* If true, the caller only looks at the domain and does not keep it. Problems are not
	 * logged, no texts are kept for the next open, a user block in an object of its own is not
	 * read, and the requests of readers are sent first. */
	bool is_brief;
	/* Is called when the keys of a domain without an earlier snapshot have been listed, or with
	 * NULL if they cannot all be listed. A negative errno ends domain_open(), which returns it.
	 */
	int (*listed)(void *ctx, const struct schema_listed *listed);
	void *ctx;
	/* NULL, or all keys of a domain that has at most DOMAIN_LISTING, in order, from a listing
	 * that was requested after its document had been read. The domain is not listed again. The
	 * keys are taken over. They require whole_only, and that there is no earlier snapshot. */
	struct store_page *keys;
	const atomic_bool *cancelled; /* NULL, or as in struct store_request */
	/* domain_open() sets these. `failed`: the store could not answer a request, for a reason
	 * that may pass. `refused`: the store does not permit a request. `torn`: the domain changed
	 * while it was loaded. If none is set and memory was not short, a failure is a property of
	 * this version of the domain. */
	bool failed, refused, torn;
};

/* What the caller knows of a domain before it is opened; all members may be zero. */
struct domain_hint {
	/* The document that the look-up has found, borrowed. It saves a round if the bucket still
	 * has this version. */
	struct schema_document *document;
	/* If true, the document was read during this open, and is not requested again. */
	bool is_fresh;
	/* NULL, or an earlier snapshot. Unchanged parts are taken from it. If nothing has changed,
	 * it is the result. */
	struct domain *previous;
	/* What this process has put since `previous` (domain/puts.h), borrowed, or NULL. */
	const struct domain_puts *puts;
	struct domain_plan *plan; /* may be NULL */
};

/* Opens the current version of a domain. path has no slashes at its ends. hint may be NULL. *out is
 * the caller's reference. If hint->previous is still current, this takes one round: a conditional
 * request for the document, with one listing or (in large domains of few objects) a HEAD for each
 * document. The same is true if nothing has changed besides hint->puts. Fails with -ENOENT if there
 * is no document, with -EISDIR if it is that of a folder, with -EIO and the key and the cause if
 * something is damaged, with -E2BIG if there are too many objects (see also
 * domain_plan.whole_only), with -ENOMEM, and with other errors of the store. */
int domain_open(const struct domain_bucket *bucket, const char *path,
		const struct domain_hint *hint, struct domain **out, struct err *err);
struct domain *domain_ref(struct domain *d);
void domain_unref(struct domain *d);
/* Frees the texts of documents that are kept for the next open, which then reads the documents.
 * Returns false if there are none. No other thread may use the domain yet. */
bool domain_drop_texts(struct domain *d);

/* Returns true if the domain was listed whole. The next open then notices changed chunks, too. */
bool domain_sees_chunks(const struct domain *d);
/* Returns what this listing has shown, or NULL if the domain was not listed whole. Borrowed. */
const struct schema_listed *domain_listed_keys(const struct domain *d);
/* Returns the version of the one document from which the objects and the layout of the file follow.
 * Returns NULL if they depend on anything else, such as the keys of the domain. Borrowed. */
const char *domain_only_version(const struct domain *d);
/* Returns true if the domain was listed whole, and the last open has found that the service keeps a
 * copy of its values (schema_storage.copy). */
bool domain_has_copy(const struct domain *d);
/* Returns a digest of the version that the summary of the domain had when the last open listed it
 * whole (schema_listed.summary), or 0. */
uint64_t domain_summary(const struct domain *d);
/* Returns true if a file that the domain refers to has another version than when the domain was
 * opened, so that reads of it fail with -EIO, or if a chunk has another version than when it was
 * read first, so that reads of it fail with -ESTALE. The next open does not use this snapshot as
 * hint->previous. */
bool domain_is_outdated(const struct domain *d);
/* Drops the chunks of chunk tables and the indexes of shards that are in memory, and the versions
 * of chunks. Later reads fetch them again. This is for a snapshot that no caller has open, and
 * whose chunks may have changed (see domain_sees_chunks()). Any thread may call it. */
void domain_forget_chunks(struct domain *d);
/* Returns the bytes of memory that the domain takes, and charges to the budget of its environment.
 */
uint64_t domain_memory(const struct domain *d);

/* Frees the attributes of the objects, see tree_drop_attributes(). Only for a domain that no other
 * thread uses. An image that is made of it afterwards has no attributes. */
void domain_drop_attributes(struct domain *d, void (*take)(void *ctx, uint32_t i, struct object *o),
			    void *ctx);

const struct domain_info *domain_info(const struct domain *d);
const char *domain_path(const struct domain *d);
int64_t domain_modified_ns(const struct domain *d); /* of the newest document */

/* Return the layout of the domain in the bucket, and its document. Both are borrowed. */
const struct schema_ops *domain_schema(const struct domain *d);
const struct schema_document *domain_document(const struct domain *d);
/* Write the key of the document of an object, or of a chunk of a dataset. They return its length,
 * or a negative errno if there is no such key. */
int domain_object_key(const struct domain *d, uint32_t number, char *key, size_t room);
int domain_chunk_key(const struct domain *d, uint32_t dataset, uint64_t chunk, char *key,
		     size_t room);

/* Returns the objects, which are constant. The tree's problems name the objects and parts that were
 * left out. */
const struct tree *domain_tree(const struct domain *d);

/* Returns the source of the chunks. A chunk is decoded in a worker, which then calls the request's
 * done. The domain must outlive the requests. */
struct chunk_source domain_chunk_source(struct domain *d);
/* Returns what is known of a dataset's stored chunks. */
const struct chunk_list *domain_chunks(const struct domain *d, uint32_t number);
/* Returns true if this list was made by itself when the domain was opened. The version of the
 * domain then covers no chunks. */
bool domain_has_own_list(const struct domain *d, uint32_t number);

/* Gets the version of the object of a chunk as far as it is known: that of the listing, or else
 * that of the loads of the chunk through this snapshot. It is "" if it is not known. *absent
 * becomes true if the listing of the open proves that there is no such object. The function sends
 * no request. Without a listing, a load that finds another version than an earlier one fails with
 * -ESTALE, if the earlier version is still kept. Chunks that are in an HDF5 file have no version.
 * Fails with -EINVAL if there is no such chunk. Any thread may call it. */
int domain_chunk_version(struct domain *d, uint32_t dataset, uint64_t chunk,
			 char etag[STORE_ETAG_MAX], bool *absent);
/* Returns the version of the document of an object, or "" if it is not known. *text becomes the
 * *len bytes of the document in this version, or NULL if they are not in memory (see
 * domain_bucket.keeps_texts). Both are borrowed. */
const char *domain_object_version(const struct domain *d, uint32_t number, const void **text,
				  size_t *len);

#endif
