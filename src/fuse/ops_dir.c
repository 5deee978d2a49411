/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories. An open directory holds a copy of its listing. The copy is made when a program
 * begins to read the directory, and again when the program rewinds it. Offset i + 1 is the position
 * after entry i. The directory's lock serialises threads that read the same handle. It is held
 * while the bucket is listed; no other code takes it.
 */
#include "ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include <base/mem.h>

#include "reply.h"
#include "kernel_request.h"
#include "stats_files.h"

#define NO_INO 0xffffffffU /* libfuse's number for an unknown inode */

enum { READDIR_MAX = 1 << 20 /* bytes of one reply */ };

struct dir_entry {
	char *name;
	mode_t type;
};

struct dir {
	atomic_uint refs; /* one for the kernel's handle, and one for each running fill() */
	pthread_mutex_t lock;
	struct dir_entry *entries;
	size_t n;
	bool is_root; /* the root of the mount */
	bool filled;
	struct dir *prev, *next; /* in session->dirs */
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
	struct dir_entry *entries = array_grow(d->entries, d->n, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	d->entries = entries;
	char *copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	d->entries[d->n++] = (struct dir_entry){.name = copy, .type = type};
	return 0;
}

static int add_listed(void *arg, const char *name, enum engine_kind kind)
{
	const struct dir *d = arg;
	/* The directory of stats_files.h hides an entry of the bucket with this name. */
	if (d->is_root && strcmp(name, STATS_DIR_NAME) == 0)
		return 0;
	return add_entry(arg, name, kind == ENGINE_DIR ? S_IFDIR : S_IFREG);
}

static int fill_locked(struct session *s, struct dir *d, fuse_ino_t ino, const char *path,
		       struct err *err)
{
	const bool is_own = stats_files_has(ino);
	const char *name;
	clear_locked(d);
	d->is_root = ino == INODES_ROOT;
	int rc = add_entry(d, ".", S_IFDIR);
	if (!rc)
		rc = add_entry(d, "..", S_IFDIR);
	for (size_t i = 0; !rc && is_own && (name = stats_files_name(i)); i++)
		rc = add_entry(d, name, S_IFREG);
	if (rc)
		return err_no_memory(err);
	if (!is_own)
		rc = engine_list(s->engine, path, add_listed, d, err);
	d->filled = rc == 0;
	return rc;
}

static struct dir *new_dir(struct session *s)
{
	struct dir *d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	atomic_init(&d->refs, 1);
	pthread_mutex_init(&d->lock, NULL);
	pthread_mutex_lock(&s->handles_lock);
	DL_APPEND(s->dirs, d);
	pthread_mutex_unlock(&s->handles_lock);
	return d;
}

static void unref_dir(struct session *s, struct dir *d)
{
	if (atomic_fetch_sub(&d->refs, 1) > 1)
		return;
	pthread_mutex_lock(&s->handles_lock);
	DL_DELETE(s->dirs, d);
	pthread_mutex_unlock(&s->handles_lock);
	clear_locked(d);
	free(d->entries);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

void ops_dir_close_all(struct session *s)
{
	while (s->dirs)
		unref_dir(s, s->dirs);
}

/* Checks that the daemon is permitted to list the directory. Returns false if the kernel has got
 * its reply. */
static bool may_open(fuse_req_t req, fuse_ino_t ino)
{
	struct session *s = session_of(req);
	auto_inode struct inode_view view = {0};
	struct request request;
	struct err err = ERR_INIT;
	if (stats_files_has(ino))
		return true;
	if (!reply_get_inode(req, ino, &view))
		return false;
	request_begin(s->requests, &request, req, 0);
	int rc = engine_check_dir(s->engine, view.path, &err);
	if (!request_end(&request))
		return false;
	if (rc)
		reply_fail(req, rc, "open", view.path, &err);
	return rc == 0;
}

void ops_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct session *s = session_of(req);
	if (!may_open(req, ino))
		return;
	struct dir *d = new_dir(s);
	if (!d) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	fi->fh = (uintptr_t)d;
	if (fuse_reply_open(req, fi) == -ENOENT) /* the kernel has dropped the request */
		unref_dir(s, d);
}

/* Lists the directory if a program begins to read it. Returns false if the kernel has got the reply
 * EINTR and may have closed the directory. */
static bool fill(fuse_req_t req, struct dir *d, fuse_ino_t ino, off_t off, const char *path,
		 int *rc, struct err *err)
{
	struct session *s = session_of(req);
	struct request request;
	*rc = 0;
	atomic_fetch_add(&d->refs, 1);
	request_begin(s->requests, &request, req, 0);
	pthread_mutex_lock(&d->lock);
	if (off == 0 || !d->filled)
		*rc = fill_locked(s, d, ino, path, err);
	pthread_mutex_unlock(&d->lock);
	const bool replies = request_end(&request);
	unref_dir(s, d);
	return replies;
}

void ops_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct dir *d = dir_of(fi);
	auto_inode struct inode_view view = {0};
	struct err err = ERR_INIT;
	size_t room = size < READDIR_MAX ? size : READDIR_MAX, used = 0;
	auto_free char *buf = malloc(room ? room : 1);
	int rc;
	if (!buf || off < 0) {
		fuse_reply_err(req, buf ? EINVAL : ENOMEM);
		return;
	}
	if (!stats_files_has(ino) && !reply_get_inode(req, ino, &view))
		return;
	if (!fill(req, d, ino, off, view.path, &rc, &err))
		return;
	if (rc) {
		reply_fail(req, rc, "list", view.path ? view.path : STATS_DIR_NAME, &err);
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
	unref_dir(session_of(req), dir_of(fi));
	fuse_reply_err(req, 0);
}
