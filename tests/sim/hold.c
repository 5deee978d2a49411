/* SPDX-License-Identifier: Apache-2.0 */
/* See hold.h. A hold belongs to the actor of its operation. */
#include "hold.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>
#include <hsmount/recover.h>

enum {
	STATUS = 20,	    /* offset in the superblock: 1 while a library has the file open */
	KEPT = 512,	    /* bytes of an HDF5 file that are not changed otherwise */
	SIZE_MAX_ = 180000, /* a few frames of the journal */
	WRITE_MAX = 9000,
	STEPS_MAX = 40,
	HANDLES = 2,
};
/* Seeds of bytes. */
enum { SEED_TEMPLATE, SEED_STATUS, SEED_OTHERS };

/* Where a byte may come from: bit i is the i-th edit. */
#define FROM_ZERO  (UINT64_C(1) << 63)
#define FROM_FIRST (UINT64_C(1) << 62)

static void __attribute__((format(printf, 2, 3))) fault(struct hold *h, const char *fmt, ...)
{
	char text[300];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	str_addf(&h->faults, "  %s: %s\n", h->path, text);
}

/* ---- states ---- */

static uint8_t byte_of(const struct hold *h, const struct hold_edit *e, uint64_t at)
{
	if (e->seed == SEED_STATUS)
		return 1;
	if (e->seed == SEED_TEMPLATE)
		return at == STATUS ? 1 : h->file[at];
	const uint64_t v = (at + e->seed) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint8_t)(v >> 40);
}

static uint64_t from_edit(const struct hold_edit *e, unsigned int i, uint64_t at)
{
	const bool covers = e->offset <= at && at < e->offset + e->n;
	switch (e->kind) {
	case HOLD_WRITE:
		return covers ? UINT64_C(1) << i : 0;
	case HOLD_ZERO:
		return covers ? FROM_ZERO : 0;
	case HOLD_SIZE:
		return at >= e->offset ? FROM_ZERO : 0;
	default:
		return 0;
	}
}

/* Where a byte may come from in the states from `low` on. */
static uint64_t sources(const struct hold *h, unsigned int low, uint64_t at)
{
	uint64_t now = at < h->n_first ? FROM_FIRST : FROM_ZERO, all = 0;
	for (unsigned int i = 0; i < h->n; i++) {
		const uint64_t from = from_edit(&h->edits[i], i, at);
		if (i >= low)
			all |= now;
		if (from)
			now = h->edits[i].done ? from : now | from;
	}
	return all | now;
}

static bool has_value(const struct hold *h, uint64_t from, uint64_t at, uint8_t v)
{
	if ((from & FROM_ZERO && v == 0) || (from & FROM_FIRST && v == h->first[at]))
		return true;
	for (unsigned int i = 0; i < h->n; i++)
		if (from & UINT64_C(1) << i && byte_of(h, &h->edits[i], at) == v)
			return true;
	return false;
}

/* A few sizes that a file may have, because changes may have failed. */
struct sizes {
	uint64_t v[HOLD_EDITS + 1];
	unsigned int n;
};

static void add_size(struct sizes *s, uint64_t size)
{
	unsigned int i = 0;
	while (i < s->n && s->v[i] != size)
		i++;
	if (i == s->n)
		s->v[s->n++] = size;
}

/* Whether one of the states from `low` on has this size. */
static bool has_size(const struct hold *h, unsigned int low, uint64_t size)
{
	struct sizes now = {.v = {h->n_first}, .n = 1};
	bool found = false;
	for (unsigned int i = 0; i <= h->n && !found; i++) {
		const struct hold_edit *e = &h->edits[i];
		struct sizes next = {.n = 0};
		for (unsigned int k = 0; k < now.n && i >= low; k++)
			found |= now.v[k] == size;
		if (i == h->n || e->kind > HOLD_ALLOCATE)
			continue;
		for (unsigned int k = 0; k < now.n; k++) {
			if (!e->done)
				add_size(&next, now.v[k]);
			add_size(&next, e->kind == HOLD_SIZE ? e->offset
							     : max_u64(now.v[k], e->offset + e->n));
		}
		now = next;
	}
	return found;
}

