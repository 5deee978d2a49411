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

struct domain_info;
struct gc_objects;
struct renames;
struct schema_document;
struct schema_ops;
struct store;

/* Borrowed. */
struct change {
	const struct env *env;
	struct store *store;
	const struct schema_ops *schema; /* of new documents */
	const char *owner;		 /* of new folders */
	int64_t now_ns;			 /* since the epoch */
	/* NULL, or true: requests fail with -ECANCELED. */
	const atomic_bool *cancelled;
	struct renames *renames; /* of this process (storage/renames.h); NULL: not known */
};

/* The storage of a domain without a name. Zeroed: there is none. */
struct change_garbage {
	bool any;
	uint64_t storage; /* see schema_storage.of_root() */
	/* NULL: all of the storage. Otherwise these objects of a domain that has it. */
	struct gc_objects *objects;
	bool half_done; /* a rename has failed that may be half done: change_finish_rename() */
};

/* Puts the document of a folder. -EEXIST. */
int change_make_folder(const struct change *c, const char *path, struct err *err);
/* Deletes the document of a folder in which nothing else is. folder: NULL if it has no document.
 * -ENOTEMPTY. */
int change_remove_folder(const struct change *c, const char *path,
			 const struct schema_document *folder, struct err *err);
/* Gives a domain or folder another access control list. The document that is there keeps everything
 * else. is_new: a folder without a document, which gets one. */
int change_set_acls(const struct change *c, const char *path, bool is_new,
		    const struct domain_info *acls, struct err *err);
/* Deletes the document of a domain. -EBUSY: another program has changed its names at the same
 * moment. */
int change_remove_domain(const struct change *c, const char *path,
			 const struct schema_document *domain, struct change_garbage *out,
			 struct err *err);
/* Gives a domain another name. target: the domain that has this name, and is replaced, or NULL. In
 * S3: one PUT for the list of names of the storage, a PUT and a LIST side by side, one DELETE; and
 * one GET if the list exists. Errors: -EEXIST: the target exists, although the caller has not seen
 * it; -ESTALE: another program has changed one of the names, or renames the domain; -EBUSY: another
 * program has changed the names of the target. After any other error, both names may lead to the
 * same domain: a rename that was interrupted is finished later, and one whose last step was refused
 * is finished if it is repeated. */
int change_rename_domain(const struct change *c, const char *from,
			 const struct schema_document *domain, const char *to,
			 const struct schema_document *target, struct change_garbage *out,
			 struct err *err);
/* Finishes the last rename of the domain with this storage if it was interrupted, and if it began
 * at least age_ns ago: a rename of another process may still be running. -EBUSY: it is younger. */
int change_finish_rename(const struct change *c, uint64_t storage, int64_t age_ns, struct err *err);
/* Whether a path is a domain with this storage: 1, 0 or a negative errno. */
int change_has_storage(const struct change *c, const char *path, uint64_t storage, struct err *err);
/* Deletes garbage, unless a domain in the folder of `path`, or a name that a rename has given to
 * the domain, still leads to it. *deleted: the number of objects. -EBUSY: a rename may not have
 * ended; the caller tries again later. */
int change_collect(const struct change *c, const char *path, const struct change_garbage *g,
		   uint64_t *deleted, struct err *err);
/* Reads the list of names of a storage. 0; -EIO: it is damaged, so the domain cannot be renamed,
 * removed or replaced; other errors of the store. */
int change_check_names(const struct change *c, uint64_t storage, struct err *err);
/* Finds a name that a rename has given to the domain with this storage, and that leads to it: 1
 * with the path, 0 or negative. */
int change_find_name(const struct change *c, uint64_t storage, char *path, size_t room,
		     struct err *err);
/* Whether a storage has a root group, so that it may be that of a domain: 1, 0 or negative. */
int change_storage_has_root(const struct change *c, uint64_t storage, struct err *err);

#endif
