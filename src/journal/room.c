/* SPDX-License-Identifier: Apache-2.0 */
/* See journal/room.h. */
#include <journal/room.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/statvfs.h>

#include <base/mem.h>

enum {
	STEP = 16 << 20, /* bytes that may be taken before the disk is asked again */
	KEEP = 16 << 20, /* bytes that remain free for the plan, its bodies and the map */
};

static int free_space(const struct room *room, uint64_t *bytes, struct err *err)
{
	struct statvfs v;
	if (fstatvfs(room->dir, &v))
		return err_errno(err, -errno,
				 "cannot read the free space of the journal directory");
	if (!mul_u64(v.f_bavail, v.f_frsize, bytes))
		*bytes = UINT64_MAX;
	return 0;
}

int room_init(struct room *room, int dir, uint64_t limit, uint64_t left, struct err *err)
{
	*room = (struct room){.dir = dir, .limit = limit, .left = left};
	if (limit == 0) {
		int rc = free_space(room, &room->limit, err);
		if (rc)
			return rc;
		room->limit = room->limit / 2 + left / 2;
	}
	pthread_mutex_init(&room->lock, NULL);
	return 0;
}

void room_release(struct room *room)
{
	assert(room->taken == 0);
	pthread_mutex_destroy(&room->lock);
}

static int ask_disk_locked(struct room *room, uint64_t n, struct err *err)
{
	uint64_t left = 0;
	int rc = free_space(room, &left, err);
	if (rc)
		return rc;
	left -= min_u64(left, KEEP);
	if (left < n)
		return err_set(err, -ENOSPC,
			       "no room for %" PRIu64 " more bytes on the disk of the journal "
			       "directory, of which %d are kept free for commits",
			       n, KEEP);
	room->granted = min_u64(left, max_u64(n, STEP));
	return 0;
}

static int take_locked(struct room *room, uint64_t n, struct err *err)
{
	const uint64_t taken = min_u64(room->limit, room->taken + room->left);
	char left[80] = "";
	if (n > room->limit - taken) {
		if (room->left)
			snprintf(left, sizeof(left),
				 ", %" PRIu64 " of them by drafts that hsimage recover lists",
				 room->left);
		return err_set(err, -ENOSPC,
			       "no room for %" PRIu64 " more bytes in the spool: %" PRIu64
			       " of the %" PRIu64 " bytes of spool_size are taken%s",
			       n, taken, room->limit, left);
	}
	int rc = n > room->granted ? ask_disk_locked(room, n, err) : 0;
	if (rc)
		return rc;
	room->taken += n;
	room->granted -= n;
	return 0;
}

int room_take(struct room *room, uint64_t n, struct err *err)
{
	if (n == 0)
		return 0;
	pthread_mutex_lock(&room->lock);
	int rc = take_locked(room, n, err);
	pthread_mutex_unlock(&room->lock);
	return rc;
}

void room_give(struct room *room, uint64_t n)
{
	pthread_mutex_lock(&room->lock);
	assert(room->taken >= n);
	room->taken -= n;
	pthread_mutex_unlock(&room->lock);
}

void room_leave(struct room *room, uint64_t n)
{
	room_give(room, n);
	pthread_mutex_lock(&room->lock);
	room->left += n;
	pthread_mutex_unlock(&room->lock);
}

void room_forget(struct room *room, uint64_t n)
{
	pthread_mutex_lock(&room->lock);
	room->left -= min_u64(room->left, n);
	pthread_mutex_unlock(&room->lock);
}

static uint64_t read_count(struct room *room, const uint64_t *count)
{
	pthread_mutex_lock(&room->lock);
	const uint64_t n = *count;
	pthread_mutex_unlock(&room->lock);
	return n;
}

uint64_t room_taken(struct room *room)
{
	return read_count(room, &room->taken);
}

uint64_t room_left(struct room *room)
{
	return read_count(room, &room->left);
}
