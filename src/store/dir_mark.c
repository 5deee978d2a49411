/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory store: the marks of objects. A mark is an extended attribute of the file:
 *
 *   MARK SIZE-MTIME-INODE
 *
 * The numbers are hexadecimal. A program that writes into the file keeps its attributes, and so may
 * a program that copies it. Then the numbers differ from those of the file, and the mark is void.
 *
 * No state but the answer to store_keeps_marks(), which is atomic.
 */
#include "dir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

enum { TEXT_MAX = STORE_MARK_MAX + 3 * 17 };

static void print(const char *mark, const struct stat *st, char text[TEXT_MAX + 1])
{
	struct store_meta meta;
	dir_meta(st, &meta);
	snprintf(text, TEXT_MAX + 1, "%s %" PRIx64 "-%" PRIx64 "-%" PRIx64, mark, meta.size,
		 (uint64_t)meta.mtime_ns, (uint64_t)st->st_ino);
}

void dir_mark_init(struct dir_store *d, const char *path)
{
	/* The attribute does not exist. What counts is whether the file system says so. */
	const bool drops = getxattr(path, DIR_MARK, NULL, 0) < 0 && errno == EOPNOTSUPP;
	atomic_init(&d->marks, drops ? STORE_MARKS_DROPPED : STORE_MARKS_UNKNOWN);
}

enum store_marks dir_keeps_marks(struct store *s)
{
	return (enum store_marks)atomic_load(&dir_store_of(s)->marks);
}

int dir_mark_write(struct dir_store *d, int fd, const char *mark)
{
	char text[TEXT_MAX + 1];
	struct stat st;
	if (!mark)
		return 0;
	if (fstat(fd, &st))
		return -errno;
	print(mark, &st, text);
	const int rc = fsetxattr(fd, DIR_MARK, text, strlen(text), 0) ? -errno : 0;
	if (rc == -ENOSPC || rc == -EDQUOT)
		return rc;
	const int marks = rc ? STORE_MARKS_DROPPED : STORE_MARKS_KEPT;
	if (atomic_exchange(&d->marks, marks) != marks && rc)
		log_info(d->base.env->log,
			 "the bucket's file system cannot store the attribute " DIR_MARK ": %s",
			 strerror(-rc));
	return 0;
}

int dir_mark_read(int fd, const struct stat *st, char mark[STORE_MARK_MAX + 1])
{
	char text[TEXT_MAX + 1], want[TEXT_MAX + 1];
	const ssize_t n = fgetxattr(fd, DIR_MARK, text, TEXT_MAX);
	mark[0] = '\0';
	if (n < 0 && errno != ENODATA && errno != EOPNOTSUPP && errno != ERANGE)
		return -errno;
	if (n <= 0)
		return 0;
	text[n] = '\0';
	const size_t length = strcspn(text, " ");
	if (length > STORE_MARK_MAX)
		return 0;
	memcpy(mark, text, length);
	mark[length] = '\0';
	print(mark, st, want);
	if (strlen(text) != (size_t)n || strcmp(text, want) != 0 || !store_mark_ok(mark))
		mark[0] = '\0';
	return 0;
}

bool dir_mark_is(const struct dir_store *d, const char *key, const char *mark, struct stat *st)
{
	char found[STORE_MARK_MAX + 1];
	if (!mark)
		return false;
	auto_close int fd = dir_open(d, key, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	return fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode) &&
	       dir_mark_read(fd, st, found) == 0 && strcmp(found, mark) == 0;
}
