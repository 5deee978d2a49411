/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads under way, so that none waits for the bucket after its reader has gone.
 *
 * Three things cancel a read: an interrupt from the kernel (the thread that serves the read gives
 * its cancel to libfuse), the end of the mount, and, for reads that are not patient, time. The last
 * is for the kernel's read-ahead. A program that waits for pages which are read ahead can be
 * killed, but the kernel does not report any other signal. When the read-ahead fails, the kernel
 * asks again for the page that the program wants, in the program's own name, and that request it
 * does interrupt. So read-ahead that takes long is cancelled; the chunk's load goes on, and the
 * second request finds it under way.
 *
 * Times are nanoseconds of one monotonic clock. Any thread.
 */
#ifndef FUSE_PENDING_READS_H
#define FUSE_PENDING_READS_H

#include <stdbool.h>
#include <stdint.h>

#include <base/cancel.h>

#define PENDING_READS_PATIENCE_NS UINT64_C(500000000) /* of a read that is not patient */

struct pending_reads;

/* One read; the caller's storage between begin and end. */
struct pending_read {
	struct cancel cancel;
	bool patient;
	bool expired; /* cancelled by time; valid after pending_reads_end() */
	uint64_t since;
	struct pending_read *prev, *next; /* the table's, under its lock */
};

struct pending_reads *pending_reads_new(void);
void pending_reads_free(struct pending_reads *t); /* nothing is under way */

/* True when somebody must call pending_reads_expire() from now on, until it says that it need not.
 */
bool pending_reads_begin(struct pending_reads *t, struct pending_read *r, bool patient,
			 uint64_t now);
/* Nobody can reach r any more. */
void pending_reads_end(struct pending_reads *t, struct pending_read *r);
/* Cancels reads that are not patient and have taken too long. True when some that are not patient
 * are left. */
bool pending_reads_expire(struct pending_reads *t, uint64_t now);
/* Cancels all reads that are under way, and all that begin later. */
void pending_reads_stop(struct pending_reads *t);

#endif
