/* SPDX-License-Identifier: Apache-2.0 */
/* See plain.h. All that the engines share is used by the running thread only: baton.h. */
#include "plain.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>
#include <hsmount/engine.h>

#include "baton.h"

/* A program. */
struct plain_program {
	struct plain *p;
	struct player *by;
};

enum {
	EMPTY = 1, /* the content without a record */
	CALLS_MAX = 5,
	ROUNDS_MAX = 3,
	DEPTH_MAX = 8, /* records of a file that is appended to */
	TAG = 8,       /* bytes */
	FILE_MAX = 1 << 20,
};
#define TAG_BASE UINT64_C(0x706c61696e000000)

static void __attribute__((format(printf, 2, 3))) fault(struct plain *p, const char *fmt, ...)
{
	char text[300];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	str_addf(&p->faults, "  plain objects: %s\n", text);
}

/* ---- contents ---- */

static uint64_t tag_of(unsigned int record)
{
	return TAG_BASE + record;
}

/* Some records begin as an HDF5 file of an unknown version. No domain can hold a file that begins
 * with one of them. */
static const uint8_t unknown_version[16] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n', 0xfe};

static size_t tag_at(unsigned int record)
{
	return record % 4 == 3 ? sizeof(unknown_version) : 0;
}

/* Some records have a few frames of the journal. */
static size_t size_of(unsigned int record)
{
	struct rng r = rng_derive(record, 700);
	const unsigned int limit = rng_once_in(&r, 8) ? 150000 : rng_once_in(&r, 3) ? 9000 : 200;
	return tag_at(record) + TAG + rng_below(&r, limit);
}

static uint8_t byte_of(unsigned int record, size_t at)
{
	const uint64_t tag = tag_of(record);
	if (at < tag_at(record))
		return unknown_version[at];
	if (at < tag_at(record) + TAG)
		return (uint8_t)(tag >> 8 * (at - tag_at(record)));
	return (uint8_t)(((tag + at) * UINT64_C(0x9e3779b97f4a7c15)) >> 40);
}

static uint16_t content_with(struct plain *p, uint16_t before, unsigned int record)
{
	for (unsigned int i = EMPTY + 1; i < p->ncontents; i++)
		if (p->contents[i].before == before && p->contents[i].record == record)
			return (uint16_t)i;
	return 0;
}

/* The content of these bytes, or 0: nobody has made it. */
static uint16_t content_of(struct plain *p, const uint8_t *bytes, size_t n)
{
	uint16_t content = EMPTY;
	for (size_t at = 0, size; at < n; at += size) {
		const size_t head = bytes[at] == unknown_version[0] ? sizeof(unknown_version) : 0;
		uint64_t tag = 0;
		for (size_t i = 0; i < TAG && at + head + i < n; i++)
			tag |= (uint64_t)bytes[at + head + i] << 8 * i;
		if (tag < TAG_BASE || tag >= TAG_BASE + p->nrecords)
			return 0;
		const unsigned int record = (unsigned int)(tag - TAG_BASE);
		size = size_of(record);
		for (size_t i = 0; i < size; i++)
			if (at + i >= n || bytes[at + i] != byte_of(record, i))
				return 0;
		content = content_with(p, content, record);
		if (!content)
			return 0;
	}
	return content;
}

static unsigned int depth_of(const struct plain *p, uint16_t content)
{
	unsigned int n = 0;
	for (; content > EMPTY; content = p->contents[content].before)
		n++;
	return n;
}

static size_t length_of(const struct plain *p, uint16_t content)
{
	size_t n = 0;
	for (; content > EMPTY; content = p->contents[content].before)
		n += size_of(p->contents[content].record);
	return n;
}

/* Whether one of its records begins where an HDF5 file has its superblock: at 0, 512, 1024, … */
static bool is_hdf5(const struct plain *p, uint16_t content)
{
	bool found = false;
	for (; content > EMPTY && !found; content = p->contents[content].before) {
		const size_t at = length_of(p, p->contents[content].before);
		found = tag_at(p->contents[content].record) && at % 512 == 0 &&
			(at & (at - 1)) == 0;
	}
	return found;
}

/* ---- names ---- */

struct name {
	char path[32];
};

