/* SPDX-License-Identifier: Apache-2.0 */
/* The HDF5 files that domains may refer to: struct file_finder for an engine. */
#ifndef ENGINE_REFERRED_FILES_H
#define ENGINE_REFERRED_FILES_H

#include <hsmount/engine.h>

#include <ranges/file_finder.h>

#include <bucket/store_stack.h>

struct files;

/* own: the store of the bucket. opt: its bucket, bucket_name and allow_uri. Opens what allow_uri
 * names, and asks S3 for each bucket: a user learns at once that a bucket does not exist or refuses
 * the credentials, and the reads that need one must not block. -EINVAL: an option is wrong; errors
 * of the stores. env, own and meter are borrowed. */
int files_new(const struct env *env, const struct engine_options *opt, struct store *own,
	      struct http_stats *meter, struct files **out, struct err *err);
void files_free(struct files *f); /* NULL is fine */
/* Valid as long as f. */
const struct file_finder *files_interface(struct files *f);
/* The URI of an object of the bucket is "name/prefix" followed by its key. The prefix is empty or
 * ends with a slash. Valid as long as f. */
const char *files_bucket_name(const struct files *f);
const char *files_bucket_prefix(const struct files *f);
/* The bucket is a directory: see struct found_file. */
bool files_has_local_etags(const struct files *f);
/* store_stack_failures() of what allow_uri names. */
uint64_t files_failures(const struct files *f);
/* Ends the threads of the stores. The next request starts them again. Must not be called while a
 * request runs. */
void files_stop_threads(struct files *f);

#endif
