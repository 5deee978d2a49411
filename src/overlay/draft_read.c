/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a draft and its snapshots. */
#include "draft_internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <base/mem.h>

static int read_run(const struct draft *d, const struct run *run, uint64_t at, void *buf,
		    struct err *err)
{
	const size_t n = (size_t)(run->end - at);
	int rc;
	switch (run->kind) {
	case RUN_SPOOL:
		rc = spool_read(run->spool, at, buf, n, err);
		return rc == -EBADMSG ? err_wrap(err, rc, "draft %s", d->dir.id) : rc;
	case RUN_BENEATH:
		if (!d->beneath.read)
			return err_set(err, -EIO, "what lies beneath the draft is not available");
		return d->beneath.read(d->beneath.ctx, at, buf, n, err);
	case RUN_ZERO:
		break;
	}
	memset(buf, 0, n);
	return 0;
}

/* Finds the run at `at`, with a reference to its spool: the layer may be folded while it is read.
 * Returns false at the end of the file. */
static bool find_live(struct draft *d, uint64_t at, uint64_t end, struct run *run)
{
	pthread_mutex_lock(&d->lock);
	end = min_u64(end, d->layers.size);
	if (at < end) {
		*run = layers_find(&d->layers, at, end);
		if (run->kind == RUN_SPOOL)
			spool_ref(run->spool);
	}
	pthread_mutex_unlock(&d->lock);
	return at < end;
}

int draft_read(struct draft *d, uint64_t offset, void *buf, size_t n, size_t *got, struct err *err)
{
	const uint64_t end = offset + min_u64(n, UINT64_MAX - offset);
	uint64_t at = offset;
	struct run run;
	int rc = 0;
	while (rc == 0 && find_live(d, at, end, &run)) {
		rc = read_run(d, &run, at, (uint8_t *)buf + (at - offset), err);
		if (run.kind == RUN_SPOOL)
			spool_unref(run.spool);
		at = run.end;
	}
	*got = rc ? 0 : (size_t)(at - offset);
	return rc;
}

int draft_seek(struct draft *d, uint64_t offset, int whence, uint64_t *found)
{
	int rc = -ENXIO;
	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return -EINVAL;
	pthread_mutex_lock(&d->lock);
	const uint64_t size = d->layers.size;
	for (uint64_t at = offset; rc && at < size;) {
		const struct run run = layers_find(&d->layers, at, size);
		if ((run.kind == RUN_ZERO) == (whence == SEEK_HOLE)) {
			*found = at;
			rc = 0;
		}
		at = run.end;
	}
	pthread_mutex_unlock(&d->lock);
	if (rc && whence == SEEK_HOLE && offset < size) {
		*found = size;
		rc = 0;
	}
	return rc;
}

static enum draft_extent_kind kind_of(const struct draft *d, uint64_t size, uint64_t at,
				      uint64_t *end)
{
	static const enum draft_extent_kind kinds[] = {
		[RUN_ZERO] = DRAFT_HOLE,
		[RUN_SPOOL] = DRAFT_WRITTEN,
		[RUN_BENEATH] = DRAFT_BENEATH,
	};
	const struct run run = layers_find(&d->layers, at, size);
	*end = run.end;
	return kinds[run.kind];
}

bool draft_next_extent(struct draft *d, struct draft_extent *x)
{
	pthread_mutex_lock(&d->lock);
	const uint64_t size = d->layers.size;
	const bool found = x->end < size;
	uint64_t end;
	if (found) {
		x->start = x->end;
		x->kind = kind_of(d, size, x->start, &x->end);
		/* Neighbours of other generations, or that were written apart. */
		while (x->end < size && kind_of(d, size, x->end, &end) == x->kind)
			x->end = end;
	}
	pthread_mutex_unlock(&d->lock);
	return found;
}

void draft_get_stat(struct draft *d, struct draft_stat *out)
{
	*out = (struct draft_stat){.changes = atomic_load(&d->changed),
				   .mark = atomic_load(&d->mark),
				   .is_sealed = d->was_sealed,
				   .is_marked = atomic_load(&d->is_marked)};
	pthread_mutex_lock(&d->lock);
	out->size = d->layers.size;
	out->spooled = layers_stored(&d->layers);
	out->memory = d->memory.used;
	pthread_mutex_unlock(&d->lock);
}

/* ---- snapshots ---- */

int draft_snapshot_read(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	const struct draft_snapshot *s = ctx;
	const uint64_t end = offset + n;
	int rc = 0;
	for (uint64_t at = offset; rc == 0 && at < end;) {
		const struct run run = layers_find(&s->layers, at, end);
		rc = read_run(s->draft, &run, at, (uint8_t *)buf + (at - offset), err);
		at = run.end;
	}
	return rc;
}

int draft_snapshot_prepare(void *ctx, uint64_t offset, uint64_t n, struct source_part *part,
			   struct err *err)
{
	struct draft_snapshot *s = ctx;
	const uint64_t end = offset + n;
	const struct run run = layers_find(&s->layers, offset, end);
	if (run.kind != RUN_SPOOL || run.end < end)
		return -ENOTSUP;
	*part = (struct source_part){.source = &s->source, .offset = offset, .n = n};
	return spool_prepare(run.spool, offset, n, &part->crc, err);
}

struct source *draft_snapshot_source(struct draft_snapshot *s)
{
	return &s->source;
}

/* Returns the first byte of [start, end) that comes from what lies beneath or, if `beneath` is
 * false, that does not; or end if there is none. What is behind the end of the file does not come
 * from beneath. */
static uint64_t next_run(const struct draft_snapshot *s, uint64_t start, uint64_t end, bool beneath)
{
	const uint64_t size = s->layers.size, stop = min_u64(end, size);
	uint64_t at = start;
	while (at < stop) {
		const struct run run = layers_find(&s->layers, at, stop);
		if ((run.kind == RUN_BENEATH) == beneath)
			return at;
		at = run.end;
	}
	return beneath ? end : min_u64(end, max_u64(at, start));
}

uint64_t draft_snapshot_next_written(const struct draft_snapshot *s, uint64_t start, uint64_t end)
{
	return next_run(s, start, end, false);
}

/* Of a draft that was opened for recovery, all changes count. */
uint64_t draft_snapshot_next_changed(const struct draft_snapshot *s, uint64_t start, uint64_t end)
{
	return s->since ? changes_next(s->since, start, end) : next_run(s, start, end, false);
}

bool draft_snapshot_is_changed(const struct draft_snapshot *s, uint64_t start, uint64_t end)
{
	return draft_snapshot_next_changed(s, start, end) < end;
}

bool draft_snapshot_holds(const struct draft_snapshot *s, uint64_t start, uint64_t end)
{
	return end <= s->layers.size && next_run(s, start, end, true) >= end;
}

uint64_t draft_snapshot_changes(const struct draft_snapshot *s)
{
	return s->changes;
}
