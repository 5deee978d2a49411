/* SPDX-License-Identifier: Apache-2.0 */
/* The directory store: paths that cannot leave the root, and the proof that one does not exist. */
#include "dir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <base/beneath.h>

int dir_open(const struct dir_store *d, const char *path, int flags)
{
	if (path[0] == '\0')
		path = ".";
	return beneath_open(d->root, d->beneath, path, flags);
}

int dir_stat(const struct dir_store *d, const char *path, struct stat *st)
{
	auto_close int fd = dir_open(d, path, O_PATH);
	if (fd < 0)
		return fd;
	if (fstat(fd, st))
		return -errno;
	/* Without openat2(2), O_PATH opens the link itself. */
	return S_ISLNK(st->st_mode) ? -ELOOP : 0;
}

/* ---- proof of absence ---- */

/* Results of looking at a path, besides 0 (it exists) and a negative errno. */
enum { NOTHING = 1, APPEARED };

const char *dir_split(const char *key, char dir[STORE_KEY_MAX + 1])
{
	const char *slash = strrchr(key, '/');
	const size_t n = slash ? (size_t)(slash - key) : 0;
	memcpy(dir, key, n);
	dir[n] = '\0';
	return slash ? slash + 1 : key;
}

/* Gets the entry of a path in its directory; a link is not followed. Returns NOTHING if there is no
 * such entry. */
static int look_at(const struct dir_store *d, const char *path, struct stat *st)
{
	char dir[STORE_KEY_MAX + 1];
	const char *name = dir_split(path, dir);
	auto_close int at = dir_open(d, dir, O_PATH | O_DIRECTORY);
	if (at < 0)
		return at;
	if (fstatat(at, name, st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return errno == ENOENT || errno == ENAMETOOLONG ? NOTHING : -errno;
}

/* Follows a link. has_more is true if the path goes on below it. Returns NOTHING if the link leads
 * to a file, so that nothing can be below it, and -ENOLINK if it is dangling. */
static int follow(const struct dir_store *d, const char *path, bool has_more)
{
	struct stat st;
	int rc = dir_stat(d, path, &st);
	if (rc == -ENOENT || rc == -ENOTDIR || rc == -ENAMETOOLONG)
		return -ENOLINK;
	if (rc)
		return rc;
	return has_more && !S_ISDIR(st.st_mode) ? NOTHING : 0;
}

/* Walks down the path to the first component that does not exist. If must_be_dir is true, the path
 * must be a directory; a file does not count. path is changed while the function runs. */
static int find_gap(const struct dir_store *d, char *path, bool must_be_dir)
{
	for (char *slash = strchr(path, '/');; slash = strchr(slash + 1, '/')) {
		const bool has_more = slash || must_be_dir;
		struct stat st;
		if (slash)
			*slash = '\0';
		int rc = look_at(d, path, &st);
		if (rc == 0 && S_ISLNK(st.st_mode))
			rc = follow(d, path, has_more);
		else if (rc == 0 && has_more && !S_ISDIR(st.st_mode))
			rc = NOTHING;
		if (rc == -ENOENT || rc == -ENOTDIR || (rc == 0 && !slash))
			return APPEARED; /* another program has changed the path */
		if (rc)
			return rc;
		*slash = '/';
	}
}

int dir_open_proved(const struct dir_store *d, const char *path, int flags)
{
	enum { ATTEMPTS = 3 };
	char copy[STORE_KEY_MAX + 1];
	struct stat st;
	for (int i = 0; i < ATTEMPTS; i++) {
		int fd = dir_open(d, path, flags);
		if (fd != -ENOENT && fd != -ENOTDIR && fd != -ENAMETOOLONG)
			return fd;
		/* The usual case: the directory exists and has no such entry. */
		int rc = look_at(d, path, &st);
		if (rc != NOTHING)
			rc = find_gap(d, strcpy(copy, path), flags & O_DIRECTORY);
		if (rc != APPEARED)
			return rc == NOTHING ? -ENOENT : rc;
	}
	return -EIO;
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
		return err_set(err, -EIO, "object %s: it vanished while it was being accessed",
			       key);
	case -EXDEV:
		return err_set(err, -EACCES,
			       "object %s: a symbolic link that is absolute or leads out of the "
			       "bucket is not followed",
			       key);
	case -ENOLINK:
		return err_set(err, code, "object %s: dangling symbolic link", key);
	case -ELOOP:
		return err_set(err, -EACCES, "object %s: symbolic link is not followed", key);
	case -EPERM:
		return err_errno(err, -EACCES, "object %s", key);
	default:
		return err_errno(err, code, "object %s", key);
	}
}

/* ---- versions ---- */

static int64_t stamp(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

void dir_meta(const struct stat *st, struct store_meta *meta)
{
	meta->size = (uint64_t)st->st_size;
	meta->mtime_ns = stamp(&st->st_mtim);
	snprintf(meta->etag, sizeof(meta->etag), "%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64,
		 (uint64_t)meta->mtime_ns, meta->size, (uint64_t)st->st_ino,
		 (uint64_t)stamp(&st->st_ctim));
}

bool dir_same_version(const struct stat *st, const char *etag)
{
	struct store_meta meta;
	dir_meta(st, &meta);
	return strcmp(meta.etag, etag) == 0;
}
