/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When paced calls may begin. Bodies that arrive at the same time share the link equally, so they
 * all end at the same time, and a program that reads them in order waits for the last of them. The
 * calls that the program causes then begin together, too, and until they are answered the link is
 * idle. So paced calls begin at intervals: at twice the rate at which bodies arrive, because a
 * lower rate would be what limits them. The rate is the highest of two successive windows of time,
 * so that a thread that was delayed and finds much data does not count.
 *
 * Pure. A zeroed struct is valid.
 */
#ifndef HTTP_PACE_H
#define HTTP_PACE_H

#include <stdint.h>

enum {
	/* Bytes per second. Until something is known, calls begin at the lowest pace. A single I/O
	 * thread does not receive faster than the highest. */
	HTTP_PACE_MIN = 256 << 20,
	HTTP_PACE_MAX = 1 << 30,
	HTTP_PACE_WINDOW_NS = 10000000,
	HTTP_PACE_EARLY_NS = 1000000, /* small calls begin together, because timers are not exact */
};

struct http_pace {
	uint64_t next_ns;	     /* when the next paced call may begin */
	uint64_t rate;		     /* highest rate at which bodies arrived, in bytes per second */
	uint64_t last;		     /* that of the last window */
	uint64_t began_ns, received; /* of the window */
};

/* Returns the nanoseconds until a paced call may begin. */
uint64_t http_pace_wait(const struct http_pace *p, uint64_t now_ns);
/* Records that a call begins that was submitted at `submitted_ns` and whose answer has about
 * `length` bytes, or 0 if it is not paced. If the thread is late, because the processors are busy,
 * the calls that have waited for it begin together: the next one is due an interval after this one
 * was, not after now. */
void http_pace_begin(struct http_pace *p, uint64_t length, uint64_t submitted_ns);
/* Measures the rate. received is the number of bytes of all bodies so far. */
void http_pace_measure(struct http_pace *p, uint64_t received, uint64_t now_ns);

#endif