/* The next place where another set of sources may begin. */
static uint64_t next_place(const struct hold *h, uint64_t at, uint64_t end)
{
	uint64_t next = end;
	if (at < h->n_first)
		next = min_u64(next, h->n_first);
	for (unsigned int i = 0; i < h->n; i++) {
		const struct hold_edit *e = &h->edits[i];
		if (e->offset > at)
			next = min_u64(next, e->offset);
		if (e->offset + e->n > at)
			next = min_u64(next, e->offset + e->n);
	}
	return next;
}

/* Returns where bytes from `start` on are not those of a state, or UINT64_MAX. */
static uint64_t differs(const struct hold *h, unsigned int low, uint64_t start, uint64_t n,
			const uint8_t *bytes)
{
	for (uint64_t at = start, next; at < start + n; at = next) {
		const uint64_t from = sources(h, low, at);
		next = next_place(h, at, start + n);
		for (uint64_t i = at; i < next; i++)
			if (!has_value(h, from, i, bytes[i - start]))
				return i;
	}
	return UINT64_MAX;
}

/* ---- the program ---- */

struct hold *hold_new(unsigned int number, struct box *b, const uint8_t *file, size_t n)
{
	struct hold *h = calloc(1, sizeof(*h));
	if (!h)
		abort();
	h->kind = (enum hold_kind)(number % HOLD_KINDS);
	h->box = b;
	h->file = file;
	h->n_file = n;
	h->powers = b->powers;
	snprintf(h->path, sizeof(h->path), "f%u/held%u.%s", 1 + number % 3, number,
		 h->kind == HOLD_OTHER ? "dat" : "h5");
	return h;
}

void hold_free(struct hold *h)
{
	if (!h)
		return;
	str_release(&h->faults);
	free(h->first);
	free(h);
}

int hold_begin(struct hold *h, struct err *err)
{
	struct engine_file *f;
	if (h->kind != HOLD_CHANGE)
		return 0;
	int rc = engine_open_write(h->box->engine, h->path, ENGINE_CREATE | ENGINE_TRUNCATE, &f,
				   err);
	if (rc)
		return rc;
	rc = engine_resize(f, 0, err);
	if (!rc && engine_pwrite(f, h->file, h->n_file, 0, err) < 0)
		rc = err ? err->code : -EIO;
	if (!rc)
		rc = engine_flush(f, err);
	engine_file_close(f);
	return rc;
}

static struct hold_edit make_edit(const struct hold *h, struct rng *r)
{
	const uint64_t kept = h->kind == HOLD_OTHER ? 0 : KEPT;
	struct hold_edit e = {.kind = HOLD_WRITE, .seed = SEED_OTHERS + rng_next(r) % 100000};
	const unsigned int what = rng_below(r, 12);
	if (!h->n && h->kind == HOLD_NEW)
		return (struct hold_edit){
			.kind = HOLD_WRITE, .n = h->n_file, .seed = SEED_TEMPLATE};
	if (!h->n && h->kind == HOLD_CHANGE)
		return (struct hold_edit){
			.kind = HOLD_WRITE, .offset = STATUS, .n = 1, .seed = SEED_STATUS};
	e.offset = kept + rng_below(r, rng_once_in(r, 2) ? 12000 : SIZE_MAX_);
	e.n = 1 + rng_below(r, rng_once_in(r, 3) ? 16 : WRITE_MAX);
	if (what < 2)
		e = (struct hold_edit){.kind = HOLD_SYNC};
	else if (what == 2)
		e = (struct hold_edit){.kind = HOLD_SIZE, .offset = e.offset};
	else if (what == 3)
		e.kind = rng_once_in(r, 3) ? HOLD_ALLOCATE : HOLD_ZERO;
	/* Writes often continue or replace what was there just before. */
	if (e.kind == HOLD_WRITE && h->n && h->edits[h->n - 1].kind == HOLD_WRITE &&
	    h->edits[h->n - 1].offset >= kept && rng_once_in(r, 3))
		e.offset =
			h->edits[h->n - 1].offset + (rng_once_in(r, 2) ? h->edits[h->n - 1].n : 0);
	return e;
}

