/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories. An open directory is a copy of its listing, taken when reading begins (and again
 * when a program rewinds); offset i + 1 is behind entry i. Its lock is for programs that read one
 * directory handle in several threads; it is held while the bucket is asked, and nobody else takes
 * it.
 */
#include "request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include <base/mem.h>

#include "stats_files.h"

#define NO_INO 0xffffffffU /* libfuse's word for "not known here" */

enum { READDIR_MAX = 1 << 20 /* bytes of one answer */ };

struct dir_entry {
	char *name;
	mode_t type;
};

struct dir {
	atomic_uint refs; /* the kernel's, and one for each listing under way */
	pthread_mutex_t lock;
	struct dir_entry *entries;
	size_t n, cap;
	bool is_root; /* of the mount */
	bool filled;
	struct dir *prev, *next; /* in front->dirs */
};

static struct dir *dir_of(const struct fuse_file_info *fi)
{
	return (struct dir *)(uintptr_t)fi->fh;
}

static void clear_locked(struct dir *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->entries[i].name);
	d->n = 0;
	d->filled = false;
}

static int add_entry(struct dir *d, const char *name, mode_t type)
{
	if (d->n == d->cap) {
		size_t cap = d->cap ? d->cap * 2 : 64;
		struct dir_entry *entries = reallocarray(d->entries, cap, sizeof(*entries));
		if (!entries)
			return -ENOMEM;
		d->entries = entries;
		d->cap = cap;
	}
	char *copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	d->entries[d->n++] = (struct dir_entry){.name = copy, .type = type};
	return 0;
}

static int add_listed(void *arg, const char *name, enum engine_kind kind)
{
	const struct dir *d = arg;
	/* What a bucket has under this name cannot be reached. */
	if (d->is_root && strcmp(name, CONTROL_NAME) == 0)
		return 0;
	return add_entry(arg, name, kind == ENGINE_DIR ? S_IFDIR : S_IFREG);
}

static int add_control_files(struct dir *d, struct err *err)
{
	const char *name;
	for (size_t i = 0; (name = control_name(i)); i++)
		if (add_entry(d, name, S_IFREG))
			return err_set(err, -ENOMEM, "no memory");
	return 0;
}

static int fill_locked(struct front *f, struct dir *d, fuse_ino_t ino, const char *path,
		       struct err *err)
{
	clear_locked(d);
	d->is_root = ino == INODES_ROOT;
	int rc = add_entry(d, ".", S_IFDIR);
	if (!rc)
		rc = add_entry(d, "..", S_IFDIR);
	if (rc)
		return err_set(err, rc, "no memory");
	rc = control_has(ino) ? add_control_files(d, err)
			      : engine_list(f->engine, path, add_listed, d, err);
	d->filled = rc == 0;
	return rc;
}

static struct dir *new_dir(struct front *f)
{
	struct dir *d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	atomic_init(&d->refs, 1);
	pthread_mutex_init(&d->lock, NULL);
	pthread_mutex_lock(&f->handles_lock);
	DL_APPEND(f->dirs, d);
	pthread_mutex_unlock(&f->handles_lock);
	return d;
}

static void unref_dir(struct front *f, struct dir *d)
{
	if (atomic_fetch_sub(&d->refs, 1) > 1)
		return;
	pthread_mutex_lock(&f->handles_lock);
	DL_DELETE(f->dirs, d);
	pthread_mutex_unlock(&f->handles_lock);
	clear_locked(d);
	free(d->entries);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

void front_close_dirs(struct front *f)
{
	while (f->dirs)
		unref_dir(f, f->dirs);
}

/* A directory that nobody may look into says so when it is opened. False when the request is
 * answered. */
static bool may_open(fuse_req_t req, fuse_ino_t ino)
{
	struct front *f = front_of(req);
	struct inode_view view;
	struct answer answer;
	struct err err = ERR_INIT;
	if (control_has(ino) || !inodes_get(f->inodes, ino, &view))
		return true;
	auto_free char *path = strdup(view.path); /* the kernel may forget the inode */
	if (!path) {
		fuse_reply_err(req, ENOMEM);
		return false;
	}
	if (!answer_begin(&answer, req))
		return false;
	int rc = engine_check_dir(f->engine, path, &err);
	if (!answer_claim(&answer))
		return false;
	if (rc)
		front_fail(req, rc, "open", path, &err);
	return rc == 0;
}

void ops_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct front *f = front_of(req);
	if (!may_open(req, ino))
		return;
	struct dir *d = new_dir(f);
	if (!d) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	fi->fh = (uintptr_t)d;
	if (fuse_reply_open(req, fi) == -ENOENT) /* the kernel gave up waiting */
		unref_dir(f, d);
}

/* The listing, when reading begins. False when the request is answered: nobody waits for it. */
static bool fill(fuse_req_t req, struct dir *d, fuse_ino_t ino, off_t off, const char *dir_path,
		 int *rc, struct err *err)
{
	struct front *f = front_of(req);
	struct answer answer;
	/* The kernel may close the directory before the answer comes. */
	auto_free char *path = strdup(dir_path);
	*rc = path ? 0 : err_set(err, -ENOMEM, "no memory");
	if (!path)
		return true;
	atomic_fetch_add(&d->refs, 1);
	if (!answer_begin(&answer, req)) {
		unref_dir(f, d);
		return false;
	}
	pthread_mutex_lock(&d->lock);
	if (off == 0 || !d->filled)
		*rc = fill_locked(f, d, ino, path, err);
	pthread_mutex_unlock(&d->lock);
	const bool ours = answer_claim(&answer);
	unref_dir(f, d);
	return ours;
}

void ops_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct front *f = front_of(req);
	struct dir *d = dir_of(fi);
	struct inode_view view = {.path = CONTROL_NAME};
	struct err err = ERR_INIT;
	size_t room = size < READDIR_MAX ? size : READDIR_MAX, used = 0;
	auto_free char *buf = malloc(room ? room : 1);
	int rc;
	if (!buf || off < 0 || (!control_has(ino) && !inodes_get(f->inodes, ino, &view))) {
		fuse_reply_err(req, buf ? EINVAL : ENOMEM);
		return;
	}
	if (!fill(req, d, ino, off, view.path, &rc, &err))
		return;
	if (rc) {
		front_fail(req, rc, "list", view.path, &err);
		return;
	}
	pthread_mutex_lock(&d->lock);
	for (size_t i = (size_t)off; i < d->n; i++) {
		const struct stat st = {.st_ino = NO_INO, .st_mode = d->entries[i].type};
		size_t n = fuse_add_direntry(req, buf + used, room - used, d->entries[i].name, &st,
					     (off_t)i + 1);
		if (n > room - used)
			break;
		used += n;
	}
	pthread_mutex_unlock(&d->lock);
	fuse_reply_buf(req, buf, used);
}

void ops_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	unref_dir(front_of(req), dir_of(fi));
	fuse_reply_err(req, 0);
}
