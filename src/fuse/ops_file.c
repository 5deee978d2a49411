/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files. Opening asks the bucket whether the inode's version is still what it holds; if not,
 * the reply is ESTALE, and the kernel looks the name up again, gets the new version's inode and
 * opens that, all within the program's one open(2) (see reopen.h).
 */
#include "ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>
#include <utlist.h>

#include <base/mem.h>

#include "clock.h"
#include "read_ahead.h"
#include "reopen.h"
#include "reply.h"
#include "request.h"
#include "stats_files.h"
#include "watchdog.h"

enum { PAGE_BYTES = 4096 };

struct handle {
	struct engine_file *file; /* NULL: of stats_files.h */
	char *text;		  /* and its text when it was opened */
	size_t len;
	/* Where a read was last cancelled by time, plus 1: there the next one is patient. */
	atomic_uint_fast64_t expired_at;
	struct handle *prev, *next;
};

static struct handle *handle_of(const struct fuse_file_info *fi)
{
	return (struct handle *)(uintptr_t)fi->fh;
}

static struct handle *new_handle(struct session *s, struct engine_file *file)
{
	struct handle *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->file = file;
	pthread_mutex_lock(&s->handles_lock);
	DL_APPEND(s->handles, h);
	pthread_mutex_unlock(&s->handles_lock);
	return h;
}

static void free_handle(struct session *s, struct handle *h)
{
	pthread_mutex_lock(&s->handles_lock);
	DL_DELETE(s->handles, h);
	pthread_mutex_unlock(&s->handles_lock);
	engine_file_close(h->file);
	free(h->text);
	free(h);
}

void ops_file_close_all(struct session *s)
{
	while (s->handles)
		free_handle(s, s->handles);
}

/* The current version of a file. False when the reply is given: the program is being ended. */
static bool open_current(fuse_req_t req, const struct inode_view *view, struct engine_file **out,
			 int *rc, struct err *err)
{
	struct session *s = session_of(req);
	struct request request;
	/* The inode may go before the reply is given. */
	auto_free char *path = strdup(view->path);
	*rc = path ? 0 : err_set(err, -ENOMEM, "out of memory");
	if (!path)
		return true;
	*out = reopen_take(s->requests.reopen, fuse_req_ctx(req)->pid, path, view->st.version,
			   clock_ns());
	if (*out)
		return true;
	if (!request_begin(&request, req, &s->requests))
		return false;
	*rc = engine_file_open(s->engine, path, out, err);
	if (request_claim(&request))
		return true;
	if (*rc == 0)
		engine_file_close(*out);
	return false;
}

/* The inode takes the file when it is its version; another one waits for the kernel to look the
 * name up again. */
static int adopt(struct session *s, pid_t thread, const struct inode_view *view,
		 struct engine_file *file, struct err *err)
{
	struct engine_stat st;
	engine_file_stat(file, &st);
	if (inodes_adopt(s->inodes, view->ino, &st))
		return 0;
	reopen_put(s->requests.reopen, thread, view->path, file, clock_ns());
	return err_set(err, -ESTALE, "%s: has changed", view->path);
}

/* One text for all reads of this open file, past the page cache: the file's size is no promise. */
static void open_stats(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct session *s = session_of(req);
	struct err err = ERR_INIT;
	char *text = NULL;
	size_t len = 0;
	int rc = stats_files_text(s->engine, ino, &text, &len, &err);
	struct handle *h = rc ? NULL : new_handle(s, NULL);
	if (!rc && !h)
		rc = err_set(&err, -ENOMEM, "out of memory");
	if (rc) {
		free(text);
		reply_fail(req, rc, "open", STATS_DIR_NAME, &err);
		return;
	}
	h->text = text;
	h->len = len;
	fi->fh = (uintptr_t)h;
	fi->direct_io = 1;
	fi->noflush = 1;
	if (fuse_reply_open(req, fi) == -ENOENT) /* the kernel gave up waiting */
		free_handle(s, h);
}

void ops_file_stats_attr(fuse_req_t req, fuse_ino_t ino, const struct fuse_file_info *fi)
{
	const struct handle *h = fi && ino != STATS_DIR_INO ? handle_of(fi) : NULL;
	ops_stats_getattr(req, ino, h ? &h->len : NULL);
}

void ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct session *s = session_of(req);
	struct inode_view view;
	struct engine_file *file = NULL;
	struct err err = ERR_INIT;
	if ((fi->flags & O_ACCMODE) != O_RDONLY) {
		fuse_reply_err(req, EROFS);
		return;
	}
	if (stats_files_has(ino)) {
		open_stats(req, ino, fi);
		return;
	}
	if (!inodes_get(s->inodes, ino, &view)) {
		fuse_reply_err(req, ESTALE);
		return;
	}
	if (!atomic_flag_test_and_set(&s->tuned))
		read_ahead_tune(s->opt->mountpoint);
	int rc;
	if (!open_current(req, &view, &file, &rc, &err))
		return;
	if (!rc)
		rc = adopt(s, fuse_req_ctx(req)->pid, &view, file, &err);
	struct handle *h = rc ? NULL : new_handle(s, file);
	if (!rc && !h) {
		engine_file_close(file);
		rc = err_set(&err, -ENOMEM, "out of memory");
	}
	if (rc) {
		reply_fail(req, rc, "open", view.path, &err);
		return;
	}
	fi->fh = (uintptr_t)h;
	fi->keep_cache = engine_file_cacheable(file);
	fi->noflush = 1;
	if (fuse_reply_open(req, fi) == -ENOENT) /* the kernel gave up waiting */
		free_handle(s, h);
}