static int write_edit(const struct hold *h, const struct hold_edit *e, struct engine_file *f,
		      struct err *err)
{
	uint8_t *bytes = malloc(e->n);
	if (!bytes)
		abort();
	for (uint64_t i = 0; i < e->n; i++)
		bytes[i] = byte_of(h, e, e->offset + i);
	const ssize_t put = engine_pwrite(f, bytes, e->n, e->offset, err);
	free(bytes);
	return put < 0 ? (int)put : 0;
}

static int make_change(const struct hold *h, const struct hold_edit *e, struct engine_file *f,
		       struct err *err)
{
	switch (e->kind) {
	case HOLD_WRITE:
		return write_edit(h, e, f, err);
	case HOLD_SIZE:
		return engine_resize(f, e->offset, err);
	case HOLD_ALLOCATE:
		return engine_allocate(f, 0, e->offset, e->n, err);
	case HOLD_ZERO:
		return engine_allocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, e->offset,
				       e->n, err);
	default:
		return engine_sync(f, err);
	}
}

/* Whether something has failed, so that reads may fail, too. */
static bool has_failures(const struct hold *h)
{
	return h->box->line.dead || h->box->line.faults || h->box->disk_faults || h->box->kills;
}

/* Bytes of a hole are 0. */
static void look_for_hole(struct hold *h, struct engine_file *f, uint64_t start)
{
	enum { HOLE = 20000 };
	static const uint8_t zeros[HOLE];
	const int64_t data = engine_seek(f, start, SEEK_DATA),
		      hole = engine_seek(f, start, SEEK_HOLE);
	const uint64_t n = data < 0 ? HOLE : min_u64((uint64_t)data - start, HOLE);
	if (h->box->line.dead || (data < 0 && data != -ENXIO))
		return;
	if (differs(h, h->n, start, n, zeros) != UINT64_MAX ||
	    (hole >= 0 && differs(h, h->n, (uint64_t)hole, 1, zeros) != UINT64_MAX))
		fault(h, "there is a hole at %llu or %lld, where bytes were written",
		      (unsigned long long)start, (long long)hole);
}

/* All descriptors show the last state. */
static void look(struct hold *h, struct engine_file *f, struct rng *r)
{
	enum { LOOK = 20000 };
	struct err err = ERR_INIT;
	uint8_t *bytes = malloc(LOOK);
	const uint64_t start = rng_below(r, SIZE_MAX_);
	const ssize_t got = engine_pread(f, bytes, LOOK, start, NULL, &err);
	if (!h->box->line.dead) {
		const uint64_t at =
			got > 0 ? differs(h, h->n, start, (uint64_t)got, bytes) : UINT64_MAX;
		if (at != UINT64_MAX)
			fault(h, "the program reads another byte at %llu than it has written",
			      (unsigned long long)at);
		if (got < 0 && !has_failures(h))
			fault(h, "a read fails, and nothing has failed: %s", err.msg);
		if (got >= 0 && got < LOOK && got > 0 && !has_size(h, h->n, start + (uint64_t)got))
			fault(h, "a read ends at %llu",
			      (unsigned long long)(start + (uint64_t)got));
	}
	free(bytes);
	look_for_hole(h, f, start);
}

/* A program that opens the file while others write it has the same draft. */
static void look_at_draft(struct hold *h, struct rng *r)
{
	struct engine_stat st;
	struct engine_file *f;
	struct err err = ERR_INIT;
	bool alone;
	if (!engine_draft_stat(h->box->engine, h->path, &st, &alone)) {
		fault(h, "its draft is not there while it is open");
		return;
	}
	if (!h->box->line.dead && !has_size(h, h->n, st.size))
		fault(h, "its draft has the size %llu", (unsigned long long)st.size);
	if (engine_open_draft(h->box->engine, st.version, &f, &err)) {
		fault(h, "its draft cannot be opened: %s", err.msg);
		return;
	}
	look(h, f, r);
	engine_file_close(f);
}

static int open_all(struct hold *h, struct engine_file *f[HANDLES], struct err *err)
{
	const unsigned int flags = h->kind == HOLD_CHANGE ? 0 : ENGINE_CREATE | ENGINE_TRUNCATE;
	int rc = engine_open_write(h->box->engine, h->path, flags, &f[0], err);
	if (!rc && flags)
		rc = engine_resize(f[0], 0, err);
	if (!rc)
		rc = engine_open_write(h->box->engine, h->path, 0, &f[1], err);
	return rc;
}

