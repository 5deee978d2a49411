/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files that are kept for the second half of one open(2).
 *
 * An open that finds another version than its inode's fails with ESTALE: the kernel looks the name
 * up again, in the same call of the same thread, and opens what it finds. If the bucket had changed
 * once more by then, that would be ESTALE again, which goes to the program. So the file that the
 * first open has found is kept for that thread: its lookup finds that version, and its second open
 * gets that file, which was current after the program's call began, and asks for nothing. On this
 * second way the kernel uses no other thread's lookup; it asks for each name itself. So the second
 * open is of the inode that its own lookup has found.
 *
 * A file is kept for a short time only, and until its thread's call is known to have failed, so
 * that the thread's next call does not find it. Any thread.
 */
#ifndef FUSE_REOPEN_H
#define FUSE_REOPEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <hsmount/engine.h>

enum {
	REOPEN_MAX = 1024,  /* threads between their two opens; the oldest makes room */
	REOPEN_SECONDS = 2, /* a walk down a deep path, a round of requests for each name */
};

struct reopen;

struct reopen *reopen_new(void); /* NULL without memory */
void reopen_free(struct reopen *t);
/* The file is transferred, always. Nothing is kept for thread 0, which is a thread that the kernel
 * cannot name. now: nanoseconds. */
void reopen_put(struct reopen *t, pid_t thread, const char *path, struct engine_file *file,
		uint64_t now);
/* The thread's call has ended without a second open: nothing is kept for it any more. Closes
 * nothing, and so may be called under any lock. */
void reopen_end(struct reopen *t, pid_t thread);
/* What is kept for this thread under this path. False when nothing is. */
bool reopen_stat(struct reopen *t, pid_t thread, const char *path, uint64_t now,
		 struct engine_stat *st);
/* The file itself, transferred to the caller; NULL when none is kept. One of another version is
 * closed. */
struct engine_file *reopen_take(struct reopen *t, pid_t thread, const char *path, uint64_t version,
				uint64_t now);

#endif
