/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is there whole or not at all: it gets its name when all of it is on disk. Where the
 * target exists and is no regular file (a pipe, a device, "-"), bytes go to it as they come. Main
 * thread only.
 */
#ifndef CLI_TARGET_H
#define CLI_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/err.h>

#include "undo.h"

struct target {
	const char *name; /* for messages */
	int fd;
	bool stream;	  /* bytes in order, holes too */
	char *path, *dir; /* NULL for a stream */
	char *temporary;  /* NULL: the file has no name yet */
	struct undo *undo;
};

/* file: "-" is standard output. undo: knows the file's temporary name; borrowed until
 * target_close(). */
int target_open(struct target *t, const char *file, struct undo *undo, struct err *err);
int target_write(struct target *t, const void *bytes, size_t n, uint64_t offset, struct err *err);
/* Gives the file its size and its name, replacing what had it. */
int target_commit(struct target *t, uint64_t size, struct err *err);
/* Always; what was not committed is gone. */
void target_close(struct target *t);

#endif
