/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of stores under the engine: which implementation, which wrappers, in which order. */
#ifndef BUCKET_STORE_STACK_H
#define BUCKET_STORE_STACK_H

#include <hsmount/engine.h>

#include <base/str.h>
#include <store/store.h>

struct http_stats;

/* Splits "s3://bucket[/prefix]". The caller frees both; *prefix is NULL if there is none. Fails
 * with -EINVAL or -ENOMEM. */
int store_stack_split_s3(const char *url, char **bucket, char **prefix, struct err *err);
/* Returns whether the name begins with "s3://". */
bool store_stack_is_s3(const char *bucket);
/* Returns the directory of a bucket, which is "/a/b" for "file:///a/b" and for "/a/b". It is
 * borrowed from `bucket`. */
const char *store_stack_dir(const char *bucket);

/* Returns the name of a bucket as other processes can use it, which is absolute and without
 * needless slashes. It is on the heap, or NULL if out of memory. */
char *store_stack_name(const char *bucket);

/* Stores of the stack that the engine uses directly. The stack owns them. */
struct store_stack_parts {
	struct store *s3;    /* NULL for a directory */
	struct store *dir;   /* NULL for a bucket in S3 */
	struct store *retry; /* store_retry_count(); NULL for a directory */
	struct store *whole; /* the bucket without the prefix */
	struct store *count; /* store_count_read() */
	struct store *disk;  /* store_diskcache_read(); NULL without a cache_dir */
};

/* `only` is the name of a domain in the bucket that a listing shows (struct schema_mark), or NULL
 * if the bucket itself may be one. If the service refuses to list the bucket, one of the objects
 * that mark this domain must exist. beside is NULL, or another such stack with the same options of
 * S3, which is freed later: buckets of one service share what is known about the service. Returns
 * NULL and sets err on failure. env and meter are borrowed. */
struct store *store_stack_new(const struct env *env, const struct engine_options *opt,
			      const char *only, struct store *beside, struct http_stats *meter,
			      struct store_stack_parts *parts, struct err *err);
/* The same over a bucket that the caller has made, and that the stack owns from now on. */
struct store *store_stack_over(struct store *bucket, struct store_stack_parts *parts,
			       struct err *err);
/* Appends a text that identifies, among all buckets, the part of the bucket that is shown: the
 * server's URL or the directory's real path, then the prefix on a line of its own. */
int store_stack_identity(const struct store_stack_parts *parts, const char *bucket, struct str *out,
			 struct err *err);
/* Requests so far that were not answered: after all attempts, it is not known what the bucket has.
 */
uint64_t store_stack_failures(const struct store_stack_parts *parts);
/* Ends the threads of the stack. The next request starts them again. Must not be called while a
 * request runs. */
void store_stack_stop_threads(const struct store_stack_parts *parts);

#endif
