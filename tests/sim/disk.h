/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that loses what was not synchronised.
 *
 * The files are real files below one directory, so reads, locks and listings need nothing of this
 * module. Beside them it keeps what a disk would have: of each file the content at its last
 * synchronisation and all changes since then, of each directory its entries and all changes of
 * names. A crash makes a new directory of this, in which the next process finds its files.
 *
 * The program that uses it replaces these functions with the option --wrap of the linker; all other
 * code remains as it is. They are all functions with which journal/ and overlay/ change files.
 * DISK_PROCESS compares what it knows with the real files, and ends the program if they differ:
 * then a function is missing here.
 *
 *   open64 openat64 write pwrite64 ftruncate64 fallocate64 fsync fdatasync renameat renameat2
 *   unlinkat mkdirat
 *
 * What is promised after a crash
 *
 *  1. The process ends (DISK_PROCESS): all that was written is there, because the kernel has it
 *     (write(2): "a successful return does not guarantee that data has been committed to disk", but
 *     later reads return it). It is not durable for this: a power loss after it may take it.
 *  2. Power loss (DISK_POWER): what fsync() or fdatasync() has acknowledged is there: of a file its
 *     bytes and size, of a directory its entries (fsync(2): "does not necessarily ensure that the
 *     entry in the directory containing the file has also reached disk. For that an explicit
 * fsync() on a file descriptor for the directory is also needed").
 *  3. Of a file's later changes, each page of 4096 bytes has those up to some moment, and each page
 *     another moment. One page in a few is torn: each sector of 512 bytes is older or newer.
 *     POSIX promises no order of writes.
 *  4. The size, truncations and holes are metadata: those up to some moment are there, in order.
 *     What they have cut off does not come back, and a page that is not cut off yet has none of the
 *     bytes that were written there after the cut. So behave file systems with a log (ext4 with
 *     data=ordered, XFS). A page that was not written is zeros.
 *  5. Names. The seed decides between three kinds of file systems. One has a single log: changes of
 *     names are there up to some moment, and any fsync() puts all earlier ones there (ext4, XFS).
 *     With the others only an fsync() of its directory is certain to include a change, as POSIX
 *     promises. Of these, one has a moment for each directory. The last one has a moment for each
 *     name, and for all names together that renames connect.
 *  6. A rename is there as a whole or not at all, also one over an existing name (rename(2)) and
 * one from a directory to another (all file systems with a log).
 *  7. An fsync() that fails has given up: the pages that were to be written are clean, and a later
 *     fsync() does not write them, unless they are changed again (Linux since 4.13; see fsync(2),
 *     EIO).
 *  8. Locks and descriptors end with the process. The boot id of the machine (disk_use()) changes
 *     with a power loss.
 *
 * Not modelled: link(), O_TMPFILE, mappings that are written, copy_file_range(), extended
 * attributes, times and modes (nothing in the journal uses them); RENAME_EXCHANGE; blocks that are
 * allocated (fallocate() with FALLOC_FL_KEEP_SIZE changes nothing that can be read); sectors that
 * cannot be read, and bits that change; a disk that ignores the command to flush.
 *
 * Threads: one at a time, whichever passes the baton; a hook may pass it. Several disks are
 * independent.
 */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include <stddef.h>
#include <sys/types.h>

#include "rng.h"

struct disk;

/* A call that is going to change something. */
enum disk_call {
	DISK_CREATE,   /* open() of a new file */
	DISK_WRITE,    /* write() and pwrite() */
	DISK_CUT,      /* ftruncate(), and open() with O_TRUNC of a file */
	DISK_ALLOCATE, /* fallocate(), also of holes */
	DISK_SYNC,     /* fsync() and fdatasync(), also of a directory */
	DISK_RENAME,
	DISK_UNLINK,
	DISK_MKDIR,
	DISK_CALLS
};

/*
 * Called before each such call. name: of the file, without its directory; it is valid during the
 * call. n: the bytes to write. Returns 0, or a negative errno: the call fails with it and has no
 * effect; of a DISK_WRITE also a number below n: only so many bytes are written.
 *
 * It may let other threads run, and disk_crash() may be called meanwhile.
 */
typedef ssize_t disk_hook(void *ctx, enum disk_call call, const char *name, size_t n);

/* The disk consists of what the directory `dir` contains, which is durable. Failures of the
 * simulation itself end the program. */
struct disk *disk_new(const char *dir);
/* The files remain. */
void disk_free(struct disk *d);
/* hook may be NULL. */
void disk_set_hook(struct disk *d, disk_hook *hook, void *ctx);

/* From now on, the boot id that this thread reads is that of the machine with this disk; NULL: of
 * the real one. */
void disk_use(struct disk *d);

/* All that was written is durable, because much time has passed. No file is open. */
void disk_settle(struct disk *d);
/* Whether what the log writes is dropped. A log takes locks, at which other threads may run, so
 * the engines have one also when nobody reads it. */
void disk_hide_log(bool hide);

enum disk_crash { DISK_PROCESS, DISK_POWER };

/*
 * Fills the empty directory `to` with what a crash leaves. From now on it is the disk; the old
 * files are not watched any more, and a process that still has them open changes nothing. r:
 * decides what is lost.
 */
void disk_crash(struct disk *d, const char *to, struct rng *r, enum disk_crash how);

#endif
