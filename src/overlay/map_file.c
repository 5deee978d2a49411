/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appending to a map: see map.h.
 *
 * Invariants:
 *  1. The file has `records` records; a failed write may have left a part of another one, which the
 *     next one overwrites.
 *     If it was to lengthen the last one, that one is written again before another follows.
 *  2. A record is not changed any more once a record follows it. So only the last one may be
 *     longer than its durable copy.
 */
#include "map.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <base/mem.h>

#include <journal/private_file.h>

enum { SPARE = ROOM_BLOCK / MAP_RECORD };

static int put(const struct map_file *m, const struct map_record *r, struct err *err)
{
	uint8_t bytes[MAP_RECORD];
	map_encode(r, bytes);
	int rc = file_write(m->fd, (uint64_t)r->sequence * MAP_RECORD, bytes, sizeof(bytes));
	return rc ? err_errno(err, rc, "cannot write to the map") : 0;
}

/* Takes the room for n records in all. */
static int take_room_locked(struct map_file *m, uint64_t n, struct err *err)
{
	if (n > UINT32_MAX)
		return err_set(err, -EFBIG, "the map has too many records");
	if (n * MAP_RECORD <= m->before + m->taken)
		return 0;
	int rc = room_take(m->room, ROOM_BLOCK, err);
	if (rc)
		return rc;
	if (fallocate(m->fd, FALLOC_FL_KEEP_SIZE, (off_t)(m->before + m->taken), ROOM_BLOCK) &&
	    errno != EOPNOTSUPP) {
		rc = err_errno(err, -errno, "cannot allocate the map");
		room_give(m->room, ROOM_BLOCK);
		return rc;
	}
	m->taken += ROOM_BLOCK;
	return 0;
}

/* Writes leave a spare block behind, so that a full spool can be sealed, synced and truncated. */
int map_promise(struct map_file *m, struct err *err)
{
	pthread_mutex_lock(&m->lock);
	int rc = take_room_locked(m, (uint64_t)m->records + m->promised + 1 + SPARE, err);
	if (rc == 0)
		m->promised++;
	pthread_mutex_unlock(&m->lock);
	return rc;
}

void map_break_promise(struct map_file *m)
{
	pthread_mutex_lock(&m->lock);
	m->promised--;
	pthread_mutex_unlock(&m->lock);
}

static int append_locked(struct map_file *m, const struct map_record *r, struct err *err)
{
	int rc = take_room_locked(m, (uint64_t)m->records + m->promised + 1, err);
	if (rc == 0 && m->is_torn)
		rc = put(m, &m->last, err);
	m->is_torn &= rc != 0;
	if (rc == 0)
		rc = put(m, r, err);
	if (rc)
		return rc;
	m->last = *r;
	m->records++;
	return 0;
}

/* Returns whether the write begins in the last record or at its end. A record of another type lies
 * between the writes of two generations. */
static bool continues_last(const struct map_record *last, uint64_t offset)
{
	return last->type == MAP_WRITE && offset >= last->offset &&
	       offset <= last->offset + last->length;
}

static int lengthen_locked(struct map_file *m, uint64_t end, struct err *err)
{
	struct map_record longer = m->last;
	longer.length = max_u64(longer.length, end - longer.offset);
	int rc = put(m, &longer, err);
	m->is_torn = rc != 0;
	if (rc == 0)
		m->last = longer;
	return rc;
}

int map_append(struct map_file *m, enum map_type type, uint32_t generation, uint64_t offset,
	       uint64_t length, struct err *err)
{
	int rc;
	pthread_mutex_lock(&m->lock);
	m->promised -= type == MAP_WRITE;
	if (type == MAP_WRITE && continues_last(&m->last, offset)) {
		rc = lengthen_locked(m, offset + length, err);
	} else {
		const struct map_record r = {type, m->records, generation, offset, length};
		rc = append_locked(m, &r, err);
	}
	pthread_mutex_unlock(&m->lock);
	return rc;
}

int map_create(struct map_file *m, int dir, struct room *room, uint64_t size, struct err *err)
{
	*m = (struct map_file){.fd = file_open(dir, "map", O_RDWR | O_CREAT | O_EXCL),
			       .room = room};
	pthread_mutex_init(&m->lock, NULL);
	int rc = m->fd < 0 ? err_errno(err, m->fd, "cannot make the map")
			   : map_append(m, MAP_START, MAP_MAGIC, 0, size, err);
	if (rc)
		map_close(m, false);
	return rc;
}

int map_open_again(struct map_file *m, int dir, struct room *room, uint32_t records,
		   struct err *err)
{
	const uint64_t end = (uint64_t)records * MAP_RECORD;
	const int fd = file_open(dir, "map", O_RDWR);
	if (fd < 0 || ftruncate(fd, (off_t)end)) {
		const int rc = fd < 0 ? fd : -errno;
		if (fd >= 0)
			close(fd);
		return err_errno(err, rc, "cannot append to the map");
	}
	/* No record of this process continues one of the earlier process. */
	*m = (struct map_file){.fd = fd,
			       .room = room,
			       .before = align_u64(end, ROOM_BLOCK),
			       .records = records,
			       .last = {.type = MAP_SYNC}};
	pthread_mutex_init(&m->lock, NULL);
	return 0;
}

void map_close(struct map_file *m, bool is_left)
{
	if (is_left)
		room_leave(m->room, m->taken);
	else
		room_give(m->room, m->taken);
	pthread_mutex_destroy(&m->lock);
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
	m->taken = 0;
}

int map_sync(struct map_file *m, struct err *err)
{
	return fdatasync(m->fd) ? err_errno(err, -errno, "cannot sync the map") : 0;
}
