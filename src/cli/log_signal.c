/* SPDX-License-Identifier: Apache-2.0 */
/* See log_signal.h. */
#include "log_signal.h"

#include <signal.h>

enum { SIGNAL = SIGUSR1 };

static sigset_t the_signal(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGNAL);
	return set;
}

void log_signal_block(void)
{
	const sigset_t set = the_signal();
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void log_signal_advance(struct log *log)
{
	const enum log_level level = log_get_level(log);
	const enum log_level next =
		level == LOG_LEVEL_DEBUG ? LOG_LEVEL_ERROR : (enum log_level)(level + 1);
	log_set_level(log, next);
	switch (next) {
	case LOG_LEVEL_ERROR:
		log_error(log, "the log level is error now");
		break;
	case LOG_LEVEL_WARNING:
		log_warning(log, "the log level is warning now");
		break;
	case LOG_LEVEL_INFO:
		log_info(log, "the log level is info now");
		break;
	case LOG_LEVEL_DEBUG:
		log_debug(log, "the log level is debug now");
		break;
	}
}

static void *run(void *arg)
{
	struct log_signal *s = arg;
	const sigset_t set = the_signal();
	while (!atomic_load(&s->stopping)) {
		int number;
		if (sigwait(&set, &number) == 0 && !atomic_load(&s->stopping))
			log_signal_advance(s->log);
	}
	return NULL;
}

int log_signal_start(struct log_signal *s, struct log *log, struct err *err)
{
	s->log = log;
	log_signal_block();
	int rc = -pthread_create(&s->thread, NULL, run, s);
	s->running = rc == 0;
	return rc ? err_errno(err, rc, "the thread that waits for SIGUSR1") : 0;
}

void log_signal_stop(struct log_signal *s)
{
	if (!s->running)
		return;
	atomic_store(&s->stopping, true);
	pthread_kill(s->thread, SIGNAL);
	pthread_join(s->thread, NULL);
	s->running = false;
}
