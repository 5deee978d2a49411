/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of a draft.
 *
 * A write takes its room, writes its bytes into the spool, appends a record to the map, and only
 * then makes them visible. So a write that fails changes nothing that can be read, unless it
 * overwrites. A write of bytes that are written already needs no record, except for the first
 * change after a seal: the map tells whether something has changed since then.
 *
 * Truncating appends the record before the spool loses its bytes. If an older state is durable, it
 * makes the record durable first: otherwise a crash of the machine would restore the larger file
 * without its bytes. Zeros are put into the spool before the record: after a crash between the two,
 * the file is as if both had happened.
 */
#include "draft_internal.h"

#include <errno.h>
#include <fcntl.h>

#include <base/mem.h>

static uint64_t read_size(struct draft *d)
{
	pthread_mutex_lock(&d->lock);
	const uint64_t size = d->layers.size;
	pthread_mutex_unlock(&d->lock);
	return size;
}

static int append(struct draft *d, enum map_type type, uint64_t offset, uint64_t length,
		  struct err *err)
{
	int rc = map_append(&d->map, type, d->layers.top->generation, offset, length, err);
	if (rc == 0)
		atomic_store(&d->noted, true);
	return rc;
}

static int check_range(uint64_t offset, uint64_t n, struct err *err)
{
	return offset > FRAMES_LIMIT || n > FRAMES_LIMIT - offset
		       ? err_errno(err, -EFBIG, "cannot write behind 2^60 bytes")
		       : 0;
}

/* ---- writing ---- */

/* Returns the bytes of the blocks of [start, end) that the spool does not have yet. */
static uint64_t find_missing_locked(const struct layers *l, uint64_t start, uint64_t end)
{
	const uint64_t first = start & ~(uint64_t)(ROOM_BLOCK - 1);
	const uint64_t last = align_u64(end, ROOM_BLOCK);
	return last - first - frames_count(&l->top->stored, first, last);
}

/* Takes the room for a write: blocks of the spool, memory, and, unless all its bytes are written
 * already, a record of the map. *covered is set if it needs no record. */
static int prepare_write(struct draft *d, uint64_t offset, uint64_t end, bool *covered,
			 struct err *err)
{
	struct room *room = &d->dir.j->room;
	uint64_t added = 0;
	pthread_mutex_lock(&d->lock);
	*covered = atomic_load(&d->noted) && frames_cover(&d->layers.top->written, offset, end) &&
		   (!d->layers.changes || frames_cover(&d->layers.changes->set, offset, end));
	const uint64_t missing = find_missing_locked(&d->layers, offset, end);
	pthread_mutex_unlock(&d->lock);
	int rc = room_take(room, missing, err);
	if (rc)
		return rc;
	rc = draft_change_layers(d, LAYERS_STORE, offset, end, &added, err);
	/* Another write may have added some of the blocks meanwhile. */
	room_give(room, missing - added);
	return rc || *covered ? rc : map_promise(&d->map, err);
}

static int write_held(struct draft *d, uint64_t offset, const void *buf, size_t n, struct err *err)
{
	const uint64_t end = offset + n;
	bool covered;
	int rc = prepare_write(d, offset, end, &covered, err);
	if (rc)
		return rc;
	atomic_fetch_add(&d->changed, 1);
	rc = spool_write(d->layers.top->spool, offset, buf, n, err);
	if (covered)
		return rc;
	if (rc) {
		map_break_promise(&d->map);
		return rc;
	}
	rc = append(d, MAP_WRITE, offset, n, err);
	return rc ? rc : draft_change_layers(d, LAYERS_WRITE, offset, end, NULL, err);
}

int draft_write(struct draft *d, uint64_t offset, const void *buf, size_t n, struct err *err)
{
	int rc = check_range(offset, n, err);
	if (rc == 0)
		rc = draft_begin_write(d, err);
	if (rc)
		return rc;
	if (n && offset < read_size(d))
		atomic_store(&d->is_appended, false);
	rc = n ? write_held(d, offset, buf, n, err) : 0;
	pthread_rwlock_unlock(&d->changes);
	return rc;
}

