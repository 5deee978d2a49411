/* SPDX-License-Identifier: Apache-2.0 */
/* See folders.h: what programs do with the files of folders. A file is a number. */
#include "folders_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hsmount/engine.h>

#include "program.h"

enum { EMPTY = UINT16_MAX };

struct order_act *folders_begin_file(struct folders_program *g, const char *what, unsigned int f)
{
	return player_begin(g->by, what, folders_register(f), f % FOLDERS);
}

static bool has_repeated(const struct folders_program *g, unsigned int before)
{
	return player_has_repeated(g->by, before);
}

/* ---- reading ---- */

static int plain_number(struct folders *p, struct engine_file *f, struct err *err)
{
	char bytes[PROGRAM_FILE];
	const ssize_t n = engine_pread(f, bytes, sizeof(bytes), 0, NULL, err);
	const unsigned long number = n > 0 ? program_plain_number(bytes, (size_t)n) : 0;
	if (n == 0)
		return EMPTY;
	if (n > 0 && (!number || number > p->nfiles))
		FOLDERS_FAULT(p, "a file has %zd bytes that nobody has written", n);
	return n < 0 ? (int)n : (int)number;
}

static int domain_number(struct engine_file *f, struct err *err)
{
	const struct program p = {.file = NULL};
	struct op op = {.kind = OP_READ};
	const int rc = program_read(&p, &op, f, err);
	return rc ? rc : (int)op.before.uid;
}

int folders_number(struct folders *p, struct engine *e, unsigned int file, uint64_t *opened,
		   const struct player *by, struct err *err)
{
	struct engine_file *f;
	int rc = engine_file_open(e, folders_file(file).text, &f, err);
	if (by)
		*opened = player_moment(by);
	if (rc)
		return rc;
	rc = folders_is_domain(file) ? domain_number(f, err) : plain_number(p, f, err);
	engine_file_close(f);
	return rc;
}

/* If a domain was replaced, another mount may have deleted what an open of it needs. */
int folders_read(struct folders_program *g, unsigned int file, struct err *err)
{
	struct order_act *a = folders_begin_file(g, "read", file);
	const uint64_t from = folders_now(g);
	const bool is_domain = folders_is_domain(file);
	uint64_t opened;
	if (!a)
		return 0;
	const int rc = folders_number(g->p, g->e, file, &opened, g->by, err);
	if (player_note(g->by, a->what, folders_file(file).text, rc) && (rc > 0 || rc == -ENOENT))
		player_look(g->by, a, ORDER_SHOW, (uint16_t)(rc > 0 ? rc : 0), from)->until =
			is_domain ? folders_now(g) : opened;
	player_end(g->by, a);
	return rc > 0 || (is_domain && rc == -EIO) ? 0 : rc;
}

/* ---- writing ---- */

static int write_domain(struct folders_program *g, struct engine_file *f, uint16_t number,
			struct err *err)
{
	const struct program p = program_of_player(g->by, g->p->file, g->p->n_file);
	struct op op = {.kind = OP_CREATE};
	content_init(&op.after, number);
	const int rc = program_create(&p, &op, f, err);
	g->p->is_torn |= rc != 0;
	return rc;
}

/* What a program has open, and the act of it. */
struct session {
	struct folders_program *g;
	struct order_act *act;
	unsigned int file;
	uint16_t number;
	enum folders_moved moved; /* to the other folder */
};

/* A file gets its content under one of its names. The commit of a domain makes a folder that is
 * missing. */
static void add_commit(const struct session *s, struct order_act *a, unsigned int file,
		       uint64_t closes, bool done, bool skip)
{
	const bool is_domain = folders_is_domain(file);
	const uint64_t until = folders_now(s->g);
	struct order_step *step;
	if (is_domain) {
		step = order_step(a, ORDER_FILL, 1, closes, until, !done);
		step->at = file % FOLDERS;
		step->skip = true;
	}
	step = order_step(a, is_domain ? ORDER_RENEW : ORDER_REPLACE, s->number, closes, until,
			  !done);
	step->at = folders_register(file);
	step->skip = skip;
}

/* Under its other name, too. */
static void plan_elsewhere(const struct session *s, uint64_t closes, bool done)
{
	struct order_act *a = player_begin(s->g->by, "elsewhere", s->act->at, s->act->at);
	if (!a)
		return;
	a->steps[0] = s->act->steps[0];
	add_commit(s, a, s->file ^ 1, closes, done, done);
	player_end(s->g->by, a);
}

static void plan_commit(const struct session *s, uint64_t closes, bool done, bool repeated)
{
	const bool perhaps = s->moved == MOVED_PERHAPS || (s->moved == MOVED && !done);
	const unsigned int file = s->moved == MOVED && done ? s->file ^ 1 : s->file;
	if (done && repeated)
		add_commit(s, s->act, file, closes, true, true);
	add_commit(s, s->act, file, closes, done, done && perhaps);
	if (perhaps)
		plan_elsewhere(s, closes, done);
}

/* Some programs rename the folder while they have its file open. */
static int write_number(struct session *s, struct engine_file *f, struct err *err)
{
	struct folders_program *g = s->g;
	const unsigned int folder = s->file % FOLDERS;
	int rc = folders_is_domain(s->file) ? write_domain(g, f, s->number, err)
					    : program_write_plain(f, s->number, err);
	player_wait(g->by);
	if (!rc && !player_is_dead(g->by) && rng_once_in(&g->by->random, 4)) {
		struct err why = ERR_INIT;
		folders_move(g, folder, true, &s->moved, &why);
	}
	return rc;
}

