/* SPDX-License-Identifier: Apache-2.0 */
/* What the first listings of a place show; the schema judges it (schema_recognise()). */
#ifndef ENGINE_SURVEY_H
#define ENGINE_SURVEY_H

#include <stdbool.h>

#include <hsmount/err.h>
#include <schema/schema.h>
#include <store/store.h>

/* Surveys a directory. Reads at most some thousand of its entries. -EACCES, -ENOENT … */
int survey_dir(const char *dir, struct schema_survey *seen);
/* Surveys a bucket in S3 by listings; one of a single key where storage is found, at most ten in
 * all. Fails as the listings do. Blocks. */
int survey_store(struct store *s, struct schema_survey *seen, struct err *err);
/* Whether the schema's storage is below the prefix ("" for the whole bucket): one listing. */
int survey_has_storage(struct store *s, const char *prefix, bool *found, struct err *err);
/* Adds the content of the place's own document. One that is gone, or was not complete when it was
 * read, has no root group. Fails when the store cannot tell. */
int survey_document(struct store *s, struct schema_survey *seen, struct err *err);

#endif
