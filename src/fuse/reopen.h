/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are open, waiting for the inode under which they may be used.
 *
 * An open that finds another version than its inode's is answered with ESTALE: the kernel looks the
 * name up again, in the same call of the same thread, and opens what it finds. If the bucket had
 * changed once more by then, that would be ESTALE again, which goes to the program. So what the
 * first open found is kept for that thread: its looking up is told of that version, and its second
 * open gets that file, which was current after the program's call began, and asks for nothing. On
 * this second way the kernel believes no other thread's looking up, it asks for each name itself,
 * so the second open is of the inode that its own looking up was told of.
 *
 * A file waits for a short time only, and until its thread's call is known to have failed, so that
 * the thread's next call does not find it. Any thread.
 */
#ifndef FUSE_PARKED_H
#define FUSE_PARKED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <hsmount/engine.h>

enum {
	PARKED_MAX = 1024,  /* threads between their two opens; the oldest makes room */
	PARKED_SECONDS = 2, /* a walk down a deep path, a round of requests for each name */
};

struct parked;

struct parked *parked_new(void); /* NULL without memory */
void parked_free(struct parked *t);
/* Takes the file over, always. thread 0 (one that the kernel cannot name to us) has no place. now:
 * nanoseconds. */
void parked_put(struct parked *t, pid_t thread, const char *path, struct engine_file *file,
		uint64_t now);
/* The thread's call has ended without a second open: nothing waits for it any more. Closes nothing,
 * and so may be called under any lock. */
void parked_end(struct parked *t, pid_t thread);
/* What waits for this thread under this path. False when nothing does. */
bool parked_stat(struct parked *t, pid_t thread, const char *path, uint64_t now,
		 struct engine_stat *st);
/* The file itself, the caller's again; NULL when none waits. One of another version is closed. */
struct engine_file *parked_take(struct parked *t, pid_t thread, const char *path, uint64_t version,
				uint64_t now);

#endif
