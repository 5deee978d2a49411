/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of inodes. An inode is one version of the file at one path. Another version has another
 * inode, so the kernel's page cache never mixes the bytes of two versions. Inode numbers are never
 * reused, so generation numbers are not needed. Any thread.
 *
 * The inode of a file that was never opened has version 0. When the file is opened for the first
 * time, the inode adopts the version that was opened. From then on its attributes do not change,
 * except for the mode, because permissions can change without a new version, and for the time of a
 * large domain, whose version does not cover its chunks.
 *
 * A draft has a version, and so an inode, of its own. Its attributes here are those of a look-up,
 * and not valid: see engine_draft_stat_version(). The inode of a committed file never becomes that
 * of a draft, because readers use it.
 *
 * Programs see another number, st_ino. The versions of a plain object at one path, and its drafts,
 * have the same one, as on a disk: an editor compares it with that of the file that it has opened
 * for writing. Each version of a domain has its own, because libhdf5 takes files with one number
 * for the same.
 */
#ifndef FUSE_INODES_H
#define FUSE_INODES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <hsmount/engine.h>

enum { INODES_ROOT = 1 };

struct inodes;

/* A copy of an inode. The kernel may forget the inode while its request is still being served. */
struct inode_view {
	uint64_t ino;
	char *path;	       /* heap */
	bool is_open;	       /* a program has it open */
	uint64_t looked_up_ns; /* the latest time, by clock_ns() */
	struct engine_stat st; /* version 0 or a draft: size and times are not valid */
};
static inline void inode_view_release(struct inode_view *v)
{
	free(v->path);
}
#define auto_inode __attribute__((cleanup(inode_view_release)))

struct inodes *inodes_new(void);
void inodes_free(struct inodes *t);
/* Returns the inode of this path and version, and increments its lookup count. Returns 0 if out of
 * memory. */
uint64_t inodes_look_up(struct inodes *t, const char *path, const struct engine_stat *st);
/* Decrements the lookup count, and removes the inode when the count is 0. */
void inodes_forget(struct inodes *t, uint64_t ino, uint64_t nlookup);
/* To be called when the path has no file any more. Its inodes stay until the kernel forgets them,
 * but later look-ups of the path get another one: the kernel does not use the inode of a removed
 * directory again. */
void inodes_remove(struct inodes *t, const char *path);
/* To be called when the file has another path. If there is no memory for the path, its inodes are
 * removed. */
void inodes_rename(struct inodes *t, const char *from, const char *to);
/* Copies an inode. Fails with -ESTALE if the table has no such number, and with -ENOMEM. */
int inodes_get(struct inodes *t, uint64_t ino, struct inode_view *out);
/* To be called if an open file has other blocks now: sets those of its inode, unless that has
 * another version. */
void inodes_set_blocks(struct inodes *t, uint64_t ino, const struct engine_stat *st);
/* Returns the number that programs see. */
uint64_t inodes_shown(struct inodes *t, uint64_t ino);
enum inodes_adopted {
	INODES_OTHER, /* the inode has another version, and the kernel must look the name up
		       * again */
	INODES_SAME,
	/* The inode had another version. The kernel may have pages of it, and must drop them. */
	INODES_RENEWED,
};
/* Call it when a file with these attributes was opened for this inode, and inodes_close() when the
 * file is closed, unless the result is INODES_OTHER. An inode with version 0 gets the file's
 * version, unless the file is a draft. So does an inode that was renamed, if no program has it open
 * and the size is the same: programs such as mv examine a file, open it, examine it again, and
 * refuse to copy it if its inode has changed. */
enum inodes_adopted inodes_adopt(struct inodes *t, uint64_t ino, const struct engine_stat *st);
void inodes_close(struct inodes *t, uint64_t ino);
/* Notes the size that the kernel has got for an inode. A look-up notes it itself. */
void inodes_told(struct inodes *t, uint64_t ino, uint64_t size);
/* Returns whether the kernel has this size. */
bool inodes_has_size(struct inodes *t, uint64_t ino, uint64_t size);
/* Gets the attributes of a directory as they were looked up. Returns false if the kernel has no
 * directory of this path. */
bool inodes_get_dir(struct inodes *t, const char *path, struct engine_stat *st);

#endif
