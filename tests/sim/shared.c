/* SPDX-License-Identifier: Apache-2.0 */
/* See shared.h: the programs. All that they share is used by the running thread only: baton.h. */
#include "shared.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hsmount/engine.h>

#define DIR_NAME "shared"
enum {
	CALLS_MAX = 6,
	BRIEF_CALLS = 12, /* of a program with short calls */
	STEPS_MAX = 7,
	LOOKS_MAX = 4,
	LINGER_MAX = 25,
	REMOVE_LOOKS = 40,
	REMOVE_STEPS = 60,
	SMALL = 150, /* several cells are in one frame of the journal */
	LARGE = 20000,
	LARGE_ONE_IN = 6,
	LARGE_AT = SHARED_SESSIONS * SMALL,
	FILE_MAX = LARGE_AT + SHARED_SESSIONS / LARGE_ONE_IN * LARGE,
	COMMON = LARGE_ONE_IN - 1, /* the place of a small cell that no session has */
};

/* A program. */
struct program_of {
	struct shared *p;
	struct shared_mount *m;
	struct player *by;
	struct engine *e;
};

#define FAULT(g, ...) player_fault(&(g)->p->faults, "shared files", __VA_ARGS__)

/* ---- bytes ---- */

static bool is_large(unsigned int session)
{
	return session % LARGE_ONE_IN == LARGE_ONE_IN - 1;
}

uint64_t shared_cell_at(unsigned int session)
{
	return is_large(session) ? LARGE_AT + session / LARGE_ONE_IN * LARGE : session * SMALL;
}

size_t shared_cell_size(unsigned int session)
{
	return is_large(session) ? LARGE : SMALL;
}

/* None is 0, as those of holes are. */
static uint8_t byte_of(unsigned int session, unsigned int write, size_t at)
{
	const uint64_t v = ((uint64_t)session << 32 | write << 24 | at) + 1;
	return 1 | (uint8_t)(v * UINT64_C(0x9e3779b97f4a7c15) >> 40);
}

static bool is_write(unsigned int session, unsigned int write, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] != (write ? byte_of(session, write, i) : 0))
			return false;
	return true;
}

int shared_read_cells(const struct shared_mount *m, struct engine_file *f, struct shared_view *v,
		      struct err *err)
{
	uint8_t *bytes = calloc(1, FILE_MAX);
	if (!bytes)
		abort();
	const ssize_t got = engine_pread(f, bytes, FILE_MAX, 0, NULL, err);
	v->has_cells = got >= 0 && v->name < SHARED_DOMAINS;
	v->size = got < 0 ? UINT64_MAX : (uint64_t)got;
	for (unsigned int i = 0; v->has_cells && i < m->nsessions; i++) {
		const uint8_t *cell = bytes + shared_cell_at(i);
		unsigned int w = 0;
		while (w <= m->sessions[i].nwrites && !is_write(i, w, cell, shared_cell_size(i)))
			w++;
		v->cells[i] = w <= m->sessions[i].nwrites ? (uint8_t)w : SHARED_TORN;
	}
	free(bytes);
	return got < 0 ? (int)got : 0;
}

void shared_path(const struct shared *p, unsigned int mount, unsigned int name,
		 char path[static SHARED_PATH])
{
	snprintf(path, SHARED_PATH, DIR_NAME "/%u-%u-%u.%s", p->part, mount, name,
		 name < SHARED_DOMAINS ? "dat" : "h5");
}

static const char *path_of(const struct program_of *g, unsigned int name,
			   char path[static SHARED_PATH])
{
	shared_path(g->p, g->by->box->number, name, path);
	return path;
}

/* ---- what is noted ---- */

static uint64_t now(const struct program_of *g)
{
	return player_moment(g->by);
}

static bool is_dead(const struct program_of *g)
{
	return player_is_dead(g->by);
}

/* Whether there is room for what one more call may note. */
static bool has_room(const struct shared_mount *m)
{
	return m->nsessions < SHARED_SESSIONS && m->ncalls + SHARED_MARGIN < SHARED_CALLS &&
	       m->nviews + SHARED_MARGIN < SHARED_VIEWS;
}

