/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of domain/ share. The struct is filled by open.c and constant afterwards, but for
 * its reference count and the rechecks, which have a lock. */
#ifndef DOMAIN_DOMAIN_INTERNAL_H
#define DOMAIN_DOMAIN_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <uthash.h>

#include <base/env.h>
#include <base/mem.h>
#include <domain/domain.h>
#include <schema/schema.h>
#include <store/store.h>

/* A document's text as it was read, in the tree's arena; empty when it is not kept. */
struct domain_text {
	const void *data;
	size_t len;
};

/* One object id of the domain; its place in the table is its number. */
struct domain_entry {
	struct schema_id id;
	uint8_t hash_key[17]; /* kind and bytes */
	uint32_t number;
	bool absent;		   /* the store has proved that it has no document */
	char etag[STORE_ETAG_MAX]; /* of its document: as it was read, before that as listed, "" */
	struct domain_text document;
	UT_hash_handle hh;
};

/* Datasets whose documents were looked at again while the snapshot is in use (recheck.c). */
struct domain_rechecks {
	pthread_mutex_t lock;	    /* guards all below, and what the entries hold */
	struct rechecked *datasets; /* uthash, by number */
};

struct domain {
	atomic_uint refs;
	const struct env *env;
	struct store *store;
	const struct schema_ops *schema;
	char *path;
	struct tree *tree;
	struct arena *arena; /* the tree's */

	struct schema_domain doc;
	char document_etag[STORE_ETAG_MAX];
	struct domain_text document; /* of the domain */
	uint64_t kept;		     /* bytes of all texts that are kept */

	/* Indexed by the tree's numbers. */
	uint32_t capacity;
	struct domain_entry *entries;
	struct chunk_list *chunks;
	struct domain_entry *by_id; /* uthash */

	bool listed_whole;
	int listing_code;	   /* of the whole listing: why the domain was not listed whole */
	struct store_page listing; /* of a domain that was listed whole, else empty */
	const char *listed_prefix; /* what the listing covers */
	uint64_t listing_digest;

	struct object_resolver resolver;
	int64_t modified_ns;
	uint64_t values; /* bytes of attribute and fill values so far */

	struct domain_rechecks rechecks;
};

/* Two versions are known, and one and the same. */
static inline bool domain_same_version(const char *a, const char *b)
{
	return a[0] && strcmp(a, b) == 0;
}

/* Number of an id, OBJECT_NONE when the domain has no such object. */
uint32_t domain_number(const struct domain *d, const struct schema_id *id);
/* All chunks of the dataset would take more than DATASET_DENSE_MAX. */
bool domain_is_vast(const struct dataset *ds);
/* A listing can show which of the dataset's chunks are stored. */
bool domain_can_list(const struct domain *d, const struct object *o);
/* Digest of a whole listing: keys, sizes and versions of objects and chunks (what the service
 * writes beside them, like its summary, does not count). */
uint64_t domain_listing_digest(const struct domain *d, const struct store_page *page);

/* The listing covers this key or prefix: of what it does not name, nothing is there. */
bool domain_was_listed(const struct domain *d, const char *key);
/* A key's item in the listing, NULL when the listing does not have it or is empty. */
const struct store_item *domain_listed(const struct domain *d, const char *key);
/* The version of a key in the listing; NULL: not known. Borrowed from the domain. */
const char *domain_listed_etag(const struct domain *d, const char *key);

/* Keeps a document's text, if there is room and memory. */
void domain_keep(struct domain *d, struct domain_text *kept, const void *text, size_t n);

/* object_list.c: the domain's document, its listings, and from them a number for each object. same:
 * the hint's earlier snapshot is still the domain, and d is not filled. */
int domain_list_objects(struct domain *d, const struct domain_hint *hint, bool *same,
			struct err *err);
/* revalidate.c: 0 when all reachable documents are those that d was made of, also the damaged and
 * the missing ones; 1 when not (or gone), or a negative errno. One head for each, side by side
 * with `first`, which may be NULL. */
int domain_docs_changed(struct domain *d, struct store_request *first, struct err *err);
/* The same from a whole listing; heads for those only that look different there. */
int domain_differs_from(struct domain *d, const struct store_page *page, struct err *err);
/* object_docs.c: reads and parses the documents of all numbers. previous: NULL or an earlier
 * snapshot, whose texts are taken where they are still current. */
int domain_read_docs(struct domain *d, const struct domain *previous, struct err *err);
/* chunk_inventory.c: which chunks exist, and the decoded sizes of variable-length ones. */
int domain_list_chunks(struct domain *d, struct err *err);

/* recheck.c: is a dataset's document still the one that the snapshot was made of? */
struct domain_recheck {
	const atomic_bool *cancelled; /* as in struct store_request */
	/* In any thread, possibly before the call returns. 0: it was, less than a second ago;
	 * -ESTALE: it has changed or is gone; else it could not be asked. */
	void (*done)(void *arg, int code, const struct err *err);
	void *arg;
	struct domain_recheck *next;
};
/* Asks at most once a second for each dataset. r is the caller's until done. */
void domain_recheck(struct domain *d, uint32_t dataset, struct domain_recheck *r);
/* An earlier call found that the document has changed. That never ends for this snapshot. */
bool domain_is_stale(struct domain *d, uint32_t dataset);
void domain_rechecks_init(struct domain *d);
void domain_rechecks_release(struct domain *d);

#endif
