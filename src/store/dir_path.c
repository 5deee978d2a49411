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

int dir_fail(struct err *err, int code, const char *key)
{
	switch (code) {
	case -ENOENT:
	case -ENOTDIR:
	case -ENAMETOOLONG:
		return err_set(err, -ENOENT, "object %s: not there", key);
	case -ENXIO: /* a socket, or a device without its driver */
	case -ENODEV:
		return err_set(err, -ENOENT, "object %s: not a regular file", key);
	case -EXDEV:
		return err_set(err, -EACCES, "object %s: a link leads out of the bucket", key);
	case -ELOOP:
		return err_set(err, -EACCES, "object %s: a link that is not followed", key);
	case -EPERM:
		return err_errno(err, -EACCES, "object %s", key);
	default:
		return err_errno(err, code, "object %s", key);
	}
}