/* Each thread keeps its buffer: a new one for each MiB would cost as much as the copy. */
static char *buffer_of_thread(struct session *s, size_t size)
{
	struct {
		size_t size;
		char bytes[];
	} *buffer = pthread_getspecific(s->buffer);
	if (buffer && buffer->size >= size)
		return buffer->bytes;
	free(buffer);
	pthread_setspecific(s->buffer, NULL);
	buffer = malloc(sizeof(*buffer) + size);
	if (!buffer)
		return NULL;
	buffer->size = size;
	if (pthread_setspecific(s->buffer, buffer)) {
		free(buffer);
		return NULL;
	}
	return buffer->bytes;
}

/* All that was asked for, or up to the end of the file, or an error: the kernel takes a short
 * reply for the end of the file, and the file for shorter from then on. It asks again
 * for single pages when a longer read fails, so what is good around a damaged place is still read.
 */
static ssize_t read_all(struct engine_file *file, char *buf, size_t size, uint64_t off,
			struct cancel *cancel, struct err *err)
{
	size_t done = 0;
	while (done < size) {
		ssize_t n = engine_pread(file, buf + done, size - done, off + done, cancel, err);
		if (n < 0)
			return n;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* Does a program wait for this very request? Then only an interrupt of the program cancels it.
 * Several pages at once are read ahead by the kernel, unless they are read past its page cache. */
static bool is_patient(const struct handle *h, size_t size, uint64_t off, int flags)
{
	return size <= PAGE_BYTES || flags & O_DIRECT || atomic_load(&h->expired_at) == off + 1;
}

static void cancel_read(void *arg)
{
	cancel_fire(arg);
}

/* Runs under the request's lock, as does setting the function: after fuse_req_interrupt_func()
 * has taken it away it does not run and will not. */
static void interrupt(fuse_req_t req, void *arg)
{
	struct interrupted_request *i = arg;
	if (request_is_cancelled(req, &session_of(req)->requests, i))
		i->cancel(i->arg);
}

/* read_all() until it is cancelled. */
static ssize_t read_until(fuse_req_t req, struct handle *h, char *buf, size_t size, uint64_t off,
			  int flags, struct err *err)
{
	struct session *s = session_of(req);
	struct pending_read read;
	struct interrupted_request interrupted = {.cancel = cancel_read, .arg = &read.cancel};
	if (pending_reads_begin(s->pending_reads, &read, is_patient(h, size, off, flags),
				clock_ns()))
		watchdog_wake(s->requests.watchdog);
	fuse_req_interrupt_func(req, interrupt, &interrupted);
	ssize_t n = read_all(h->file, buf, size, off, &read.cancel, err);
	fuse_req_interrupt_func(req, NULL, NULL);
	interrupted_remove(s->requests.interrupted, &interrupted);
	pending_reads_end(s->pending_reads, &read);
	if (n == -EINTR && read.expired)
		atomic_store(&h->expired_at, off + 1);
	return n;
}

/* From a copy: the program that has the reply may close the file, which frees its text, before this
 * thread is back from the system call that gave it. */
static void read_text(fuse_req_t req, const struct handle *h, char *buf, size_t size, uint64_t off)
{
	off = min_u64(off, h->len);
	size = min_u64(size, h->len - off);
	memcpy(buf, h->text + off, size);
	fuse_reply_buf(req, buf, size);
}

void ops_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct session *s = session_of(req);
	struct inode_view view;
	struct err err = ERR_INIT;
	char *buf = off < 0 ? NULL : buffer_of_thread(s, size);
	if (!buf) {
		fuse_reply_err(req, off < 0 ? EINVAL : ENOMEM);
		return;
	}
	if (handle_of(fi)->text) {
		read_text(req, handle_of(fi), buf, size, (uint64_t)off);
		return;
	}
	ssize_t n = read_until(req, handle_of(fi), buf, size, (uint64_t)off, fi->flags, &err);
	if (n >= 0) {
		fuse_reply_buf(req, buf, (size_t)n);
		return;
	}
	const char *path = inodes_get(s->inodes, ino, &view) ? view.path : "?";
	/* An open is sent on to the new version; a read is not, so the log says why it fails. */
	if (n == -ESTALE)
		log_warning(s->log, "read %s: %s", path, err.msg);
	reply_fail(req, (int)n, "read", path, &err);
}

void ops_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	free_handle(session_of(req), handle_of(fi));
	fuse_reply_err(req, 0);
}

void ops_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi)
{
	const struct handle *h = handle_of(fi);
	int64_t at = -ENXIO;
	if (off >= 0 && h->file)
		at = engine_seek(h->file, (uint64_t)off, whence);
	else if (off >= 0 && (uint64_t)off < h->len)
		at = whence == SEEK_DATA ? off : (int64_t)h->len;
	if (at < 0)
		fuse_reply_err(req, (int)-at);
	else
		fuse_reply_lseek(req, (off_t)at);
}
