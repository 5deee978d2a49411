/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes the documents of domains and folders, and finds and deletes the storage that
 * they name, for callers that change them: imports and changes of names. All functions block. They
 * fail with the errors of the store and with -ENOMEM; only other errors are named below.
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

/* Where the documents are. Everything is borrowed. */
struct document_place {
	const struct env *env;
	struct store *store;
	const struct schema_ops *schema; /* the schema of new documents */
	const atomic_bool *cancelled;	 /* may be NULL; if true, requests fail with -ECANCELED */
};

enum { DOCUMENT_ALL_PERMS = (1 << DOMAIN_PERMS) - 1 };

/* Reads a small object. *out becomes the answered request, which the caller frees, or NULL if there
 * is no such object. */
int document_read(const struct document_place *p, const char *key, struct store_request **out,
		  struct err *err);
/* Gets the document of a path. *out is NULL if there is none. The caller unrefs the document. */
int document_get(const struct document_place *p, const char *path, struct schema_document **out,
		 struct err *err);
/* Reads n bytes that are to be the document of a path. The caller unrefs it. Fails with -EIO if
 * they are none. */
int document_parse(const struct document_place *p, const char *path, const void *text, size_t n,
		   struct schema_document **out, struct err *err);
/* Gets the document of the nearest folder above a path that has one, and the length of the path of
 * that folder. *out is NULL if there is none. The caller unrefs the document. Fails with -ENOTDIR
 * if a domain is above the path. */
int document_above(const struct document_place *p, const char *path, struct schema_document **out,
		   size_t *len, struct err *err);
/* What the store has answered to a PUT. */
struct document_answer {
	char etag[STORE_ETAG_MAX]; /* of the new object; "" after an error */
	bool repeated;		   /* see struct store_answer; it is valid after an error, too */
};
/* Puts n bytes under a key. answer may be NULL. Fails with -ESTALE or -EEXIST if the condition does
 * not hold. */
int document_write(const struct document_place *p, const char *key, const void *bytes, size_t n,
		   const struct store_cond *cond, struct document_answer *answer, struct err *err);
/* Puts the document of a path. answer may be NULL. Fails as document_write() and document_key() do.
 */
int document_put(const struct document_place *p, const char *path, const struct domain_info *info,
		 const struct store_cond *cond, struct document_answer *answer, struct err *err);
/* Puts the document of a new folder, with the default access control list. Fails with -EEXIST if
 * the path has a document, and as document_key() does. */
int document_put_folder(const struct document_place *p, const char *path, const char *owner,
			int64_t now_ns, struct err *err);

/* Writes the key of the document of a path. Fails with -ENAMETOOLONG if the path is too long, and
 * with -EOPNOTSUPP if the schema has no documents that can be changed. */
int document_key(const struct document_place *p, const char *path, char *key, size_t room,
		 struct err *err);
/* Returns 1 if an object exists, 0 if not, or a negative errno. */
int document_exists(const struct document_place *p, const char *key, struct err *err);
/* What a deletion with a version has found. */
enum document_found {
	DOCUMENT_WAS_THERE,
	DOCUMENT_WAS_ABSENT,
	/* An earlier attempt may have deleted it: it was absent, or has another version. */
	DOCUMENT_MAY_BE_OURS,
};
/* The first function deletes the document of a path, the second one an object. If version is
 * neither NULL nor "", they fail with -ESTALE if the object has another version. found may be NULL;
 * *found has a meaning only with a version, and after a success or -ESTALE. */
int document_delete(const struct document_place *p, const char *path, const char *version,
		    enum document_found *found, struct err *err);
int document_delete_key(const struct document_place *p, const char *key, const char *version,
			enum document_found *found, struct err *err);

/* Returns 1 if a path is a domain that names the storage, 0 if not, or a negative errno. */
int document_names_storage(const struct document_place *p, const char *path,
			   const struct storage *storage, struct err *err);
/* Returns 1 if a domain in the folder of `path`, or `path` itself, names the storage, 0 if not, or
 * a negative errno. */
int storage_is_shared(const struct document_place *p, const char *path,
		      const struct storage *storage, struct err *err);
/* Deletes all keys below a prefix, and sets *deleted to their number. order may be NULL. Otherwise
 * order->first is deleted before all keys that are greater, and the keys order->kept are not
 * deleted. order->check is called before each deletion; an error of it ends the call. */
struct purge_order {
	const char *first, *kept[2];
	int (*check)(void *ctx, struct err *err);
	void *ctx;
};
int storage_purge(const struct document_place *p, const char *prefix,
		  const struct purge_order *order, uint64_t *deleted, struct err *err);
/* Writes the key of the document of the root group of a storage. Fails with -EINVAL if there is no
 * such key. */
int storage_root_key(const struct document_place *p, const struct storage *storage,
		     char key[SCHEMA_KEY_MAX + 1], struct err *err);
/* Returns 1 if a storage has a root group, so that it may be that of a domain, 0 if not, or a
 * negative errno. */
int storage_has_root(const struct document_place *p, const struct storage *storage,
		     struct err *err);

#endif
