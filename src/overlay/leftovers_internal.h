/* SPDX-License-Identifier: Apache-2.0 */
/* What leftovers.c and removed.c share: files of processes that have ended. */
#ifndef OVERLAY_LEFTOVERS_INTERNAL_H
#define OVERLAY_LEFTOVERS_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>

#include <overlay/leftovers.h>

enum { LEFTOVER_NAME = JOURNAL_ID + 8 /* an id with a suffix of 8 bytes */ };

struct leftovers {
	struct journal *j;
	int dir; /* of the bucket; its own, for the end */
	pthread_mutex_t lock;
	int fd; /* -1: there is no file yet */
	char name[LEFTOVER_NAME];
	uint8_t *used; /* by slot */
	uint32_t n, live;
};

/* Calls take for each file of the journal whose name is an id with this suffix. If it fails, the
 * error is that of the first such file, after all files. */
int leftover_each_file(const struct leftovers *l, const char *suffix,
		       int (*take)(void *ctx, const struct leftovers *l, const char *name),
		       void *ctx, struct err *err);
/* Opens and locks a file of a process that has ended. -EBUSY: its process lives; -ENOENT: another
 * one has taken it over. */
int leftover_open(const struct leftovers *l, const char *name);
/* Moves a file that cannot be read to `unreadable`. */
int leftover_set_aside(const struct leftovers *l, const char *name);

#endif
