/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time that the repetitions of all requests of one call take together. A call is what a program
 * waits for: a system call, or a commit. Work that several callers share, such as the load of a
 * chunk, has a time of its own, so the wait of one of them is no failure for another.
 *
 * Time is lost while a request of the call has failed at least once and no request of the call
 * ends. Requests that go on side by side lose it once. An attempt that succeeds wins back the time
 * that it takes. So a long copy does not end because the service is busy now and then.
 *
 * Each thread has a current call. Requests belong to the call that is current in the thread that
 * submits them; they may outlive it.
 */
#ifndef BASE_REPEAT_TIME_H
#define BASE_REPEAT_TIME_H

#include <stdbool.h>
#include <stdint.h>

struct repeat_time;

/* Between begin or use, and end, the thread has another current call. Scopes are nested. */
struct repeat_scope {
	struct repeat_time *mine, *outer;
	bool is_part; /* of the call that is current anyway */
};

/* A call begins. If another one is current, it is a part of that, and nothing changes. Out of
 * memory: the requests belong to no call. */
void repeat_begin(struct repeat_scope *s);
/* The same for work that others may wait for. It is part of no other call. */
void repeat_begin_shared(struct repeat_scope *s);
/* The requests that follow belong to this call; to none if it is NULL. Takes a reference. */
void repeat_use(struct repeat_scope *s, struct repeat_time *t);
void repeat_end(struct repeat_scope *s);

/* Returns a reference to the current call, or NULL. */
struct repeat_time *repeat_current(void);
struct repeat_time *repeat_ref(struct repeat_time *t); /* NULL for NULL */
void repeat_unref(struct repeat_time *t);	       /* t may be NULL */

/* Any thread. Returns the time that would be lost if a request that has begun at `began_ns` and has
 * failed goes on until `until_ns`. 0 if t is NULL. */
uint64_t repeat_lost(const struct repeat_time *t, uint64_t began_ns, uint64_t until_ns);
/* A request has ended, which began at `began_ns`. Its last attempt began at `sent_ns` if it has
 * succeeded; otherwise this is `now_ns`. t may be NULL. */
void repeat_ended(struct repeat_time *t, uint64_t began_ns, uint64_t sent_ns, uint64_t now_ns);

#endif
