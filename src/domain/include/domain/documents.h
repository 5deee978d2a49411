/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents of domains and folders, and the storage that they name, for callers that change
 * them: imports and changes of names. All functions block.
 */
#ifndef DOMAIN_DOCUMENTS_H
#define DOMAIN_DOCUMENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/env.h>
#include <data/domain_info.h>
#include <hsmount/err.h>
#include <schema/schema.h>
#include <store/store.h>

/* Where the documents are. Borrowed. */
struct document_place {
	const struct env *env;
	struct store *store;
	const struct schema_ops *schema; /* in which new documents are written */
	const atomic_bool *cancelled;	 /* NULL, or true: requests fail with -ECANCELED */
};

enum { DOCUMENT_ALL_PERMS = (1 << DOMAIN_PERMS) - 1 };

/* Reads a small object. *out: the answered request, or NULL if there is no such object. */
int document_read(const struct document_place *p, const char *key, struct store_request **out,
		  struct err *err);
/* The document of a path; *out is NULL if there is none. The caller unrefs. */
int document_get(const struct document_place *p, const char *path, struct schema_document **out,
		 struct err *err);
/* The nearest folder above a path that has a document; *out is NULL if there is none. *len: the
 * length of its path. -ENOTDIR if it is a domain. */
int document_above(const struct document_place *p, const char *path, struct schema_document **out,
		   size_t *len, struct err *err);
/* What the store says about a put. */
struct document_answer {
	char etag[STORE_ETAG_MAX]; /* of the new version; "" after an error */
	bool repeated;		   /* see struct store_answer; also after an error */
};
/* Puts n bytes under a key. answer: may be NULL. */
int document_write(const struct document_place *p, const char *key, const void *bytes, size_t n,
		   const struct store_cond *cond, struct document_answer *answer, struct err *err);
/* Puts the document of a path. answer: may be NULL. */
int document_put(const struct document_place *p, const char *path, const struct domain_info *info,
		 const struct store_cond *cond, struct document_answer *answer, struct err *err);
/* The document of a new folder, with the default access control list. -EEXIST. */
int document_put_folder(const struct document_place *p, const char *path, const char *owner,
			int64_t now_ns, struct err *err);

/* Writes the key of the document of a path. -ENAMETOOLONG. */
int document_key(const struct document_place *p, const char *path, char *key, size_t room,
		 struct err *err);
/* Whether an object exists: 1, 0 or a negative errno. */
int document_exists(const struct document_place *p, const char *key, struct err *err);
/* What a deletion with a version has found. */
enum document_found {
	DOCUMENT_WAS_THERE,
	DOCUMENT_WAS_ABSENT,
	DOCUMENT_MAY_BE_OURS, /* it was absent, and an earlier attempt may have deleted it */
};
/* Deletes the document of a path, or an object. version: NULL or "", or the version that it must
 * have: -ESTALE. found: may be NULL. */
int document_delete(const struct document_place *p, const char *path, const char *version,
		    enum document_found *found, struct err *err);
int document_delete_key(const struct document_place *p, const char *key, const char *version,
			enum document_found *found, struct err *err);

/* Whether a path is a domain that names the storage: 1, 0 or a negative errno. */
int document_names_storage(const struct document_place *p, const char *path, uint64_t storage,
			   struct err *err);
/* Whether a domain in the folder of `path`, or `path` itself, names the storage: 1, 0 or a negative
 * errno. */
int storage_is_shared(const struct document_place *p, const char *path, uint64_t storage,
		      struct err *err);
/* Deletes all keys below a prefix. order: NULL, or the key that is deleted before all that are
 * greater, and keys that stay. *deleted: how many. */
struct purge_order {
	const char *first, *kept[2];
};
int storage_purge(const struct document_place *p, const char *prefix,
		  const struct purge_order *order, uint64_t *deleted, struct err *err);
/* Writes the key of the document of the root group of a storage. */
int storage_root_key(const struct document_place *p, uint64_t storage, char key[SCHEMA_KEY_MAX + 1],
		     struct err *err);
/* Whether a storage has a root group, so that it may be that of a domain: 1, 0 or a negative errno.
 */
int storage_has_root(const struct document_place *p, uint64_t storage, struct err *err);

#endif
