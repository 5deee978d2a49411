/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool of a draft: sparse files in which every written byte is at its own offset. And the room
 * that all spools of a mount share.
 *
 * Room is counted in blocks of 4 KiB. A caller takes the room for a block before it writes the
 * first byte into it, and gives it back when it has removed the block. So a write that does not fit
 * fails before a byte is accepted. The blocks of a small write anywhere in a large file are all
 * that it takes: nothing is allocated ahead. The disk itself is asked every 16 MiB, and 16 MiB of
 * it are left for what a commit writes. On a local file system, a write also allocates or reserves
 * its blocks, so a full disk is an error of that write and not of a later fsync() or close().
 *
 * Any thread.
 */
#ifndef OVERLAY_SPOOL_H
#define OVERLAY_SPOOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include <hsmount/err.h>

#include "sums.h"

enum { SPOOL_BLOCK = 4096 };

struct spool_room {
	int dir;	/* a descriptor on the disk of the spools; borrowed */
	uint64_t limit; /* bytes */
	pthread_mutex_t lock;
	uint64_t taken;
	uint64_t left;	  /* bytes of drafts that no process has open */
	uint64_t granted; /* bytes that may be taken before the disk is asked again */
};

/* limit 0: half of the disk's free space, without the drafts that are left. left: bytes of these. 0
 * or a negative errno. */
int spool_room_init(struct spool_room *room, int dir, uint64_t limit, uint64_t left,
		    struct err *err);
void spool_room_release(struct spool_room *room);
/* Takes n bytes. -ENOSPC: the limit or the disk has no room for them. */
int spool_room_take(struct spool_room *room, uint64_t n, struct err *err);
void spool_room_give(struct spool_room *room, uint64_t n);
/* The draft that has taken n bytes is left, or n bytes of such drafts have been deleted. */
void spool_room_leave(struct spool_room *room, uint64_t n);
void spool_room_forget(struct spool_room *room, uint64_t n);
uint64_t spool_room_taken(struct spool_room *room);
uint64_t spool_room_left(struct spool_room *room);

/* ---- one file ---- */

enum { SPOOL_NAME = 32 };

/* A reader takes a reference, so that the file remains open until it has read. */
struct spool {
	atomic_uint refs;
	int fd;
	struct sums sums;
};

/* Writes the name of the file of a generation. */
void spool_name(uint32_t generation, char name[SPOOL_NAME]);
/* Makes an empty file in the directory `dir` or, if it exists, empties it; and that of its
 * checksums. The directory stays open as long as the file is changed. budget: for checksums; may be
 * NULL. */
int spool_create(int dir, uint32_t generation, struct budget *budget, struct spool **out,
		 struct err *err);

enum spool_sums {
	SPOOL_NO_SUMS,	  /* earlier versions of the program have not kept checksums */
	SPOOL_FINAL_SUMS, /* they count only if all of the draft was durable */
	SPOOL_SUMS,
};
/* Opens an existing file for reading, with its checksums. -EBADMSG: it or the file of its checksums
 * is missing, or that file is damaged. */
int spool_open(int dir, uint32_t generation, enum spool_sums sums, struct budget *budget,
	       struct spool **out, struct err *err);
struct spool *spool_ref(struct spool *s);
void spool_unref(struct spool *s); /* NULL is allowed */

/* The caller has taken the room. After a failure, the bytes may have been written. */
int spool_write(struct spool *s, uint64_t offset, const void *buf, size_t n, struct err *err);
/* Bytes behind the end of the file are zeros. -EBADMSG: the file was opened with checksums, and the
 * bytes are others. */
int spool_read(struct spool *s, uint64_t offset, void *buf, size_t n, struct err *err);
/* Allocates blocks on the disk, if its file system can. */
int spool_allocate(struct spool *s, uint64_t offset, uint64_t n, struct err *err);
/* Frees the blocks from an offset, which begins one, to the end of the file. */
int spool_cut(struct spool *s, uint64_t offset, struct err *err);
/* Sets a range to zeros and frees its whole blocks. Bytes of it before `need` will be part of the
 * draft. -EOPNOTSUPP: the file system cannot. */
int spool_zero(struct spool *s, uint64_t offset, uint64_t n, uint64_t need, struct err *err);
int spool_sync(struct spool *s, struct err *err);
int spool_size(const struct spool *s, uint64_t *size, struct err *err);

#endif
