/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of the disk cache, which any number of processes may share.
 *
 *   <64 hexadecimal digits>   an entry (disk_entry.h). A complete file gets this name by rename(2)
 *   tmp-<16 digits>           an entry that is being written. Its writer holds a flock(2) on it. A
 *                             file that can be locked is a leftover of a process that has ended
 *   hsmount-cache.lock        contains the number of bytes in use; locked with flock(2) by a
 *                             process that adds or evicts entries
 *
 * Other files are ignored and not counted. Nothing is synced to disk. If a crash damages an entry,
 * the digest is wrong, and the entry is dropped.
 *
 * Room: all entries, including those being written, take at most max_bytes. A writer reserves bytes
 * under the lock before it writes (eviction.c). So the count is never too low, even after a kill.
 * It is too high after entries are removed without the lock (damaged ones, or by an administrator),
 * until the entries are counted again. Each mount counts them once, and so does a writer that needs
 * room. It then evicts the least recently used entries. Readers take no lock.
 *
 * Threads: any. flock(2) excludes other processes, but not threads that share the descriptor. The
 * mutex `thread_lock` excludes these. Both locks are held during I/O, unlike all other locks of the
 * store.
 */
#ifndef DISKCACHE_DIRECTORY_H
#define DISKCACHE_DIRECTORY_H

#include <pthread.h>
#include <stdatomic.h>

#include <store/store.h>

#include "disk_entry.h"

struct disk_dir {
	int fd, lock;
	uint64_t max_bytes;
	pthread_mutex_t thread_lock;	     /* guards the next two */
	uint64_t used;			     /* the count when it was last read or written */
	uint64_t busy_until;		     /* no attempt to lock before this time of env->now() */
	atomic_uint_fast64_t bytes, evicted; /* used, and the number of evicted entries */
};

/* Creates the directory (not its parents) with mode 0700 if it is missing. Refuses a symbolic link,
 * a directory of another user, and one that others can write to. Fails with -EPERM, -ENOTDIR,
 * -ENOENT or another error of the file system. */
int disk_dir_open(struct disk_dir *d, const char *path, uint64_t max_bytes, struct err *err);
void disk_dir_close(struct disk_dir *d);

/* Reads the entry of the version etag, or of any version if etag is NULL. body must be empty; on
 * success it belongs to the caller. Fails with -ENOENT if there is no entry; with -ESTALE if the
 * entry has another version; with -EBADMSG if the entry is damaged, cannot be read or is larger
 * than max bytes, so that the caller should drop it; and with other codes if the disk failed. */
int disk_dir_read(const struct disk_dir *d, const struct disk_id *id, const char *etag,
		  uint64_t max, struct store_meta *meta, struct bytes *body);
void disk_dir_drop(const struct disk_dir *d, const struct disk_id *id);
/* Writes an entry, which replaces that of another version. Fails with -ENOSPC if the entry is
 * larger than the limit, or if the disk is full; with -EBUSY if another process holds the lock for
 * too long; and with -EINVAL if the object has no ETag, or if a name is too long. */
int disk_dir_write(struct disk_dir *d, const struct env *env, const struct disk_id *id,
		   const struct store_meta *meta, const void *body);

/* ---- room: eviction.c ---- */

/* Counts all entries, removes leftovers of processes that have ended, and evicts the least recently
 * used entries if all exceed the limit. */
int disk_eviction_tidy(struct disk_dir *d, const struct env *env);
/* Reserves n bytes and creates a temporary file of that size. Returns its descriptor and name. */
int disk_eviction_take(struct disk_dir *d, const struct env *env, uint64_t n, char name[DISK_NAME]);
/* Renames the written file to the entry's name. If name is NULL, removes the file. Closes fd. */
int disk_eviction_settle(struct disk_dir *d, const struct env *env, int fd, uint64_t n,
			 const char *temp, const char *name);

#endif
