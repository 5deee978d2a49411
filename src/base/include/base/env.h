/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The services that the caller provides: log, clock, sleep, randomness, workers, memory budget.
 * Tests provide a fake clock and no workers. An object that receives an env borrows it and must be
 * freed before it.
 */
#ifndef BASE_ENV_H
#define BASE_ENV_H

#include <stddef.h>
#include <stdint.h>

#include <hsmount/log.h>
#include <base/budget.h>
#include <base/pool.h>

struct env {
	struct log *log;
	struct pool *pool;
	struct budget *budget; /* NULL if unlimited */
	/* Returns monotonic nanoseconds. */
	uint64_t (*now)(const struct env *env);
	void (*sleep)(const struct env *env, uint64_t ns);
	/* Fills with unpredictable bytes (jitter, ids). */
	void (*random)(const struct env *env, void *bytes, size_t n);
	/* Returns nanoseconds since the epoch, for records that other machines read. NULL stands
	 * for the real time. */
	int64_t (*wall)(const struct env *env);
	/* Returns monotonic nanoseconds that go on while the machine sleeps. NULL stands for now().
	 */
	uint64_t (*boot)(const struct env *env);
	void *ctx;
};

/* Return the monotonic time of an env, and its time since the epoch, in nanoseconds. */
static inline uint64_t env_now(const struct env *env)
{
	return env->now(env);
}
int64_t env_wall(const struct env *env);
/* Returns the time since this machine was started, in nanoseconds, with the time that it has slept.
 * What other machines may do meanwhile is measured with it. */
static inline uint64_t env_boot(const struct env *env)
{
	return env->boot ? env->boot(env) : env->now(env);
}

/* Returns an env with the real clock, sleep and getrandom(2). */
struct env env_real(struct log *log, struct pool *pool);

#endif
