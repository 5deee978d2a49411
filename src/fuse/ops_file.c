/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files. Opening asks the bucket whether the inode's version is still what it holds; if not,
 * the answer is ESTALE, and the kernel looks the name up again, gets the new version's inode and
 * opens that, all within the program's one open(2) (see reopen.h).
 */
#include "request.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>
#include <utlist.h>

#include <base/mem.h>

#include "stats_files.h"

enum { PAGE_BYTES = 4096 };

struct handle {
	struct engine_file *file; /* NULL: of the control directory */
	char *text;		  /* and what it said when it was opened */
	size_t len;
	/* Where a read was last called off by time, plus 1: there the next one is patient. */
	atomic_uint_fast64_t called_off;
	struct handle *prev, *next;
};

static struct handle *handle_of(const struct fuse_file_info *fi)
{
	return (struct handle *)(uintptr_t)fi->fh;
}

static struct handle *new_handle(struct front *f, struct engine_file *file)
{
	struct handle *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->file = file;
	pthread_mutex_lock(&f->handles_lock);
	DL_APPEND(f->handles, h);
	pthread_mutex_unlock(&f->handles_lock);
	return h;
}

static void free_handle(struct front *f, struct handle *h)
{
	pthread_mutex_lock(&f->handles_lock);
	DL_DELETE(f->handles, h);
	pthread_mutex_unlock(&f->handles_lock);
	engine_file_close(h->file);
	free(h->text);
	free(h);
}

void front_close_handles(struct front *f)
{
	while (f->handles)
		free_handle(f, f->handles);
}

/* The current version of a file. False when the request is answered: nobody waits for it any more.
 */
static bool open_current(fuse_req_t req, const struct inode_view *view, struct engine_file **out,
			 int *rc, struct err *err)
{
	struct front *f = front_of(req);
	struct answer answer;
	/* The inode may go before the answer comes. */
	auto_free char *path = strdup(view->path);
	*rc = path ? 0 : err_set(err, -ENOMEM, "no memory");
	if (!path)
		return true;
	*out = parked_take(f->parked, fuse_req_ctx(req)->pid, path, view->st.version, front_now());
	if (*out)
		return true;
	if (!answer_begin(&answer, req))
		return false;
	*rc = engine_file_open(f->engine, path, out, err);
	if (answer_claim(&answer))
		return true;
	if (*rc == 0)
		engine_file_close(*out);
	return false;
}

/* The inode takes the file when it is its version; another one waits for the kernel to look the
 * name up again. */
static int adopt(struct front *f, pid_t thread, const struct inode_view *view,
		 struct engine_file *file, struct err *err)
{
	struct engine_stat st;
	engine_file_stat(file, &st);
	if (inodes_adopt(f->inodes, view->ino, &st))
		return 0;
	parked_put(f->parked, thread, view->path, file, front_now());
	return err_set(err, -ESTALE, "%s: has changed", view->path);
}

/* One text for all reads of this open file, past the page cache: the file's size is no promise. */
static void open_control(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct front *f = front_of(req);
	struct err err = ERR_INIT;
	char *text = NULL;
	size_t len = 0;
	int rc = control_text(f->engine, ino, &text, &len, &err);
	struct handle *h = rc ? NULL : new_handle(f, NULL);
	if (!rc && !h)
		rc = err_set(&err, -ENOMEM, "no memory");
	if (rc) {
		free(text);
		front_fail(req, rc, "open", CONTROL_NAME, &err);
		return;
	}
	h->text = text;
	h->len = len;
	fi->fh = (uintptr_t)h;
	fi->direct_io = 1;
	fi->noflush = 1;
	if (fuse_reply_open(req, fi) == -ENOENT) /* the kernel gave up waiting */
		free_handle(f, h);
}

void front_control_attr(fuse_req_t req, fuse_ino_t ino, const struct fuse_file_info *fi)
{
	const struct handle *h = fi && ino != CONTROL_INO ? handle_of(fi) : NULL;
	ops_control_getattr(req, ino, h ? &h->len : NULL);
}

void ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct front *f = front_of(req);
	struct inode_view view;
	struct engine_file *file = NULL;
	struct err err = ERR_INIT;
	if ((fi->flags & O_ACCMODE) != O_RDONLY) {
		fuse_reply_err(req, EROFS);
		return;
	}
	if (control_has(ino)) {
		open_control(req, ino, fi);
		return;
	}
	if (!inodes_get(f->inodes, ino, &view)) {
		fuse_reply_err(req, ESTALE);
		return;
	}
	if (!atomic_flag_test_and_set(&f->tuned))
		front_tune_read_ahead(f->opt->mountpoint);
	int rc;
	if (!open_current(req, &view, &file, &rc, &err))
		return;
	if (!rc)
		rc = adopt(f, fuse_req_ctx(req)->pid, &view, file, &err);
	struct handle *h = rc ? NULL : new_handle(f, file);
	if (!rc && !h) {
		engine_file_close(file);
		rc = err_set(&err, -ENOMEM, "no memory");
	}
	if (rc) {
		front_fail(req, rc, "open", view.path, &err);
		return;
	}
	fi->fh = (uintptr_t)h;
	fi->keep_cache = engine_file_cacheable(file);
	fi->noflush = 1;
	if (fuse_reply_open(req, fi) == -ENOENT) /* the kernel gave up waiting */
		free_handle(f, h);
}

/* Each thread keeps its buffer: a new one for each MiB would cost as much as the copy. */
static char *buffer_of_thread(struct front *f, size_t size)
{
	struct {
		size_t size;
		char bytes[];
	} *buffer = pthread_getspecific(f->buffer);
	if (buffer && buffer->size >= size)
		return buffer->bytes;
	free(buffer);
	pthread_setspecific(f->buffer, NULL);
	buffer = malloc(sizeof(*buffer) + size);
	if (!buffer)
		return NULL;
	buffer->size = size;
	if (pthread_setspecific(f->buffer, buffer)) {
		free(buffer);
		return NULL;
	}
	return buffer->bytes;
}

/* All that was asked for, or up to the end of the file, or an error: the kernel takes a short
 * answer for the end of the file and believes from then on that the file is shorter. It asks again
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

/* Does a program wait for this very request? Then only the program, or its end, calls it off.
 * Several pages at once are read ahead by the kernel, unless they are read past its page cache. */
static bool is_patient(const struct handle *h, size_t size, uint64_t off, int flags)
{
	return size <= PAGE_BYTES || flags & O_DIRECT || atomic_load(&h->called_off) == off + 1;
}

static void call_off(void *arg)
{
	cancel_fire(arg);
}

/* Runs under the request's lock, as does setting the function: after fuse_req_interrupt_func()
 * has taken it away it does not run and will not. */
static void interrupt(fuse_req_t req, void *arg)
{
	struct doubt *doubt = arg;
	if (answer_is_unwanted(req, doubt))
		doubt->unwanted(doubt->arg);
}

/* read_all() until somebody calls it off. */
static ssize_t read_until(fuse_req_t req, struct handle *h, char *buf, size_t size, uint64_t off,
			  int flags, struct err *err)
{
	struct front *f = front_of(req);
	struct wait wait;
	struct doubt doubt = {.unwanted = call_off, .arg = &wait.cancel};
	if (waits_begin(f->waits, &wait, is_patient(h, size, off, flags), front_now()))
		watch_look(f->watch);
	fuse_req_interrupt_func(req, interrupt, &doubt);
	ssize_t n = read_all(h->file, buf, size, off, &wait.cancel, err);
	fuse_req_interrupt_func(req, NULL, NULL);
	doubts_remove(f->doubts, &doubt);
	waits_end(f->waits, &wait);
	if (n == -EINTR && wait.expired)
		atomic_store(&h->called_off, off + 1);
	return n;
}

/* From a copy: who has the answer may close the file, which frees its text, before this thread is
 * back from the system call that gave it. */
static void read_text(fuse_req_t req, const struct handle *h, char *buf, size_t size, uint64_t off)
{
	off = min_u64(off, h->len);
	size = min_u64(size, h->len - off);
	memcpy(buf, h->text + off, size);
	fuse_reply_buf(req, buf, size);
}

void ops_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct front *f = front_of(req);
	struct inode_view view;
	struct err err = ERR_INIT;
	char *buf = off < 0 ? NULL : buffer_of_thread(f, size);
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
	const char *path = inodes_get(f->inodes, ino, &view) ? view.path : "?";
	/* Who opens is sent on to the new version; who reads is not, and should know why. */
	if (n == -ESTALE)
		log_warning(f->log, "read %s: %s", path, err.msg);
	front_fail(req, (int)n, "read", path, &err);
}

void ops_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	free_handle(front_of(req), handle_of(fi));
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
