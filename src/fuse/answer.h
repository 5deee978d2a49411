/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request whose work cannot be called off: an open, a lookup, a listing. When somebody interrupts
 * the program that waits for it, EINTR is the answer at once, while the work goes on in the thread
 * that serves it; that thread then undoes what nobody wants any more.
 *
 * After such an answer the kernel may forget the inodes that the request is about, and close the
 * directory that it reads: the thread works on copies and references of its own.
 */
#ifndef FUSE_ANSWER_H
#define FUSE_ANSWER_H

#include "front.h"

/* In the serving thread's storage from begin to claim. */
struct answer {
	fuse_req_t req;
	pthread_mutex_t lock; /* guards what follows */
	bool begun;	      /* the request may be answered from now on */
	bool given;
};

/* False: the answer was given before anything was done. There is nothing to claim then. */
bool answer_begin(struct answer *a, fuse_req_t req);
/* True: the caller is to answer. False: that was done; the request is gone. */
bool answer_claim(struct answer *a);

/* Is somebody about to end the thread that waits for a request: does a signal wait for it that
 * people end programs with? A timer's or a child's signal is no reason for a read to fail. True
 * when it cannot be told. */
bool answer_is_unwanted(fuse_req_t req);

#endif
