/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory store: paths that cannot leave the root. openat2(2) resolves a whole path with
 * RESOLVE_BENEATH, against which no rename or link made meanwhile helps an attacker. Where the
 * kernel has no openat2(2), or a sandbox forbids it, the path is walked component by component,
 * and links are not followed.
 */
#include "dir.h"

#include <errno.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

static int open_beneath(int root, const char *path, int flags)
{
	/* Resolution gives EAGAIN when a rename elsewhere got in the way of a ".." of a link. */
	enum { TRIES = 16 };
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	for (int i = 0;; i++) {
		long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
		if (fd >= 0)
			return (int)fd;
		if ((errno != EAGAIN && errno != EINTR) || i == TRIES)
			return -errno;
	}
}

static int open_component(int at, const char *name, size_t n, int flags)
{
	char copy[NAME_MAX + 1];
	if (n > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(copy, name, n);
	copy[n] = '\0';
	int fd = openat(at, copy, flags | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_walk(int root, const char *path, int flags)
{
	auto_close int held = -1;
	int at = root;
	for (;;) {
		size_t n = strcspn(path, "/");
		if (path[n] == '\0')
			return open_component(at, path, n, flags);
		int next = open_component(at, path, n, O_PATH | O_DIRECTORY);
		if (next < 0)
			return next;
		if (held >= 0)
			close(held);
		at = held = next;
		path += n + 1;
	}
}

bool dir_can_stay_beneath(int root)
{
	int fd = open_beneath(root, ".", O_PATH | O_DIRECTORY);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

int dir_open(const struct dir_store *d, const char *path, int flags)
{
	if (path[0] == '\0')
		path = ".";
	return d->beneath ? open_beneath(d->root, path, flags) : open_walk(d->root, path, flags);
}

int dir_stat(const struct dir_store *d, const char *path, struct stat *st)
{
	auto_close int fd = dir_open(d, path, O_PATH);
	if (fd < 0)
		return fd;
	return fstat(fd, st) ? -errno : 0;
}

bool dir_reserved(const char *key)
{
	const size_t n = strlen(DIR_TEMP_PREFIX);
	for (; key; key = strchr(key, '/')) {
		key += key[0] == '/';
		if (strncmp(key, DIR_TEMP_PREFIX, n) == 0)
			return true;
	}
	return false;
}

/* What a directory has under a name that could not be opened: 1 nothing, or a file where a directory
 * would have to be; 0 something that was not there before; or a negative errno, -ENOENT for a link,
 * which leads nowhere. */
static int look(int parent, const char *name, bool is_last)
{
	struct stat st;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT || errno == ENAMETOOLONG ? 1 : -errno;
	if (S_ISLNK(st.st_mode))
		return -ENOENT;
	return !is_last && !S_ISDIR(st.st_mode);
}

/* Goes up from the key to the lowest directory that can be opened, and looks what it has. */
static int find_gap(const struct dir_store *d, const char *key)
{
	char path[STORE_KEY_MAX + 3];
	snprintf(path, sizeof(path), "%s", key);
	for (bool is_last = true;; is_last = false) {
		char *slash = strrchr(path, '/');
		const char *name = slash ? slash + 1 : path;
		char empty[] = "";
		if (slash)
			*slash = '\0';
		auto_close int parent = dir_open(d, slash ? path : empty, O_PATH | O_DIRECTORY);
		if (parent >= 0)
			return look(parent, name, is_last);
		if (!slash || (parent != -ENOENT && parent != -ENOTDIR && parent != -ENAMETOOLONG))
			return parent;
	}
}

int dir_absent(const struct dir_store *d, const char *key, int code, struct err *err)
{
	if (code != -ENOENT && code != -ENOTDIR && code != -ENAMETOOLONG)
		return dir_fail(err, code, key);
	const int rc = find_gap(d, key);
	if (rc < 0)
		return dir_fail(err, rc, key);
	return rc;
}

int dir_fail(struct err *err, int code, const char *key)
{
	switch (code) {
	case -ENOENT:
	case -ENOTDIR:
		return err_set(err, -EIO, "object %s: a link on the way to it leads nowhere", key);
	case -EXDEV:
		return err_set(err, -EACCES, "object %s: a link leads out of the bucket, or is absolute",
			       key);
	case -ELOOP:
		return err_set(err, -EACCES, "object %s: a link that is not followed", key);
	case -EPERM:
		return err_errno(err, -EACCES, "object %s", key);
	default:
		return err_errno(err, code, "object %s", key);
	}
}
