/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checksums of a spool, so that a draft of an earlier process is not committed if its spool was
 * damaged meanwhile. Each frame of 64 KiB has one: the CRC-32C of its first `length` bytes, as they
 * are in the file. The format of the file `sums.N` is in sums_format.h and in doc/JOURNAL.md.
 *
 * The file follows each change, so that its entries are true when the daemon is killed:
 *
 *   sums_begin()   an entry whose bytes will change says that it is unknown
 *   the change of the spool
 *   sums_end()     the entries have the new checksums
 *   the record in the map
 *
 * Bytes that are appended to a frame do not change its first `length` bytes. So writes in order
 * take one more pwrite() each, and writes over other bytes take two.
 *
 * A checksum follows from what was written: a damaged byte elsewhere in the frame is not taken
 * over. Only after a failed write is it computed from the spool.
 *
 * Any thread. A change has its frames for itself: another change of them waits in sums_begin(). The
 * lock guards the list of changes and the table of blocks; it is not held during I/O.
 */
#ifndef OVERLAY_SUMS_H
#define OVERLAY_SUMS_H

#include <pthread.h>

#include <base/budget.h>
#include <hsmount/err.h>

#include "sums_format.h"

struct sum {
	uint32_t crc;
	uint32_t length : 17; /* 0 if nothing was written; the bytes are then zero, unless `lost` */
	uint32_t marked : 1;  /* the frame is being changed, and its entry in the file says
			       * unknown */
	uint32_t lost : 1;    /* the checksum is not known, and must be computed from the spool */
	uint32_t damaged : 1; /* the entry in the file is not valid */
	uint32_t checked : 1; /* the frame has been compared with the checksum */
};

/* A change of [offset, end), from sums_begin() to sums_end(). The caller sets the first three. */
struct sums_change {
	uint64_t offset, end;
	/* The bytes before this offset become part of the draft. Zeros at and behind it need no
	 * entry if they were zeros before. */
	uint64_t need;
	size_t first, last; /* frames [first, last) */
	uint32_t old[2];    /* CRC of the bytes of the first and the last frame that are replaced */
	struct sums_change *next;
};

struct sums {
	pthread_mutex_t lock;
	pthread_cond_t ended; /* signalled when a change has ended */
	struct sums_change *changes;
	struct sum **blocks; /* a block is NULL if it has no entries, or there is no memory for
			      * them */
	size_t n_blocks;     /* in the table */
	size_t n;	     /* frames that may have an entry in the file */
	struct budget_charge charge;
	bool full; /* there is no memory for more */
	bool loaded;
	int dir; /* the directory of the file; borrowed */
	int fd;	 /* of the file while it may change, else -1 */
	uint32_t generation;
};

void sums_init(struct sums *s, int dir, uint32_t generation, struct budget *budget);
void sums_release(struct sums *s);
/* Makes the file, or empties it. */
int sums_create(struct sums *s, struct err *err);
/* Deletes the file. A failure is ignored. */
void sums_remove(const struct sums *s);

/* Call it before a change. Returns 0 or a negative errno. After an error, the spool must not be
 * changed. */
int sums_begin(struct sums *s, int spool, struct sums_change *c);

enum sums_outcome {
	SUMS_CHANGED,
	SUMS_UNCHANGED, /* the spool has its old bytes */
	SUMS_FAILED,	/* some of the bytes may have changed */
};
/* Call it after the change. buf has the bytes from c->offset on; NULL means that they have become
 * zero. Returns 0 or a negative errno. After an error, the map must not record the range. The
 * result is 0 unless the outcome is SUMS_CHANGED. */
int sums_end(struct sums *s, int spool, struct sums_change *c, const void *buf,
	     enum sums_outcome outcome);
/* Removes the entries of frames that begin at `offset` or later from the file, before the spool is
 * cut there. Nobody writes meanwhile. Returns 0 or a negative errno. */
int sums_cut(struct sums *s, uint64_t offset);
/* To be called when the spool has been cut: forgets these entries in memory, too. */
void sums_forget(struct sums *s, uint64_t offset);

/* Computes the checksums that are lost. Nobody changes the spool meanwhile. If `final` is set, all
 * of the draft is durable, and nothing will change it. Returns 0 or a negative errno. */
int sums_save(struct sums *s, int spool, bool final);
/* Reads the file if it counts: after a restart of the machine (`same_boot` is false), it counts
 * only if it is final. Fails with -EBADMSG if it has to count, and is missing or damaged. */
int sums_load(struct sums *s, bool same_boot, struct err *err);
/* Compares the frames of [offset, offset + n) with the checksums that were loaded, each frame once.
 * Fails with -EBADMSG if the spool has other bytes, or if there is no checksum of them. */
int sums_check(struct sums *s, int spool, uint64_t offset, size_t n, struct err *err);
/* Computes the CRC-32C of [offset, offset + n) from the checksums of its frames. Only parts of the
 * first and the last frame are read. Nobody changes these frames meanwhile. Returns 0 or a negative
 * errno. */
int sums_crc(struct sums *s, int spool, uint64_t offset, uint64_t n, uint32_t *crc);

#endif
