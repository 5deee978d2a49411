/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checksums of a spool, so that a draft of an earlier process is not committed if its spool was
 * damaged meanwhile. One for each frame of 64 KiB: the CRC-32C of its first `length` bytes, as they
 * are in the file. The format of the file `sums.N` is in sums.c and in doc/JOURNAL.md.
 *
 * Whoever changes the spool says so before and afterwards. Bytes that are written in order add to
 * the checksum of their frame at once. The checksum of a frame that is written in another order is
 * computed from the spool when the checksums are saved.
 *
 * Any thread; the lock guards all of it, and is held while a file is removed that is not true any
 * more.
 */
#ifndef OVERLAY_SUMS_H
#define OVERLAY_SUMS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/budget.h>
#include <hsmount/err.h>

enum {
	SUMS_FRAME = 64 << 10,
	SUMS_MAX = 1 << 20, /* frames; bytes behind them have no checksum */
};

struct sum {
	uint32_t crc;
	uint32_t length : 17; /* 0: unknown */
	uint32_t touched : 1; /* something was written */
	uint32_t mixed : 1;   /* several threads are writing */
	uint32_t checked : 1; /* a reader has compared it */
	uint32_t writers : 12;
};

struct sums {
	pthread_mutex_t lock;
	struct sum *v;
	size_t n; /* frames that v has room for */
	struct budget_charge charge;
	bool full;  /* there is no memory for more */
	bool saved; /* there is a file that is true */
	bool loaded;
	int dir; /* of the file; borrowed */
	uint32_t generation;
};

void sums_init(struct sums *s, int dir, uint32_t generation, struct budget *budget);
void sums_release(struct sums *s);

/* Around a write. `failed`: some of the bytes may have been written. */
void sums_begin(struct sums *s, uint64_t offset, size_t n);
void sums_end(struct sums *s, uint64_t offset, const void *buf, size_t n, bool failed);
/* Before another change of [start, end), while nobody writes. */
void sums_forget(struct sums *s, uint64_t start, uint64_t end);

/* Writes the file, while nobody changes the spool. final: all of the draft is durable, and nothing
 * will change it. 0 or a negative errno: there is no file then. */
int sums_save(struct sums *s, int spool, bool final);
/* Reads the file, if there is one that counts. -EBADMSG: it is damaged. */
int sums_load(struct sums *s, bool same_boot, struct err *err);
void sums_remove(struct sums *s);
/* The same as bytes: pure. The caller frees them; NULL: out of memory. */
uint8_t *sums_encode(const struct sums *s, bool final, size_t *size);
/* s is empty. -EBADMSG, -ENOMEM. */
int sums_decode(struct sums *s, const uint8_t *file, size_t size, bool *final);
/* Compares the frames of [offset, offset + n) with the checksums that were loaded, each once.
 * -EBADMSG: the spool has other bytes. */
int sums_check(struct sums *s, int spool, uint64_t offset, size_t n, struct err *err);

#endif
