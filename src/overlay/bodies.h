/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file `bodies` of a draft: bodies of a plan that are neither in the plan nor in the file that
 * was sealed. Bodies are only appended, so those of an older plan remain until all are removed.
 *
 * Room: bodies are counted as the spools are, and spool_size limits both. Unlike the spools, bodies
 * may take the bytes of the disk that are kept free for commits. If there is no room, adding a body
 * fails with -ENOSPC.
 *
 * Threads: any thread may add and read. Nothing else runs during bodies_remove().
 */
#ifndef OVERLAY_BODIES_H
#define OVERLAY_BODIES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>

#include "spool.h"

struct bodies {
	pthread_mutex_t lock; /* guards the members below */
	int fd;		      /* -1 if there is no file, or it has not been opened */
	uint64_t size;	      /* bytes that have been given to bodies */
	uint64_t taken;	      /* bytes of the room */
	uint64_t inlined;     /* bytes of bodies that are in the plan: see draft_set_body() */
	bool is_durable;      /* the file, with its name */
	int failed;	      /* the error of an fsync(): the file is not durable any more */
};

void bodies_init(struct bodies *b);
/* Leaves the file and its room as they are. */
void bodies_release(struct bodies *b);

/* Opens the file that an earlier process has left in the directory `dir`. Fails with -EBADMSG if
 * there is none, or if it has less than `size` bytes. */
int bodies_open(struct bodies *b, int dir, uint64_t size, struct err *err);
/* Appends n > 0 bytes, and sets *offset to the first one. The first call makes the file. */
int bodies_add(struct bodies *b, int dir, struct room *room, const void *bytes, size_t n,
	       uint64_t *offset, struct err *err);
/* Fails with -EBADMSG if the file does not have these bytes. */
int bodies_read(struct bodies *b, uint64_t offset, void *buf, size_t n, struct err *err);
/* Makes the file and its name durable. */
int bodies_sync(struct bodies *b, int dir, struct err *err);
/* Returns whether there is a file. */
bool bodies_exist(int dir);
/* Removes the file, and gives the room back that this process has taken for it. */
int bodies_remove(struct bodies *b, int dir, struct room *room, struct err *err);

#endif
