/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domain documents. The document of a path says whether it is a domain, a folder or neither, and
 * who may read it. A document that is cached is requested on the condition that it has changed. Any
 * thread.
 */
#ifndef NAMES_DOMAIN_DOC_H
#define NAMES_DOMAIN_DOC_H

#include "names_internal.h"
#include "node.h"

enum { NAMES_DOC_MAX = 1 << 20 /* bytes of a document; hundreds may be in memory at once */ };

/* A document that is requested together with others. */
struct names_doc_request {
	const char *path;	  /* borrowed */
	struct names_node *known; /* has the cached document, or NULL */
	struct schema_classify classify;
};
/* Makes req the first request. listing is a listing of the path, or NULL; it is borrowed until the
 * answer arrives. Returns false if the path has no document; the caller then has nothing to
 * release. */
bool names_doc_prepare(struct names *ns, const char *path, const struct schema_listing *listing,
		       struct names_doc_request *doc, struct store_request *req);
/* Returns what a page shows, whose keys are in order. The page is borrowed. */
struct schema_listing names_doc_listing(const struct store_page *page);
/* Evaluates the answer. A caller that has got a listing of the path by now sets
 * doc->classify.listing first. If the schema needs more requests, makes them and blocks. A document
 * that cannot be read is a NAMES_DOC_BROKEN. The function fails only with -ENOMEM. Releases what
 * doc holds in both cases. */
int names_doc_finish(struct names *ns, struct names_doc_request *doc, struct store_request *req,
		     struct names_doc *out);

/* Copies the cached document of a path, if a listing shows that the bucket still has its version.
 * page has all keys of the directory of the path, in all levels. Returns false if it does not show
 * that, or if out of memory. */
bool names_doc_confirm(struct names *ns, const char *path, const struct store_page *page,
		       struct names_doc *out);
/* Returns whether the document of a path is cached, so that names_doc_confirm() may succeed. */
bool names_doc_is_cached(struct names *ns, const char *path);

/* Gets the documents of n paths in parallel. listing is a listing of all of these paths, or NULL.
 * Returns -ENOMEM if out of memory; `out` is then empty. */
int names_docs_get(struct names *ns, const char *const *paths, size_t n,
		   const struct schema_listing *listing, struct names_doc *out);

#endif
