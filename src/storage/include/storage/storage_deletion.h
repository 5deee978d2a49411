/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deletes the storage of a domain that has lost its name, unless another name leads to it.
 *
 * A storage has no list of all its names. So a deletion first puts a mark below the storage, then
 * looks for names, and whoever gives an existing storage a name looks for marks afterwards. One of
 * the two sees the other:
 *
 *   a deletion                               a new name
 *   1  PUT a mark of its own                 1  PUT the list of names (a rename), or the document
 *   2  look for names: the documents in      2  LIST the marks. If there is one, wait until it is
 *      the folder of the lost name, and         gone, or take the name back
 *      those of the list of names; the
 *      list again, until it is unchanged
 *   3  a name leads to the storage: DELETE
 *      the mark. None: delete the root
 *      group, then everything below the
 *      storage, the list and the mark last
 *
 * Several deletions may run at the same time, each with a mark of its own. The mark of a process
 * that was killed counts for an hour, by the clock of the bucket. A rename that began less than an
 * hour ago, and is not settled, counts as a name. Names that the service has made in other folders
 * are not known. All functions block. Any thread.
 *
 * `hsimage clean` deletes storage that has had no name for long, and does not know which name it
 * had (clean/clean.c). It looks for names in the whole bucket after it has put the mark. Nobody
 * else may know such storage, except for a commit that goes on after a long time:
 *
 *   a deletion                               a commit or import with storage older than an hour
 *   1  PUT a mark of its own, and again      1  PUT the document
 *      every minute with If-Match            2  LIST the marks. If there is one, wait until it is
 *   2  look for names                           gone; replace one that was not rewritten for ten
 *   3  before each DELETE: was the mark         minutes with If-Match, then delete it
 *      put less than a minute ago?           3  a commit: LIST all keys. An import: is the root
 *                                               group there? Put what is missing
 *
 * So a deletion that was killed blocks nobody for ever, and one whose machine has slept stops
 * before its next DELETE: it cannot rewrite its mark. A DELETE that was on the way meanwhile is not
 * repeated (store/retry.c); one that the network delivers after ten minutes would be carried out.
 * Because the root group is deleted first, its presence without a mark proves that the storage is
 * whole, unless the root group was put after the deletion, by a process that has slept. Records of
 * imports keep deletions from that; a commit lists all keys. Known gap: a process that is killed
 * between the PUT of the root group and this listing. A later one then finds the root group
 * (import_finish.c, draft_domain.c).
 */
#ifndef STORAGE_STORAGE_DELETION_H
#define STORAGE_STORAGE_DELETION_H

#include <domain/documents.h>

struct renames;

/* A deletion that has put its mark. */
struct storage_deletion {
	struct storage storage;
	char key[SCHEMA_KEY_MAX + 1]; /* of the mark */
	char etag[STORE_ETAG_MAX];
	int64_t put_ns;	   /* what the mark says */
	uint64_t fresh_ns; /* env_boot() before it was put last */
};

/* Puts a mark. */
int storage_deletion_begin(const struct document_place *p, const struct storage *storage,
			   struct storage_deletion *d, struct err *err);
/* Rewrites the mark if it is older than a minute. To be called often. Fails with -EBUSY if another
 * process has replaced it, or if the last call is half an hour ago: the storage must stay. */
int storage_deletion_keep(const struct document_place *p, struct storage_deletion *d,
			  struct err *err);
/* To be called when no document names the storage: looks at its list of names, and deletes it with
 * the mark. As storage_delete(). */
int storage_deletion_end(const struct document_place *p, struct renames *renames,
			 struct storage_deletion *d, uint64_t *deleted, struct err *err);
/* Deletes the mark only. */
void storage_deletion_drop(const struct document_place *p, const struct storage_deletion *d);

/* Deletes the storage of what had this path. `renames` are those of this process, or NULL. *deleted
 * is the number of objects. Returns 0, or 1 if a name leads to the storage, which stays. Fails with
 * -EBUSY if that is not certain, because a rename may not have ended or the names keep changing;
 * the caller tries again later. */
int storage_delete(const struct document_place *p, struct renames *renames, const char *path,
		   const struct storage *storage, uint64_t *deleted, struct err *err);

/* Sets up the listing that shows whether a storage is being deleted. */
int storage_list_marks(const struct document_place *p, const struct storage *storage,
		       struct store_request *req, struct err *err);
/* Judges its answer. Returns 0 if the storage has its root group and no mark, 1 if it may be
 * deleted, or a negative errno. */
int storage_judge_marks(const struct document_place *p, const struct storage *storage,
			const struct store_request *req, struct err *err);
/* To be called after a name was given to a storage: waits until nobody deletes the storage. Returns
 * 0 if the name stays. Fails with -ESTALE if the storage has been deleted, and with -EBUSY if it
 * may yet be; then the caller takes the name back. Sends one LIST, unless there are marks. */
int storage_is_named(const struct document_place *p, const struct storage *storage,
		     struct err *err);
/* To be called when a document names a storage that is older than an hour: waits until nobody
 * deletes it. Returns 0 if it is whole. Fails with -ESTALE if it has been deleted, at least in
 * part; then the caller puts what is missing, and calls this again. Fails with -EBUSY if a deletion
 * goes on for hours. Sends one LIST, unless there are marks. */
int storage_reclaim(const struct document_place *p, const struct storage *storage, struct err *err);

#endif