static struct shared_call *begin(struct program_of *g, enum shared_kind kind, unsigned int name,
				 unsigned int to)
{
	if (g->m->ncalls == SHARED_CALLS)
		abort();
	struct shared_call *c = &g->m->calls[g->m->ncalls++];
	*c = (struct shared_call){.kind = kind,
				  .outcome = SHARED_MAYBE,
				  .name = name,
				  .to = to,
				  .life = g->by->box->lives,
				  .begin = now(g),
				  .end = UINT64_MAX,
				  .returned = UINT64_MAX};
	return c;
}

/* nothing: the error that says that the call has done nothing. An error that says that may be that
 * of a request which was sent again. */
static void end(struct program_of *g, struct shared_call *c, int rc, int nothing,
		unsigned int repeated)
{
	c->rc = is_dead(g) ? 0 : rc;
	c->returned = is_dead(g) ? UINT64_MAX : now(g);
	if (is_dead(g) || (rc && (rc != nothing || player_has_repeated(g->by, repeated))))
		return;
	c->outcome = rc ? SHARED_NONE : SHARED_DONE;
	c->end = now(g);
}

static void note(struct program_of *g, const char *what, unsigned int name, int rc)
{
	char path[SHARED_PATH];
	player_note(g->by, what, path_of(g, name, path), rc);
	/* Calls fail only if requests or the disk do. */
	if (rc && rc != -ENOENT && rc != -ESTALE && !is_dead(g) && !g->by->box->line.faults &&
	    !g->by->box->disk_faults && !g->by->box->kills && g->by->box->spool_size >= 1 << 24)
		FAULT(g, "%s of %s fails, and nothing has failed: %d", what, path, rc);
}

static struct shared_view *add_view(struct program_of *g, const struct shared_view *v)
{
	if (g->m->nviews == SHARED_VIEWS)
		abort();
	struct shared_view *out = &g->m->views[g->m->nviews++];
	*out = *v;
	return out;
}

/* Notes that a call has found a name, or not. It tells no size. */
static void note_answer(struct program_of *g, unsigned int name, uint64_t from, int rc)
{
	const struct shared_view v = {.kind = SHARED_LOOK,
				      .name = name,
				      .begin = from,
				      .opened = now(g),
				      .end = now(g),
				      .is_there = !rc,
				      .size = UINT64_MAX};
	if (!is_dead(g) && (!rc || rc == -ENOENT))
		add_view(g, &v);
}

/* ---- sessions ---- */

struct opened {
	struct program_of *g;
	struct shared_session *s;
	struct engine_file *file;
	unsigned int number; /* of the session */
};

static int see_draft(struct opened *o, struct err *err)
{
	struct shared_view v = {.kind = SHARED_DRAFT,
				.name = o->s->name,
				.by = o->s,
				.begin = now(o->g),
				.is_there = true};
	const int rc = shared_read_cells(o->g->m, o->file, &v, err);
	v.opened = v.end = now(o->g);
	v.is_lost = rc == -ESTALE;
	if ((!rc || v.is_lost) && !is_dead(o->g))
		add_view(o->g, &v);
	note(o->g, "read of a draft", o->s->name, rc);
	return rc;
}

/* Sessions may write the same bytes at the same time. What is there then is not judged. */
static ssize_t write_common(struct opened *o, struct err *err)
{
	uint8_t bytes[SMALL];
	for (size_t i = 0; i < SMALL; i++)
		bytes[i] = byte_of(o->number, SHARED_WRITES + o->s->nwrites, i);
	return engine_pwrite(o->file, bytes, SMALL, (uint64_t)COMMON * SMALL, err);
}

static int write_cell(struct opened *o, struct err *err)
{
	struct shared_session *s = o->s;
	const size_t n = shared_cell_size(o->number);
	uint8_t bytes[LARGE];
	if (s->nwrites == SHARED_WRITES)
		return 0;
	struct shared_write *w = &s->writes[s->nwrites++];
	for (size_t i = 0; i < n; i++)
		bytes[i] = byte_of(o->number, s->nwrites, i);
	*w = (struct shared_write){.begin = now(o->g), .end = UINT64_MAX};
	const bool is_first = rng_once_in(&o->g->by->random, 2);
	ssize_t put = is_first ? write_common(o, err) : 0;
	w->is_common = put < 0;
	if (put >= 0)
		put = engine_pwrite(o->file, bytes, n, shared_cell_at(o->number), err);
	if (put >= 0 && !is_first) {
		put = write_common(o, err);
		w->is_common = put < 0;
	}
	note(o->g, "write", s->name, put < 0 ? (int)put : 0);
	if (is_dead(o->g))
		return 0;
	w->done = put >= 0;
	w->end = now(o->g);
	return put < 0 ? (int)put : 0;
}

