/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory store: a key is a path below the directory, an object is a regular file. This file
 * has the constructor, GET and HEAD.
 *
 * Another program may write an object in place while the store reads it; HSDS does. Therefore the
 * store compares the version of the open file before and after it reads. If the file has changed
 * meanwhile, the store reads it again.
 */
#include "dir.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include <base/beneath.h>

/* Results of an attempt to read, besides 0 and a negative errno. All but the first mean that
 * another program may be writing the file. */
enum { IS_ABSENT = 1, IS_EMPTY, HAS_SHRUNK, HAS_CHANGED };

enum { ATTEMPTS = 3 };
static const uint64_t pause_ns = 5 * 1000 * 1000;

static bool is_json(const char *key)
{
	size_t n = strlen(key);
	return n >= 5 && strcmp(key + n - 5, ".json") == 0;
}

static int check_version(struct store_request *req, const struct stat *st)
{
	const struct store_cond *cond = &req->cond;
	struct store_answer *a = &req->answer;
	if (cond->if_match && !dir_same_version(st, cond->if_match))
		return err_set(&a->err, -ESTALE, "object %s: it has another version", req->key);
	a->unchanged = cond->if_none_match && dir_same_version(st, cond->if_none_match);
	return 0;
}

/* Reads the range. The answer's meta is the version of the file when it was opened. */
static int read_range(int fd, struct store_request *req)
{
	struct store_answer *a = &req->answer;
	struct bytes *body = &a->body;
	uint64_t first;
	const uint64_t n = store_range_clip(&req->range, a->meta.size, &first);
	if (req->max && n > req->max)
		return err_set(&a->err, -EFBIG,
			       "object %s: %" PRIu64 " bytes, the limit is %" PRIu64, req->key, n,
			       req->max);
	if (n == 0)
		return 0;
	if (n > SIZE_MAX || bytes_reserve(body, (size_t)n))
		return err_set(&a->err, -ENOMEM, "object %s: out of memory for %" PRIu64 " bytes",
			       req->key, n);
	while (body->len < n) {
		ssize_t got = pread(fd, body->data + body->len, (size_t)n - body->len,
				    (off_t)(first + body->len));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return dir_fail(&a->err, -errno, req->key);
		if (got == 0)
			return HAS_SHRUNK;
		body->len += (size_t)got;
	}
	struct stat now;
	return fstat(fd, &now) == 0 && dir_same_version(&now, a->meta.etag) ? 0 : HAS_CHANGED;
}

/* An attribute that is too long for the buffer is no note. */
static int read_note(int fd, struct store_request *req)
{
	char text[STORE_NOTE_MAX + 1];
	ssize_t n = fgetxattr(fd, DIR_NOTE, text, sizeof(text));
	if (n < 0 && errno != ENODATA && errno != EOPNOTSUPP && errno != ERANGE)
		return dir_fail(&req->answer.err, -errno, req->key);
	store_answer_note(req, text, n < 0 ? 0 : (size_t)n);
	return 0;
}

static int read_mark(int fd, const struct stat *st, struct store_request *req)
{
	char text[STORE_MARK_MAX + 1];
	const int rc = dir_mark_read(fd, st, text);
	if (rc)
		return dir_fail(&req->answer.err, rc, req->key);
	store_answer_mark(req, text, strlen(text));
	return 0;
}

static int attempt(const struct dir_store *d, struct store_request *req)
{
	/* O_NONBLOCK: opening a FIFO must not block until a writer opens it. */
	const bool is_path = req->op == STORE_HEAD && !req->wants_note && !req->wants_mark;
	const int flags = is_path ? O_PATH : O_RDONLY | O_NONBLOCK | O_NOCTTY;
	struct store_answer *a = &req->answer;
	struct stat st;
	auto_close int fd = dir_open_proved(d, req->key, flags);
	if (fd == -ENOENT)
		return IS_ABSENT;
	/* The errors of opening a socket, or a device without a driver. */
	const bool is_special = fd == -ENXIO || fd == -ENODEV;
	if (fd < 0 && !(is_special && dir_stat(d, req->key, &st) == 0))
		return dir_fail(&a->err, fd, req->key);
	if (fd >= 0 && fstat(fd, &st))
		return dir_fail(&a->err, -errno, req->key);
	if (S_ISLNK(st.st_mode))
		return dir_fail(&a->err, -ELOOP, req->key);
	if (fd < 0 && S_ISREG(st.st_mode))
		return dir_fail(&a->err, -EIO, req->key);
	if (!S_ISREG(st.st_mode))
		return IS_ABSENT;
	dir_meta(&st, &a->meta);
	int rc = check_version(req, &st);
	if (rc || a->unchanged)
		return rc;
	if (req->wants_note)
		rc = read_note(fd, req);
	if (rc == 0 && req->wants_mark)
		rc = read_mark(fd, &st, req);
	if (rc)
		return rc;
	if (st.st_size == 0 && is_json(req->key))
		return IS_EMPTY;
	return req->op == STORE_HEAD ? 0 : read_range(fd, req);
}

