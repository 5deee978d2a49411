/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGUSR1 changes the log's level to the next one: error, warning, info, debug, error and so on. A
 * thread waits for the signal, so no code runs in a signal handler.
 */
#ifndef CLI_LOG_SIGNAL_H
#define CLI_LOG_SIGNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <hsmount/err.h>
#include <hsmount/log.h>

/* Zero-initialised, it has not started. */
struct log_signal {
	struct log *log;
	pthread_t thread;
	bool running;
	atomic_bool stopping;
};

/* Blocks the signal. Call it before the process starts a thread: a thread that does not block the
 * signal would let it end the process. */
void log_signal_block(void);
/* Starts the thread. Call it after the last fork. The log is borrowed until log_signal_stop(). */
int log_signal_start(struct log_signal *s, struct log *log, struct err *err);
void log_signal_stop(struct log_signal *s);

/* Changes the level to the next one, and logs a line at the new level. */
void log_signal_advance(struct log *log);

#endif
