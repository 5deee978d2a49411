/* SPDX-License-Identifier: Apache-2.0 */
/* The directories of a journal, from the top: PATH, PATH/2, PATH/2/BUCKET. Any thread. */
#ifndef JOURNAL_LEVELS_H
#define JOURNAL_LEVELS_H

#include <stdbool.h>

#include <journal/journal.h>

enum { LEVEL_DIGITS = JOURNAL_DIGITS };

/* Open a directory of the journal at `path`, and make it first if `make` is set. They return a
 * descriptor. They fail with -EPERM if the directory is not private, and with -ENOENT. */
int level_open_root(const char *path, bool make, struct err *err);
int level_open(int parent, const char *name, const char *path, bool make, struct err *err);
/* Writes the name of the directory of a bucket. */
int level_of_bucket(const char *identity, char digits[LEVEL_DIGITS], struct err *err);
bool level_is_bucket(const char *name);
/* Calls fn for each bucket in PATH/VERSION, as journal_buckets() does. dir is a descriptor of its
 * directory, or a negative errno (buckets.c). */
typedef int level_bucket_fn(void *ctx, const struct journal_bucket *b, int dir);
int level_each_bucket(const char *path, const char *version_name, level_bucket_fn *fn, void *ctx,
		      struct err *err);

#endif
