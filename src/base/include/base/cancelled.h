/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says whether the result of an asynchronous operation is still needed. The caller of the operation
 * provides this; the threads that run the operation call it again and again until it ends.
 */
#ifndef BASE_CANCELLED_H
#define BASE_CANCELLED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct cancelled {
	/* Returns true while the result is not needed; this may change again. It is quick, and any
	 * thread may call it. It is NULL if the operation cannot be cancelled. */
	bool (*fn)(const void *arg);
	const void *arg; /* borrowed until the operation ends */
};

static inline bool is_cancelled(const struct cancelled *c)
{
	return c->fn && c->fn(c->arg);
}

static inline bool cancelled_flag(const void *flag)
{
	return atomic_load((const atomic_bool *)flag);
}

/* The operation is cancelled while the flag is true, or never if flag is NULL. */
static inline struct cancelled cancelled_by(const atomic_bool *flag)
{
	return (struct cancelled){.fn = flag ? cancelled_flag : NULL, .arg = flag};
}

#endif
