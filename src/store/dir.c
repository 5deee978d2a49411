/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory as a bucket: a key is a path below it, an object a regular file. Reading.
 *
 * Another program may write an object in place while it is read (HSDS does). So the size comes
 * from the descriptor that is read, and is looked at again behind the last byte: when the file
 * was changed meanwhile, it is read again.
 */
#include "dir.h"

#include "job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

/* What an attempt to read may come to, besides 0 and a negative errno. */
enum { MET_EMPTY = 1, MET_SHRUNK, MET_CHANGED };

enum { TRIES = 3 }; /* of a read that meets a writer */
static const uint64_t pause_ns = 5 * 1000 * 1000;

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

static bool is_json(const char *key)
{
	size_t n = strlen(key);
	return n >= 5 && strcmp(key + n - 5, ".json") == 0;
}

static int check_version(const struct store_get *req, const struct stat *st, struct err *err)
{
	const struct store_cond *cond = &req->cond;
	if (cond->if_match && !dir_same_version(st, cond->if_match))
		return err_set(err, -ESTALE, "object %s: another version", req->key);
	if (cond->if_none_match && dir_same_version(st, cond->if_none_match))
		return err_set(err, -EALREADY, "object %s: still the same version", req->key);
	return 0;
}

/* Reads the asked range of a file that was found as meta says. */
static int read_range(int fd, const struct store_get *req, const struct store_meta *meta,
		      struct bytes *body, struct err *err)
{
	const uint64_t left = req->offset < meta->size ? meta->size - req->offset : 0;
	const uint64_t n = min_u64(req->length, left);
	if (req->max && n > req->max)
		return err_set(err, -EFBIG, "object %s: %" PRIu64 " bytes, at most %" PRIu64,
			       req->key, n, req->max);
	if (n == 0)
		return 0;
	if (n > SIZE_MAX || bytes_reserve(body, (size_t)n))
		return err_set(err, -ENOMEM, "object %s: no memory for %" PRIu64 " bytes", req->key,
			       n);
	while (body->len < n) {
		ssize_t got = pread(fd, body->data + body->len, (size_t)n - body->len,
				    (off_t)(req->offset + body->len));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return dir_fail(err, -errno, req->key);
		if (got == 0)
			return MET_SHRUNK;
		body->len += (size_t)got;
	}
	struct stat now;
	return fstat(fd, &now) == 0 && dir_same_version(&now, meta->etag) ? 0 : MET_CHANGED;
}

/* Opening a socket, or a device without its driver. */
static bool is_special(int code)
{
	return code == -ENXIO || code == -ENODEV;
}

static int attempt(const struct dir_store *d, const struct store_get *req,
		   struct store_get_result *res)
{
	/* O_NONBLOCK: the open of a fifo must not wait for its writer. */
	const int flags = req->op == STORE_HEAD ? O_PATH : O_RDONLY | O_NONBLOCK | O_NOCTTY;
	struct stat st;
	auto_close int fd = dir_open_proved(d, req->key, flags);
	if (fd < 0 && !(is_special(fd) && dir_stat(d, req->key, &st) == 0))
		return dir_fail(&res->err, fd, req->key);
	if (fd >= 0 && fstat(fd, &st))
		return dir_fail(&res->err, -errno, req->key);
	if (S_ISLNK(st.st_mode))
		return dir_fail(&res->err, -ELOOP, req->key);
	if (fd < 0 && S_ISREG(st.st_mode))
		return dir_fail(&res->err, -EIO, req->key);
	if (!S_ISREG(st.st_mode))
		return err_set(&res->err, -ENOENT, "object %s: not a regular file", req->key);
	if (st.st_size == 0 && is_json(req->key))
		return MET_EMPTY;
	dir_meta(&st, &res->meta);
	int rc = check_version(req, &st, &res->err);
	if (rc || req->op == STORE_HEAD)
		return rc;
	return read_range(fd, req, &res->meta, &res->body, &res->err);
}

/* The last attempt still met a writer. */
static int settle(const struct store_get *req, int met, struct err *err)
{
	switch (met) {
	case MET_EMPTY:
		return err_set(err, -ENOENT, "object %s: empty", req->key);
	case MET_SHRUNK:
		return err_set(err, -EIO, "object %s: shrank while it was read", req->key);
	default:
		/* What was read may be of two versions. */
		return err_set(err, -EIO, "object %s: written to each time that it was read",
			       req->key);
	}
}

static void answer(struct store *s, const struct store_get *req)
{
	const struct dir_store *d = dir_store_of(s);
	struct store_get_result res = {0};
	if (dir_reserved(req->key)) {
		job_fail(req, -ENOENT, "object %s: a temporary file", req->key);
		return;
	}
	for (int tries = 1;; tries++) {
		res.code = attempt(d, req, &res);
		if (res.code <= 0)
			break;
		if (tries == TRIES) {
			res.code = settle(req, res.code, &res.err);
			break;
		}
		bytes_release(&res.body);
		s->env->sleep(s->env, pause_ns);
	}
	job_finish(req, &res);
}

static void get(struct store *s, const struct store_get *req)
{
	if (job_submit(s, req, answer))
		job_fail(req, -ENOMEM, "object %s: no memory", req->key);
}

static int space(struct store *s, uint64_t *free_bytes, uint64_t *total_bytes)
{
	struct statvfs v;
	if (fstatvfs(dir_store_of(s)->root, &v))
		return -errno;
	if (!mul_u64(v.f_bavail, v.f_frsize, free_bytes) ||
	    !mul_u64(v.f_blocks, v.f_frsize, total_bytes))
		return -EOVERFLOW;
	return 0;
}

static void free_store(struct store *s)
{
	struct dir_store *d = dir_store_of(s);
	close(d->root);
	free(d);
}

static const struct store_ops dir_ops = {
	.name = "dir",
	.get = get,
	.list = dir_list,
	.put = dir_put,
	.del = dir_del,
	.space = space,
	.free = free_store,
};

struct store *store_dir_new(const struct env *env, const char *path, struct err *err)
{
	auto_close int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0) {
		err_errno(err, -errno, "directory %s", path);
		return NULL;
	}
	struct dir_store *d = calloc(1, sizeof(*d));
	if (!d) {
		err_set(err, -ENOMEM, "directory %s: no memory", path);
		return NULL;
	}
	d->base.ops = &dir_ops;
	d->base.env = env;
	d->beneath = dir_can_stay_beneath(root);
	d->root = root;
	root = -1;
	atomic_init(&d->serial, 0);
	return &d->base;
}