static struct name name_of(unsigned int i)
{
	struct name n;
	snprintf(n.path, sizeof(n.path), PLAIN_DIR "/file%u.dat", i);
	return n;
}

static void note(struct plain_program *g, const char *what, unsigned int name, int rc)
{
	player_note(g->by, what, name_of(name).path, rc);
}

static int first_of(int first, int rc)
{
	return player_is_answer(first) ? rc : first;
}

/* ---- programs that read ---- */

/* Reads a file in two parts, between which others may run. Returns its content, or a negative
 * errno. */
static int read_all(struct plain_program *g, struct engine_file *f, const char *who,
		    unsigned int name, struct err *err)
{
	uint8_t *bytes = malloc(FILE_MAX);
	struct engine_stat st;
	if (!bytes)
		abort();
	engine_file_stat(f, &st);
	const size_t half = (size_t)(st.size / 2);
	ssize_t got = engine_pread(f, bytes, half, 0, NULL, err), more = 0;
	if (got >= 0) {
		player_wait(g->by);
		more = engine_pread(f, bytes + got, FILE_MAX - half, (uint64_t)got, NULL, err);
	}
	int rc = got < 0 ? (int)got : more < 0 ? (int)more : 0;
	if (!rc && !player_is_dead(g->by)) {
		rc = content_of(g->p, bytes, (size_t)(got + more));
		if (!rc)
			fault(g->p,
			      "engine %u, %s: file%u has %zd bytes that are no content which "
			      "anybody has written",
			      g->by->box->number, who, name, got + more);
	}
	free(bytes);
	return rc;
}

/* Opens a name, and does the same. *opened: the moment at which the open has returned. */
static int open_and_read(struct plain_program *g, const char *who, unsigned int name,
			 uint64_t *opened, struct err *err)
{
	struct engine_file *f;
	int rc = engine_file_open(g->by->box->engine, name_of(name).path, &f, err);
	*opened = player_moment(g->by);
	if (rc)
		return rc;
	rc = read_all(g, f, who, name, err);
	engine_file_close(f);
	return rc;
}

static int read_file(struct plain_program *g, unsigned int name, struct err *err)
{
	struct order_act *a = player_begin(g->by, "read", name, name);
	const uint64_t from = player_moment(g->by);
	uint64_t opened;
	if (!a)
		return 0;
	const int rc = open_and_read(g, "a reader", name, &opened, err);
	note(g, "read", name, rc);
	if (!player_is_dead(g->by) && (rc > 0 || rc == -ENOENT))
		player_look(g->by, a, ORDER_SHOW, (uint16_t)(rc > 0 ? rc : 0), from)->until =
			opened;
	player_end(g->by, a);
	return rc > 0 ? 0 : rc;
}

/* Another program of this machine opens a file that is being written. It sees what was committed
 * last, or the draft if there is nothing (SEMANTICS.md, "Writing files"). If another mount has
 * removed what was there, it may see that. `now` is the content of the draft. */
static int look_inside(struct plain_program *g, const struct order_act *session, unsigned int name,
		       uint16_t now, struct err *err)
{
	struct order_act *a = player_begin(g->by, "look", name, name);
	const uint64_t from = player_moment(g->by);
	uint64_t opened;
	if (!a)
		return 0;
	const int rc = open_and_read(g, "a reader beside the writer", name, &opened, err);
	const bool is_bare = rc == -ENOENT;
	note(g, "look", name, rc);
	if ((rc > 0 || is_bare) && !player_is_dead(g->by)) {
		const enum order_kind kind = is_bare	 ? ORDER_BARE
					     : rc == now ? ORDER_DRAFT
							 : ORDER_SHOW;
		struct order_step *s =
			player_look(g->by, a, kind, (uint16_t)(rc > 0 ? rc : 0), from);
		s->until = opened;
		s->of = (unsigned int)(session - g->p->order.acts);
	}
	player_end(g->by, a);
	return rc > 0 || is_bare ? 0 : rc;
}

struct listing {
	struct plain *p;
	bool has[PLAIN_NAMES];
};

