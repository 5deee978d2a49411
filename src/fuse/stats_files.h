/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory STATS_DIR_NAME of the mount's root, in which the daemon reports about itself:
 *
 *   .hsmount/stats    what the engine counts, JSON
 *   .hsmount/metrics  the same for Prometheus
 *
 * It is reached by name only: the root does not list it, so that a copy of a mount has no counters
 * in it. Its inode numbers lie above all that inodes.c gives. A text is made anew whenever a file
 * is opened or its size is asked for; nothing here asks the bucket. No state; any thread.
 */
#ifndef FUSE_STATS_FILES_H
#define FUSE_STATS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <hsmount/engine.h>

#define STATS_DIR_NAME ".hsmount"
#define STATS_DIR_INO  (UINT64_C(1) << 62) /* of the directory; its files follow */

static inline bool stats_files_has(uint64_t ino)
{
	return ino >= STATS_DIR_INO;
}
/* Does the name belong to this directory, or is it the directory? */
bool stats_files_own(uint64_t parent, const char *name);
/* The inode of such a name; 0 when there is no such file. */
uint64_t stats_files_look_up(uint64_t parent, const char *name);
/* The directory's i-th name; NULL behind the last. */
const char *stats_files_name(size_t i);

/* A file's text at this moment: heap, the caller's. -EISDIR, -ENOMEM. */
int stats_files_text(struct engine *e, uint64_t ino, char **text, size_t *len, struct err *err);
/* len: of the text, for a file. */
void stats_files_stat(uint64_t ino, size_t len, int64_t now_ns, struct engine_stat *st);

#endif