static int write_and_close(struct session *s, struct engine_file *f, struct err *err)
{
	struct folders_program *g = s->g;
	const unsigned int repeated = g->by->box->line.repeated;
	const uint64_t closes = folders_now(g);
	int rc = write_number(s, f, err);
	/* If a plain object could not be written, what remains is an empty file. */
	s->number = rc ? EMPTY : s->number;
	if (!rc)
		rc = engine_flush(f, err);
	const bool done = player_note(g->by, s->act->what, folders_file(s->file).text, rc) && !rc;
	plan_commit(s, closes, done, has_repeated(g, repeated));
	g->by->has_draft |= !done;
	g->p->may_leave |= !done;
	return rc;
}

int folders_create(struct folders_program *g, unsigned int file, struct err *err)
{
	struct session s = {.g = g, .file = file};
	const uint64_t from = folders_now(g);
	struct engine_file *f;
	s.act = folders_begin_file(g, "create", file);
	if (!s.act)
		return 0;
	int rc = engine_open_write(g->e, folders_file(file).text, ENGINE_CREATE | ENGINE_TRUNCATE,
				   &f, err);
	if (!rc) {
		player_look(g->by, s.act, ORDER_SEE, 0, from);
		s.number = ++g->p->nfiles;
		rc = write_and_close(&s, f, err);
		engine_file_close(f);
	} else if (player_note(g->by, "open", folders_file(file).text, rc) && rc == -ENOENT) {
		folders_look_cached(g, s.act, ORDER_NEITHER, from);
	}
	player_end(g->by, s.act);
	return rc;
}

/* ---- names ---- */

/* The folder has a document, or gets one. If another mount has removed the document within the last
 * second, the engine may not know that. */
static void plan_keep(struct folders_program *g, struct order_act *a, unsigned int folder,
		      uint64_t from, bool is_done)
{
	struct order_step *s = order_step(a, ORDER_FILL, 1, from, folders_now(g), !is_done);
	s->at = folder;
	s->from = s->absent_from = player_since(g->by, a, folder, from);
}

int folders_remove(struct folders_program *g, unsigned int file, struct err *err)
{
	struct order_act *a = folders_begin_file(g, "remove", file);
	const uint64_t from = folders_now(g);
	const unsigned int repeated = g->by->box->line.repeated;
	if (!a)
		return 0;
	const int rc = engine_unlink(g->e, folders_file(file).text, err);
	const bool answered = player_note(g->by, a->what, folders_file(file).text, rc);
	if (answered && rc == -ENOENT) {
		player_look(g->by, a, ORDER_SHOW, 0, from);
	} else {
		const bool done = answered && !rc && !has_repeated(g, repeated);
		plan_keep(g, a, file % FOLDERS, from, done);
		order_step(a, done && !g->by->plain_delete ? ORDER_REMOVE : ORDER_WIPE, 0, from,
			   folders_now(g), !done);
		g->p->may_leave |= !done;
	}
	player_end(g->by, a);
	return rc;
}

/* Whether another program gives the domain the same name, or did so without an end: then each may
 * finish the work of the other one (DETAILS.md, "Renames"). */
static bool has_twin(struct order *o, const struct order_act *a)
{
	for (unsigned int i = 0; i < o->n; i++) {
		struct order_act *b = &o->acts[i];
		const bool same = b != a && b->at == a->at && b->to == a->to;
		if (same &&
		    (!b->end || b->end > a->begin || (b->steps[0].kind && order_last(b)->may)))
			return true;
	}
	return false;
}

static void plan_rename(struct folders_program *g, struct order_act *a, uint64_t from, bool done,
			bool again)
{
	if (!done)
		order_step(a, ORDER_SEE, 0, from, 0, true);
	else if (again)
		order_step(a, ORDER_LINK, 0, from, folders_now(g), false)->skip = true;
	order_step(a, done ? ORDER_LINK : ORDER_GIVE, 0, from, folders_now(g), !done);
	order_step(a, g->by->plain_delete ? ORDER_WIPE : ORDER_DROP, 0, from, folders_now(g),
		   !done || again);
}

int folders_rename(struct folders_program *g, unsigned int file, struct err *err)
{
	struct order_act *a =
		player_begin(g->by, "rename", folders_register(file), folders_register(file ^ 1));
	const uint64_t from = folders_now(g);
	const unsigned int repeated = g->by->box->line.repeated;
	if (!a)
		return 0;
	const int rc =
		engine_rename(g->e, folders_file(file).text, folders_file(file ^ 1).text, 0, err);
	const bool answered = player_note(g->by, a->what, folders_file(file).text, rc);
	const bool finishes = folders_is_domain(file) && has_twin(&g->p->order, a);
	const bool done = answered && !rc && !finishes;
	/* ENOENT: the file, or the other folder is not there. */
	if (!answered || rc != -ENOENT) {
		plan_keep(g, a, file % FOLDERS, from, done);
		plan_rename(g, a, from, done, has_repeated(g, repeated));
	}
	g->p->may_leave |= folders_is_domain(file);
	player_end(g->by, a);
	return rc;
}