static int note_name(void *arg, const char *name, enum engine_kind kind)
{
	struct listing *l = arg;
	for (unsigned int i = 0; i < PLAIN_NAMES; i++)
		if (strcmp(name_of(i).path + strlen(PLAIN_DIR "/"), name) == 0) {
			l->has[i] = true;
			if (kind != ENGINE_PLAIN)
				fault(l->p, "%s is listed as no plain object", name);
			return 0;
		}
	fault(l->p, "%s is listed, and nobody has made it", name);
	return 0;
}

static int list_all(struct plain_program *g, struct err *err)
{
	struct listing l = {.p = g->p};
	const uint64_t from = player_moment(g->by);
	const int rc = engine_list(g->by->box->engine, PLAIN_DIR, note_name, &l, err);
	note(g, "list", 0, rc);
	for (unsigned int i = 0; !rc && !player_is_dead(g->by) && i < g->p->names; i++) {
		struct order_act *a = player_begin(g->by, l.has[i] ? "list" : "list without", i, i);
		if (!a)
			return 0;
		player_look(g->by, a, l.has[i] ? ORDER_THERE : ORDER_SHOW, 0, from);
		player_end(g->by, a);
	}
	return rc;
}

/* ---- programs that change names ---- */

static int remove_file(struct plain_program *g, unsigned int name, bool plain_delete,
		       struct err *err)
{
	struct order_act *a = player_begin(g->by, "remove", name, name);
	const uint64_t from = player_moment(g->by);
	if (!a)
		return 0;
	const unsigned int repeated = g->by->box->line.repeated;
	const int rc = engine_unlink(g->by->box->engine, name_of(name).path, err);
	note(g, "remove", name, rc);
	/* If the request was repeated, nobody knows whether the first attempt has removed the
	 * name, or another program. */
	const bool may = rc || player_is_dead(g->by) || player_has_repeated(g->by, repeated);
	if (rc == -ENOENT && !player_is_dead(g->by)) {
		player_look(g->by, a, ORDER_SHOW, 0, from);
	} else if (!may && !plain_delete) {
		order_step(a, ORDER_REMOVE, 0, from, player_moment(g->by), false);
	} else if (rc != -ESTALE || player_is_dead(g->by)) {
		order_step(a, ORDER_SEE, 0, from, player_moment(g->by), may);
		if (plain_delete)
			order_step(a, ORDER_CHECK, 0, from, player_moment(g->by), may);
		order_step(a, plain_delete ? ORDER_WIPE : ORDER_DROP, 0, from, player_moment(g->by),
			   may);
	}
	player_end(g->by, a);
	return rc;
}

static void plan_rename(struct order_act *a, uint64_t from, uint64_t until, bool plain_delete,
			bool is_done, bool repeated)
{
	if (is_done) {
		if (repeated)
			order_step(a, ORDER_LINK, 0, from, until, false)->skip = true;
		order_step(a, ORDER_LINK, 0, from, until, false);
	} else {
		/* Another program may have changed the old name since it was read. */
		order_step(a, ORDER_SEE, 0, from, until, true);
		order_step(a, ORDER_GIVE, 0, from, until, true);
		if (repeated)
			order_step(a, ORDER_GIVE, 0, from, until, true);
	}
	if (plain_delete)
		order_step(a, ORDER_CHECK, 0, from, until, !is_done || repeated);
	order_step(a, plain_delete ? ORDER_WIPE : ORDER_DROP, 0, from, until, !is_done || repeated);
}

static int rename_file(struct plain_program *g, unsigned int name, unsigned int to,
		       bool plain_delete, struct err *err)
{
	struct order_act *a = player_begin(g->by, "rename", name, to);
	const uint64_t from = player_moment(g->by);
	if (!a)
		return 0;
	const unsigned int repeated = g->by->box->line.repeated;
	const int rc =
		engine_rename(g->by->box->engine, name_of(name).path, name_of(to).path, 0, err);
	note(g, "rename", name, rc);
	if (rc == -ENOENT && !player_is_dead(g->by))
		player_look(g->by, a, ORDER_SHOW, 0, from);
	else
		plan_rename(a, from, player_moment(g->by), plain_delete,
			    !rc && !player_is_dead(g->by), player_has_repeated(g->by, repeated));
	player_end(g->by, a);
	return rc;
}

