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
 * A mark is framed records (base/frame.h): the head HSMDELET, version 1; then one of type 1: when
 * it was put, 8 bytes, in nanoseconds since 1970. Its key ends in 16 random hexadecimal digits.
 */
#ifndef STORAGE_STORAGE_DELETION_H
#define STORAGE_STORAGE_DELETION_H

#include <domain/documents.h>

struct renames;

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

#endif
