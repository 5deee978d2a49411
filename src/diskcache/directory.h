/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of the disk cache, which any number of processes may share.
 *
 *   <64 hexadecimal digits>   an entry (entry.h). Appears under this name whole, by rename(2)
 *   tmp-<16 digits>           an entry that is being written. Its writer holds a flock(2) on it,
 *                             so one that can be locked was left behind and is removed
 *   hsmount-cache.lock        flock(2)ed by whoever changes what there is; holds the bytes in use
 *
 * Everything else in it is somebody else's: left alone and not counted. Nothing is ever fsynced:
 * what a crash tears has a wrong digest and is dropped.
 *
 * Room: all entries together, and those being written, take at most max_bytes. A writer reserves
 * under the lock before it writes (eviction.c), so that the count is never below what there is,
 * also after a kill; where entries vanish without it (damaged ones, an administrator) it is above,
 * until the next look at the directory. That look is taken once by each mount, and whenever room
 * is wanting: then the entries that were used least recently go. Readers take no lock.
 *
 * Threads: any. A flock(2) is a descriptor's, so it keeps other processes away but not other
 * threads: `turn` does that. It is held for as long as the flock, the one lock of the store under
 * which there is I/O.
 */
#ifndef DISKCACHE_DIRECTORY_H
#define DISKCACHE_DIRECTORY_H

#include <pthread.h>
#include <stdatomic.h>

#include <store/store.h>

#include "entry.h"

struct disk_dir {
	int fd, lock;
	uint64_t max_bytes;
	pthread_mutex_t turn;		     /* guards the next two */
	uint64_t used;			     /* what the count said when it was last looked at */
	uint64_t busy_until;		     /* by env->now: nobody asks for the lock before */
	atomic_uint_fast64_t bytes, evicted; /* the same, and entries in all: for everybody */
};

/* Makes the directory (not its parents) with mode 0700 when it is not there. Refused when it is a
 * link, another's, or one that others can write to. -EPERM, -ENOTDIR, -ENOENT … with the reason. */
int disk_dir_open(struct disk_dir *d, const char *path, uint64_t max_bytes, struct err *err);
void disk_dir_close(struct disk_dir *d);

/* The entry, when it is of the version etag (NULL: any). -ENOENT none; -ESTALE another version;
 * -EBADMSG damaged, or a body of more than max bytes, which nobody has written: to be dropped;
 * others: the disk. body is empty, and the caller's on success. */
int disk_dir_read(const struct disk_dir *d, const struct disk_id *id, const char *etag,
		  uint64_t max, struct store_meta *meta, struct bytes *body);
void disk_dir_drop(const struct disk_dir *d, const struct disk_id *id);
/* Writes an entry, replacing that of another version. -ENOSPC: no room could be made for it, or the
 * disk is full; -EBUSY: the lock is held for too long, or was a moment ago; -EINVAL: what no entry
 * can hold. */
int disk_dir_write(struct disk_dir *d, const struct env *env, const struct disk_id *id,
		   const struct store_meta *meta, const void *body);

/* ---- room: eviction.c ---- */

/* Looks at everything, removes what dead writers left, and makes the room fit the limit. */
int disk_eviction_tidy(struct disk_dir *d, const struct env *env);
/* A new temporary file of n bytes, whose room is taken. Its name, and a descriptor. */
int disk_eviction_take(struct disk_dir *d, const struct env *env, uint64_t n, char name[DISK_NAME]);
/* It is written: gives it the entry's name. name NULL: it is not, and goes. fd is closed. */
int disk_eviction_settle(struct disk_dir *d, const struct env *env, int fd, uint64_t n,
			 const char *temp, const char *name);

#endif
