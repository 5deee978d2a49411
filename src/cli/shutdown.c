/* SPDX-License-Identifier: Apache-2.0 */
/* See shutdown.h. */
#include "shutdown.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct closing {
	void (*close)(void *arg);
	void *arg;
};

static void *run_close(void *arg)
{
	struct closing c = *(struct closing *)arg;
	free(arg);
	c.close(c.arg);
	return NULL;
}

bool shutdown_in_time(void (*close)(void *arg), void *arg, unsigned int ms)
{
	enum { S_MS = 1000, MS_NS = 1000000 };
	struct closing *c = malloc(sizeof(*c));
	struct timespec deadline;
	pthread_t thread;
	if (c)
		*c = (struct closing){.close = close, .arg = arg};
	if (!c || pthread_create(&thread, NULL, run_close, c)) {
		free(c);
		close(arg);
		return true;
	}
	/* The wall clock, because the thread sanitizer does not support pthread_clockjoin_np(3). */
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_nsec += (long)(ms % S_MS) * MS_NS;
	deadline.tv_sec += ms / S_MS + deadline.tv_nsec / (S_MS * MS_NS);
	deadline.tv_nsec %= S_MS * MS_NS;
	if (pthread_timedjoin_np(thread, NULL, &deadline) == 0)
		return true;
	pthread_detach(thread);
	return false;
}
