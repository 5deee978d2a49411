/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source of bytes that are read at offsets: a file, an object in a bucket, an image, memory.
 *
 * A source never blocks. If it does not have the bytes in memory, read_at returns -EAGAIN and
 * source_read() records the range. The caller fetches that range, or more, and restarts the decoder
 * that read it. The caller must discard what the decoder passed to its callbacks before the
 * -EAGAIN.
 *
 * Only one thread at a time may use a source that returns -EAGAIN, because it records that range.
 * Otherwise the implementation says whether several threads may read at a time.
 */
#ifndef BASE_SOURCE_H
#define BASE_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>

struct source;

/* A range of a source that has been prepared: see source_prepare(). */
struct source_part {
	struct source *source;
	uint64_t offset, n;
	uint32_t crc; /* CRC-32C */
};

/* Bytes [start, end). The range is empty if start == end. */
struct byte_range {
	uint64_t start, end;
};

struct source {
	uint64_t size; /* bytes */
	/* Reads all n bytes at offset. Returns 0 or a negative errno. Fails with -EAGAIN, with err
	 * unset, if the bytes are not in memory. Only source_read() calls it, with n > 0 and a
	 * range within size. */
	int (*read_at)(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err);
	/* Takes note that the decoder will soon read n bytes at offset, within size. May be NULL. A
	 * source that is slow fetches such ranges in parallel. Only source_advise() calls it. */
	void (*advise)(void *ctx, uint64_t offset, uint64_t n);
	/* Fills in *part: see source_prepare(), which calls it with n > 0 and a range within size.
	 * May be NULL. Any thread. */
	int (*prepare)(void *ctx, uint64_t offset, uint64_t n, struct source_part *part,
		       struct err *err);
	void *ctx;
	/* The range of the last read that returned -EAGAIN. */
	uint64_t missing_offset, missing_length;
	uint64_t reads, bytes; /* successful reads so far, and the bytes that they returned */
};

/* Reads all n bytes at offset. Fails with -EIO if the range is not within the source. For -EAGAIN
 * see missing_offset. Other codes are those of the source. */
int source_read(struct source *s, uint64_t offset, void *buf, size_t n, struct err *err);
/* Announces a read. It is a hint: it does not fail, and a range outside of the source is ignored.
 */
void source_advise(struct source *s, uint64_t offset, uint64_t n);

/* Prepares n bytes at offset for a thread that must not wait for other threads: the system begins
 * to read them from the disk. Fills in *part, whose source is this one or one below it. As long as
 * this one exists, any thread may read the part, and finds the same bytes. The CRC is that of the
 * bytes that were written, so it shows if the disk returns others. Fails with -ENOTSUP if the
 * source cannot promise this, or with the error of a read. */
int source_prepare(struct source *s, uint64_t offset, uint64_t n, struct source_part *part,
		   struct err *err);

#endif
