/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domain documents, asked for on the condition that they are not the ones that are remembered: is a
 * prefix a domain, a folder or nothing, and who may see it. Any thread.
 */
#ifndef NAMES_DOMAIN_DOC_H
#define NAMES_DOMAIN_DOC_H

#include "names_internal.h"
#include "node.h"

enum { NAMES_DOC_MAX = 1 << 20 /* bytes of a document; hundreds may be in memory at once */ };

/* One document as a part of a round: what is remembered of it is asked for on condition. */
struct names_doc_ask {
	const char *path;	  /* borrowed */
	struct names_node *known; /* or NULL */
	struct schema_classify classify;
};
/* Makes req what is asked for first. False: the path can have no document. */
bool names_doc_ask(struct names *ns, const char *path, struct names_doc_ask *ask,
		   struct store_request *req);
/* What came. A document that cannot be read is a NAMES_DOC_BROKEN; -ENOMEM is the only failure.
 * Blocks if a schema asks for more. Releases what ask holds, always. */
int names_doc_take(struct names *ns, struct names_doc_ask *ask, struct store_request *req,
		   struct names_doc *out);

/* Gets the documents of n paths side by side. Fails as names_doc_take(), and then nothing is
 * returned. */
int names_docs_get(struct names *ns, const char *const *paths, size_t n, struct names_doc *out);

#endif
