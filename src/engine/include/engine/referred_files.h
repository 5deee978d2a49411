/* SPDX-License-Identifier: Apache-2.0 */
/* The HDF5 files that domains may refer to: struct file_finder for an engine. */
#ifndef ENGINE_REFERRED_FILES_H
#define ENGINE_REFERRED_FILES_H

#include <hsmount/engine.h>

#include <ranges/file_finder.h>

#include <bucket/store_stack.h>

struct files;

/* Opens what allow_uri names, and sends a request to each bucket of S3, because a user should learn
 * at once that a bucket does not exist or refuses the credentials, and the reads that need one must
 * not block. own is the store of the bucket, which is
 * freed later. Of opt, only bucket, bucket_name and allow_uri are
 * used. env, own and meter are borrowed. Returns -EINVAL if an option is wrong, or an error of the
 * stores. */
int files_new(const struct env *env, const struct engine_options *opt, struct store *own,
	      struct http_stats *meter, struct files **out, struct err *err);
void files_free(struct files *f); /* f may be NULL */
/* Returns the interface, which is valid as long as f. */
const struct file_finder *files_interface(struct files *f);
/* The URI of an object of the bucket is "name/prefix" followed by its key. The prefix is empty or
 * ends with a slash. Both are valid as long as f. */
const char *files_bucket_name(const struct files *f);
const char *files_bucket_prefix(const struct files *f);
/* Returns whether the bucket is a directory: see struct found_file. */
bool files_has_local_etags(const struct files *f);
/* Returns store_stack_failures() of what allow_uri names. */
uint64_t files_failures(const struct files *f);
/* Ends the threads of the stores. The next request starts them again. Must not be called while a
 * request runs. */
void files_stop_threads(struct files *f);

#endif
