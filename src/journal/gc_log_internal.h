/* SPDX-License-Identifier: Apache-2.0 */
/* What gc_log.c and gc_objects.c share: files of processes that have ended. */
#ifndef JOURNAL_GC_LOG_INTERNAL_H
#define JOURNAL_GC_LOG_INTERNAL_H

#include <pthread.h>

#include <journal/gc_log.h>

enum { GC_NAME = JOURNAL_ID + 8 /* an id with a suffix of 8 bytes */ };

struct gc_log {
	struct journal *j;
	int dir; /* of the bucket; a descriptor of its own, because the journal may be closed
		  * before */
	pthread_mutex_t lock;
	int fd; /* -1 if there is no file yet */
	char name[GC_NAME];
	uint8_t *used; /* by record */
	uint32_t n, live;
};

/* Calls take() for each file of the journal whose name is an id with this suffix. A failure of
 * take() does not end the walk: the result is the error of the first file that failed. */
int gc_log_each_file(const struct gc_log *l, const char *suffix,
		     int (*take)(void *ctx, const struct gc_log *l, const char *name), void *ctx,
		     struct err *err);
/* Opens and locks a file of a process that has ended. Returns a descriptor. Fails with -EBUSY if
 * the process still runs, and with -ENOENT if another one has taken the file over. */
int gc_log_open(const struct gc_log *l, const char *name);
/* Moves a file that cannot be read to `unreadable`. */
int gc_log_set_aside(const struct gc_log *l, const char *name);

#endif
