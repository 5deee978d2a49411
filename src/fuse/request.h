/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request whose work cannot be cancelled: an open, a lookup, a listing, an attribute. When the
 * program that waits for it is being ended, the reply is EINTR at once, while the work goes on in
 * the thread that serves it. That thread then undoes what it has done.
 *
 * After such a reply the kernel may forget the inodes that the request is about, and close the
 * directory that it reads: the thread works on copies and references of its own.
 */
#ifndef FUSE_REQUEST_H
#define FUSE_REQUEST_H

#include <pthread.h>

#include "fuse_api.h"
#include "interrupted.h"

struct reopen;
struct watchdog;

/* What all requests of a mount share. */
struct request_tables {
	struct interrupted *interrupted;
	struct reopen *reopen;
	struct watchdog *watchdog;
};

/* In the serving thread's storage from begin to claim. */
struct request {
	const struct request_tables *tables;
	fuse_req_t req;
	struct interrupted_request interrupted;
	pthread_mutex_t lock; /* guards what follows; taken after that of tables->interrupted */
	bool begun;	      /* the request may be replied to from now on */
	bool given;	      /* the reply */
};

/* False: the reply was given before anything was done. There is nothing to claim then. tables:
 * borrowed. */
bool request_begin(struct request *r, fuse_req_t req, const struct request_tables *tables);
/* True: the caller replies. False: the reply was given; the request is gone. */
bool request_claim(struct request *r);

/* For the function of an interrupt: is the program being ended? If not, the program is looked at
 * from now on, until i is removed from the table. */
bool request_is_cancelled(fuse_req_t req, const struct request_tables *tables,
			  struct interrupted_request *i);

#endif
