/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of open files. */
#include "ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include <base/cancel.h>
#include <base/mem.h>

#include "handle.h"
#include "reply.h"
#include "kernel_request.h"
#include "stats_files.h"

enum { PAGE_BYTES = 4096 };

void ops_file_stats_attr(fuse_req_t req, fuse_ino_t ino, const struct fuse_file_info *fi)
{
	const struct handle *h = fi && ino != STATS_DIR_INO ? handle_of(fi) : NULL;
	ops_stats_getattr(req, ino, h ? &h->len : NULL);
}

/* Each thread keeps its buffer: allocating 1 MiB for each read would take as long as copying it. */
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

/* Reads the whole range, or up to the end of the file, or fails. A short reply would tell the
 * kernel that the file ends there. When a read of several pages fails, the kernel repeats it page
 * by page, so the good pages around a damaged chunk can still be read. */
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

/* Returns whether this read is read-ahead, so that no program waits for it. Except with O_DIRECT,
 * the kernel reads several pages at once only as read-ahead. When read-ahead fails, the kernel
 * repeats the read at the same offset for the program. */
static bool is_read_ahead(struct handle *h, size_t size, uint64_t off, int flags)
{
	uint_fast64_t repeated = off + 1;
	return !atomic_compare_exchange_strong(&h->expired_at, &repeated, 0) && size > PAGE_BYTES &&
	       !(flags & O_DIRECT);
}

/* Returns a hash of the range, never 0. Offsets are multiples of the page size, so bit 0 is
 * free. */
static uint64_t subject_of(fuse_ino_t ino, uint64_t off)
{
	return (ino << 32 ^ off) | 1;
}

/* Calls read_all(), which fails with -EINTR when it is cancelled. */
static ssize_t read_or_cancel(fuse_req_t req, fuse_ino_t ino, const struct fuse_file_info *fi,
			      char *buf, size_t size, uint64_t off, struct err *err)
{
	struct session *s = session_of(req);
	struct request request;
	struct cancel cancel;
	struct handle *h = handle_of(fi);
	const bool read_ahead = is_read_ahead(h, size, off, fi->flags);
	cancel_init(&cancel);
	request_begin_read(s->requests, &request, req, subject_of(ino, off), &cancel, read_ahead);
	ssize_t n = read_all(h->file, buf, size, off, &cancel, err);
	request_end(&request);
	cancel_release(&cancel);
	if (n == -EINTR && read_ahead)
		atomic_store(&h->expired_at, off + 1);
	return n;
}

/* Replies with a copy. The program can close the file, which frees the text, before the daemon's
 * system call that sends the reply has returned. */
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
	auto_inode struct inode_view view = {0};
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
	ssize_t n = read_or_cancel(req, ino, fi, buf, size, (uint64_t)off, &err);
	if (n >= 0) {
		fuse_reply_buf(req, buf, (size_t)n);
		return;
	}
	const char *path = inodes_get(s->inodes, ino, &view) == 0 ? view.path : "?";
	/* The kernel retries an open after ESTALE, but not a read. The program sees this error, so
	 * it is more than a debug message. */
	if (n == -ESTALE)
		log_warning(s->log, "read %s: %s", path, err.msg);
	reply_fail(req, (int)n, "read", path, &err);
}

/* A seek may find out which parts of the file are holes. */
static int64_t seek_file(struct session *s, fuse_ino_t ino, const struct handle *h, off_t off,
			 int whence)
{
	struct engine_stat before, after;
	engine_file_stat(h->file, &before);
	const int64_t at = engine_seek(h->file, (uint64_t)off, whence);
	engine_file_stat(h->file, &after);
	if (before.blocks != after.blocks)
		inodes_set_blocks(s->inodes, ino, &after);
	return at;
}

void ops_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi)
{
	struct session *s = session_of(req);
	struct handle *h = handle_of(fi);
	struct request request;
	int64_t at = -ENXIO;
	handle_ref(h);
	request_begin(s->requests, &request, req, 0);
	if (off >= 0 && h->file)
		at = seek_file(s, ino, h, off, whence);
	else if (off >= 0 && (uint64_t)off < h->len)
		at = whence == SEEK_DATA ? off : (int64_t)h->len;
	const bool replies = request_end(&request);
	if (replies && at < 0)
		fuse_reply_err(req, (int)-at);
	else if (replies)
		fuse_reply_lseek(req, (off_t)at);
	handle_unref(s, h);
}
