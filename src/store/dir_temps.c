/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory store: temporary files, which no listing shows (see dir_put.c).
 *
 * The walk follows no symbolic link. A link that the store follows stays inside the root, so what
 * it leads to is found under its own path.
 */
#include "dir.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

struct walk {
	const struct dir_store *d;
	store_dir_temp_fn *fn;
	void *ctx;
	struct err *err;
	char path[STORE_KEY_MAX + NAME_MAX + 2];
};

static void cleanup_closedir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static int walk_dir(struct walk *w, size_t len, unsigned int depth);

/* w->path is the path of the entry. What has vanished meanwhile is no temporary file any more. */
static int visit(struct walk *w, int dir, const struct dirent *e, unsigned int depth)
{
	const bool is_temp = strncmp(e->d_name, DIR_TEMP_PREFIX, strlen(DIR_TEMP_PREFIX)) == 0;
	struct store_meta meta;
	struct stat st;
	if (e->d_type != DT_UNKNOWN && e->d_type != DT_DIR && !is_temp)
		return 0;
	if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : err_errno(w->err, -errno, "%s", w->path);
	if (S_ISDIR(st.st_mode))
		return walk_dir(w, strlen(w->path), depth + 1);
	if (!is_temp || !S_ISREG(st.st_mode))
		return 0;
	dir_meta(&st, &meta);
	return w->fn(w->ctx, w->path, &meta);
}

static int walk_dir(struct walk *w, size_t len, unsigned int depth)
{
	if (depth > DEPTH_MAX || len > STORE_KEY_MAX)
		return 0; /* no key is there */
	const int fd = dir_open(w->d, w->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	__attribute__((cleanup(cleanup_closedir))) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int rc = dir ? 0 : fd < 0 ? fd : -errno;
	if (!dir && fd >= 0)
		close(fd);
	if (rc == -ENOENT || rc == -ENOTDIR)
		return 0;
	if (rc)
		return err_errno(w->err, rc, "directory %s", len ? w->path : "/");
	for (const struct dirent *e; !rc && (errno = 0, e = readdir(dir));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(w->path + len, sizeof(w->path) - len, "%s%s", len ? "/" : "", e->d_name);
		rc = visit(w, dirfd(dir), e, depth);
		w->path[len] = '\0';
	}
	return rc || !errno ? rc : err_errno(w->err, -errno, "directory %s", len ? w->path : "/");
}

int store_dir_each_temp(struct store *s, store_dir_temp_fn *fn, void *ctx, struct err *err)
{
	struct walk w = {.d = dir_store_of(s), .fn = fn, .ctx = ctx, .err = err};
	return walk_dir(&w, 0, 0);
}

int store_dir_remove_temp(struct store *s, const char *path, struct err *err)
{
	const struct dir_store *d = dir_store_of(s);
	char dir[STORE_KEY_MAX + NAME_MAX + 2];
	const char *slash = strrchr(path, '/');
	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) : 0, path);
	auto_close int fd = dir_open(d, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return err_errno(err, fd, "%s", path);
	if (unlinkat(fd, slash ? slash + 1 : path, 0) && errno != ENOENT)
		return err_errno(err, -errno, "%s", path);
	dir_prune(d, path);
	return 0;
}
