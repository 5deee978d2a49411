/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of domain/ share. The struct is filled by open.c and constant afterwards, but for
 * its reference count. */
#ifndef DOMAIN_DOMAIN_INTERNAL_H
#define DOMAIN_DOMAIN_INTERNAL_H

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
	char etag[STORE_ETAG_MAX]; /* of its document: as it was read, before that as listed, "" */
	struct domain_text document;
	UT_hash_handle hh;
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
	struct store_page listing; /* of a domain that was listed whole, else empty */
	uint64_t listing_digest;

	struct object_resolver resolver;
	int64_t modified_ns;
	uint64_t values; /* bytes of attribute and fill values so far */
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
/* Digest of a whole listing: keys, sizes and versions of objects and chunks (what the service
 * writes beside them, like its summary, does not count). */
uint64_t domain_listing_digest(const struct domain *d, const struct store_page *page);

/* The version of a key in the listing; NULL: not known. Borrowed from the domain. */
const char *domain_listed_etag(const struct domain *d, const char *key);

/* Keeps a document's text, if there is room and memory. */
void domain_keep(struct domain *d, struct domain_text *kept, const void *text, size_t n);

/* object_list.c: the domain's document, its listings, and from them a number for each object. same:
 * the hint's earlier snapshot is still the domain, and d is not filled. */
int domain_list_objects(struct domain *d, const struct domain_hint *hint, bool *same,
			struct err *err);
/* revalidate.c: 0 when all reachable documents are those that d was made of, 1 when not (or gone),
 * or a negative errno. One head for each, side by side with `first`, whose result goes into
 * *first_result (both may be NULL). */
int domain_docs_changed(struct domain *d, const struct store_get *first,
			struct store_get_result *first_result, struct err *err);
/* The same from a whole listing; heads for those only that look different there. */
int domain_differs_from(struct domain *d, const struct store_page *page, struct err *err);
/* object_docs.c: reads and parses the documents of all numbers. previous: NULL or an earlier
 * snapshot, whose texts are taken where they are still current. */
int domain_read_docs(struct domain *d, const struct domain *previous, struct err *err);
/* chunk_fetch.c: see struct chunk_source. ctx: the domain. */
void domain_fetch_chunk(void *ctx, uint32_t dataset, uint64_t number, const atomic_bool *unwanted,
			chunk_done done, void *arg);
/* chunk_inventory.c: which chunks exist, and the decoded sizes of variable-length ones. */
int domain_list_chunks(struct domain *d, struct err *err);

#endif
