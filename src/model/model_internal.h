/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of model/ share. The struct is filled by open.c and constant afterwards, but for
 * its reference count. */
#ifndef MODEL_MODEL_INTERNAL_H
#define MODEL_MODEL_INTERNAL_H

#include <stdatomic.h>
#include <string.h>

#include <uthash.h>

#include <base/env.h>
#include <base/mem.h>
#include <model/model.h>
#include <schema/schema.h>
#include <store/store.h>

/* A document's text as it was read, in the model's arena; empty when it is not kept. */
struct model_text {
	const void *data;
	size_t len;
};

/* One object id of the domain; its place in the table is its number. */
struct model_entry {
	struct schema_id id;
	uint8_t hash_key[17]; /* kind and bytes */
	uint32_t number;
	bool linked;		   /* in the order */
	char etag[STORE_ETAG_MAX]; /* of its document: as it was read, before that as listed, "" */
	struct model_text document;
	UT_hash_handle hh;
};

struct model_problem_text {
	char *text;
	struct model_problem_text *next;
};

struct model {
	atomic_uint refs;
	const struct env *env;
	struct store *store;
	const struct schema_ops *schema;
	char *path;
	struct arena *arena;

	struct schema_domain domain;
	char domain_etag[STORE_ETAG_MAX];
	struct model_text document; /* of the domain */
	uint64_t kept;		    /* bytes of all texts that are kept */

	/* Indexed by number. Number 0 is the root group. */
	uint32_t numbers, capacity;
	struct model_entry *entries;
	struct model_object *objects;
	struct model_chunks *chunks;
	struct model_entry *by_id; /* uthash */

	uint32_t *order;
	uint32_t count;

	bool listed_whole;
	struct store_page listing; /* of a domain that was listed whole, else empty */
	uint64_t listing_digest;

	struct object_resolver resolver;
	int64_t modified_ns;
	struct model_problem_text *problems, **problems_end;
	uint32_t nproblems;
	uint64_t values; /* bytes of attribute and fill values so far */
	struct budget_charge charge;
};

/* Two versions are known, and one and the same. */
static inline bool model_same_version(const char *a, const char *b)
{
	return a[0] && strcmp(a, b) == 0;
}

/* Number of an id, OBJECT_NONE when the domain has no such object. */
uint32_t model_number(const struct model *m, const struct schema_id *id);
/* Notes something that was left out and logs it once. */
void model_note(struct model *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* All chunks of the dataset would take more than MODEL_DENSE_MAX. */
bool model_is_vast(const struct dataset *ds);
/* Charges what the model takes by now to the budget. -ENOMEM: more than is left of it. */
int model_charge(struct model *m, struct err *err);
/* Digest of a whole listing: keys, sizes and versions of objects and chunks (what the service
 * writes beside them, like its summary, does not count). */
uint64_t model_listing_digest(const struct model *m, const struct store_page *page);

/* The version of a key in the listing; NULL: not known. Borrowed from the model. */
const char *model_listed_etag(const struct model *m, const char *key);

/* Keeps a document's text, if there is room and memory. */
void model_keep(struct model *m, struct model_text *kept, const void *text, size_t n);

/* names.c: the domain's document, its listings, and from them a number for each object. same: the
 * hint's earlier snapshot is still the domain, and m is not filled. */
int model_read_names(struct model *m, const struct model_hint *hint, bool *same, struct err *err);
/* changed.c: 0 when all reachable documents are those that m was made of, 1 when not (or gone), or
 * a negative errno. One head for each, side by side with `first`, whose result goes into
 * *first_result (both may be NULL). */
int model_documents_changed(struct model *m, const struct store_get *first,
			    struct store_get_result *first_result, struct err *err);
/* The same from a whole listing; heads for those only that look different there. */
int model_differs_from(struct model *m, const struct store_page *page, struct err *err);
/* documents.c: reads and parses the documents of all numbers. previous: NULL or an earlier
 * snapshot, whose texts are taken where they are still current. */
int model_read_documents(struct model *m, const struct model *previous, struct err *err);
/* tree.c: drops links to broken objects, orders what is reachable, counts references. */
int model_order(struct model *m, struct err *err);
/* known.c: which chunks exist, and the decoded sizes of variable-length ones. */
int model_know_chunks(struct model *m, struct err *err);

#endif
