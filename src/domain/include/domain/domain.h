/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live domain: its objects in memory, its chunks on demand. The only room that knows both which
 * key holds an object and what its bytes mean.
 *
 * Opening takes as many rounds of parallel requests as the schema's loader needs, whatever the
 * depth: as a rule the domain document, the listings, all object documents. The first two
 * are one where the document is known. (Domains with variable-length data may need a fourth and
 * fifth: listings of those datasets' chunks when the domain was too large for one page, and the
 * first 16 bytes of compressed ones: sizes must be known when an image is planned.)
 *
 * A struct domain is a snapshot and constant after domain_open(): any thread may read it.
 */
#ifndef DOMAIN_DOMAIN_H
#define DOMAIN_DOMAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <base/env.h>
#include <hsmount/err.h>
#include <data/chunk_source.h>
#include <data/domain_info.h>
#include <data/tree.h>

enum {
	DOMAIN_LISTING = 1000,	   /* keys of a domain that are listed whole: one page */
	DOMAIN_KEPT_MAX = 4 << 20, /* bytes of documents that are kept for the next opening */
};

struct domain;
struct schema_document;
struct schema_ops;
struct store;

/* What is known of a domain before it is opened. A zeroed struct is nothing. */
struct domain_hint {
	struct schema_document *document; /* what looking it up has read: saves a round when it is
					     still so. Borrowed */
	bool is_fresh; /* and read for this very opening: it need not be asked for again */
	struct domain *previous; /* an earlier snapshot: what did not change is taken from it. When
				    nothing did, it is the result itself */
};

/* The domain as it is now. schemas: those that it may belong to, ends with NULL. path: without
 * slashes at its ends. hint: may be NULL. *out is the caller's reference. Of an unchanged domain
 * with an earlier snapshot this costs one round: the document on condition, and one listing or
 * (large domains of few objects) a head per document. Errors: -ENOENT no domain document; -EISDIR a
 * folder; -EIO with key and cause; -E2BIG; -ENOMEM. */
int domain_open(const struct env *env, struct store *store, const struct schema_ops *const *schemas,
		const char *path, const struct domain_hint *hint, struct domain **out,
		struct err *err);
struct domain *domain_ref(struct domain *d);
void domain_unref(struct domain *d);

/* An opening sees changes of chunks too (the domain was listed whole). */
bool domain_sees_chunks(const struct domain *d);
/* Memory that it holds, bytes: what it charges to the budget of its environment. */
uint64_t domain_memory(const struct domain *d);

const struct domain_info *domain_info(const struct domain *d);
const char *domain_path(const struct domain *d);
int64_t domain_modified_ns(const struct domain *d); /* newest of all documents */

/* Its objects, constant. Problems: objects and parts that were left out, for `hsimage info`. */
const struct tree *domain_tree(const struct domain *d);

/* Its chunks. A chunk is fetched, and decoded in a worker, where chunk_source's done is called. The
 * domain must outlive the requests. */
struct chunk_source domain_chunk_source(struct domain *d);
/* What is known of a dataset's stored chunks. */
const struct chunk_list *domain_chunks(const struct domain *d, uint32_t number);

#endif
