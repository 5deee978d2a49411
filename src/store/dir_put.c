/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory store: writing.
 *
 * An object appears by a rename in its own directory, of a temporary file that is complete and on
 * disk: a reader sees the old or the new one, and so does whoever looks after a crash. What a
 * crash leaves behind is at most a temporary file, which no listing shows.
 *
 * A put makes the directories that it needs and a delete removes those that it empties, so one may
 * take a directory away from the other between two steps: the put then starts again.
 */
#include "dir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEMP_NAME_MAX = sizeof(DIR_TEMP_PREFIX) + 2 * 16 + 1 };

/* Makes what is missing of a path, which is changed meanwhile. 0 or a negative errno. */
static int make_dirs(const struct dir_store *d, char *path)
{
	char *name = path;
	auto_close int at = dir_open(d, "", O_RDONLY | O_DIRECTORY);
	while (at >= 0) {
		char *slash = strchr(name, '/');
		if (slash)
			*slash = '\0';
		if (mkdirat(at, name, 0777) == 0) {
			if (fsync(at))
				return -errno;
		} else if (errno != EEXIST) {
			return -errno;
		}
		if (!slash)
			return 0;
		int next = dir_open(d, path, O_RDONLY | O_DIRECTORY);
		close(at);
		at = next;
		*slash = '/';
		name = slash + 1;
	}
	return at;
}

static int open_parent(const struct dir_store *d, char *dir)
{
	int fd = dir_open(d, dir, O_RDONLY | O_DIRECTORY);
	if (fd != -ENOENT || dir[0] == '\0')
		return fd;
	int rc = make_dirs(d, dir);
	return rc ? rc : dir_open(d, dir, O_RDONLY | O_DIRECTORY);
}

static int write_all(int fd, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t put = write(fd, p, n);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -errno;
		p += put;
		n -= (size_t)put;
	}
	return fsync(fd) ? -errno : 0;
}

/* Creates a file under a name that nobody else uses: chance between programs and after a crash,
 * the serial number within this one. A descriptor or a negative errno. */
static int open_temp(struct dir_store *d, int parent, char name[TEMP_NAME_MAX])
{
	const struct env *env = d->base.env;
	for (int tries = 0; tries < 16; tries++) {
		uint64_t chance = 0;
		env->random(env, &chance, sizeof(chance));
		snprintf(name, TEMP_NAME_MAX, DIR_TEMP_PREFIX "%016" PRIx64 "-%" PRIxFAST64, chance,
			 atomic_fetch_add(&d->serial, 1));
		int fd = openat(parent, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				0666);
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EIO;
}

static int rename_if_absent(int parent, const char *temp, const char *name)
{
	if (renameat2(parent, temp, parent, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* The file system cannot: a link never replaces either. */
	if (linkat(parent, temp, parent, name, 0))
		return -errno;
	unlinkat(parent, temp, 0);
	return 0;
}

static int rename_checked(const struct dir_store *d, int parent, const char *temp, const char *key,
			  const char *name, const struct store_cond *cond)
{
	if (cond->if_none_match)
		return rename_if_absent(parent, temp, name);
	if (cond->if_match) {
		struct stat st;
		int rc = dir_stat(d, key, &st);
		if (rc == -ENOENT || rc == -ENOTDIR)
			return -ESTALE;
		if (rc)
			return rc;
		if (!dir_same_version(&st, cond->if_match))
			return -ESTALE;
	}
	return renameat(parent, temp, parent, name) ? -errno : 0;
}

static int put_once(struct dir_store *d, const char *key, const void *body, size_t n,
		    const struct store_cond *cond, struct store_meta *meta)
{
	char dir[STORE_KEY_MAX + 1];
	char temp[TEMP_NAME_MAX];
	const char *name = dir_split(key, dir);
	auto_close int parent = open_parent(d, dir);
	if (parent < 0)
		return parent;
	auto_close int fd = open_temp(d, parent, temp);
	if (fd < 0)
		return fd;
	int rc = write_all(fd, body, n);
	if (rc == 0)
		rc = rename_checked(d, parent, temp, key, name, cond);
	if (rc) {
		unlinkat(parent, temp, 0);
		return rc;
	}
	if (fsync(parent))
		return -errno;
	/* Only now: the rename changed the time of the last status change. */
	struct stat st;
	if (fstat(fd, &st))
		return -errno;
	if (meta)
		dir_meta(&st, meta);
	return 0;
}

int dir_put(struct store *s, const char *key, const void *body, size_t n,
	    const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	enum { TRIES = 8 };
	int rc = -ENOENT;
	if (dir_reserved(key))
		return err_set(err, -EINVAL, "object %s: a name for temporary files", key);
	for (int tries = 0; rc == -ENOENT && tries < TRIES; tries++)
		rc = put_once(dir_store_of(s), key, body, n, cond, meta);
	switch (rc) {
	case 0:
		return 0;
	case -ESTALE:
		return err_set(err, rc, "object %s: another version is there", key);
	case -EEXIST:
		return err_set(err, rc, "object %s: already there", key);
	case -ENOTDIR:
	case -EISDIR:
	case -ENAMETOOLONG:
		/* A bucket could hold this key, a directory cannot. */
		return err_errno(err, rc, "object %s", key);
	default:
		return dir_fail(err, rc, key);
	}
}

/* Removes the directories above key that are empty now, but never the root. */
static void prune(const struct dir_store *d, const char *key)
{
	char path[STORE_KEY_MAX + 1], above[STORE_KEY_MAX + 1];
	dir_split(key, path);
	while (path[0]) {
		const char *name = dir_split(path, above);
		auto_close int fd = dir_open(d, above, O_PATH | O_DIRECTORY);
		if (fd < 0 || unlinkat(fd, name, AT_REMOVEDIR))
			return;
		strcpy(path, above);
	}
}

int dir_del(struct store *s, const char *key, const struct store_cond *cond, struct err *err)
{
	const struct dir_store *d = dir_store_of(s);
	char dir[STORE_KEY_MAX + 1];
	struct stat st;
	if (dir_reserved(key))
		return 0;
	int rc = dir_stat(d, key, &st);
	if (rc == -ENOENT || rc == -ENOTDIR || rc == -ENAMETOOLONG)
		return 0;
	if (rc)
		return dir_fail(err, rc, key);
	if (!S_ISREG(st.st_mode))
		return 0;
	if (cond->if_match && !dir_same_version(&st, cond->if_match))
		return err_set(err, -ESTALE, "object %s: another version is there", key);
	const char *name = dir_split(key, dir);
	auto_close int parent = dir_open(d, dir, O_PATH | O_DIRECTORY);
	if (parent < 0)
		return parent == -ENOENT ? 0 : dir_fail(err, parent, key);
	if (unlinkat(parent, name, 0) && errno != ENOENT)
		return dir_fail(err, -errno, key);
	prune(d, key);
	return 0;
}
