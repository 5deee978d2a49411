/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See bodies.h. A body gets its bytes of the file and of the room under the lock, and is written
 * without it. The bytes of a body that could not be written remain unused.
 */
#include "bodies.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/fd.h>
#include <base/mem.h>

#include <journal/private_file.h>

static const char bodies_name[] = "bodies";

void bodies_init(struct bodies *b)
{
	*b = (struct bodies){.fd = -1};
	pthread_mutex_init(&b->lock, NULL);
}

void bodies_release(struct bodies *b)
{
	cleanup_close(&b->fd);
	pthread_mutex_destroy(&b->lock);
}

int bodies_open(struct bodies *b, int dir, uint64_t size, struct err *err)
{
	struct stat st;
	auto_close int fd = file_open(dir, bodies_name, O_RDONLY);
	if (fd == -ENOENT)
		return err_set(err, -EBADMSG, "the file `bodies` is missing");
	if (fd < 0 || fstat(fd, &st))
		return err_errno(err, fd < 0 ? fd : -errno, "cannot open the file `bodies`");
	if ((uint64_t)st.st_size < size)
		return err_set(err, -EBADMSG,
			       "the file `bodies` has %" PRIu64
			       " bytes, but the plan needs %" PRIu64,
			       (uint64_t)st.st_size, size);
	pthread_mutex_lock(&b->lock);
	b->fd = fd;
	b->size = (uint64_t)st.st_size;
	pthread_mutex_unlock(&b->lock);
	fd = -1;
	return 0;
}

/* ---- adding ---- */

/* Takes n bytes of the limit. The free space of the disk is not checked, because a part of it is
 * reserved for commits (see journal/room.h). */
static int take_room(struct room *room, uint64_t n, struct err *err)
{
	pthread_mutex_lock(&room->lock);
	const uint64_t taken = min_u64(room->limit, room->taken + room->left);
	const bool fits = n <= room->limit - taken;
	if (fits)
		room->taken += n;
	pthread_mutex_unlock(&room->lock);
	return fits ? 0
		    : err_set(err, -ENOSPC,
			      "no room for %" PRIu64 " more bytes that the commit needs: %" PRIu64
			      " of the %" PRIu64 " bytes of spool_size are taken",
			      n, taken, room->limit);
}

/* Reserves n bytes of the file. */
static int reserve_locked(struct bodies *b, int dir, struct room *room, size_t n, uint64_t *offset,
			  struct err *err)
{
	const uint64_t size = b->size + n;
	const uint64_t end = align_u64(size, ROOM_BLOCK);
	if (b->fd < 0) {
		const int fd = file_open(dir, bodies_name, O_RDWR | O_CREAT | O_TRUNC);
		if (fd < 0)
			return err_errno(err, fd, "cannot make the file `bodies`");
		b->fd = fd;
	}
	int rc = end > b->taken ? take_room(room, end - b->taken, err) : 0;
	if (rc)
		return rc;
	*offset = b->size;
	b->size = size;
	b->taken = max_u64(b->taken, end);
	return 0;
}

int bodies_add(struct bodies *b, int dir, struct room *room, const void *bytes, size_t n,
	       uint64_t *offset, struct err *err)
{
	pthread_mutex_lock(&b->lock);
	int rc = reserve_locked(b, dir, room, n, offset, err);
	const int fd = b->fd;
	pthread_mutex_unlock(&b->lock);
	if (rc)
		return rc;
	rc = file_write(fd, *offset, bytes, n);
	pthread_mutex_lock(&b->lock);
	b->is_durable = false; /* it may have been synced in between */
	pthread_mutex_unlock(&b->lock);
	return rc ? err_errno(err, rc, "cannot write to the file `bodies`") : 0;
}

/* ---- what has been added ---- */

int bodies_read(struct bodies *b, uint64_t offset, void *buf, size_t n, struct err *err)
{
	size_t got = 0;
	pthread_mutex_lock(&b->lock);
	const int fd = b->fd;
	pthread_mutex_unlock(&b->lock);
	int rc = fd < 0 ? 0 : file_read(fd, offset, buf, n, &got);
	if (rc)
		return err_errno(err, rc, "cannot read the file `bodies`");
	return got < n ? err_set(err, -EBADMSG,
				 "the file `bodies` does not have the %zu bytes at offset %" PRIu64,
				 n, offset)
		       : 0;
}

static int sync_locked(struct bodies *b, int dir)
{
	/* The kernel reports a lost page once, also if the disk is full. */
	if (b->fd < 0 || b->is_durable || b->failed)
		return b->failed;
	if (fsync(b->fd)) {
		b->failed = -errno;
		return b->failed;
	}
	if (fsync(dir))
		return -errno;
	b->is_durable = true;
	return 0;
}

int bodies_sync(struct bodies *b, int dir, struct err *err)
{
	pthread_mutex_lock(&b->lock);
	const int rc = sync_locked(b, dir);
	pthread_mutex_unlock(&b->lock);
	return rc ? err_errno(err, rc, "cannot sync the file `bodies`") : 0;
}

bool bodies_exist(int dir)
{
	struct stat st;
	return fstatat(dir, bodies_name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

int bodies_remove(struct bodies *b, int dir, struct room *room, struct err *err)
{
	if (unlinkat(dir, bodies_name, 0) && errno != ENOENT)
		return err_errno(err, -errno, "cannot remove the file `bodies`");
	cleanup_close(&b->fd);
	room_give(room, b->taken);
	b->fd = -1;
	b->size = b->taken = b->inlined = 0;
	b->is_durable = false;
	b->failed = 0;
	return 0;
}
