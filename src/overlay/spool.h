/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool of a draft: sparse files in which every written byte is at its own offset. The caller
 * takes room for the blocks (journal/room.h). Any thread.
 */
#ifndef OVERLAY_SPOOL_H
#define OVERLAY_SPOOL_H

#include <stdatomic.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <journal/room.h>

#include "sums.h"

enum { SPOOL_NAME = 32 };

/* A reader takes a reference, so that the file remains open until it has read. */
struct spool {
	atomic_uint refs;
	int fd;
	struct sums sums;
};

/* Writes the name of the file of a generation. */
void spool_name(uint32_t generation, char name[SPOOL_NAME]);
/* Makes an empty file in the directory `dir` or, if it exists, empties it. Does the same with the
 * file of its checksums. The directory must stay open as long as the file is changed. `budget` is
 * for checksums, and may be NULL. */
int spool_create(int dir, uint32_t generation, struct budget *budget, struct spool **out,
		 struct err *err);

/* Opens an existing file for reading, with its checksums. If `same_boot` is not set, they count
 * only if all of the draft was durable. Fails with -EBADMSG if the file or that of its checksums is
 * missing, or if that file is damaged. */
int spool_open(int dir, uint32_t generation, bool same_boot, struct budget *budget,
	       struct spool **out, struct err *err);
struct spool *spool_ref(struct spool *s);
void spool_unref(struct spool *s); /* s may be NULL */

/* Requires that the caller has taken the room. After a failure, the bytes may have been written. */
int spool_write(struct spool *s, uint64_t offset, const void *buf, size_t n, struct err *err);
/* Reads n bytes. Bytes behind the end of the file are zeros. Fails with -EBADMSG if the file was
 * opened with checksums, and the bytes do not have them. */
int spool_read(struct spool *s, uint64_t offset, void *buf, size_t n, struct err *err);
/* Prepares a read: see source_prepare(). */
int spool_prepare(struct spool *s, uint64_t offset, uint64_t n, uint32_t *crc, struct err *err);
/* Allocates blocks on the disk, if its file system can. */
int spool_allocate(struct spool *s, uint64_t offset, uint64_t n, struct err *err);
/* Frees the blocks from an offset, which begins one, to the end of the file. */
int spool_cut(struct spool *s, uint64_t offset, struct err *err);
/* Sets a range to zeros and frees its whole blocks. Bytes of it before `need` will be part of the
 * draft. Fails with -EOPNOTSUPP if the file system cannot punch holes. */
int spool_zero(struct spool *s, uint64_t offset, uint64_t n, uint64_t need, struct err *err);
int spool_sync(struct spool *s, struct err *err);
int spool_size(const struct spool *s, uint64_t *size, struct err *err);

#endif