/* ---- programs that write ---- */

struct session {
	struct plain_program *g;
	struct order_act *act;
	struct engine_file *file;
	unsigned int name;
	bool changes;		 /* what the name has, in place */
	uint16_t now, committed; /* contents */
};

static int write_record(struct session *s, struct err *err)
{
	struct plain *p = s->g->p;
	if (p->ncontents == PLAIN_RECORDS || p->nrecords == PLAIN_RECORDS)
		return 0;
	const unsigned int record = p->nrecords++;
	const size_t size = size_of(record);
	uint8_t *bytes = malloc(size);
	struct engine_stat st;
	if (!bytes)
		abort();
	for (size_t i = 0; i < size; i++)
		bytes[i] = byte_of(record, i);
	engine_file_stat(s->file, &st);
	const ssize_t put = engine_pwrite(s->file, bytes, size, st.size, err);
	free(bytes);
	if (put < 0)
		return (int)put;
	p->contents[p->ncontents].before = s->now;
	p->contents[p->ncontents].record = (uint16_t)record;
	s->now = (uint16_t)p->ncontents++;
	return 0;
}

/* A change that was refused stays in the journal. */
static void note_refused(struct session *s)
{
	struct plain *p = s->g->p;
	if (p->nrefused < PLAIN_DRAFTS && s->now > EMPTY)
		p->refused[p->nrefused++] =
			(struct plain_draft){.name = s->name,
					     .engine = s->g->by->box->number,
					     .tag = tag_of(p->contents[s->now].record),
					     .moment = player_moment(s->g->by)};
}

/* A request without an answer may arrive when a later one has succeeded: if the name has again what
 * the session had found, it has an effect. */
static void may_arrive_later(const struct session *s)
{
	struct order_act *a = player_begin(s->g->by, "late", s->name, s->name);
	if (!a)
		return;
	a->steps[0] = s->act->steps[0];
	if (s->committed)
		order_step(a, ORDER_SHOW, s->committed, a->steps[0].from, player_moment(s->g->by),
			   false);
	order_step(a, ORDER_REPLACE, s->now, a->steps[0].from, 0, true);
	player_end(s->g->by, a);
}

/* Whether an earlier commit of this content has failed. */
static bool was_tried(const struct session *s)
{
	const struct order_step *last = order_last(s->act);
	return last->kind == ORDER_REPLACE && last->may && last->value == s->now;
}

/* A commit without an answer may happen later, and more than once: the next mounts repeat it. If a
 * request was sent again, its first attempt may have had an effect that others have seen. */
static void plan_commit(struct session *s, uint64_t from, bool is_done, bool was_repeated)
{
	struct order_step *last = order_last(s->act);
	const bool again = was_tried(s);
	if (!again && (!is_done || was_repeated))
		last = order_step(s->act, ORDER_REPLACE, s->now, from, 0, true);
	if (!is_done)
		return;
	if (last->may) {
		if (again)
			may_arrive_later(s);
		last->may = false;
		last->skip = true;
		last->until = player_moment(s->g->by);
		from = last->from;
	}
	order_step(s->act, ORDER_REPLACE, s->now, from, player_moment(s->g->by), false);
	s->committed = s->now;
}

/* An HDF5 file that was stored as a plain object, and is changed in place, is not committed before
 * its last close (DETAILS.md, "When a file is committed"). */
static int commit(struct session *s, int (*fn)(struct engine_file *f, struct err *err),
		  const char *what, struct err *err)
{
	struct plain_program *g = s->g;
	const uint64_t from = player_moment(g->by);
	const unsigned int repeated = g->by->box->line.repeated;
	const int rc = fn(s->file, err);
	note(g, what, s->name, rc);
	if (s->now == s->committed || (s->changes && is_hdf5(g->p, s->now)))
		return rc;
	if (rc == -ESTALE && !player_is_dead(g->by) && s->act->steps[0].kind == ORDER_SHOW &&
	    !was_tried(s))
		note_refused(s);
	plan_commit(s, from, !rc && !player_is_dead(g->by), player_has_repeated(g->by, repeated));
	return rc;
}

