/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See external_files.h. A list can name 65,535 files, so no file stays open: each read opens the
 * file again and compares its version.
 */
#include "external_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <base/beneath.h>
#include <base/fd.h>
#include <base/mem.h>

enum { FILES_MAX = 1 << 16 };

struct file {
	const struct external_files *all;
	char *path; /* below the directory */
	struct stat version;
	struct source source;
	struct file *next;
};

struct external_files {
	char *dir; /* absolute, without symbolic links */
	int root;
	bool has_openat2;
	void *by_path; /* of struct file: tsearch(3) */
	struct file *first;
	size_t n;
	struct h5file_external access;
};

static int by_path(const void *a, const void *b)
{
	const struct file *x = a, *y = b;
	return strcmp(x->path, y->path);
}

/* ---- one file ---- */

static bool same_version(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Returns a descriptor or a negative errno. */
static int open_file(const struct file *f, struct stat *st, struct err *err)
{
	const struct external_files *x = f->all;
	/* O_NONBLOCK: a FIFO without a writer must not block the open. */
	auto_close int fd =
		beneath_open(x->root, x->has_openat2, f->path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd == -EXDEV || fd == -ELOOP)
		return err_set(err, -EOPNOTSUPP,
			       "external file %s: a symbolic link leads out of %s", f->path,
			       x->dir);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ENAMETOOLONG || fd == -ENXIO)
		return err_set(err, -EOPNOTSUPP, "external file %s: it does not exist in %s",
			       f->path, x->dir);
	if (fd < 0)
		return err_errno(err, fd, "external file %s/%s", x->dir, f->path);
	if (fstat(fd, st))
		return err_errno(err, -errno, "external file %s/%s", x->dir, f->path);
	if (!S_ISREG(st->st_mode))
		return err_set(err, -EOPNOTSUPP, "external file %s: it is not a regular file",
			       f->path);
	const int opened = fd;
	fd = -1;
	return opened;
}

static int changed(const struct file *f, struct err *err)
{
	return err_set(err, -ESTALE, "external file %s/%s has changed during the import",
		       f->all->dir, f->path);
}

/* Opens a file that was found before, in the same version. */
static int open_again(const struct file *f, struct err *err)
{
	struct stat st;
	const int fd = open_file(f, &st, err);
	if (fd == -EOPNOTSUPP)
		return changed(f, err);
	if (fd >= 0 && !same_version(&st, &f->version)) {
		close(fd);
		return changed(f, err);
	}
	return fd;
}

static int read_at(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	const struct file *f = ctx;
	uint8_t *to = buf;
	auto_close int fd = open_again(f, err);
	if (fd < 0)
		return fd;
	while (n) {
		const ssize_t got = pread(fd, to, n, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(err, -errno, "external file %s/%s", f->all->dir, f->path);
		if (got == 0)
			return changed(f, err);
		to += got;
		offset += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

/* ---- names ---- */

static bool has_parent(const char *path)
{
	for (const char *p = path; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'))
			return true;
	}
	return false;
}

/* Returns the path below the directory, or NULL if the name leads out of it. */
static const char *path_of(const struct external_files *x, const char *name)
{
	const size_t n = strcmp(x->dir, "/") == 0 ? 0 : strlen(x->dir);
	if (*name == '/') {
		if (strncmp(name, x->dir, n) != 0 || name[n] != '/')
			return NULL;
		name += n + strspn(name + n, "/");
	}
	return *name && !has_parent(name) ? name : NULL;
}

/* *out is the caller's until it is added. */
static int find(struct external_files *x, const char *path, struct file **out, struct err *err)
{
	struct file *f = calloc(1, sizeof(*f));
	if (f)
		f->path = strdup(path);
	if (!f || !f->path) {
		free(f);
		return err_no_memory(err);
	}
	f->all = x;
	const int fd = open_file(f, &f->version, err);
	if (fd < 0) {
		free(f->path);
		free(f);
		return fd;
	}
	close(fd);
	f->source =
		(struct source){.size = (uint64_t)f->version.st_size, .read_at = read_at, .ctx = f};
	*out = f;
	return 0;
}

static int add(struct external_files *x, struct file *f, struct err *err)
{
	if (!tsearch(f, &x->by_path, by_path)) {
		free(f->path);
		free(f);
		return err_no_memory(err);
	}
	f->next = x->first;
	x->first = f;
	x->n++;
	return 0;
}

static int open_name(void *ctx, const char *name, struct source **out, struct err *err)
{
	struct external_files *x = ctx;
	struct file key = {0}, *f = NULL;
	const char *path = path_of(x, name);
	if (!path)
		return err_set(err, -EOPNOTSUPP, "external file %s: the path leads out of %s", name,
			       x->dir);
	key.path = (char *)(uintptr_t)path;
	void *const *found = tfind(&key, &x->by_path, by_path);
	if (found) {
		f = *found;
		*out = &f->source;
		return 0;
	}
	if (x->n == FILES_MAX)
		return err_set(err, -EOPNOTSUPP, "more than %d external files", FILES_MAX);
	int rc = find(x, path, &f, err);
	if (!rc)
		rc = add(x, f, err);
	if (!rc)
		*out = &f->source;
	return rc;
}

/* ---- all of them ---- */

int external_files_new(const char *dir, struct external_files **out, struct err *err)
{
	struct external_files *x = calloc(1, sizeof(*x));
	if (!x)
		return err_no_memory(err);
	x->access = (struct h5file_external){.open = open_name, .ctx = x};
	x->root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int rc = x->root < 0 ? -errno : 0;
	if (!rc) {
		x->dir = realpath(dir, NULL);
		rc = x->dir ? 0 : -errno;
	}
	if (rc) {
		external_files_free(x);
		return err_errno(err, rc, "--allow-external: %s", dir);
	}
	x->has_openat2 = beneath_has_openat2(x->root);
	*out = x;
	return 0;
}

static void keep(void *node)
{
	(void)node; /* the list frees it */
}

void external_files_free(struct external_files *x)
{
	if (!x)
		return;
	tdestroy(x->by_path, keep);
	for (struct file *f = x->first, *next; f; f = next) {
		next = f->next;
		free(f->path);
		free(f);
	}
	if (x->root >= 0)
		close(x->root);
	free(x->dir);
	free(x);
}

const struct h5file_external *external_files_access(struct external_files *x)
{
	return &x->access;
}

int external_files_check(const struct external_files *x, struct err *err)
{
	for (const struct file *f = x->first; f; f = f->next) {
		const int fd = open_again(f, err);
		if (fd < 0)
			return fd;
		close(fd);
	}
	return 0;
}
