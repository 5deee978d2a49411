/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domain documents as the name space needs them: is a prefix a domain, a folder or nothing, and
 * who may see it. Small, since there is one for each name that is remembered.
 */
#ifndef ENGINE_DOC_H
#define ENGINE_DOC_H

#include <stdint.h>

#include <hsmount/err.h>
#include <schema/schema.h>
#include <store/store.h>

struct engine;
struct node;

enum doc_kind {
	DOC_NONE,   /* there is no document */
	DOC_FOLDER, /* one without a root group */
	DOC_ROOT,   /* a domain */
	DOC_BROKEN, /* one that cannot be read or understood: why says so */
	DOC_CLOSED, /* of a node: what lies beneath cannot be listed, why says so (beneath.h) */
};

enum { DOC_MAX = 1 << 20 /* bytes of a document; hundreds may be in memory at once */ };

struct doc {
	enum doc_kind kind;
	unsigned int file_mode, dir_mode;
	int64_t created_ns, modified_ns;
	struct schema_id root; /* DOC_ROOT */
	char *owner, *acls;    /* heap; acls as JSON; NULL without a document */
	char *etag;	       /* heap; its version, to ask again; NULL not known */
	int code;	       /* DOC_BROKEN, DOC_CLOSED */
	char *why;
};
void doc_release(struct doc *d);
/* -ENOMEM: then out is empty. */
int doc_copy(const struct doc *d, struct doc *out);
/* A DOC_CLOSED. -ENOMEM: then out is empty. */
int doc_close(int code, const char *why, struct doc *out);

/* One document as a part of a round: what is remembered of it is asked for on condition. */
struct doc_ask {
	char key[SCHEMA_KEY_MAX + 1];
	struct node *known; /* or NULL */
};
/* False: the path is too long for a document. ask must stay where it is until it is taken. */
bool doc_ask(struct engine *e, const char *path, struct doc_ask *ask, struct store_get *req);
/* What came. A document that cannot be had is a DOC_BROKEN; -ENOMEM is the only failure. Releases
 * what ask holds, always, but not res->body. */
int doc_take(struct engine *e, struct doc_ask *ask, const struct store_get_result *res,
	     struct doc *out);

/* Gets the documents of n paths side by side. Fails as doc_take(), and then nothing is returned. */
int docs_get(struct engine *e, const char *const *paths, size_t n, struct doc *out);

#endif