static int save(struct opened *o, int (*fn)(struct engine_file *f, struct err *err),
		const char *what, struct err *err)
{
	struct shared_call *c = begin(o->g, SHARED_SAVE, o->s->name, o->s->name);
	c->draft = o->s->draft;
	const int rc = fn(o->file, err);
	note(o->g, what, o->s->name, rc);
	end(o->g, c, rc, 0, 0);
	return rc;
}

/* truncate(2) and O_TRUNC: the kernel tells the size after the open. */
static int cut(struct opened *o, struct shared_call *c, struct err *err)
{
	const int rc = engine_resize(o->file, 0, err);
	note(o->g, "cut", o->s->name, rc);
	end(o->g, c, rc, 0, 0);
	return rc;
}

/* What the session writes now is beside what it has written. So a part that is missing stays so. */
static void begin_cell(struct opened *o)
{
	struct shared_mount *m = o->g->m;
	if (m->nsessions == SHARED_SESSIONS)
		return;
	const struct shared_session *old = o->s;
	o->s->close_begin = now(o->g);
	o->number = m->nsessions++;
	o->s = &m->sessions[o->number];
	*o->s = (struct shared_session){.name = old->name,
					.draft = old->draft,
					.open_begin = old->open_begin,
					.open_end = old->open_end,
					.close_begin = UINT64_MAX};
}

/* Others often open the file, or remove it, meanwhile. */
static void linger(struct opened *o)
{
	for (unsigned int i = rng_below(&o->g->by->random, LINGER_MAX); i && !is_dead(o->g); i--)
		player_wait(o->g->by);
}

/* A program often goes on after a failure. */
static int use_file(struct opened *o, struct shared_call *cuts, struct err *err)
{
	struct rng *r = &o->g->by->random;
	const bool is_brief = o->g->by->plays == PLAY_BRIEF, holds = o->g->by->plays == PLAY_HOLD;
	const unsigned int steps = is_brief ? 1 : holds ? SHARED_WRITES : rng_below(r, STEPS_MAX);
	int first = cuts ? cut(o, cuts, err) : is_brief ? 0 : see_draft(o, err);
	if (!is_brief && rng_once_in(r, 2))
		linger(o);
	for (unsigned int i = 0; i < steps && !is_dead(o->g); i++) {
		const unsigned int what = holds ? (i % 4 == 3 ? 7 : 0) : rng_below(r, 8);
		struct err *why = first ? NULL : err;
		const int rc = what < 5	   ? write_cell(o, why)
			       : what == 5 ? see_draft(o, why)
					   : save(o, engine_sync, "fsync", why);
		first = first ? first : rc;
		if (holds)
			linger(o);
		if (rc && !holds && rng_once_in(r, 3))
			break;
		if (rc && !is_dead(o->g)) {
			begin_cell(o);
			linger(o);
		}
		player_wait(o->g->by);
	}
	return first;
}

/* A program that is killed does not call close(2); the kernel does. */
static int close_file(struct opened *o, int rc, struct err *err)
{
	const bool flushes = o->s->nwrites && !rng_once_in(&o->g->by->random, 8);
	if (flushes && !is_dead(o->g)) {
		const int saved = save(o, engine_flush, "close", rc ? NULL : err);
		rc = rc ? rc : saved;
		player_wait(o->g->by);
	}
	const struct box *b = o->g->by->box;
	const unsigned int faults = b->line.faults + b->disk_faults;
	struct shared_call *c =
		is_dead(o->g) ? NULL : begin(o->g, SHARED_SAVE, o->s->name, o->s->name);
	if (c)
		c->draft = o->s->draft;
	o->s->close_begin = now(o->g);
	engine_file_close(o->file);
	/* It has no answer. */
	if (c && !is_dead(o->g)) {
		c->returned = now(o->g);
		c->outcome = b->line.faults + b->disk_faults == faults ? SHARED_NONE : SHARED_MAYBE;
	}
	return rc;
}

