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

#include <stdbool.h>
#include <stdint.h>

#include <base/env.h>
#include <base/err.h>
#include <data/chunk_source.h>
#include <data/domain.h>
#include <data/tree.h>

enum {
	MODEL_LISTING = 1000,	  /* keys of a domain that are listed whole: one page */
	MODEL_KEPT_MAX = 4 << 20, /* bytes of documents that a model keeps for the next opening */
	MODEL_VALUES_MAX = 256 << 20, /* bytes of all attribute and fill values of a domain */
};
struct model;
struct schema_id;
struct schema_ops;
struct store;

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
 * Errors: -ENOENT no domain document; -EISDIR a folder; -EIO with key and cause; -E2BIG. */
int model_open(const struct env *env, struct store *store, const struct schema_ops *schema,
	       const char *path, const struct model_hint *hint, struct model **out,
	       struct err *err);
struct model *model_ref(struct model *m);
void model_unref(struct model *m);

/* An opening sees changes of chunks too (the domain was listed whole). */
bool model_sees_chunks(const struct model *m);
/* Bytes that the model keeps for the next opening. */
uint64_t model_kept(const struct model *m);

/* Memory that it holds, bytes. */
uint64_t model_memory(const struct model *m);

const struct domain *model_domain(const struct model *m);
const char *model_path(const struct model *m);
int64_t model_modified_ns(const struct model *m); /* newest of all documents */

/* Its objects, constant. Problems: objects and parts that were left out, for `hsimage info`. */
const struct tree *model_tree(const struct model *m);

/* Its chunks. A chunk is fetched, and decoded in a worker, where chunk_source's done is called. The
 * model must outlive the requests. unwanted: as in struct store_get. */
struct chunk_source model_chunk_source(struct model *m);
/* What is known of a dataset's stored chunks. */
const struct chunk_list *model_chunks(const struct model *m, uint32_t number);

#endif