static int write_round(struct session *s, struct err *err)
{
	struct plain_program *g = s->g;
	const unsigned int records = 1 + rng_below(&g->by->random, 2);
	int rc = 0;
	for (unsigned int i = 0; i < records && !rc; i++) {
		rc = write_record(s, err);
		player_wait(g->by);
	}
	if (!rc && !player_is_dead(g->by) && rng_once_in(&g->by->random, 3))
		rc = look_inside(g, s->act, s->name, s->now, err);
	if (!rc && !player_is_dead(g->by) && rng_once_in(&g->by->random, 3))
		rc = commit(s, engine_sync, "fsync", err);
	return rc;
}

/* A program that is killed does not call close(2), but the kernel does; then nobody learns whether
 * the commit has failed. */
static int close_file(struct session *s, int rc, struct err *err)
{
	struct plain_program *g = s->g;
	if (!rc && !player_is_dead(g->by) && !rng_once_in(&g->by->random, 8)) {
		rc = commit(s, engine_flush, "close", err);
		if (rc && !player_is_dead(g->by) && rng_once_in(&g->by->random, 2))
			rc = commit(s, engine_sync, "fsync again", err);
	}
	if (s->now != s->committed) {
		plan_commit(s, player_moment(g->by), false, false);
		g->by->has_draft = true;
	}
	engine_file_close(s->file);
	return rc;
}

static int begin_content(struct session *s, bool whole, struct err *err)
{
	if (whole) {
		s->now = EMPTY;
		return engine_resize(s->file, 0, err);
	}
	const int rc = read_all(s->g, s->file, "a writer", s->name, err);
	if (rc <= 0)
		return rc ? rc : -EIO;
	s->now = s->committed = (uint16_t)rc;
	return 0;
}

static int write_file(struct plain_program *g, unsigned int name, bool whole, struct err *err)
{
	struct session s = {.g = g, .name = name, .changes = !whole};
	const unsigned int flags = whole ? ENGINE_CREATE | ENGINE_TRUNCATE : 0;
	s.act = player_begin(g->by, whole ? "write" : "append", name, name);
	const uint64_t from = player_moment(g->by);
	if (!s.act)
		return 0;
	int rc = engine_open_write(g->by->box->engine, name_of(name).path, flags, &s.file, err);
	const uint64_t opened = player_moment(g->by);
	note(g, s.act->what, name, rc);
	if (!rc) {
		rc = begin_content(&s, whole, err);
		player_look(g->by, s.act, s.committed ? ORDER_SHOW : ORDER_SEE, s.committed, from)
			->until = opened;
		if (depth_of(g->p, s.now) < DEPTH_MAX)
			for (unsigned int i = 1 + rng_below(&g->by->random, ROUNDS_MAX);
			     i && !rc && !player_is_dead(g->by); i--)
				rc = write_round(&s, err);
		rc = close_file(&s, rc, err);
		g->by->has_draft |= !player_is_answer(rc);
	} else if (rc == -ENOENT && !player_is_dead(g->by)) {
		player_look(g->by, s.act, ORDER_SHOW, 0, from);
	}
	player_end(g->by, s.act);
	return rc;
}

/* ---- a program ---- */

static int call(struct plain_program *g, struct err *err)
{
	struct rng *r = &g->by->random;
	const unsigned int name = rng_below(r, g->p->names), what = rng_below(r, 14);
	const unsigned int to = (name + 1 + rng_below(r, g->p->names - 1)) % g->p->names;
	if (what < 4)
		return write_file(g, name, true, err);
	if (what < 7)
		return write_file(g, name, false, err);
	if (what < 10)
		return read_file(g, name, err);
	if (what < 12)
		return rename_file(g, name, to, g->by->plain_delete, err);
	return what == 12 ? remove_file(g, name, g->by->plain_delete, err) : list_all(g, err);
}

int plain_run(struct plain *p, struct player *by, struct err *err)
{
	struct plain_program program = {p, by}, *g = &program;
	by->order = &p->order;
	const unsigned int calls = 1 + rng_below(&g->by->random, CALLS_MAX);
	int first = 0;
	for (unsigned int i = 0; i < calls && !player_is_dead(g->by) && !g->by->has_draft; i++) {
		first = first_of(first, call(g, player_is_answer(first) ? err : NULL));
		player_wait(g->by);
	}
	return player_is_answer(first) ? 0 : first;
}

