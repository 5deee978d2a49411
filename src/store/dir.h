/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory store's parts: paths (dir_path.c), reading (dir.c), writing (dir_put.c), listing
 * (dir_list.c). All paths are relative to the root and pass dir_open(), which never leaves it.
 *
 * Threads: nothing changes after the constructor but `serial`, which is atomic.
 */
#ifndef STORE_DIR_H
#define STORE_DIR_H

#include <store/store.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"

struct dir_store {
	struct store base;
	int root;		     /* O_PATH | O_DIRECTORY */
	bool beneath;		     /* the kernel has openat2(2) */
	atomic_uint_fast64_t serial; /* of temporary files */
};

static inline struct dir_store *dir_store_of(struct store *s)
{
	return (struct dir_store *)s;
}

/* Names of files that are being written begin so. They are no objects, under any operation. */
#define DIR_TEMP_PREFIX ".hsmount-tmp-"

/* True when a component of key is named like a temporary file. */
bool dir_reserved(const char *key);

/* Splits a key: the directory's path, and the last component (borrowed from key). */
const char *dir_split(const char *key, char dir[STORE_KEY_MAX + 1]);

/* Opens path, "" being the root, and never anything outside of it: a symbolic link that stays
 * inside is followed, one that leads out or is absolute (wherever it leads) gives -EXDEV. Without
 * openat2(2) no link is followed at all: -ELOOP or -ENOTDIR. flags as of open(2), without O_CREAT;
 * O_CLOEXEC is added. A descriptor or the negative errno of open(2). */
int dir_open(const struct dir_store *d, const char *path, int flags);
/* fstat(2) of what path leads to. 0 or as dir_open(); -ELOOP of a link that is not followed. */
int dir_stat(const struct dir_store *d, const char *path, struct stat *st);
/* dir_open() of a path that is no longer than a key, for a caller that takes absence for a fact.
 * -ENOENT: it is proved, by a directory that has no such entry, or by a file above the path.
 * -ENOLINK: a link that leads nowhere.
 * -EIO: it comes and goes. */
int dir_open_proved(const struct dir_store *d, const char *path, int flags);
/* Tells whether the kernel lets us use openat2(2); for the constructor. */
bool dir_can_stay_beneath(int root);

/* Turns a negative errno of dir_open() into the contract's and names the object. */
int dir_fail(struct err *err, int code, const char *key);

void dir_meta(const struct stat *st, struct store_meta *meta);
bool dir_same_version(const struct stat *st, const char *etag);

/* store_ops.put, .del and .list */
int dir_put(struct store *s, const char *key, const void *body, size_t n,
	    const struct store_cond *cond, struct store_meta *meta, struct err *err);
int dir_del(struct store *s, const char *key, const struct store_cond *cond, struct err *err);
int dir_list(struct store *s, const struct store_list *req, struct store_page *page,
	     struct err *err);

#endif
