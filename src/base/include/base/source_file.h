/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A local file as a source of bytes. Its size is that of the moment when it was opened. A file that
 * has become shorter since then fails with -ESTALE, so that it is not mistaken for a damaged one.
 *
 * Any number of threads may read it.
 */
#ifndef BASE_SOURCE_FILE_H
#define BASE_SOURCE_FILE_H

#include <base/source.h>

struct source_file;
/* Opens a regular file or block device for reading. Fails with -EISDIR or -EINVAL if it is
 * something else; other codes are those of open(2). */
int source_file_open(const char *path, struct source_file **out, struct err *err);
void source_file_close(struct source_file *f); /* f may be NULL */
/* Returns the source, which lives as long as f. */
struct source *source_file_source(struct source_file *f);

#endif
