/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports an HDF5 file as a new domain, or links it: then the domain has the metadata, and its
 * datasets refer to byte ranges of the file, which stays in the bucket.
 *
 * The order, in which each step is complete before the next one begins:
 *
 *   1  the record of the import, only if there is none; or the record of an import of the same file
 *      that was interrupted
 *   2  the file is opened and checked; nothing else is put if a part of it cannot be stored
 *   3  chunks, datasets, committed types, groups, the root group; then all of them are made durable
 *   4  missing folders above the domain
 *   5  the document of the domain, only if there is none (or, to replace one, only if it still has
 *      the version that step 1 has read); the service's summary is put at the same time
 *      if the storage is old, what `hsimage clean` may have deleted of it is put again
 *      (import_guard.c)
 *   6  the storage of a replaced domain is deleted
 *   7  the record is deleted
 *
 * Invariants, each tested by stopping after every single operation:
 *
 *   - A reader sees the domain only with step 5, and then completely.
 *   - The storage that an import writes is named by its record, from before its first object until
 *     the domain document names it. So it can always be continued or removed.
 *   - When the domain appears, all its objects are durable.
 *   - An import that is repeated puts the same objects under the same keys.
 *
 * An import for a commit (struct import_commit) has steps 2 to 5 only: the caller knows from its
 * journal what is not finished, and what becomes garbage. Within step 3 there is no order, unless
 * the caller wants it.
 *
 * Blocks. One import at a time in one thread; the requests and the encoding of chunks run in the
 * pool. Memory: the tree of the file, and for each operation of the queue (put_queue.h) the chunk
 * that is read and encoded, within the budget of the environment.
 */
#ifndef IMPORT_IMPORT_H
#define IMPORT_IMPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/env.h>
#include <base/source.h>
#include <hsmount/err.h>
#include <schema/storage_id.h>
#include <storage/storage_sum.h>
#include <store/store.h>

struct domain_info;
struct domain_puts;
struct h5file_external;
struct schema_document;
struct schema_ops;

/* The file, which the caller opens when it is needed. */
struct import_file {
	const char *name; /* absolute, for the record */
	/* As the user names it, for messages; NULL: the same. */
	const char *shown;
	uint64_t size;	  /* bytes */
	int64_t mtime_ns; /* since the epoch */
	/* Called once, after the first step. The source is valid until the import returns, and any
	 * thread may read it. */
	int (*open)(void *ctx, struct source **out, struct err *err);
	/* Returns -ESTALE if the file no longer has that size and time. Called before step 4. It
	 * may be NULL if the file does not change. */
	int (*check)(void *ctx, struct err *err);
	void *ctx;
};

/* How a domain refers to the file, instead of having its data. */
struct import_link {
	/* The bucket of the domain and the key of the file in it, which need not exist yet. */
	const char *bucket, *key;
	const char *etag; /* of that object; NULL if not known */
	bool locate;	  /* no chunk tables are stored; readers find chunks in the file's index */
	bool verify;	  /* step 2 reads all data to which the domain refers */
};

/* An import whose caller keeps a journal, so that the bucket needs no record. The caller repeats it
 * until it succeeds, or deletes the storage. All strings are borrowed. */
struct import_commit {
	struct storage storage;
	/* The domain that is replaced, if it still has this version, or NULL. Its storage stays. */
	struct schema_document *replaced;
	/* Whether a folder above the domain has a document, and the length of the path of the
	 * nearest one. */
	bool has_folder;
	size_t folder_len;
	int64_t modified_ns;	 /* of the document of the domain, since the epoch */
	struct renames *renames; /* of this process (storage/renames.h); NULL if not known */
	/* The root group is put when all other objects are there, for domain_import_finish().
	 * Otherwise all objects are put side by side, which takes fewer rounds of requests. */
	bool in_order;
	/* An earlier attempt may have put objects of the storage, at any time. */
	bool continues;
	/* The path has a document that names the storage. Steps 4 and 5 are left out. */
	bool is_named;
	/* Gets what was put, for the first open (domain/puts.h), after a success of a call that has
	 * put all objects itself. The caller has set it to NULL, and frees it. The member may be
	 * NULL. */
	struct domain_puts **puts;
	/* Called after step 2, before the first put. An error ends the import. */
	int (*begin)(void *ctx, struct err *err);
	/* Called after step 4. From the next request on, the domain may be replaced. An error ends
	 * the import. */
	int (*publish)(void *ctx, struct err *err);
	/* Called if the path of the domain is an object, which a directory cannot have beside the
	 * document. It deletes the object; then the document is put once more. */
	int (*make_way)(void *ctx, struct err *err);
	void *ctx;
};

