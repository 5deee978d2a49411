/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a file open between the two open requests that one open(2) may cause.
 *
 * When a name's current version is not the version of the kernel's inode, the daemon answers an
 * open request with ESTALE. The kernel then looks the name up again, within the same call of the
 * same thread, and opens the inode that it gets. If the bucket changed again between the two, the
 * second open would fail with ESTALE, too, and the program would get that error. So the daemon
 * keeps the file that the first request opened for that thread. The lookup that follows reports the
 * version of that file, and the second open returns the file without a request to the bucket. That
 * version was current at a time after the program's call began. During this retry the kernel does
 * not share lookups between threads, so the second open is always for the inode that the lookup of
 * the same thread returned.
 *
 * It is the same with a file that is opened for writing, or truncated by its name: the draft has
 * another inode than the committed file. And if the kernel has an estimated size of the file, it
 * gets the right one by the lookup.
 *
 * A file is kept for REOPEN_SECONDS at most. It is closed earlier if the thread's call fails, so
 * that the thread's next call does not get it. A file that is only kept is not truncated yet. The
 * last one to close a draft commits what others have written, and blocks meanwhile. Any thread.
 */
#ifndef FUSE_REOPEN_H
#define FUSE_REOPEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <hsmount/engine.h>

enum {
	REOPEN_MAX = 1024,  /* files; when one more is added, the oldest is closed */
	REOPEN_SECONDS = 2, /* enough to look a deep path up again, one request for each name */
};

struct reopen;

/* `clock` returns monotonic nanoseconds, and is called under the lock. Returns NULL if out of
 * memory. */
struct reopen *reopen_new(uint64_t (*clock)(void));
void reopen_free(struct reopen *t);
/* Keeps the file for the thread. If `writes` is set, the file is one of engine_open_write(). If
 * there is no memory, the file is closed instead. The kernel reports thread 0 if the thread has no
 * id in the daemon's PID namespace. Then a file for reading is closed; one for writing is kept for
 * all such threads, because programs that write a name share its draft. */
void reopen_put(struct reopen *t, pid_t thread, const char *path, struct engine_file *file,
		bool writes);
/* Call it when the open(2) of the thread ends without its file: closes the files that are kept for
 * the thread. */
void reopen_end(struct reopen *t, pid_t thread);
/* Does the same, but another thread closes the files when it calls a function of the table. Does
 * not block. */
void reopen_expire(struct reopen *t, pid_t thread);
/* Gets the attributes of the file that is kept for the thread under this path. Returns false if no
 * file is kept. */
bool reopen_stat(struct reopen *t, pid_t thread, const char *path, struct engine_stat *st);
/* Returns whether a file is kept for the thread below this directory. Then this call of the thread
 * has looked the directory up already. */
bool reopen_is_below(struct reopen *t, pid_t thread, const char *dir);
/* Returns that file, which then belongs to the caller. Returns NULL if no file is kept, or if it
 * had another version or was for another kind of open, and was closed. A file for writing is also
 * found if it was kept under another path: then it was renamed. */
struct engine_file *reopen_take(struct reopen *t, pid_t thread, const char *path, uint64_t version,
				bool writes);

#endif
