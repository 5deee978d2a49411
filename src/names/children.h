/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the keys below a prefix, and whether the listing of its directory shows it. A prefix is
 * "unlistable" when listing it fails although listing its directory succeeds: then the failure
 * belongs to this prefix alone, and the listing of the directory proves that it exists. Any thread.
 */
#ifndef NAMES_CHILDREN_H
#define NAMES_CHILDREN_H

#include "names_internal.h"

enum { CHILDREN_LISTED_MAX = 1 << 20 /* entries of a directory; a larger one cannot be listed */ };

struct names_below {
	const char *path; /* borrowed */
	int children;	  /* an enum names_children, or negative */
	char *why;	  /* heap; if children is negative */
	/* The path may have a document of a domain or folder: a listing shows one, or has failed,
	 * but not with EACCES. A service that refuses a listing also refuses the requests of
	 * documents that do not exist. */
	bool has_document;
	/* As a listing shows it. A marker makes the path a directory, but is no key of a domain. */
	enum names_marker marker;
	/* A reference to the document of the domain that the listing shows, or NULL. The path is no
	 * domain if the directory above it is marked: see names_node.is_marked. */
	struct schema_document *store;
	/* names_prefix_pages() has filled in this struct, and has kept the keys of the domain, or
	 * NULL. */
	bool is_listed;
	struct bytes *keys;
};
void names_below_release(struct names_below *b);
/* Replaces the document of a path by that of the domain which the listing shows, if there is one.
 * The document of a domain is kept, and so is one that cannot be read, unless it was refused with
 * EACCES and nothing shows that it exists. The directory of the path must not be marked. */
void names_doc_use_mark(struct names_doc *doc, const struct names_below *b);

/* Returns whether a listing proves that the path has no document. A service that refuses to read
 * documents says nothing about that. */
static inline bool names_lacks_document(const struct names_below *b)
{
	return b->path && b->children >= 0 && !b->has_document;
}
/* Drops the failure to read a document if a listing shows what is below the path, and no document.
 * Without a document, a marker counts as a key below the path. */
void names_doc_use_listing(struct names_doc *doc, struct names_below *b);

/* Returns whether a listing shows nothing but a document that was absent when it was requested. The
 * document may have come in between, and what else was there may have gone: then there was a
 * directory at each moment. So the document is requested again. */
bool names_doc_is_overtaken(const struct names_doc *doc, const struct names_below *b);

/* Makes req the listing that names_children_take() evaluates. */
void names_children_prepare(const char *path, struct store_request *req);
/* Fills in b, except for the path. Returns 0 or -ENOMEM; other failures are in b. */
int names_children_take(struct names *ns, const struct store_request *req, struct names_below *b);
/* Does the same with a page that has all keys of the directory of the path, in all levels. */
int names_children_flat(struct names *ns, const struct store_page *flat, struct names_below *b);
/* Requests the marks of those of n paths that have too many keys for a listing (CHILDREN_MANY), or
 * whose listing was refused. Returns 0 or -ENOMEM. */
int names_children_marks(struct names *ns, struct names_below *all, size_t n);
/* Lists the keys below those of n paths that are not listed, in parallel. Returns 0 or -ENOMEM;
 * other failures are in `all`. The caller releases each element in both cases. */
int names_children_find(struct names *ns, struct names_below *all, size_t n);

/* Returns 0 if this directory can be listed now, or the error of the listing. */
int names_check_listing(struct names *ns, const char *dir, struct err *err);

enum names_listed { LISTED_NOT, LISTED_OBJECT, LISTED_PREFIX };
/* Returns how the listing of its directory shows a path: an enum names_listed, or a negative errno.
 */
int names_is_listed(struct names *ns, const char *path, struct err *err);

#endif