struct import_options {
	const struct env *env;
	struct store *store;
	const struct schema_ops *schema;
	const char *path;   /* of the domain in the bucket, valid and not empty */
	const char *bucket; /* its name, for the service's summary; may be NULL */
	/* The owner of the domain is the first of these that is not NULL: owner, that of the
	 * replaced domain, service_user, that of the nearest folder, local_user. */
	const char *owner, *service_user, *local_user;
	/* The access control list of the domain, borrowed. If it is NULL, the domain gets that of
	 * the replaced domain, unless `owner` is given, or one that lets the owner do everything.
	 */
	const struct domain_info *acls;
	bool replace;	       /* a domain that exists is replaced */
	bool keep_storage;     /* of a replaced domain */
	bool skip_unsupported; /* what a domain cannot hold is left out instead of refused */
	/* A file whose superblock says that a program writes it is not refused. A commit never
	 * refuses it: its caller knows better. */
	bool ignore_open_flag;
	uint64_t min_chunk; /* joins neighbouring chunks up to this many bytes; 0 if not */
	unsigned int puts;  /* at the same time, > 0 */
	int64_t now_ns;	    /* since the epoch */
	const atomic_bool *cancelled; /* may be NULL; if true, stops with -ECANCELED */
	struct import_file file;      /* not for domain_import_abort() */
	/* If it is not NULL, the domain refers to the file. The source of the file is then read
	 * only in the thread of the caller, and may block. */
	const struct import_link *link;
	/* If it is not NULL, it opens the external files that have raw data of the file. These data
	 * are copied, also if the domain refers to the file. It is borrowed. */
	const struct h5file_external *external;
	/* If it is not NULL, the import is a commit. It excludes link; replace and keep_storage are
	 * ignored. */
	const struct import_commit *commit;
	/* Takes a line for the user: what is damaged or left out, or advice. It may be NULL. */
	void (*note)(void *ctx, const char *line);
	/* Takes the bytes of raw data in the file that are stored, and all of them; of a link,
	 * those that are referred to or verified. It may be NULL. */
	void (*progress)(void *ctx, uint64_t done, uint64_t total);
	void *ctx;
};

struct import_result {
	/* The documents of the domain, and its stored chunks; a commit does not count the latter.
	 */
	uint64_t objects, chunks;
	uint64_t puts, bytes;  /* of chunks and documents that this call has put */
	uint64_t found;	       /* chunks that an earlier, interrupted import has put */
	uint64_t left_out;     /* objects, attributes and links */
	uint64_t linked;       /* datasets whose data stay in the file */
	uint64_t linked_bytes; /* of these data as they are stored */
	bool finished_earlier; /* only the steps after the document were left */
	/* The file is the reason of the error: it is damaged or, with -EOPNOTSUPP, a domain cannot
	 * hold it. This is false if its source has failed, which the caller knows. */
	bool refused;
	uint64_t problems; /* that were reported as lines, and are the reason of the error */
	/* With -EEXIST, -ESTALE, or an error of import_commit.make_way, the path has something
	 * else, and the first and only attempt to put the document was refused. So no reader can
	 * have seen the storage. Attempts of earlier calls do not count. */
	bool unseen;
	struct storage_sum versions; /* of the objects, if this call has put all of them */
	/* The ETag of the document of the domain. That of an earlier attempt may be found instead.
	 */
	char etag[STORE_ETAG_MAX];
};

/* Imports. *out is filled in as far as the import came, also after an error. Fails with -EEXIST if
 * the domain exists, or another import to this path is not finished; with -EISDIR if the path is a
 * folder; with -ENOTDIR if a part of the path is a domain; with -ESTALE if the file or the domain
 * that is replaced has changed; with -EOPNOTSUPP if something in the file cannot be stored; with
 * -EIO if the file is damaged; with -ECANCELED; and with errors of the store and of the file. */
int domain_import(const struct import_options *opt, struct import_result *out, struct err *err);

/* Makes steps 4 and 5 of an import for a commit, in_order, that has made all steps before, and has
 * returned from store_sync(). Does not open the file. *found says whether its objects are there; if
 * not, nothing is done. */
int domain_import_finish(const struct import_options *opt, bool *found, struct import_result *out,
			 struct err *err);

/* Removes what an unfinished import to opt->path has stored, then its record. *deleted is the
 * number of objects that were removed. Returns -ENOENT if there is no such import, or -EBUSY if its
 * domain is complete, so that nothing is removed. */
int domain_import_abort(const struct import_options *opt, uint64_t *deleted, struct err *err);

#endif
