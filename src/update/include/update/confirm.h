/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whether the domain still has what a commit has changed in it. A commit changes objects
 * by their keys, which do not depend on the names of the domain and of its objects. So each of its
 * puts may succeed although another program has removed the domain, or a dataset of it, meanwhile.
 * The change is then lost. Therefore the function that has run a plan calls one of these functions,
 * and the commit is complete only if it returns 0.
 *
 * What counts:
 *  - A domain leads to the root group: the one with the path that was opened, or one with another
 *    name that the storage has. The document of the domain may have changed otherwise.
 *  - A link of this domain leads to each object that the plan has changed. Any link counts, because
 *    another program may have moved the object.
 *
 * All functions block.
 */
#ifndef UPDATE_CONFIRM_H
#define UPDATE_CONFIRM_H

#include <stdatomic.h>
#include <stddef.h>

#include <base/env.h>
#include <hsmount/err.h>
#include <journal/plan.h>
#include <store/store.h>

struct domain;
struct schema_ops;

struct confirm {
	const struct env *env;
	struct store *store;
	const struct schema_ops *schema;
	const atomic_bool *cancelled; /* may be NULL; if it becomes true, the call fails with
				       * -ECANCELED */
	const char *path;	      /* of the domain when it was opened */
	const char *root;	      /* id of its root group */
	const char *const *objects;   /* ids of what was changed */
	size_t count;
	struct domain *known; /* as domain_hint.previous; may be NULL */
};

/* A document, and the version that it has if no program has changed it since, or "" if that is not
 * known. */
struct confirm_document {
	const char *key, *version;
};

/* Asks for the versions of documents, side by side: docs[0] is that of the domain, and the others
 * prove that links lead to all objects. Only if one of them differs, the domain is read. If the
 * document of the domain has another version, and still leads to the root group, that version is
 * copied to `document`. Fails with -ESTALE if another program has removed the domain or an object,
 * or replaced it; with -EIO if a part of the domain cannot be read; and with errors of the
 * store. */
int confirm_documents(const struct confirm *c, const struct confirm_document *docs, size_t n,
		      char document[STORE_ETAG_MAX], struct err *err);
/* Checks the same by reading the domain, for a plan that an earlier process has made, of which the
 * versions are not known. Returns 0 for a plan that does not say which domain it changes. */
int confirm_plan(const struct confirm *c, const struct plan *plan, struct err *err);

#endif
