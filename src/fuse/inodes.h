/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel's inode numbers mean: a path and a version of its bytes. Another version is
 * another inode, so that pages of two versions never meet in one page cache. Numbers are never
 * used twice, so no generation is needed. Any thread.
 *
 * A file that was never opened has version 0 and takes the version of its first opening. From
 * then on its attributes are the version's, constant but for the mode: who may read it can change
 * without a new version.
 */
#ifndef FUSE_INODES_H
#define FUSE_INODES_H

#include <stdbool.h>
#include <stdint.h>

#include <hsmount/engine.h>

enum { INODES_ROOT = 1 };

struct inodes;

/* A copy, but for the path, which is borrowed: the kernel forgets no inode that a request is
 * about. */
struct inode_view {
	uint64_t ino;
	const char *path;
	struct engine_stat st; /* version 0: only the kind is valid */
};

struct inodes *inodes_new(void);
void inodes_free(struct inodes *t);
/* The inode of this path and version, with one more lookup; 0 without memory. */
uint64_t inodes_look_up(struct inodes *t, const char *path, const struct engine_stat *st);
void inodes_forget(struct inodes *t, uint64_t ino, uint64_t nlookup);
/* False for a number that the kernel cannot have. */
bool inodes_get(struct inodes *t, uint64_t ino, struct inode_view *out);
/* An open file of this inode has these attributes. False when the inode is another version: the
 * kernel must look the name up again. */
bool inodes_adopt(struct inodes *t, uint64_t ino, const struct engine_stat *st);

#endif
