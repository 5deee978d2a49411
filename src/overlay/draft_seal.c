/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots and generations of a draft.
 *
 *   draft_seal()             the top layer belongs to the snapshot
 *   a change while sealed    a new layer is begun; the snapshot keeps the layers below
 *   draft_snapshot_close()   without a change meanwhile, the top layer is changed again
 *   the next draft_seal()    copies the newest layer into the one below
 *
 * So a draft has one layer, unless programs write while a commit reads. If there is no room for the
 * copy, the layers remain as they are, up to LAYERS_MAX. While there is a plan, the layer of its
 * snapshot remains as it is: nothing is copied into it, and a change begins a new one.
 */
#include "draft_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <base/mem.h>

enum { COPY = 256 << 10 };

/* ---- joining generations ---- */

static int copy_range(struct spool *from, struct spool *to, uint64_t at, uint64_t end, uint8_t *buf,
		      struct err *err)
{
	int rc = 0;
	for (size_t n; rc == 0 && at < end; at += n) {
		n = (size_t)min_u64(end - at, COPY);
		rc = spool_read(from, at, buf, n, err);
		if (rc == 0)
			rc = spool_write(to, at, buf, n, err);
	}
	return rc;
}

/* Copies the bytes of [at, end), which are written in the upper layer. Those that are not stored
 * are zeros. */
static int copy_written(const struct layer *upper, uint64_t at, uint64_t end, uint8_t *buf,
			struct err *err)
{
	struct spool *to = upper->below->spool;
	int rc = 0;
	while (rc == 0 && at < end) {
		const bool stored = frames_cover(&upper->stored, at, at + 1);
		const uint64_t stop = min_u64(end, frames_find(&upper->stored, at, !stored));
		rc = stored ? copy_range(upper->spool, to, at, stop, buf, err)
			    : spool_zero(to, at, stop - at, stop, err);
		at = stop;
	}
	return rc;
}

static int copy_layer(const struct layer *upper, struct err *err)
{
	auto_free uint8_t *buf = malloc(COPY);
	uint64_t end;
	int rc = 0;
	if (!buf)
		return err_no_memory(err);
	for (uint64_t at = frames_find(&upper->written, 0, true); rc == 0 && at != FRAMES_NONE;
	     at = frames_find(&upper->written, end, true)) {
		end = frames_find(&upper->written, at, false);
		rc = copy_written(upper, at, end, buf, err);
	}
	return rc;
}

/* From the record on, the upper layer must be gone: a replay removes it there. If an older state is
 * durable, which needs the file of that layer, the record must be durable before the file may go.
 */
static int remove_top(struct draft *d, struct err *err)
{
	char name[SPOOL_NAME];
	const uint32_t generation = d->layers.top->generation;
	int rc = map_append(&d->map, MAP_FOLD, generation, 0, 0, err);
	if (rc)
		return rc;
	struct spool *spool = spool_ref(d->layers.top->spool);
	pthread_mutex_lock(&d->lock);
	layers_pop(&d->layers);
	pthread_mutex_unlock(&d->lock);
	d->synced_changes = UINT64_MAX;
	if (d->synced)
		rc = draft_sync_held(d, err);
	if (rc == 0) {
		spool_name(generation, name);
		unlinkat(d->dir.fd, name, 0);
		sums_remove(&spool->sums);
	}
	spool_unref(spool);
	return rc;
}

static uint64_t read_stored(struct draft *d, uint64_t *need)
{
	pthread_mutex_lock(&d->lock);
	const uint64_t stored = layers_stored(&d->layers);
	if (need)
		*need = layers_merge_need(&d->layers);
	pthread_mutex_unlock(&d->lock);
	return stored;
}