struct plain *plain_new(uint64_t seed)
{
	struct plain *p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->names = 2 + (unsigned int)(seed / 2 % 2);
	p->ncontents = EMPTY + 1;
	return p;
}

void plain_free(struct plain *p)
{
	if (p)
		str_release(&p->faults);
	free(p);
}

int plain_set_up(struct engine *e, struct err *err)
{
	return engine_mkdir(e, PLAIN_DIR, err);
}

/* ---- the end ---- */

void plain_dropped(struct plain *p, unsigned int engine)
{
	for (unsigned int i = 0; i < p->nrefused; i++)
		if (p->refused[i].engine == engine)
			p->refused[i].tag = 0;
}

/* What was refused is there until a later call of the same mount on the name, or a person, drops
 * it. A power loss may tear it. */
static bool must_stay(const struct plain *p, const struct plain_draft *d, const struct box *b)
{
	if (!d->tag || d->engine != b->number || b->powers)
		return false;
	for (unsigned int i = 0; i < p->order.n; i++) {
		const struct order_act *a = &p->order.acts[i];
		if (a->engine == d->engine && a->end > d->moment && a->steps[0].from > d->moment &&
		    (a->at == d->name || a->to == d->name))
			return false;
	}
	return true;
}

static void check_journal(struct plain *p, const struct box *b)
{
	for (unsigned int i = 0; i < p->nrefused; i++)
		if (must_stay(p, &p->refused[i], b) && !box_journal_has(b, p->refused[i].tag))
			fault(p,
			      "a change of file%u by engine %u was refused, and its journal does "
			      "not have it",
			      p->refused[i].name, b->number);
}

/* The content that a name has. */
static uint16_t content_at_end(struct plain *p, struct engine *e, unsigned int name, bool is_listed)
{
	struct engine_file *f;
	struct err err = ERR_INIT;
	uint8_t *bytes = malloc(FILE_MAX);
	ssize_t got = engine_file_open(e, name_of(name).path, &f, &err);
	uint16_t content = 0;
	if (!bytes)
		abort();
	if (!got) {
		got = engine_pread(f, bytes, FILE_MAX, 0, NULL, &err);
		content = got < 0 ? 0 : content_of(p, bytes, (size_t)got);
		engine_file_close(f);
	}
	free(bytes);
	if (is_listed != (got != -ENOENT))
		fault(p, "file%u %s", name,
		      is_listed ? "is listed, and is not there" : "can be read, and is not listed");
	else if (is_listed && !content)
		fault(p, "file%u has %zd bytes that nobody has written: %s", name, got, err.msg);
	return content;
}

static void describe(struct plain *p, const uint16_t last[ORDER_REGISTERS])
{
	fault(p, "no order of what programs have done leads to contents %u, %u, %u from %u, %u, %u",
	      last[0], last[1], last[2], p->first[0], p->first[1], p->first[2]);
	for (unsigned int i = 0; i < p->order.n; i++) {
		char text[200];
		order_describe(&p->order, i, text, sizeof(text));
		fault(p, "%s", text);
	}
}

bool plain_check(struct plain *p, struct engine *e, const struct box *boxes, unsigned int n,
		 bool order_matters)
{
	struct listing l = {.p = p};
	struct err err = ERR_INIT;
	uint16_t last[ORDER_REGISTERS] = {0};
	enum order_result found = ORDER_FOUND;
	if (engine_list(e, PLAIN_DIR, note_name, &l, &err))
		fault(p, "their folder cannot be listed: %s", err.msg);
	for (unsigned int i = 0; i < PLAIN_NAMES; i++)
		last[i] = content_at_end(p, e, i, l.has[i]);
	if (!p->faults.b.len && order_matters)
		found = order_search(&p->order, p->first, last);
	if (found == ORDER_IMPOSSIBLE)
		describe(p, last);
	for (unsigned int i = 0; i < n; i++)
		check_journal(p, &boxes[i]);
	memcpy(p->first, last, sizeof(last));
	p->acts = p->order.n;
	p->order.n = p->nrefused = 0;
	return found != ORDER_TOO_LARGE;
}