static int write_file(struct program_of *g, unsigned int name, struct err *err)
{
	struct rng *r = &g->by->random;
	const bool makes = !rng_once_in(r, 3), cuts = rng_once_in(r, 5);
	char path[SHARED_PATH];
	struct opened o = {.g = g};
	struct engine_stat st;
	const uint64_t from = now(g);
	struct shared_call *c =
		makes || cuts ? begin(g, cuts ? SHARED_CUT : SHARED_MAKE, name, name) : NULL;
	const unsigned int flags = (makes ? ENGINE_CREATE : 0) | (cuts ? ENGINE_TRUNCATE : 0);
	const unsigned int repeated = g->by->box->line.repeated;
	int rc = engine_open_write(g->e, path_of(g, name, path), flags, &o.file, err);
	note(g, makes ? "create" : "open", name, rc);
	if (!makes)
		note_answer(g, name, from, rc);
	if (c) {
		c->makes = makes;
		if (rc || !cuts)
			end(g, c, rc, -ENOENT, repeated);
	}
	if (rc)
		return rc;
	if (g->m->nsessions == SHARED_SESSIONS) {
		engine_file_close(o.file);
		return 0;
	}
	engine_file_stat(o.file, &st);
	o.number = g->m->nsessions++;
	o.s = &g->m->sessions[o.number];
	*o.s = (struct shared_session){.name = name,
				       .draft = st.version,
				       .open_begin = from,
				       .open_end = now(g),
				       .close_begin = UINT64_MAX};
	if (c)
		c->draft = st.version;
	rc = use_file(&o, cuts ? c : NULL, err);
	return close_file(&o, rc, err);
}

/* ---- other programs ---- */

static int make_domain(struct program_of *g, unsigned int name, struct err *err)
{
	char path[SHARED_PATH];
	struct engine_file *f;
	struct shared_call *c = begin(g, SHARED_MAKE, name, name);
	int rc = engine_open_write(g->e, path_of(g, name, path), ENGINE_CREATE | ENGINE_TRUNCATE,
				   &f, err);
	if (!rc) {
		rc = engine_resize(f, 0, err);
		if (!rc && engine_pwrite(f, g->p->file, g->p->n, 0, err) < 0)
			rc = err ? err->code : -EIO;
		player_wait(g->by);
		if (!rc)
			rc = engine_flush(f, err);
		engine_file_close(f);
	}
	note(g, "create", name, rc);
	end(g, c, rc, 0, 0);
	return rc;
}

static int read_file(struct program_of *g, unsigned int name, struct err *err)
{
	char path[SHARED_PATH];
	struct engine_file *f;
	struct shared_view v = {.kind = SHARED_READ, .name = name, .begin = now(g)};
	int rc = engine_file_open(g->e, path_of(g, name, path), &f, err);
	v.opened = now(g);
	if (rc) {
		note(g, "open for reading", name, rc);
		note_answer(g, name, v.begin, rc);
		return rc;
	}
	player_wait(g->by);
	v.is_there = true;
	rc = shared_read_cells(g->m, f, &v, err);
	v.end = now(g);
	note(g, "read", name, rc);
	engine_file_close(f);
	if (!rc && !is_dead(g))
		add_view(g, &v);
	return rc;
}

static int look_up(struct program_of *g, unsigned int name, struct err *err)
{
	char path[SHARED_PATH];
	struct engine_stat st = {.size = 0};
	const bool asks = rng_once_in(&g->by->random, 2);
	struct shared_view v = {.kind = SHARED_LOOK, .name = name, .begin = now(g)};
	const int rc =
		(asks ? engine_getattr : engine_lookup)(g->e, path_of(g, name, path), &st, err);
	v.opened = v.end = now(g);
	v.is_there = !rc;
	v.size = st.size;
	note(g, "look-up", name, rc);
	if (!is_dead(g) && (!rc || rc == -ENOENT))
		add_view(g, &v);
	return rc;
}

static int look_often(struct program_of *g, unsigned int name, struct err *err)
{
	int rc = 0;
	for (unsigned int i = rng_below(&g->by->random, LOOKS_MAX); i < LOOKS_MAX && !rc; i++)
		rc = look_up(g, name, err);
	return rc;
}

static int remove_file(struct program_of *g, unsigned int name, struct err *err)
{
	char path[SHARED_PATH];
	const unsigned int repeated = g->by->box->line.repeated;
	struct shared_call *c = begin(g, SHARED_REMOVE, name, name);
	const int rc = engine_unlink(g->e, path_of(g, name, path), err);
	note(g, "unlink", name, rc);
	end(g, c, rc, -ENOENT, repeated);
	if (c->outcome == SHARED_NONE)
		note_answer(g, name, c->begin, rc);
	look_up(g, name, NULL);
	return rc;
}