/* What lies beneath. */
static int read_first(struct hold *h, struct engine_file *f, struct err *err)
{
	if (h->kind != HOLD_CHANGE)
		return 0;
	h->first = malloc(SIZE_MAX_);
	const ssize_t got = engine_pread(f, h->first, SIZE_MAX_, 0, NULL, err);
	if (got >= 0) {
		h->n_first = (size_t)got;
		return 0;
	}
	free(h->first);
	h->first = NULL;
	return (int)got;
}

static void *sync_file(void *arg)
{
	struct hold *h = arg;
	h->synced = engine_sync(h->syncs, NULL);
	h->sync->done = !h->synced && !h->box->line.dead;
	h->sync->until = h->n;
	return NULL;
}

/* Waits for the thread that is in fsync(2), and returns what that has returned. */
static int end_sync(struct hold *h)
{
	if (!h->syncs)
		return 0;
	pthread_join(h->syncer, NULL);
	h->syncs = NULL;
	return h->synced;
}

static int begin_sync(struct hold *h, struct hold_edit *e, struct engine_file *f)
{
	const int rc = end_sync(h);
	h->syncs = f;
	h->sync = e;
	if (pthread_create(&h->syncer, NULL, sync_file, h))
		abort();
	return rc;
}

static int change_all(struct hold *h, struct engine_file *f[HANDLES], struct rng *r,
		      void (*wait)(void *ctx), void *ctx, struct err *err)
{
	const unsigned int steps = 4 + rng_below(r, STEPS_MAX);
	int first = 0;
	for (unsigned int i = 0; i < steps && !h->box->line.dead; i++) {
		struct hold_edit *e = &h->edits[h->n];
		*e = make_edit(h, r);
		h->n++;
		struct engine_file *by = f[rng_below(r, HANDLES)];
		const bool waits = e->kind != HOLD_SYNC || !rng_once_in(r, 2);
		const int rc =
			waits ? make_change(h, e, by, first ? NULL : err) : begin_sync(h, e, by);
		if (waits)
			e->done = !rc && !h->box->line.dead;
		first = first ? first : rc;
		/* Without its beginning, the file is not what the model believes. */
		if (rc && h->n == 1)
			return rc;
		if (rng_once_in(r, 4) && !h->box->line.dead)
			look(h, f[rng_below(r, HANDLES)], r);
		if (rng_once_in(r, 8) && !h->box->line.dead)
			look_at_draft(h, r);
		wait(ctx);
	}
	const int synced = end_sync(h);
	return first ? first : synced;
}

/* close(2) of each descriptor. That of a complete file is as an fsync(2). */
static int close_all(struct hold *h, struct engine_file *f[HANDLES], struct err *err)
{
	int first = 0;
	h->is_closed = !h->box->line.dead;
	for (unsigned int i = 0; i < HANDLES; i++) {
		if (!f[i])
			continue;
		const bool tells = h->kind == HOLD_OTHER && h->n < HOLD_EDITS;
		const unsigned int at = h->n;
		if (tells)
			h->edits[h->n++] = (struct hold_edit){.kind = HOLD_CLOSE};
		const int rc = engine_flush(f[i], first ? NULL : err);
		if (tells)
			h->edits[at].done = !rc && !h->box->line.dead;
		first = first ? first : rc;
		engine_file_close(f[i]);
	}
	return first;
}

int hold_run(struct hold *h, struct rng *r, void (*wait)(void *ctx), void *ctx, struct err *err)
{
	struct engine_file *f[HANDLES] = {NULL};
	const unsigned int faults = h->box->line.faults; /* of all operations */
	int rc = open_all(h, f, err);
	if (!rc)
		rc = read_first(h, f[0], err);
	h->is_unlisted = h->box->line.faults != faults;
	if (!rc)
		rc = change_all(h, f, r, wait, ctx, err);
	if (h->kills)
		box_kill(h->box);
	const int closed = close_all(h, f, rc ? NULL : err);
	return rc ? rc : closed;
}

