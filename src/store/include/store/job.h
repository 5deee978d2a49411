/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A get as a job of the environment's pool, for stores whose own calls block, and the ways in
 * which a get is completed.
 */
#ifndef STORE_JOB_H
#define STORE_JOB_H

#include <store/store.h>

typedef void (*job_fn)(struct store *s, const struct store_get *req);

/* Runs fn(s, req) in a worker (or here, with zero workers). req and the strings it borrows are
 * copied for as long as fn runs. 0 or -ENOMEM: then fn is not called. */
int job_submit(struct store *s, const struct store_get *req, job_fn fn);

/* Completes req: the body of res is the callee's from here on, and freed when code is not 0. */
void job_finish(const struct store_get *req, struct store_get_result *res);
/* Completes req with a failure. */
void job_fail(const struct store_get *req, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
