/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of domain/ share. The struct is filled by load.c and constant afterwards, but for
 * its reference count and the rechecks, which have a lock. */
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

/* Datasets whose documents were looked at again while the snapshot is in use (recheck.c). */
struct domain_rechecks {
	pthread_mutex_t lock;	    /* guards all below, and what the entries hold */
	struct rechecked *datasets; /* uthash, by number */
};

struct domain {
	atomic_uint refs;
	const struct env *env;
	struct store *store;
	const struct schema_ops *schema; /* of the document */
	char *path;
	struct tree *tree;
	struct arena *arena; /* the tree's */

	struct schema_document *document;
	const struct schema_space *space; /* in the arena */
	struct chunk_list *chunks;	  /* by number */

	/* A listing that is complete; empty when there is none, listed_prefix NULL. */
	struct store_page listing;
	const char *listed_prefix; /* what it covers; in the arena */

	struct object_resolver resolver;
	uint64_t values; /* bytes of attribute and fill values so far */
	struct budget_charge charge;

	struct domain_rechecks rechecks;
};

/* All chunks of the dataset would take more than DATASET_DENSE_MAX. */
bool domain_is_vast(const struct dataset *ds);
/* Charges what the domain takes by now to the budget. -ENOMEM: more than is left of it. */
int domain_charge(struct domain *d, struct err *err);
/* A listing can show which of the dataset's chunks are stored. */
bool domain_can_list(const struct domain *d, const struct object *o);
/* The listing covers this key or prefix: of what it does not name, nothing is there. */
bool domain_was_listed(const struct domain *d, const char *key);
/* A key's item in the listing, NULL when the listing does not have it or is empty. */
const struct store_item *domain_listed(const struct domain *d, const char *key);
/* The version of a key in the listing; NULL: not known. Borrowed from the domain. */
const char *domain_listed_etag(const struct domain *d, const char *key);

/* What came of a request, as a schema sees it. Borrowed from the request. */
void domain_answer(const struct store_request *req, struct schema_answer *out);
/* load.c: the domain's document and its tree. same: the hint's earlier snapshot is still the
 * domain, and d is not filled. */
int domain_load(struct domain *d, const struct schema_ops *const *schemas,
		const struct domain_hint *hint, bool *same, struct err *err);
/* accept.c: what a loader asks of each object. ctx: the domain. */
int domain_accept(void *ctx, struct object *o, struct err *err);
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
