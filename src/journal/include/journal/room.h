/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The room on the disk that all drafts of a mount share.
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
#ifndef JOURNAL_ROOM_H
#define JOURNAL_ROOM_H

#include <pthread.h>
#include <stdint.h>

#include <hsmount/err.h>

enum { ROOM_BLOCK = 4096 };

struct room {
	int dir;	/* a descriptor on the disk of the spools; borrowed */
	uint64_t limit; /* bytes */
	pthread_mutex_t lock;
	uint64_t taken;
	uint64_t left;	  /* bytes of drafts that no process has open */
	uint64_t granted; /* bytes that may be taken before the disk is asked again */
};

/* If `limit` is 0, it is half of the disk's free space, without the drafts that are left. `left` is
 * the bytes of these. Returns 0 or a negative errno. */
int room_init(struct room *room, int dir, uint64_t limit, uint64_t left, struct err *err);
void room_release(struct room *room);
/* Takes n bytes. Fails with -ENOSPC if the limit or the disk has no room for them. */
int room_take(struct room *room, uint64_t n, struct err *err);
void room_give(struct room *room, uint64_t n);
/* room_leave(): the draft that has taken n bytes is left in the journal. room_forget(): n bytes of
 * such drafts have been deleted. */
void room_leave(struct room *room, uint64_t n);
void room_forget(struct room *room, uint64_t n);
uint64_t room_taken(struct room *room);
uint64_t room_left(struct room *room);

#endif
