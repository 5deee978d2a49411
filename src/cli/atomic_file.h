/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output file that exists whole or not at all. The program writes a temporary file beside it
 * and renames that file when all bytes are on disk. If SIGINT, SIGTERM or SIGHUP ends the
 * program, the temporary file is removed first. After SIGKILL it stays, as ".NAME.XXXXXX".
 *
 * A file that exists is replaced only if the caller says so. It keeps its permissions, and its
 * owner if the program may set that. If the path is a symbolic link to a file, the file is
 * replaced, and the link stays. "/dev/stdout" is such a link; the file that is standard output may
 * always be replaced.
 *
 * If the path is "-" or exists and is not a regular file (a pipe, a device), bytes are written to
 * it in order, without a temporary file.
 *
 * Main thread only; all other threads block signals. At most one file is open at a time.
 */
#ifndef CLI_ATOMIC_FILE_H
#define CLI_ATOMIC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>

struct atomic_file {
	const char *path; /* borrowed; "standard output" for "-" */
	char *target;	  /* path without symbolic links; NULL for a stream */
	char *temporary;  /* its path; NULL for a stream and after the commit */
	int fd;
	bool may_replace;
	bool is_stream; /* holes must be written, too */
};

/* Borrows path until atomic_file_close(). The file gets its size at once, so that a size that the
 * file system does not support is refused (-EFBIG) before anything is read. Fails with -EEXIST if
 * there is a file, and force is false. */
int atomic_file_open(struct atomic_file *f, const char *path, bool force, uint64_t size,
		     struct err *err);
/* Ranges that are never written are holes. The offset is ignored for a stream. */
int atomic_file_write(struct atomic_file *f, const void *bytes, size_t n, uint64_t offset,
		      struct err *err);
/* Waits until the bytes are on disk, then renames the file, and waits until its name is on disk.
 * Fails with -EEXIST if another program has made a file of that name meanwhile, and force was
 * false. */
int atomic_file_commit(struct atomic_file *f, struct err *err);
/* Call it even if atomic_file_open() has failed. Removes the temporary file if it was not
 * committed.
 */
void atomic_file_close(struct atomic_file *f);

#endif