/* ---- what must be there ---- */

enum finding { ABSENT, RIGHT, WRONG };

/* Whether one of the first n changes is a write that has failed. */
static bool lacks_part(const struct hold *h, uint64_t n)
{
	for (unsigned int i = 0; i < n; i++)
		if (h->edits[i].kind == HOLD_WRITE && !h->edits[i].done)
			return true;
	return false;
}

/* The number of the last state that was acknowledged, or -1. stored: as in the bucket. A file that
 * lacks a part replaces nothing: close() does nothing then, and fsync() makes the journal durable
 * (DETAILS.md, "Failed writes"). */
static int acknowledged(const struct hold *h, bool stored)
{
	int last = -1;
	for (unsigned int i = 0; i < h->n; i++) {
		const struct hold_edit *e = &h->edits[i];
		const bool lacks = h->kind != HOLD_OTHER || lacks_part(h, max_u64(i, e->until));
		if ((e->kind == HOLD_SYNC || e->kind == HOLD_CLOSE) && e->done &&
		    (!lacks || (!stored && e->kind == HOLD_SYNC)))
			last = (int)i;
	}
	return last;
}

static bool has_changes(const struct hold *h, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (h->edits[i].done && h->edits[i].kind < HOLD_SYNC)
			return true;
	return false;
}

/* The first state of those that are right now, or -1: nothing must be there. */
static int least_state(const struct hold *h)
{
	const int k = h->box->powers > h->powers ? acknowledged(h, false) : (int)h->n;
	return k > 0 && has_changes(h, (unsigned int)k) ? k : -1;
}

struct look_up {
	const struct hold *hold;
	char id[32];
	bool is_there, is_readable;
	struct str why;
};

static int note_draft(void *arg, const struct engine_draft_item *item)
{
	struct look_up *l = arg;
	const char *path = item->path[0] == '/' ? item->path + 1 : item->path;
	if (item->state == ENGINE_DRAFT_UNREADABLE)
		str_addf(&l->why, " unreadable draft %s of \"%s\": %s;", item->id, path, item->why);
	if (strcmp(path, l->hold->path) != 0 || l->is_readable)
		return 0;
	l->is_there = true;
	l->is_readable = item->state == ENGINE_DRAFT_WAITING;
	snprintf(l->id, sizeof(l->id), "%s", item->id);
	if (!l->is_readable)
		str_addf(&l->why, " its draft is %s: %s;", engine_draft_state_name(item->state),
			 item->why);
	return 0;
}

static enum finding judge(const struct hold *h, unsigned int low, const uint8_t *bytes,
			  uint64_t size, struct str *why)
{
	if (!has_size(h, low, size)) {
		str_addf(why, " its size is %llu;", (unsigned long long)size);
		return WRONG;
	}
	const uint64_t at = differs(h, low, 0, size, bytes);
	if (at == UINT64_MAX)
		return RIGHT;
	str_addf(why, " the byte at %llu is %u;", (unsigned long long)at, bytes[at]);
	return WRONG;
}

static enum finding judge_draft(const struct hold *h, unsigned int low, struct engine_drafts *all,
				const char *id, const struct engine_options *bucket,
				struct str *why)
{
	struct engine_draft *d;
	struct err err = ERR_INIT;
	enum finding found = WRONG;
	const int rc = engine_draft_open(all, id, bucket, &d, &err);
	/* The keys of the domain could not be listed then, and now they can (DETAILS.md,
	 * "Unfinished changes"). */
	if (rc == -ESTALE && h->is_unlisted)
		return RIGHT;
	if (rc) {
		str_addf(why, " its draft cannot be opened: %s;", err.msg);
		return WRONG;
	}
	const uint64_t size = engine_draft_size(d);
	uint8_t *bytes = malloc(size + 1);
	if (!bytes || engine_draft_read(d, bytes, size, 0, &err))
		str_addf(why, " its draft cannot be read: %s;", err.msg);
	else
		found = judge(h, low, bytes, size, why);
	free(bytes);
	engine_draft_close(d);
	return found;
}

