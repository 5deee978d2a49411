/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that exists whole or not at all: it gets its name when all of it is on disk, and what has
 * a temporary name is removed when a signal (SIGINT, SIGTERM, SIGHUP) ends the program. If the path
 * exists and is not a regular file (a pipe, a device), or is "-", bytes go to it as they come. Main
 * thread only.
 *
 * A thread of its own waits for the signal, so nothing of this runs in a signal handler. The
 * program ends by the signal all the same. Signals that were ignored stay ignored.
 */
#ifndef CLI_ATOMIC_FILE_H
#define CLI_ATOMIC_FILE_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>

/* Removes a half-written file when a signal ends the program. Zeroed is not started: then nothing
 * is removed. */
struct atomic_guard {
	pthread_mutex_t lock;
	const char *path; /* to be removed, NULL none; under the lock */
	sigset_t signals, before;
	pthread_t thread;
	bool running;
	atomic_bool stopping;
};

/* Before the first thread of the process: all of them must have the signals blocked. Without that
 * thread signals do what they did before. */
void atomic_guard_start(struct atomic_guard *g);
void atomic_guard_stop(struct atomic_guard *g);
/* Around whatever makes, names or removes the file: signals wait. */
void atomic_guard_lock(struct atomic_guard *g);
/* path: what is to be removed from now on, NULL nothing; borrowed until the next call. */
void atomic_guard_unlock(struct atomic_guard *g, const char *path);

struct atomic_file {
	const char *name; /* for messages */
	int fd;
	bool stream;	  /* bytes in order, holes too */
	char *path, *dir; /* NULL for a stream */
	char *temporary;  /* NULL: the file has no name yet */
	struct atomic_guard *guard;
};

/* path: "-" is standard output. path and guard are borrowed until atomic_file_close(). */
int atomic_file_open(struct atomic_file *f, const char *path, struct atomic_guard *guard,
		     struct err *err);
int atomic_file_write(struct atomic_file *f, const void *bytes, size_t n, uint64_t offset,
		      struct err *err);
/* Gives the file its size and its name, replacing the file that had it. */
int atomic_file_commit(struct atomic_file *f, uint64_t size, struct err *err);
/* Always, after atomic_file_open() whatever it returned. Removes what was not committed. */
void atomic_file_close(struct atomic_file *f);

#endif
