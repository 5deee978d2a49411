/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens paths that cannot leave a directory. openat2(2) resolves a whole path with RESOLVE_BENEATH,
 * so an attacker cannot escape by renaming directories or adding links meanwhile. If the kernel has
 * no openat2(2), or a sandbox forbids it, the path is opened component by component, and no link is
 * followed.
 */
#ifndef BASE_BENEATH_H
#define BASE_BENEATH_H

#include <stdbool.h>

/* Returns true if openat2(2) works in the directory root. */
bool beneath_has_openat2(int root);
/* Opens a relative path below root. A symbolic link is followed if it stays below root; one that
 * leads out of it, or is absolute, fails with -EXDEV. Without openat2(2) no link is followed, and a
 * path with one fails with -ELOOP or -ENOTDIR. flags are those of open(2), without O_CREAT;
 * O_CLOEXEC is added. Returns a descriptor or a negative errno of open(2). */
int beneath_open(int root, bool has_openat2, const char *path, int flags);

#endif