bool draft_is_appended(const struct draft *d)
{
	return atomic_load(&d->is_appended);
}

/* ---- other changes ---- */

static uint64_t read_stored(struct draft *d)
{
	pthread_mutex_lock(&d->lock);
	const uint64_t bytes = layers_stored(&d->layers);
	pthread_mutex_unlock(&d->lock);
	return bytes;
}

/* Gives the room back of blocks that a change has removed. */
static void give_removed(struct draft *d, uint64_t stored_before)
{
	room_give(&d->dir.j->room, stored_before - read_stored(d));
	draft_trim_memory(d);
}

static int resize_held(struct draft *d, uint64_t size, struct err *err)
{
	const uint64_t old = read_size(d), stored = read_stored(d);
	if (size == old)
		return 0;
	int rc = append(d, MAP_SIZE, 0, size, err);
	if (rc == 0)
		rc = draft_change_layers(d, LAYERS_RESIZE, 0, size, NULL, err);
	atomic_fetch_add(&d->changed, 1);
	if (rc || size > old)
		return rc;
	if (d->synced)
		rc = draft_sync_held(d, err);
	if (rc == 0)
		rc = spool_cut(d->layers.top->spool, align_u64(size, ROOM_BLOCK), err);
	/* The checksums are those of the spool that is cut, which is not durable yet. */
	d->synced_changes = d->durable_changes = UINT64_MAX;
	give_removed(d, stored);
	return rc;
}

int draft_resize(struct draft *d, uint64_t size, struct err *err)
{
	int rc = check_range(size, 0, err);
	if (rc == 0)
		rc = draft_begin_change(d, err);
	if (rc)
		return rc;
	rc = resize_held(d, size, err);
	pthread_rwlock_unlock(&d->changes);
	return rc;
}

static int zero_held(struct draft *d, uint64_t start, uint64_t end, struct err *err)
{
	struct layer *top = d->layers.top;
	const uint64_t stored = read_stored(d);
	/* Below the limit, the zeros hide other bytes: see layers.h. */
	int rc = start < end ? spool_zero(top->spool, start, end - start, top->limit, err) : 0;
	if (rc || start >= end)
		return rc;
	rc = append(d, MAP_ZERO, start, end - start, err);
	if (rc == 0)
		rc = draft_change_layers(d, LAYERS_ZERO, start, end, NULL, err);
	atomic_fetch_add(&d->changed, 1);
	give_removed(d, stored);
	return rc;
}

/* Takes the room for later writes to the range. */
static int allocate_held(struct draft *d, uint64_t start, uint64_t end, struct err *err)
{
	struct room *room = &d->dir.j->room;
	uint64_t added = 0;
	pthread_mutex_lock(&d->lock);
	const uint64_t missing = find_missing_locked(&d->layers, start, end);
	pthread_mutex_unlock(&d->lock);
	int rc = room_take(room, missing, err);
	if (rc)
		return rc;
	rc = spool_allocate(d->layers.top->spool, start, end - start, err);
	if (rc == 0)
		rc = draft_change_layers(d, LAYERS_STORE, start, end, &added, err);
	room_give(room, missing - added);
	return rc;
}

int draft_allocate(struct draft *d, int mode, uint64_t offset, uint64_t n, struct err *err)
{
	const int what = mode & ~FALLOC_FL_KEEP_SIZE;
	if (what != 0 && what != FALLOC_FL_ZERO_RANGE &&
	    mode != (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE))
		return err_errno(err, -EOPNOTSUPP, "fallocate");
	if (n == 0)
		return err_errno(err, -EINVAL, "fallocate");
	int rc = check_range(offset, n, err);
	if (rc == 0)
		rc = draft_begin_change(d, err);
	if (rc)
		return rc;
	const uint64_t end = offset + n;
	if (what == 0)
		rc = allocate_held(d, offset, end, err);
	if (rc == 0 && !(mode & FALLOC_FL_KEEP_SIZE) && end > read_size(d))
		rc = resize_held(d, end, err);
	if (rc == 0 && what != 0)
		rc = zero_held(d, offset, min_u64(end, read_size(d)), err);
	pthread_rwlock_unlock(&d->changes);
	return rc;
}
