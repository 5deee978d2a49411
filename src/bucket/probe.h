/* SPDX-License-Identifier: Apache-2.0 */
/* Lists a place as far as schema_recognise() needs to decide whether it is a bucket. */
#ifndef BUCKET_PROBE_H
#define BUCKET_PROBE_H

#include <stdbool.h>

#include <hsmount/err.h>
#include <schema/schema.h>
#include <store/store.h>

/* The prefix of the storages of new domains, by which a bucket is recognised. */
const char *probe_new_storages(void);
/* Surveys a directory. Reads at most 4,096 of its entries. Fails with -EACCES, -ENOENT or another
 * error of the file system. */
int probe_dir(const char *dir, struct schema_survey *seen);
/* Looks for the marks of domains in the directories of a directory and, if deep is true, in several
 * levels of directories below these. Reads at most 4,096 entries. Fails with -ENOMEM. */
int probe_dir_marks(const char *dir, bool deep, struct schema_survey *seen);
/* Surveys a bucket in S3. One listing of a single key finds the storage; if there is none, at most
 * nine more listings follow. Fails with the error of a listing. Blocks. */
int probe_store(struct store *s, struct schema_survey *seen, struct err *err);
/* Surveys a bucket in S3 that refuses its listing: requests the marks of the place one by one.
 * Blocks. Fails with -ENOMEM. */
int probe_store_marks(struct store *s, struct schema_survey *seen, struct err *err);
/* Finds out whether the storage of a schema is below the prefix ("" for the whole bucket). Sends
 * one listing for each schema that has a prefix for its storages, and one more. */
int probe_has_storage(struct store *s, const char *prefix, bool *found, struct err *err);
/* Adds the content of the place's own document. A document that was deleted or cannot be parsed
 * counts as one without a root group. Fails if the store cannot tell whether it exists. */
int probe_document(struct store *s, struct schema_survey *seen, struct err *err);

#endif
