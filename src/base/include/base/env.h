/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the code takes from the world: log, clock, sleep, randomness, workers, memory. Handed in, so
 * that tests use a fake clock and zero workers. Borrowed by everything that gets it; outlives it.
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
	struct budget *budget; /* NULL: memory without limit */
	/* Monotonic nanoseconds. */
	uint64_t (*now)(const struct env *env);
	void (*sleep)(const struct env *env, uint64_t ns);
	/* Fills with unpredictable bytes (jitter, ids). */
	void (*random)(const struct env *env, void *bytes, size_t n);
	void *ctx;
};

/* The real clock, sleep and getrandom(2). */
struct env env_real(struct log *log, struct pool *pool);

#endif
