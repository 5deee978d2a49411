/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request whose work cannot be called off: an open, a lookup, a listing, an attribute. When
 * somebody interrupts the program that waits for it, EINTR is the answer at once, while the work
 * goes on in the thread that serves it; that thread then undoes what nobody wants any more.
 *
 * After such an answer the kernel may forget the inodes that the request is about, and close the
 * directory that it reads: the thread works on copies and references of its own.
 */
#ifndef FUSE_ANSWER_H
#define FUSE_ANSWER_H

#include "session.h"

/* In the serving thread's storage from begin to claim. */
struct answer {
	struct front *front;
	fuse_req_t req;
	struct doubt doubt;
	pthread_mutex_t lock; /* guards what follows; taken after the table of doubts' */
	bool begun;	      /* the request may be answered from now on */
	bool given;
};

/* False: the answer was given before anything was done. There is nothing to claim then. */
bool answer_begin(struct answer *a, fuse_req_t req);
/* True: the caller is to answer. False: that was done; the request is gone. */
bool answer_claim(struct answer *a);

/* For the function of an interrupt: is the program being ended? If not, d is in doubt from now on;
 * its owner removes it. */
bool answer_is_unwanted(fuse_req_t req, struct doubt *d);

#endif
