/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGUSR1 moves the log on to its next level: error, warning, info, debug, error … A thread of its
 * own waits for the signal, so nothing of it runs in a signal handler.
 */
#ifndef CLI_LOG_SIGNAL_H
#define CLI_LOG_SIGNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <hsmount/err.h>
#include <hsmount/log.h>

/* Zeroed is not started. */
struct log_signal {
	struct log *log;
	pthread_t thread;
	bool running;
	atomic_bool stopping;
};

/* Before the first thread of the process: all of them must have the signal blocked, or it would end
 * the process. */
void log_signal_block(void);
/* After the last fork. The log is borrowed until log_signal_stop(). */
int log_signal_start(struct log_signal *s, struct log *log, struct err *err);
void log_signal_stop(struct log_signal *s);

/* The next level, which the log itself is told in a line that is shown at that level. */
void log_signal_advance(struct log *log);

#endif