/* Returns the result of the last attempt. */
static int last_result(const struct store_request *req, int result, struct err *err)
{
	switch (result) {
	case IS_EMPTY:
		return 0; /* the object is empty; the caller knows what an empty document means */
	case HAS_SHRUNK:
		return err_set(err, -EIO, "object %s: it shrank while it was read", req->key);
	default:
		return err_set(err, -EIO, "object %s: it changed during each attempt to read it",
			       req->key);
	}
}

static int get(struct dir_store *d, struct store_request *req)
{
	const struct env *env = d->base.env;
	if (dir_reserved(req->key))
		return IS_ABSENT;
	for (int n = 1;; n++) {
		const int rc = attempt(d, req);
		if (rc <= IS_ABSENT)
			return rc;
		if (n == ATTEMPTS)
			return last_result(req, rc, &req->answer.err);
		store_answer_clear(req);
		env->sleep(env, pause_ns);
	}
}

static void answer(void *arg)
{
	struct store_request *req = arg;
	struct store *s = store_working(req);
	struct dir_store *d = dir_store_of(s);
	int rc;
	switch (req->op) {
	case STORE_LIST:
		rc = dir_list(d, req);
		break;
	case STORE_PUT:
		rc = dir_put(d, req);
		break;
	case STORE_DELETE:
		rc = store_key_is_marker(req->key) ? 0 : dir_delete(d, req, &req->answer.err);
		rc = rc == 0 ? IS_ABSENT : rc;
		break;
	default:
		rc = get(d, req);
	}
	if (rc == IS_ABSENT)
		store_absent(s, req, STORE_BY_DIRECTORY);
	else if (rc)
		store_fail(s, req, rc, NULL);
	else
		store_present(s, req);
}

static void submit(struct store *s, struct store_request *req)
{
	if (store_has_source(req))
		store_work_apart(s, req, answer);
	else
		store_work(s, req, answer);
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

static const char *life(struct store *s)
{
	const struct dir_store *d = dir_store_of(s);
	return d->sync >= 0 ? d->boot : "";
}

static void free_store(struct store *s)
{
	struct dir_store *d = dir_store_of(s);
	if (d->sync >= 0)
		close(d->sync);
	close(d->root);
	free(d);
}

static const struct store_ops dir_ops = {
	.name = "dir",
	.submit = submit,
	.space = space,
	.sync = dir_sync,
	.life = life,
	.keeps_marks = dir_keeps_marks,
	.move = dir_move,
	.free = free_store,
};

void store_dir_sweep(struct store *s)
{
	dir_store_of(s)->sweeps = true;
}

void store_dir_keep(struct store *s, const char *dir)
{
	dir_store_of(s)->kept = dir;
}

/* Reads a text that the kernel chooses whenever the machine is started. */
static void read_boot_id(char text[DIR_BOOT_MAX])
{
	auto_close int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, text, DIR_BOOT_MAX - 1);
	text[n > 0 ? n : 0] = '\0';
	text[strspn(text, "0123456789abcdef-")] = '\0';
}

struct store *store_dir_new(const struct env *env, const char *path, struct err *err)
{
	auto_close int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0) {
		err_errno(err, -errno, "directory %s", path);
		return NULL;
	}
	struct dir_store *d = calloc(1, sizeof(*d));
	if (!d) {
		err_set(err, -ENOMEM, "directory %s: out of memory", path);
		return NULL;
	}
	store_init(&d->base, &dir_ops, env, 0);
	d->beneath = beneath_has_openat2(root);
	d->root = root;
	root = -1;
	read_boot_id(d->boot);
	d->has_proc = access("/proc/self/fd", X_OK) == 0;
	dir_sync_init(d, path);
	dir_mark_init(d, path);
	return &d->base;
}
