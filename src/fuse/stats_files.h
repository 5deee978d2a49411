/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory STATS_DIR_NAME in the root of the mount, which contains the daemon's metrics:
 *
 *   .hsmount/stats    as JSON
 *   .hsmount/metrics  for Prometheus
 *
 * A listing of the root does not show the directory, so a copy of the mount does not contain it.
 * Its inode numbers are higher than those of inodes.c. The text of a file is made when the file is
 * opened or its size is read, without a request to the bucket. No state; any thread.
 */
#ifndef FUSE_STATS_FILES_H
#define FUSE_STATS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <hsmount/engine.h>

#define STATS_DIR_NAME ".hsmount"
#define STATS_DIR_INO  (UINT64_C(1) << 62) /* the numbers of its files follow */

static inline bool stats_files_has(uint64_t ino)
{
	return ino >= STATS_DIR_INO;
}
/* Returns whether the name is that of the directory or of a file in it. */
bool stats_files_own(uint64_t parent, const char *name);
/* Returns the inode number of this name, or 0 if there is no such file. */
uint64_t stats_files_look_up(uint64_t parent, const char *name);
/* Returns the name of file i, counted from 0, or NULL if there are fewer files. */
const char *stats_files_name(size_t i);

/* Makes the text of a file on the heap, which the caller owns. Fails with -EISDIR or -ENOMEM. */
int stats_files_text(struct engine *e, uint64_t ino, char **text, size_t *len, struct err *err);
/* Fills in the attributes. `len` is the length of a file's text. */
void stats_files_stat(uint64_t ino, size_t len, int64_t now_ns, struct engine_stat *st);

#endif
