/* SPDX-License-Identifier: Apache-2.0 */
/* The real struct env: CLOCK_MONOTONIC and getrandom(2). Any thread. */
#include <base/env.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include <base/clock.h>

enum { NS_PER_S = 1000000000 };

static uint64_t real_now(const struct env *env)
{
	return clock_ns();
}

static uint64_t real_boot(const struct env *env)
{
	return clock_boot_ns();
}

static void real_sleep(const struct env *env, uint64_t ns)
{
	/* A 64-bit time_t holds every quotient. A signal does not shorten the sleep. */
	struct timespec left = {.tv_sec = (time_t)(ns / NS_PER_S),
				.tv_nsec = (long)(ns % NS_PER_S)};
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
}

static void real_random(const struct env *env, void *bytes, size_t n)
{
	uint8_t *p = bytes;
	while (n > 0) {
		ssize_t got = getrandom(p, n, 0);
		if (got < 0) {
			/* Without randomness, ids would collide in the bucket. */
			if (errno != EINTR)
				abort();
			continue;
		}
		p += got;
		n -= (size_t)got;
	}
}

struct env env_real(struct log *log, struct pool *pool)
{
	return (struct env){.log = log,
			    .pool = pool,
			    .now = real_now,
			    .boot = real_boot,
			    .sleep = real_sleep,
			    .random = real_random};
}

int64_t env_wall(const struct env *env)
{
	return env->wall ? env->wall(env) : clock_wall_ns();
}