static enum finding find_draft(const struct hold *h, unsigned int low, const char *journal,
			       const struct engine_options *bucket, struct str *why)
{
	struct engine_drafts *all;
	struct look_up l = {.hold = h};
	enum finding found = ABSENT;
	struct err err = ERR_INIT;
	if (engine_drafts_open(journal, &all, &err)) {
		str_addf(why, " the journal cannot be opened: %s;", err.msg);
		return WRONG;
	}
	if (engine_drafts_list(all, NULL, note_draft, &l, &err) < 0)
		str_addf(why, " the drafts cannot be listed: %s;", err.msg);
	str_addf(why, "%s", str_text(&l.why));
	if (l.is_readable)
		found = judge_draft(h, low, all, l.id, bucket, why);
	else if (l.is_there)
		found = WRONG;
	engine_drafts_close(all);
	str_release(&l.why);
	return found;
}

void hold_check_journal(struct hold *h, const char *journal, const struct engine_options *bucket)
{
	const int low = least_state(h);
	struct str why = {0};
	/* A complete file may be in the bucket, and its journal need not be durable then. */
	const bool may_be_stored = h->kind == HOLD_OTHER || (h->kind == HOLD_NEW && h->is_closed);
	if (low < 0 || h->is_dropped || (may_be_stored && h->box->powers > h->powers))
		return;
	const enum finding found = find_draft(h, (unsigned int)low, journal, bucket, &why);
	if (found == WRONG || (found == ABSENT && !may_be_stored))
		fault(h, "after a %s, the journal %s state %d of %u:%s",
		      h->box->powers > h->powers ? "power loss" : "kill",
		      found == WRONG ? "has not" : "has no draft with", low, h->n, str_text(&why));
	str_release(&why);
}

static enum finding find_stored(const struct hold *h, unsigned int low, struct engine *e,
				struct str *why)
{
	struct engine_file *f;
	struct err err = ERR_INIT;
	enum finding found = WRONG;
	int rc = engine_file_open(e, h->path, &f, &err);
	if (rc == -ENOENT)
		return ABSENT;
	if (rc) {
		str_addf(why, " the bucket's file cannot be opened: %s;", err.msg);
		return WRONG;
	}
	uint8_t *bytes = malloc(2 * SIZE_MAX_);
	const ssize_t got = engine_pread(f, bytes, 2 * SIZE_MAX_, 0, NULL, &err);
	if (got < 0)
		str_addf(why, " the bucket's file cannot be read: %s;", err.msg);
	else
		found = judge(h, low, bytes, (uint64_t)got, why);
	free(bytes);
	engine_file_close(f);
	return found;
}

/* A domain whose change is not complete stays as it was. If its keys could not be listed, the
 * program has seen another image, with a place for each chunk. */
static void check_beneath(struct hold *h, struct engine *e)
{
	const struct hold before = {.kind = h->kind, .first = h->first, .n_first = h->n_first};
	struct hold first = before;
	struct str why = {0};
	memcpy(first.path, h->path, sizeof(first.path));
	if (h->first && !h->is_unlisted && find_stored(&first, 0, e, &why) != RIGHT)
		fault(h, "a change that is not complete has changed the domain:%s", str_text(&why));
	str_release(&why);
}

void hold_check_end(struct hold *h, struct engine *e, const char *journal,
		    const struct engine_options *bucket)
{
	const int last = acknowledged(h, true), low = least_state(h);
	struct str why = {0};
	enum finding stored = ABSENT;
	if (h->kind == HOLD_CHANGE)
		check_beneath(h, e);
	else
		stored = find_stored(h, low < 0 ? 0 : (unsigned int)low, e, &why);
	/* What was acknowledged of a complete file is in the bucket. */
	if (last > 0 && has_changes(h, (unsigned int)last) &&
	    find_stored(h, (unsigned int)last, e, &why) != RIGHT)
		fault(h, "the bucket has not state %d of %u, which was acknowledged:%s", last, h->n,
		      str_text(&why));
	if (low >= 0 && !h->is_dropped && stored != RIGHT &&
	    find_draft(h, (unsigned int)low, journal, bucket, &why) != RIGHT)
		fault(h, "at the end, neither the bucket nor the journal has state %d of %u:%s",
		      low, h->n, str_text(&why));
	str_release(&why);
}
