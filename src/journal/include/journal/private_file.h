/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a private directory: whole reads and writes at offsets. Functions return 0 or a negative
 * errno, unless they say otherwise. Any thread. */
#ifndef JOURNAL_PRIVATE_FILE_H
#define JOURNAL_PRIVATE_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Opens a regular file in a directory; a new one has mode 0600. Returns a descriptor. Fails with
 * -ELOOP if it is a symbolic link, and with -EINVAL if it is not a regular file. */
int file_open(int dir, const char *name, int flags);
int file_write(int fd, uint64_t offset, const void *buf, size_t n);
/* *got is less than n only at the end of the file. */
int file_read(int fd, uint64_t offset, void *buf, size_t n, size_t *got);
/* Reads a whole file. The caller frees *bytes, also after an error. Fails with -EFBIG if the file
 * has more than max bytes. */
int file_read_whole(int fd, size_t max, uint8_t **bytes, size_t *n);
/* Replaces a file durably, by NAME.new that is renamed. */
int file_replace(int dir, const char *name, const void *bytes, size_t n);
/* Opens a directory below another one, or at a path if parent is AT_FDCWD. Returns a descriptor. A
 * symbolic link is refused with -ELOOP, one of another owner with -EPERM, one that others can
 * access with -EACCES. */
int file_open_dir(int parent, const char *name);
/* Calls fn with each name in a directory. A result other than 0 ends the walk and is returned. */
typedef int file_name_fn(void *ctx, const char *name);
int file_each_name(int dir, file_name_fn *fn, void *ctx);

#endif
