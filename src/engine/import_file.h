/* SPDX-License-Identifier: Apache-2.0 */
/* The local file of an import: its version, and its bytes. */
#ifndef ENGINE_IMPORT_FILE_H
#define ENGINE_IMPORT_FILE_H

#include <stdint.h>

#include <base/source.h>
#include <hsmount/err.h>

struct import_source {
	char *path; /* absolute */
	uint64_t size;
	int64_t mtime_ns;
	/* These are valid while the file is open. */
	struct source_file *file;
	struct source_paged *pages;
	struct source source; /* any thread may read it */
};

/* Finds the file and its version. The caller calls import_source_release(), also after an error.
 * Returns -EINVAL if it is no regular file, or a code of open(2). */
int import_source_init(struct import_source *s, const char *path, struct err *err);
void import_source_release(struct import_source *s);
/* Opens the file. *out is valid until import_source_release(). Returns -ESTALE if the file has
 * changed since import_source_init(). */
int import_source_open(struct import_source *s, struct source **out, struct err *err);
/* Returns -ESTALE if the file does not have the size and time any more that import_source_init()
 * found. */
int import_source_check(const struct import_source *s, struct err *err);

#endif
