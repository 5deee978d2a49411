/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes write which drafts. Two questions need it:
 *
 * - Does close(2) end what this process has written? The kernel sends FLUSH for each descriptor
 *   that is closed: also for a copy of one (dup(2)), and by each child process that has inherited
 *   it. Only a process that has written since its last FLUSH waits for a commit.
 * - Does this process see the draft under its name? It does from its open(2) until the FLUSH after
 *   its last write. Libraries compare inodes to find out that a program opens one file twice, so
 *   both must get the inode of the draft. After that the process sees what the bucket has.
 *
 * A process is a thread group. The kernel reports threads. It reports 0 for threads of other PID
 * namespaces, which count as one process, and for pages of a mapping, which count as written by the
 * process that has opened the file. Any thread.
 */
#ifndef FUSE_WRITERS_H
#define FUSE_WRITERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct writers;
struct writers_file;
struct writers_process;

/* Returns the process of a thread: what /proc reports, or the thread itself if /proc does not show
 * it. Returns 0 for 0. */
pid_t writers_process_of(pid_t thread);

/* `process_of` is writers_process_of(), except in tests. Returns NULL if out of memory. */
struct writers *writers_new(pid_t (*process_of)(pid_t thread));
/* All files must be closed. w may be NULL. */
void writers_free(struct writers *w);

/* To be called when the thread has opened a file of the draft of this version. Returns NULL if out
 * of memory. The functions below accept NULL; no process then counts as a writer of the file. */
struct writers_file *writers_open(struct writers *w, uint64_t version, pid_t thread);
void writers_close(struct writers *w, struct writers_file *f);
void writers_wrote(struct writers *w, struct writers_file *f, pid_t thread);
/* Returns the process that flushes, if it has written to the file since its last flush, otherwise
 * NULL. The process counts as a writer until writers_flush_end(), and after that only if it writes
 * again. The file must be open until then. */
struct writers_process *writers_flush_begin(struct writers *w, struct writers_file *f,
					    pid_t thread);
void writers_flush_end(struct writers *w, struct writers_file *f, struct writers_process *p);
/* Returns whether the thread's process sees the draft. */
bool writers_has(struct writers *w, uint64_t version, pid_t thread);

#endif
