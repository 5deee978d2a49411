/* SPDX-License-Identifier: Apache-2.0 */
/* The disk cache's directory: opening it, reading and writing entries. See directory.h. */
#include "directory.h"

#include <base/fd.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

enum { TOUCH_S = 60 /* resolution of the time of last use */ };

/* ---- the directory ---- */

static int refuse(struct err *err, const char *path, const char *why)
{
	return err_set(err, -EPERM, "cache directory %s: %s", path, why);
}

/* If other users could write to the directory, they could choose which file this process
 * overwrites. */
static int check_private(int fd, const char *path, struct err *err)
{
	struct stat st;
	if (fstat(fd, &st))
		return err_errno(err, -errno, "cache directory %s", path);
	if (st.st_uid != geteuid())
		return refuse(err, path, "belongs to another user");
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return refuse(err, path, "others can write to it");
	return 0;
}

int disk_dir_open(struct disk_dir *d, const char *path, uint64_t max_bytes, struct err *err)
{
	struct stat st;
	d->fd = d->lock = -1;
	d->max_bytes = max_bytes;
	if (mkdir(path, 0700) && errno != EEXIST)
		return err_errno(err, -errno, "cache directory %s", path);
	if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
		return refuse(err, path, "is a symbolic link");
	d->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (d->fd < 0)
		return err_errno(err, -errno, "cache directory %s", path);
	int rc = check_private(d->fd, path, err);
	if (rc == 0) {
		d->lock = openat(d->fd, "hsmount-cache.lock",
				 O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
		if (d->lock < 0)
			rc = err_errno(err, -errno, "cache directory %s", path);
		else if (fstat(d->lock, &st) || !S_ISREG(st.st_mode))
			rc = refuse(err, path, "hsmount-cache.lock is not a regular file");
	}
	if (rc) {
		cleanup_close(&d->lock);
		cleanup_close(&d->fd);
		return rc;
	}
	pthread_mutex_init(&d->thread_lock, NULL);
	d->used = d->busy_until = 0;
	atomic_init(&d->bytes, 0);
	atomic_init(&d->evicted, 0);
	return 0;
}

void disk_dir_close(struct disk_dir *d)
{
	pthread_mutex_destroy(&d->thread_lock);
	cleanup_close(&d->lock);
	cleanup_close(&d->fd);
}

/* ---- reading ---- */

/* Reads n bytes at an offset; *done is lower only at the end of the file. A failure of the disk is
 * its errno: it says nothing about the entry. */
static int read_at(int fd, void *buf, size_t n, uint64_t offset, size_t *done)
{
	*done = 0;
	while (*done < n) {
		ssize_t got = pread(fd, (uint8_t *)buf + *done, n - *done, (off_t)(offset + *done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		*done += (size_t)got;
	}
	return 0;
}

/* head contains the first n bytes of the file. The body is copied to its own block. */
static int read_body(int fd, const struct disk_entry *entry, const uint8_t *head, size_t n,
		     struct bytes *body)
{
	const size_t size = (size_t)entry->meta.size, have = n - entry->head;
	const size_t first = have < size ? have : size;
	size_t rest = 0;
	int rc = 0;
	if (size && bytes_reserve(body, size))
		return -ENOMEM;
	if (first)
		memcpy(body->data, head + entry->head, first);
	if (first < size)
		rc = read_at(fd, body->data + first, size - first, n, &rest);
	if (rc || rest != size - first)
		return rc ? rc : -EBADMSG;
	body->len = size;
	return disk_entry_check(entry, head, body->data);
}

static int read_entry(int fd, const struct stat *st, const struct disk_id *id, const char *etag,
		      uint64_t max, struct store_meta *meta, struct bytes *body)
{
	uint8_t head[DISK_HEAD_MAX];
	struct disk_entry entry;
	if (!S_ISREG(st->st_mode))
		return -EBADMSG;
	size_t n;
	int rc = read_at(fd, head, sizeof(head), 0, &n);
	if (rc == 0)
		rc = disk_entry_decode(head, n, (uint64_t)st->st_size, id, &entry);
	if (rc == 0 && etag && strcmp(etag, entry.meta.etag) != 0)
		return -ESTALE;
	if (rc == 0)
		rc = entry.meta.size > max ? -EBADMSG : read_body(fd, &entry, head, n, body);
	if (rc == 0)
		*meta = entry.meta;
	else
		bytes_release(body);
	return rc;
}

int disk_dir_read(const struct disk_dir *d, const struct disk_id *id, const char *etag,
		  uint64_t max, struct store_meta *meta, struct bytes *body)
{
	char name[DISK_NAME];
	struct stat st;
	int rc = disk_entry_name(id, name);
	if (rc)
		return rc;
	/* O_NONBLOCK: if the name is that of a FIFO, open() must not block. */
	auto_close int fd =
		openat(d->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP ? -EBADMSG : -errno;
	if (fstat(fd, &st))
		return -errno;
	rc = read_entry(fd, &st, id, etag, max, meta, body);
	if (rc == 0) {
		/* File systems with noatime or relatime do not update the access time. */
		const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
		struct timespec now;
		clock_gettime(CLOCK_REALTIME, &now);
		if (now.tv_sec - st.st_atim.tv_sec > TOUCH_S)
			futimens(fd, times);
	}
	return rc;
}

void disk_dir_drop(const struct disk_dir *d, const struct disk_id *id)
{
	char name[DISK_NAME];
	if (disk_entry_name(id, name) == 0)
		unlinkat(d->fd, name, 0);
}

/* ---- writing ---- */

static int write_all(int fd, const struct bytes *head, const void *body, size_t n)
{
	struct iovec parts[2] = {{head->data, head->len}, {(void *)(uintptr_t)body, n}};
	for (struct iovec *at = parts; at < parts + 2;) {
		ssize_t done = writev(fd, at, (int)(parts + 2 - at));
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		for (; at < parts + 2 && (size_t)done >= at->iov_len; at++)
			done -= (ssize_t)at->iov_len;
		if (at < parts + 2) {
			at->iov_base = (uint8_t *)at->iov_base + done;
			at->iov_len -= (size_t)done;
		}
	}
	return 0;
}

int disk_dir_write(struct disk_dir *d, const struct env *env, const struct disk_id *id,
		   const struct store_meta *meta, const void *body)
{
	char name[DISK_NAME], temp[DISK_NAME];
	auto_bytes struct bytes head = {0};
	int rc = disk_entry_name(id, name);
	if (rc == 0)
		rc = disk_entry_encode(id, meta, body, &head);
	if (rc)
		return rc;
	const uint64_t n = head.len + meta->size;
	const int fd = disk_eviction_take(d, env, n, temp);
	if (fd < 0)
		return fd;
	rc = write_all(fd, &head, body, (size_t)meta->size);
	int settled = disk_eviction_settle(d, env, fd, n, temp, rc ? NULL : name);
	return rc ? rc : settled;
}
