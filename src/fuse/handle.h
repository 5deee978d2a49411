/* SPDX-License-Identifier: Apache-2.0 */
/* Open files of the kernel. Any thread. */
#ifndef FUSE_HANDLE_H
#define FUSE_HANDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fuse_api.h"

struct engine_file;
struct session;
struct writers_file;

struct handle {
	atomic_uint refs;	  /* one for the kernel, and one for each running flush or fsync */
	uint64_t ino;		  /* for inodes_close(), or 0 */
	struct engine_file *file; /* NULL for a file of stats_files.h, which has this text */
	char *text;
	size_t len;
	bool writes;		      /* the file is one of engine_open_write() */
	struct writers_file *writers; /* of such a file; NULL if out of memory */
	/* 1 + the offset of the read-ahead that was cancelled last, or 0 if none was cancelled, or
	 * the kernel has repeated it. */
	atomic_uint_fast64_t expired_at;
	struct handle *prev, *next; /* in session->handles */
};

static inline struct handle *handle_of(const struct fuse_file_info *fi)
{
	return (struct handle *)(uintptr_t)fi->fh;
}

/* Make a handle, which owns the file. `thread` has opened the file. They return NULL if out of
 * memory; then the caller keeps the file. */
struct handle *handle_new(struct session *s, struct engine_file *file);
struct handle *handle_new_writer(struct session *s, struct engine_file *file, pid_t thread);
void handle_ref(struct handle *h);
/* Ends a reference. The last one closes the file. Blocks while a draft is committed. */
void handle_unref(struct session *s, struct handle *h);
/* Closes the files that are still open when the mount has ended. */
void handle_close_all(struct session *s);

#endif
