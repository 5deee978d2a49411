/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domain documents as the name space needs them: is a prefix a domain, a folder or nothing, and
 * who may see it. Small, since there is one for each name that is remembered.
 */
#ifndef ENGINE_DOC_H
#define ENGINE_DOC_H

#include <stdint.h>

#include <base/err.h>
#include <schema/schema.h>

struct engine;

enum doc_kind {
	DOC_NONE,   /* there is no document */
	DOC_FOLDER, /* one without a root group */
	DOC_ROOT,   /* a domain */
	DOC_BROKEN, /* one that cannot be read or understood: why says so */
};

enum { DOC_MAX = 1 << 20 /* bytes of a document; hundreds may be in memory at once */ };

struct doc {
	enum doc_kind kind;
	unsigned int file_mode, dir_mode;
	int64_t created_ns, modified_ns;
	struct schema_id root; /* DOC_ROOT */
	char *owner, *acls;    /* heap; acls as JSON; NULL without a document */
	int code;	       /* DOC_BROKEN */
	char *why;
};
void doc_release(struct doc *d);

/* Gets the documents of n paths side by side. A document that cannot be had is a DOC_BROKEN of
 * its own; -ENOMEM is the only failure, and then nothing is returned. */
int docs_get(struct engine *e, const char *const *paths, size_t n, struct doc *out);

#endif
