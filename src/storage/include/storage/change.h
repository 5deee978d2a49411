/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of names in a bucket: folders are made and removed, domains are renamed and removed. The
 * storage of a domain that has lost its name is garbage. It is deleted by a call of its own,
 * because readers that have the domain open still need it.
 *
 * The caller has looked the names up, and passes the documents that it has seen. Each change is
 * conditional on these versions, so it fails with -ESTALE if another program was faster.
 *
 * All functions block. Any thread.
 */
#ifndef STORAGE_CHANGE_H
#define STORAGE_CHANGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/env.h>
#include <hsmount/err.h>
#include <schema/storage_id.h>
#include <store/store.h>

struct domain_info;
struct renames;
struct schema_document;
struct schema_ops;

/* What all changes need. The caller keeps everything that it points to. */
struct change {
	const struct env *env;
	struct store *store;
	const struct schema_ops *schema; /* of new documents */
	const char *owner;		 /* of new folders */
	int64_t now_ns;			 /* since the epoch */
	/* NULL, or requests fail with -ECANCELED once it is true. */
	const atomic_bool *cancelled;
	struct renames *renames; /* of this process (storage/renames.h), or NULL */
};

/* The storage of a domain that has lost its name. A zeroed struct means that there is none. */
struct change_garbage {
	struct storage storage;
	bool half_done; /* a rename has failed and may be half done; see change_finish_rename() */
};

/* Puts the document of a folder. Fails with -EEXIST if it has one. */
int change_make_folder(const struct change *c, const char *path, struct err *err);
/* Puts the document of a folder that is the new name of another one: with the same owner, access
 * control list and times. Fails with -EEXIST if it has one. */
int change_copy_folder(const struct change *c, const char *path, const struct domain_info *info,
		       struct err *err);
/* Deletes the directory marker and the document of a folder in which nothing else is. `folder` is
 * NULL if it has no document. Fails with -ENOTEMPTY, and names the first key that the folder has;
 * if no mount shows this key, the log has it, too. */
int change_remove_folder(const struct change *c, const char *path,
			 const struct schema_document *folder, struct err *err);
/* Called when a domain has lost this name: deletes the directory marker "PATH/", with which the
 * name would be a directory now, unless it has bytes. If that fails, the log says so. */
void change_remove_marker(const struct change *c, const char *path);
/* The ETag of the document that a change has replaced, and that of the new one. */
struct change_versions {
	char from[STORE_ETAG_MAX], to[STORE_ETAG_MAX];
};
/* Gives a domain or folder another access control list. The document that is there keeps everything
 * else. If `is_new` is set, the path is a folder without a document, which gets one. *out has a
 * meaning after a success; both are "" for a new document. */
int change_set_acls(const struct change *c, const char *path, bool is_new,
		    const struct domain_info *acls, struct change_versions *out, struct err *err);
/* Deletes the document of a domain, and then its directory marker if it may have one. Fails with
 * -EBUSY if another program has changed its names at the same moment. */
int change_remove_domain(const struct change *c, const char *path,
			 const struct schema_document *domain, bool may_have_marker,
			 struct change_garbage *out, struct err *err);
/* Gives a domain another name. `target` is the domain that has this name and is replaced, or NULL.
 * In S3: one PUT for the list of names of the storage, a PUT and a LIST side by side, one DELETE;
 * and one GET if the list exists. Fails with -EEXIST if the target exists, although the caller has
 * not seen it; with -ESTALE if another program has changed one of the names, or renames the domain;
 * and with -EBUSY if another program has changed the old name, or the names of the target, at the
 * same moment. After any other error, both names may lead to the same domain: a rename that was
 * interrupted is finished later, and one whose last step was refused is finished if it is
 * repeated. */
int change_rename_domain(const struct change *c, const char *from,
			 const struct schema_document *domain, const char *to,
			 const struct schema_document *target, struct change_garbage *out,
			 struct err *err);
/* Gives a removed domain its path again. `text` is the document that leads to its storage, which
 * nothing has deleted yet. In S3: a HEAD for the root group, a GET and a PUT for the list of names,
 * a PUT of the document, a LIST. Fails with -EEXIST if the path has a domain or folder, with
 * -ESTALE if the storage was deleted, and with -EBUSY if it is being deleted. After an error, the
 * storage is still garbage. */
int change_undelete(const struct change *c, const char *path, const char *text,
		    const struct storage *storage, struct err *err);
/* Finishes the last rename of the domain with this storage if it was interrupted, and if it began
 * at least age_ns ago: a rename of another process may still be running. Fails with -EBUSY if it is
 * younger. */
int change_finish_rename(const struct change *c, const struct storage *storage, int64_t age_ns,
			 struct err *err);
/* Notes in the list of names of a storage that this path may get it at any moment: a document that
 * names it was sent, and has had no answer. For an hour the storage is not deleted then; afterwards
 * only if the path does not lead to it. A GET and a PUT. Fails with the errors of the store. */
int change_expect_name(const struct change *c, const struct storage *storage, const char *path,
		       struct err *err);
/* Returns 1 if a path is a domain with this storage, 0 if not, or a negative errno. */
int change_has_storage(const struct change *c, const char *path, const struct storage *storage,
		       struct err *err);
/* Deletes garbage, unless a domain in the folder of `path`, or a name that a rename has given to
 * the domain, still leads to it. *deleted is the number of objects. Fails with -EBUSY if a rename
 * may not have ended; the caller tries again later. */
int change_collect(const struct change *c, const char *path, const struct change_garbage *g,
		   uint64_t *deleted, struct err *err);
/* Finds a name that a rename has given to the domain with this storage, and that leads to it.
 * Returns 1 with the path, 0 if there is none, or a negative errno. */
int change_find_name(const struct change *c, const struct storage *storage, char *path, size_t room,
		     struct err *err);
/* Returns 1 if a storage has a root group, so that it may be that of a domain, 0 if not, or a
 * negative errno. */
int change_storage_has_root(const struct change *c, const struct storage *storage, struct err *err);

#endif
