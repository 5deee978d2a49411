/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's requests that are being served. The daemon answers an interrupted request with EINTR
 * after a time limit, the request's patience, even if the bucket has not answered yet.
 *
 * When a signal reaches a program that waits for a request, the kernel reports an interrupt: once
 * for each request, without the signal's number. The program continues only after the reply, even
 * if the signal is SIGKILL. The daemon cannot know whether the signal ends the program or is, for
 * example, that of a timer. So it gives an interrupted request some time to finish. After that
 *
 * - a read is cancelled, and the thread that serves it replies. Chunks that are being loaded for it
 *   still go into the cache, so a repeated read finds them there;
 * - any other request gets the reply EINTR from the watchdog's thread. The work cannot be
 *   cancelled: the serving thread finishes it and drops the result. Meanwhile the kernel may forget
 *   the request's inodes and close its directory. So the thread copies the inodes and holds a
 *   reference to the directory.
 *
 * Programs and libraries (Python, libhdf5) repeat a read that fails with EINTR, but few repeat an
 * open or a listing. So a read has less patience than other requests.
 *
 * The kernel sends only one request at a time for the same page or the same name. Other programs
 * that need it wait in the kernel. When the first program's request fails, the kernel sends a
 * request for the next program. If every such request had its full patience, many interrupted
 * programs would end one after the other. So an interrupted request has no patience if it repeats
 * the last request that was cancelled or answered early.
 *
 * Read-ahead is treated in all this as if it were interrupted when it begins. A program that waits
 * for pages which the kernel reads ahead can be killed, but the kernel does not report its other
 * signals. When read-ahead fails, the kernel requests the page again for the program, and it does
 * report interrupts of that request.
 *
 * Any thread.
 */
#ifndef FUSE_KERNEL_REQUEST_H
#define FUSE_KERNEL_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include <base/repeat_time.h>

#define REQUEST_PATIENCE_NS	 UINT64_C(1000000000)
#define REQUEST_READ_PATIENCE_NS UINT64_C(500000000)
/* How often the watchdog looks at the connection while requests are served. */
#define REQUEST_LOOK_NS UINT64_C(1000000000)

struct cancel;
struct fuse_req;
struct reopen;

struct requests; /* a table of requests */

/* One request. The serving thread owns the storage, which must exist from begin to end. */
struct request {
	struct requests *table;
	struct fuse_req *req;
	struct cancel *cancel; /* of a read; NULL for other requests */
	uint64_t subject;      /* a hash of what the request is about, or 0 if nothing repeats it */
	bool repeated; /* it repeats the last request that was cancelled or answered early */
	/* Guarded by the table's lock. */
	uint64_t deadline; /* UINT64_MAX if there is none */
	bool listed;	   /* in the table: neither cancelled nor replied to by the watchdog */
	struct request *prev, *next;
	struct repeat_scope call; /* of the serving thread, until the end */
};

/* `clock` returns monotonic nanoseconds. Borrows `reopen`. Returns NULL with errno set on
 * failure. */
struct requests *requests_new(uint64_t (*clock)(void), struct reopen *reopen);
void requests_free(struct requests *t); /* the table must be empty; t may be NULL */

/* request_begin() is for every request except reads. `subject` is 0 for all of them except lookups,
 * because the kernel does not serialise the others. */
void request_begin(struct requests *t, struct request *r, struct fuse_req *req, uint64_t subject);
void request_begin_read(struct requests *t, struct request *r, struct fuse_req *req,
			uint64_t subject, struct cancel *cancel, bool read_ahead);
/* Returns true if the caller must reply; for a read, the result is always true. False means that
 * the watchdog has replied with EINTR, and the fuse_req may be freed. */
bool request_end(struct request *r);

/* The functions below are for the watchdog. It calls requests_expire() when the time that the last
 * call returned has passed, and when requests_fd() is readable. It first reads that file empty. */
int requests_fd(const struct requests *t);
/* Cancels or answers the requests whose deadline has passed. Returns the milliseconds until the
 * next deadline, or until the watchdog has to look at the connection; or -1 if there is neither. */
int requests_expire(struct requests *t);
/* From now on requests_expire() cancels every read. */
void requests_stop(struct requests *t);
/* Makes requests_fd() readable. */
void requests_wake(struct requests *t);

#endif