/* Joins the two newest layers. If that fails, they remain as they are. */
static int fold(struct draft *d, struct err *err)
{
	uint64_t need;
	const uint64_t before = read_stored(d, &need);
	int rc = room_take(&d->dir.j->room, need, err);
	if (rc)
		return rc;
	rc = copy_layer(d->layers.top, err);
	if (rc == 0)
		rc = draft_change_layers(d, LAYERS_MERGE, 0, 0, NULL, err);
	if (rc == 0)
		rc = remove_top(d, err);
	room_give(&d->dir.j->room, before + need - read_stored(d, NULL));
	draft_trim_memory(d);
	return rc;
}

/* ---- snapshots ---- */

/* Begins a new set, to which all changes from now on belong. */
static int begin_changes(struct draft *d, struct err *err)
{
	struct changes *c;
	if (!d->layers.changes)
		return 0;
	pthread_mutex_lock(&d->lock);
	c = changes_begin(&d->memory, d->layers.changes);
	if (c)
		d->layers.changes = c;
	pthread_mutex_unlock(&d->lock);
	return c ? 0 : err_no_memory(err);
}

static struct draft_snapshot snapshot_of(struct draft *d, struct draft_snapshot *s)
{
	return (struct draft_snapshot){.draft = d,
				       .layers = d->layers,
				       .source.size = d->layers.size,
				       .source.read_at = draft_snapshot_read,
				       .source.prepare = draft_snapshot_prepare,
				       .source.ctx = s};
}

/* Restores the snapshot for which the plan was made. Its layers have not changed since. */
static void seal_planned(struct draft *d, struct draft_snapshot *s)
{
	*s = snapshot_of(d, s);
	s->layers.top = d->planned;
	s->layers.size = s->source.size = d->planned_size;
	s->changes = d->planned_changes;
	s->since = d->planned_since;
	d->snapshot = s;
}

static int seal_held(struct draft *d, struct draft_snapshot *s, struct err *err)
{
	if (d->planned) {
		seal_planned(d, s);
		return 0;
	}
	while (d->layers.n > 1 && !d->recovered && !d->keeps && fold(d, NULL) == 0)
		;
	const uint64_t changes = atomic_load(&d->changed);
	struct changes *since = d->layers.changes;
	int rc = begin_changes(d, err);
	if (rc)
		return rc;
	if (!d->recovered && d->sealed_changes != changes) {
		rc = map_append(&d->map, MAP_SEAL, d->layers.top->generation, 0, d->layers.size,
				err);
		if (rc)
			return rc;
	}
	*s = snapshot_of(d, s);
	s->changes = changes;
	s->since = since;
	if (!d->recovered)
		sums_save(&d->layers.top->spool->sums, d->layers.top->spool->fd, false);
	d->sealed_changes = changes;
	atomic_store(&d->noted, false);
	d->snapshot = s;
	d->sealed = true;
	return 0;
}

int draft_seal(struct draft *d, struct draft_snapshot **out, struct err *err)
{
	struct draft_snapshot *s = malloc(sizeof(*s));
	if (!s)
		return err_no_memory(err);
	pthread_rwlock_wrlock(&d->changes);
	int rc = d->snapshot ? err_set(err, -EBUSY, "the draft has a snapshot already")
			     : seal_held(d, s, err);
	pthread_rwlock_unlock(&d->changes);
	if (rc) {
		free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void draft_snapshot_accept(struct draft_snapshot *s)
{
	struct draft *d = s->draft;
	struct changes *c = d->layers.changes;
	pthread_mutex_lock(&d->lock);
	while (c && c->before != s->since)
		c = c->before;
	if (c) {
		c->before = NULL;
		changes_free(s->since);
	}
	pthread_mutex_unlock(&d->lock);
	s->since = NULL;
	draft_trim_memory(d);
}

void draft_snapshot_close(struct draft_snapshot *s)
{
	if (!s)
		return;
	struct draft *d = s->draft;
	pthread_rwlock_wrlock(&d->changes);
	d->snapshot = NULL;
	d->sealed = d->sealed && d->keeps;
	pthread_rwlock_unlock(&d->changes);
	free(s);
}
