/* SPDX-License-Identifier: Apache-2.0 */
/* What every change of a draft needs: memory for the layers, a top layer that may be changed, and
 * durability. See draft_internal.h. */
#include "draft_internal.h"

#include <errno.h>

#include <base/mem.h>

/* ---- memory ---- */

static int grow_memory(struct draft *d, struct err *err)
{
	pthread_mutex_lock(&d->charging);
	int rc = budget_set(&d->charge, d->charge.bytes + FRAMES_STEP, err);
	if (rc == 0) {
		pthread_mutex_lock(&d->lock);
		d->memory.allowed = (size_t)d->charge.bytes;
		pthread_mutex_unlock(&d->lock);
	}
	pthread_mutex_unlock(&d->charging);
	return rc;
}

void draft_trim_memory(struct draft *d)
{
	pthread_mutex_lock(&d->charging);
	pthread_mutex_lock(&d->lock);
	d->memory.allowed = (size_t)align_u64(d->memory.used, FRAMES_STEP);
	const uint64_t bytes = d->memory.allowed;
	pthread_mutex_unlock(&d->lock);
	if (bytes < d->charge.bytes)
		budget_set(&d->charge, bytes, NULL);
	pthread_mutex_unlock(&d->charging);
}

int draft_change_layers(struct draft *d, enum layers_change change, uint64_t start, uint64_t end,
			uint64_t *added, struct err *err)
{
	for (;;) {
		pthread_mutex_lock(&d->lock);
		int rc = layers_change(&d->layers, change, start, end, added);
		pthread_mutex_unlock(&d->lock);
		if (rc != -EAGAIN)
			return rc ? err_set(err, rc, "out of memory") : 0;
		rc = grow_memory(d, err);
		if (rc)
			return rc;
	}
}

/* ---- the top layer ---- */

static int push_layer(struct draft *d, uint32_t generation, struct spool *spool, struct err *err)
{
	pthread_mutex_lock(&d->lock);
	int rc = layers_begin(&d->layers, generation, spool);
	pthread_mutex_unlock(&d->lock);
	if (rc == 0)
		return 0;
	spool_unref(spool);
	return rc == -E2BIG ? err_set(err, -ENOSPC,
				      "no room to join the %d generations of the draft", LAYERS_MAX)
			    : err_set(err, rc, "out of memory");
}

static int begin_generation(struct draft *d, struct err *err)
{
	const uint32_t generation = d->layers.highest + 1;
	struct spool *spool;
	int rc = spool_create(d->dir.fd, generation, d->charge.budget, &spool, err);
	if (rc == 0)
		rc = push_layer(d, generation, spool, err);
	if (rc)
		return rc;
	rc = map_append(&d->map, MAP_BEGIN, generation, 0, 0, err);
	if (rc) {
		pthread_mutex_lock(&d->lock);
		layers_pop(&d->layers);
		pthread_mutex_unlock(&d->lock);
		return rc;
	}
	d->sealed = false;
	d->has_new_spool = true;
	d->synced_changes = UINT64_MAX;
	return 0;
}

/* A commit may be repeated with these bytes by the next mount, if the map has no change after its
 * mark. The change is noted before the first byte is overwritten; and durably, if the mark may be.
 */
static int note_after_mark(struct draft *d, struct err *err)
{
	int rc = map_append(&d->map, MAP_SIZE, d->layers.top->generation, 0, d->layers.size, err);
	if (rc)
		return rc;
	atomic_store(&d->noted, true);
	d->synced_changes = UINT64_MAX;
	if (d->synced)
		rc = draft_sync_held(d, err);
	d->is_at_mark = rc != 0;
	return rc;
}

int draft_begin_change(struct draft *d, struct err *err)
{
	if (d->recovered)
		return err_set(err, -EROFS, "a draft of an earlier mount cannot be changed");
	pthread_rwlock_wrlock(&d->changes);
	int rc = d->sealed ? begin_generation(d, err) : 0;
	if (rc == 0 && d->is_at_mark)
		rc = note_after_mark(d, err);
	if (rc)
		pthread_rwlock_unlock(&d->changes);
	return rc;
}

int draft_begin_write(struct draft *d, struct err *err)
{
	for (;;) {
		pthread_rwlock_rdlock(&d->changes);
		if (!d->sealed && !d->recovered && !d->is_at_mark)
			return 0;
		pthread_rwlock_unlock(&d->changes);
		int rc = draft_begin_change(d, err);
		if (rc)
			return rc;
		pthread_rwlock_unlock(&d->changes);
	}
}

/* ---- durability ---- */

bool draft_is_read_only(const struct draft *d)
{
	return d->recovered && !d->resumed;
}

int draft_note_resumed(struct draft *d, struct err *err)
{
	if (!d->resumed || d->map.fd >= 0)
		return 0;
	int rc = map_open_again(&d->map, d->dir.fd, &d->dir.j->room, d->records, err);
	if (rc)
		return rc;
	rc = map_append(&d->map, MAP_SEAL, d->layers.top->generation, 0, d->layers.size, err);
	if (rc)
		map_close(&d->map, true);
	return rc;
}

static int sync_names(const struct draft *d, struct err *err)
{
	if (!d->synced)
		return draft_dir_sync(&d->dir, err);
	return d->has_new_spool ? draft_dir_sync_files(&d->dir, err) : 0;
}

static int sync_bytes(struct draft *d, struct err *err)
{
	int rc = sync_names(d, err);
	for (const struct layer *l = d->layers.top; rc == 0 && l; l = l->below)
		rc = spool_sync(l->spool, err);
	return rc;
}

/* The kernel reports a lost page once, also if it is lost because the disk is full: a later fsync()
 * succeeds without it. A record that does not fit loses nothing. */
static int sync_all(struct draft *d, struct err *err)
{
	int rc = sync_bytes(d, err);
	if (rc == 0) {
		rc = map_append(&d->map, MAP_SYNC, 0, 0, 0, err);
		if (rc == -ENOSPC)
			return rc;
	}
	if (rc == 0)
		rc = map_sync(&d->map, err);
	d->sync_failed = rc;
	return rc;
}

int draft_sync_held(struct draft *d, struct err *err)
{
	const uint64_t changes = atomic_load(&d->changed);
	if (d->synced && d->synced_changes == changes)
		return 0;
	if (d->sync_failed)
		return err_errno(err, d->sync_failed, "an earlier sync of the draft failed");
	int rc = sync_all(d, err);
	if (rc)
		return rc;
	d->synced = true;
	d->has_new_spool = false;
	d->synced_changes = d->durable_changes = changes;
	return 0;
}

int draft_sync(struct draft *d, struct err *err)
{
	if (draft_is_read_only(d))
		return 0;
	pthread_rwlock_wrlock(&d->changes);
	int rc = draft_sync_held(d, err);
	pthread_rwlock_unlock(&d->changes);
	return rc;
}
