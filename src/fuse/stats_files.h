/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory CONTROL_NAME of the mount's root, in which the program tells about itself:
 *
 *   .hsmount/stats    what the engine counts, JSON
 *   .hsmount/metrics  the same for Prometheus
 *
 * It is reached by name only: the root does not list it, so that whoever copies a mount does not
 * copy its counters. Its inode numbers lie above all that inodes.c gives. A text is made anew
 * whenever a file is opened or its size is asked for; nothing here asks the bucket. No state; any
 * thread.
 */
#ifndef FUSE_CONTROL_H
#define FUSE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/err.h>
#include <hsmount/engine.h>

#define CONTROL_NAME ".hsmount"
#define CONTROL_INO  (UINT64_C(1) << 62) /* of the directory; its files follow */

static inline bool control_has(uint64_t ino)
{
	return ino >= CONTROL_INO;
}
/* Is it for this directory to say what the name is? */
bool control_rules(uint64_t parent, const char *name);
/* The inode of a name that it rules; 0 when there is no such file. */
uint64_t control_look_up(uint64_t parent, const char *name);
/* The directory's i-th name; NULL behind the last. */
const char *control_name(size_t i);

/* A file's text at this moment: heap, the caller's. -EISDIR, -ENOMEM. */
int control_text(struct engine *e, uint64_t ino, char **text, size_t *len, struct err *err);
/* len: of the text, for a file. */
void control_stat(uint64_t ino, size_t len, int64_t now_ns, struct engine_stat *st);

#endif