static int rename_file(struct program_of *g, unsigned int name, struct err *err)
{
	char from[SHARED_PATH], path[SHARED_PATH];
	const unsigned int first = name < SHARED_DOMAINS ? 0 : SHARED_DOMAINS;
	const unsigned int n = first ? SHARED_NAMES - first : SHARED_DOMAINS;
	const unsigned int to = first + (name - first + 1 + rng_below(&g->by->random, n - 1)) % n;
	const unsigned int repeated = g->by->box->line.repeated;
	struct engine_stat st;
	struct shared_call *c = begin(g, SHARED_RENAME, name, to);
	engine_draft_stat(g->e, path_of(g, name, from), &st, &c->is_alone);
	const int rc = engine_rename(g->e, from, path_of(g, to, path), 0, err);
	note(g, "rename", name, rc);
	/* If the journal cannot describe the draft under its new name, it keeps the old one, and
	 * the log says so. */
	if (!g->by->box->disk_faults)
		end(g, c, rc, -ENOENT, repeated);
	if (c->outcome == SHARED_NONE)
		note_answer(g, name, c->begin, rc);
	look_up(g, name, NULL);
	look_up(g, to, NULL);
	return rc;
}

/* The file comes and goes within a second, in which the mount may use what it has found. */
static int call_briefly(struct program_of *g, struct err *err)
{
	const unsigned int what = rng_below(&g->by->random, 8);
	return what < 3	  ? write_file(g, 0, err)
	       : what < 6 ? look_up(g, 0, err)
	       : what < 7 ? remove_file(g, 0, err)
			  : read_file(g, 0, err);
}

static int call(struct program_of *g, struct err *err)
{
	struct rng *r = &g->by->random;
	if (g->by->plays == PLAY_BRIEF)
		return call_briefly(g, err);
	if (g->by->plays == PLAY_HOLD)
		return write_file(g, 0, err);
	/* Most programs meet at one name. */
	const unsigned int name = rng_once_in(r, 3) ? rng_below(r, SHARED_NAMES) : 0;
	const unsigned int what = rng_below(r, 16);
	if (what < 7)
		return name < SHARED_DOMAINS ? write_file(g, name, err) : make_domain(g, name, err);
	if (what < 9)
		return read_file(g, name, err);
	if (what < 12)
		return look_often(g, name, err);
	return what < 14 ? remove_file(g, name, err) : rename_file(g, name, err);
}

static int remove_later(struct program_of *g, struct err *err)
{
	int rc = -ENOENT;
	for (unsigned int i = 0; i < REMOVE_LOOKS && rc == -ENOENT && has_room(g->m); i++) {
		rc = look_up(g, 0, err);
		for (unsigned int k = rng_below(&g->by->random, REMOVE_STEPS); k; k--)
			player_wait(g->by);
	}
	return rc || is_dead(g) ? rc : remove_file(g, 0, err);
}

int shared_run(struct shared *p, struct player *by, struct err *err)
{
	struct program_of g = {p, &p->of[by->box->number], by, by->box->engine};
	const unsigned int calls = by->plays == PLAY_BRIEF ? BRIEF_CALLS
				   : by->plays == PLAY_REMOVE
					   ? 0
					   : 1 + rng_below(&by->random, CALLS_MAX);
	int first = by->plays == PLAY_REMOVE ? remove_later(&g, err) : 0;
	for (unsigned int i = 0; i < calls && !is_dead(&g) && has_room(g.m); i++) {
		const bool asks = player_is_answer(first);
		const int rc = call(&g, asks ? err : NULL);
		first = asks ? rc : first;
		player_wait(by);
	}
	/* Otherwise its mount goes on with the draft that could not be stored. */
	by->has_draft = !player_is_answer(first) && rng_once_in(&by->random, 2);
	return player_is_answer(first) ? 0 : first;
}

/* ---- life ---- */

struct shared *shared_new(const uint8_t *file, size_t n)
{
	struct shared *p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->file = file;
	p->n = n;
	return p;
}

void shared_free(struct shared *p)
{
	if (p)
		str_release(&p->faults);
	free(p);
}

int shared_set_up(struct engine *e, struct err *err)
{
	return engine_mkdir(e, DIR_NAME, err);
}
