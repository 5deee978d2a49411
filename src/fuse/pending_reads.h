/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads under way, so that none waits for the bucket longer than somebody wants its answer.
 *
 * Three things call a read off: the kernel's word that the reader was interrupted (who began the
 * read hands its cancel to libfuse), the end of the mount, and, for reads that are not patient,
 * time. The last is for the kernel's reading ahead: a program that waits for pages which are read
 * ahead can be killed, but the kernel does not tell us of any other signal. When reading ahead
 * fails, the kernel asks again for the page that the program wants, in the program's own name, and
 * that request it does interrupt. So reading ahead that takes long is called off; the chunk's load
 * goes on, and the second request finds it under way.
 *
 * Times are nanoseconds of one monotonic clock. Any thread.
 */
#ifndef FUSE_WAITS_H
#define FUSE_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include <base/cancel.h>

#define WAITS_PATIENCE_NS UINT64_C(500000000) /* of a read that is not patient */

struct waits;

/* One read; the caller's storage between begin and end. */
struct wait {
	struct cancel cancel;
	bool patient;
	bool expired; /* called off by time; after waits_end() */
	uint64_t since;
	struct wait *prev, *next; /* the table's, under its lock */
};

struct waits *waits_new(void);
void waits_free(struct waits *t); /* nothing is under way */

/* True when somebody must call waits_expire() from now on, until it says that it need not. */
bool waits_begin(struct waits *t, struct wait *w, bool patient, uint64_t now);
/* Nobody can reach w any more. */
void waits_end(struct waits *t, struct wait *w);
/* Calls off what has been impatient for too long. True when some that are impatient are left. */
bool waits_expire(struct waits *t, uint64_t now);
/* Calls off everything that is under way and everything that begins later. */
void waits_stop(struct waits *t);

#endif
