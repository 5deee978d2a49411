/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renames of domains, and what other changes of names owe to them.
 *
 * A rename in S3 is a PUT and a DELETE, and may end between the two. It is never undone, only
 * finished. The list of names of the storage (storage_names.h) says what has to be finished:
 *
 *   1  PUT the list with both names and a record of this rename. Whoever changes the list first
 *      wins; the others fail with -ESTALE. If the record of another rename is there that may not
 *      be finished, that one is finished first.
 *   2  PUT the document of the new name. It has a random number, so no version ever returns. Side
 *      by side: is the storage being deleted?
 *   3  DELETE the document of the old name.
 *
 * Nothing is put at the end: if the old document is gone, the record is done with. A store that can
 * move an object does 2 and 3 in one step.
 *
 * Failures: see change_rename_domain(). A record RENAME_BEGUN is finished by the next program that
 * renames the domain, or by the next mount with the journal of the process. Nobody else may finish
 * it any more if a program is about to remove one of the two names: rename_leave().
 *
 * All functions block. Any thread.
 */
#ifndef STORAGE_RENAME_H
#define STORAGE_RENAME_H

#include <storage/change.h>

#include <domain/documents.h>

/* To be called before a name is removed from a storage, or given to another one. If this name
 * belongs to a rename that may not be finished, nobody finishes it after this call. It sends one
 * GET, and a PUT in that case. `renames` are those of this process, or NULL. Returns 0, or 1 if the
 * storage has a list, so that the name may be given to it once more at any moment: if the change
 * then finds another version, it must fail with -EBUSY, too. Fails with -EBUSY if another program
 * has changed the names at the same moment, or is doing so; the user must look at them again. The
 * code is not -ESTALE, because a call that fails with that is repeated, and would remove the last
 * name. */
int rename_leave(const struct document_place *p, struct renames *renames,
		 const struct storage *storage, const char *path, struct err *err);
/* Returns whether an error says that the bucket has refused a request, and has changed nothing. */
bool rename_is_refused(int rc);

#endif
