/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory store: PUT and DELETE.
 *
 * A put writes a temporary file in the object's own directory (dir_temp_file.c), syncs it, and
 * gives it the name of the object. So a reader sees the old object or the new one, also after a
 * crash. A crash leaves at most a temporary file behind, which no listing shows. A deferred put
 * does not sync; see dir_sync.c.
 *
 * A put makes the directories that it needs. A delete, and a put that fails, remove the directories
 * above the object that are empty. So another request may remove a directory between two steps of a
 * put. The put then starts again.
 */
#include "dir.h"

#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

enum { WRITE_EARLY = 256 << 10, READ_SIZE = 1 << 20, START_EVERY = 8 << 20 /* bytes */ };

/* A result of an attempt besides 0 and a negative errno: the answer's err has the code. */
enum { BODY_FAILED = 1 };

/* Makes the missing directories of a path, which is changed while the function runs. 0 or a
 * negative errno. */
static int make_missing(const struct dir_store *d, char *path, bool deferred)
{
	char *name = path;
	auto_close int at = dir_open(d, "", O_RDONLY | O_DIRECTORY);
	while (at >= 0) {
		char *slash = strchr(name, '/');
		if (slash)
			*slash = '\0';
		if (mkdirat(at, name, 0777) == 0) {
			if (!deferred && fsync(at))
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

static int make_dirs(struct dir_store *d, char *path, bool deferred)
{
	if (deferred) {
		atomic_fetch_add(&d->made, 1);
		return make_missing(d, path, true);
	}
	atomic_fetch_add(&d->making, 1);
	const int rc = make_missing(d, path, false);
	atomic_fetch_sub(&d->making, 1);
	return rc;
}

int dir_sync_above(const struct dir_store *d, const char *key)
{
	char path[STORE_KEY_MAX + 1], above[STORE_KEY_MAX + 1];
	if (atomic_load(&d->making) == 0 && atomic_load(&d->made) == atomic_load(&d->synced))
		return 0;
	dir_split(key, path);
	while (path[0]) {
		dir_split(path, above);
		auto_close int fd = dir_open(d, above, O_RDONLY | O_DIRECTORY);
		if (fd == -ENOENT) /* the object has been deleted meanwhile */
			return 0;
		if (fd < 0 || fsync(fd))
			return fd < 0 ? fd : -errno;
		strcpy(path, above);
	}
	return 0;
}

int dir_open_parent(struct dir_store *d, char *dir, bool deferred)
{
	int fd = dir_open(d, dir, O_RDONLY | O_DIRECTORY);
	if (fd != -ENOENT || dir[0] == '\0')
		return fd;
	int rc = make_dirs(d, dir, deferred);
	return rc ? rc : dir_open(d, dir, O_RDONLY | O_DIRECTORY);
}

static int write_piece(int fd, const uint8_t *p, size_t n)
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
	return 0;
}

/* The disk begins to write a large file before all of it is there. */
static int write_source(int fd, struct store_request *req)
{
	const uint64_t size = store_body_size(req);
	auto_free uint8_t *buf = malloc((size_t)min_u64(READ_SIZE, size) + 1);
	uint64_t started = 0;
	int rc = buf ? 0 : -ENOMEM;
	for (uint64_t at = 0; rc == 0 && at < size;) {
		const size_t n = (size_t)min_u64(READ_SIZE, size - at);
		if (store_body_read(req, at, buf, n))
			return BODY_FAILED;
		rc = write_piece(fd, buf, n);
		at += n;
		if (at - started >= START_EVERY) {
			sync_file_range(fd, (off_t)started, START_EVERY, SYNC_FILE_RANGE_WRITE);
			started = at;
		}
	}
	return rc;
}

static int write_all(int fd, struct store_request *req)
{
	int rc = 0;
	if (store_has_source(req))
		return write_source(fd, req);
	for (size_t i = 0; rc == 0 && i < req->n_pieces; i++)
		rc = write_piece(fd, req->pieces[i].data, req->pieces[i].n);
	return rc;
}

/* The object is worth more than its note. */
static void write_note(const struct dir_store *d, int fd, const struct store_request *req)
{
	struct err err = ERR_INIT;
	if (!req->note || fsetxattr(fd, DIR_NOTE, req->note, strlen(req->note), 0) == 0 ||
	    errno == EOPNOTSUPP)
		return;
	err_errno(&err, -errno, "object %s: it is stored without the attribute " DIR_NOTE,
		  req->key);
	log_warning(d->base.env->log, "%s", err.msg);
}

/* Returns -EEXIST, or -EISDIR if a directory has the name. */
static int occupied(int parent, const char *name)
{
	struct stat st;
	return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)
		       ? -EISDIR
		       : -EEXIST;
}

static int place(struct dir_store *d, struct dir_temp *t, const char *key, const char *name,
		 const struct store_cond *cond)
{
	if (cond->if_none_match) {
		const int rc = dir_temp_add(t, name);
		return rc == -EEXIST ? occupied(t->parent, name) : rc;
	}
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
	return dir_temp_replace(d, t, name);
}

/* Returns true if dir_sync() makes the put durable. */
static bool may_defer(const struct dir_store *d, const struct store_request *req, int parent)
{
	struct stat st;
	return req->deferred && d->sync >= 0 && fstat(parent, &st) == 0 && st.st_dev == d->device;
}

/* Writes the file of an object. */
static int fill(struct dir_store *d, int fd, struct store_request *req, bool deferred)
{
	int rc = write_all(fd, req);
	if (rc == 0)
		write_note(d, fd, req);
	if (rc == 0)
		rc = dir_mark_write(d, fd, req->mark);
	if (rc == 0 && !deferred && fsync(fd))
		rc = -errno;
	/* The disk begins to write large files now, instead of with dir_sync(). */
	if (rc == 0 && deferred && store_body_size(req) >= WRITE_EARLY)
		sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	return rc;
}

static int put_once(struct dir_store *d, struct store_request *req)
{
	char dir[STORE_KEY_MAX + 1];
	const char *name = dir_split(req->key, dir);
	auto_close int parent = dir_open_parent(d, dir, req->deferred && d->sync >= 0);
	if (parent < 0)
		return parent;
	__attribute__((cleanup(dir_temp_close))) struct dir_temp t = {.fd = -1};
	const bool deferred = may_defer(d, req, parent);
	int rc = dir_temp_open(d, parent, &t);
	if (rc == 0)
		rc = fill(d, t.fd, req, deferred);
	if (rc == 0)
		rc = place(d, &t, req->key, name, &req->cond);
	if (rc)
		return rc;
	if (!deferred && fsync(parent))
		return -errno;
	if (!deferred)
		rc = dir_sync_above(d, req->key);
	if (rc)
		return rc;
	/* At the end, because a rename changes the time of the last status change. */
	struct stat st;
	if (fstat(t.fd, &st))
		return -errno;
	dir_meta(&st, &req->answer.meta);
	return 0;
}

/* The directories next to the key may not exist. */
void dir_prune(const struct dir_store *d, const char *key)
{
	char path[STORE_KEY_MAX + 1], above[STORE_KEY_MAX + 1];
	const size_t kept = d->kept ? strlen(d->kept) - 1 : 0;
	dir_split(key, path);
	while (path[0] && !(strlen(path) == kept && strncmp(path, d->kept, kept) == 0)) {
		const char *name = dir_split(path, above);
		auto_close int fd = dir_open(d, above, O_PATH | O_DIRECTORY);
		const int rc = fd < 0 ? fd : unlinkat(fd, name, AT_REMOVEDIR) ? -errno : 0;
		if (rc && rc != -ENOENT)
			return;
		strcpy(path, above);
	}
}

/* This descriptor is not the one of dir_sync(), which has to see the errors of the deferred puts
 * itself. */
bool dir_find_room(const struct dir_store *d)
{
	auto_close int fd = dir_open(d, "", O_RDONLY | O_DIRECTORY);
	return fd >= 0 && syncfs(fd) == 0;
}

int dir_put(struct dir_store *d, struct store_request *req)
{
	struct err *err = &req->answer.err;
	int rc = -ENOENT;
	bool was_full = false;
	if (dir_reserved(req->key))
		return err_set(err, -EINVAL,
			       "object %s: names that begin with " DIR_TEMP_PREFIX " are reserved",
			       req->key);
	for (int tries = 0; tries < DIR_ATTEMPTS; tries++) {
		rc = put_once(d, req);
		const bool full = rc == -ENOSPC && !was_full;
		was_full = was_full || full;
		if (rc != -ENOENT && !(full && dir_find_room(d)))
			break;
	}
	struct stat st;
	if ((rc == -EEXIST || rc == -ESTALE) && dir_mark_is(d, req->key, req->mark, &st)) {
		dir_meta(&st, &req->answer.meta);
		return 0;
	}
	/* The directories that it has made take room, which may be what was missing. */
	if (rc)
		dir_prune(d, req->key);
	switch (rc) {
	case 0:
		return 0;
	case BODY_FAILED:
		return err->code;
	case -ESTALE:
		return err_set(err, rc, "object %s: it has another version", req->key);
	case -EEXIST:
		return err_set(err, rc, "object %s: it exists already", req->key);
	case -ENOTDIR:
	case -EISDIR:
	case -ENAMETOOLONG:
		/* S3 could store this key, a directory cannot. */
		return err_errno(err, rc, "object %s", req->key);
	default:
		return dir_fail(err, rc, req->key);
	}
}

int dir_delete(struct dir_store *d, struct store_request *req, struct err *err)
{
	const char *key = req->key;
	char dir[STORE_KEY_MAX + 1];
	struct stat st;
	bool *was_absent = &req->answer.was_absent;
	*was_absent = req->cond.if_match && dir_reserved(key);
	if (dir_reserved(key))
		return 0;
	auto_close int fd = dir_open_proved(d, key, O_PATH);
	*was_absent = req->cond.if_match && fd == -ENOENT;
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return dir_fail(err, fd, key);
	if (fstat(fd, &st))
		return dir_fail(err, -errno, key);
	*was_absent = req->cond.if_match && !S_ISREG(st.st_mode);
	if (!S_ISREG(st.st_mode))
		return 0;
	if (req->cond.if_match && !dir_same_version(&st, req->cond.if_match))
		return err_set(err, -ESTALE, "object %s: it has another version", key);
	const char *name = dir_split(key, dir);
	auto_close int parent = dir_open(d, dir, O_PATH | O_DIRECTORY);
	if (parent < 0)
		return dir_fail(err, parent, key);
	if (unlinkat(parent, name, 0) && errno != ENOENT)
		return dir_fail(err, -errno, key);
	dir_prune(d, key);
	return 0;
}
