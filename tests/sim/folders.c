/* SPDX-License-Identifier: Apache-2.0 */
/* See folders.h. All that the engines share is used by the running thread only: baton.h. */
#include "folders.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hsmount/engine.h>

#include "store_calls.h"

#define TOP "folders"
enum { CALLS_MAX = 5, FILE_SIZE = 16 };

/* A program. */
struct program {
	struct folders *p;
	struct player *by;
	struct engine *e;
};

struct path {
	char text[64];
};

#define FAULT(p, ...) player_fault(&(p)->faults, "folders", __VA_ARGS__)

/* ---- names and registers ---- */

static struct path dir_of(unsigned int i)
{
	struct path p;
	snprintf(p.text, sizeof(p.text), TOP "/dir%u", i);
	return p;
}

static struct path file_of(unsigned int i)
{
	struct path p;
	snprintf(p.text, sizeof(p.text), TOP "/dir%u/file.dat", i);
	return p;
}

static unsigned int register_of_file(unsigned int i)
{
	return FOLDERS + i;
}

/* An act on a folder, and one on its file. */
static struct order_act *begin_dir(struct program *g, const char *what, unsigned int i)
{
	return player_begin(g->by, what, i, register_of_file(i));
}

static struct order_act *begin_file(struct program *g, const char *what, unsigned int i)
{
	return player_begin(g->by, what, register_of_file(i), i);
}

/* Names and documents are cached for a second. */
static void look_cached(struct program *g, struct order_act *a, enum order_kind kind, uint64_t from)
{
	struct order_step *s = player_look(g->by, a, kind, 0, from);
	s->from = s->absent_from;
}

static uint64_t now(const struct program *g)
{
	return player_moment(g->by);
}

/* ---- folders ---- */

static int make_dir(struct program *g, unsigned int i, struct err *err)
{
	struct order_act *a = begin_dir(g, "mkdir", i);
	const uint64_t from = now(g);
	const unsigned int repeated = g->by->box->line.repeated;
	if (!a)
		return 0;
	const int rc = engine_mkdir(g->e, dir_of(i).text, err);
	const bool answered = player_note(g->by, a->what, dir_of(i).text, rc);
	if (answered && rc == -EEXIST)
		look_cached(g, a, ORDER_SOME, from);
	if (answered && !rc) {
		look_cached(g, a, ORDER_NEITHER, from);
		if (player_has_repeated(g->by, repeated))
			order_step(a, ORDER_MAKE, 1, from, now(g), false)->skip = true;
	}
	if (!answered || rc != -EEXIST)
		order_step(a, ORDER_MAKE, 1, from, now(g), !answered || rc);
	player_end(g->by, a);
	return rc;
}

/* The folder is empty, then its document goes. One without gets one first. */
static void plan_rmdir(struct program *g, struct order_act *a, uint64_t from, bool is_done,
		       bool repeated)
{
	struct order_step *s = order_step(a, ORDER_SHOW, 0, from, now(g), !is_done);
	s->at = s->to;
	order_step(a, ORDER_FILL, 1, from, now(g), !is_done)->skip = true;
	order_step(a, ORDER_WIPE, 0, from, now(g), !is_done)->skip = repeated;
}

/* A draft is an entry, too, and it may wait in the journal. */
static bool may_have_draft(const struct program *g, unsigned int i)
{
	struct order *o = &g->p->order;
	for (unsigned int k = 0; k < o->n; k++)
		if (o->acts[k].engine == g->by->box->number &&
		    o->acts[k].at == register_of_file(i) &&
		    order_last(&o->acts[k])->kind == ORDER_REPLACE && order_last(&o->acts[k])->may)
			return true;
	return false;
}

static int remove_dir(struct program *g, unsigned int i, struct err *err)
{
	struct order_act *a = begin_dir(g, "rmdir", i);
	const uint64_t from = now(g);
	const unsigned int repeated = g->by->box->line.repeated;
	if (!a)
		return 0;
	const int rc = engine_rmdir(g->e, dir_of(i).text, err);
	const bool answered = player_note(g->by, a->what, dir_of(i).text, rc);
	if (answered && rc == -ENOENT) {
		look_cached(g, a, ORDER_NEITHER, from);
	} else if (answered && rc == -ENOTEMPTY) {
		struct order_step *s = player_look(g->by, a, ORDER_THERE, 0, from);
		s->at = s->to;
		s->skip = may_have_draft(g, i);
	} else {
		plan_rmdir(g, a, from, answered && !rc, player_has_repeated(g->by, repeated));
	}
	player_end(g->by, a);
	return rc == -ENOTEMPTY ? 0 : rc;
}

static int rename_dir(struct program *g, unsigned int i, struct err *err)
{
	struct order_act *a = begin_dir(g, "rename of the folder", i);
	const uint64_t from = now(g);
	if (!a)
		return 0;
	const int rc = engine_rename(g->e, dir_of(i).text, dir_of(1 - i).text, 0, err);
	const bool answered = player_note(g->by, a->what, dir_of(i).text, rc);
	if (!rc)
		FAULT(g->p, "engine %u has renamed a folder", g->by->box->number);
	if (answered && (rc == -ENOENT || rc == -EXDEV))
		look_cached(g, a, rc == -EXDEV ? ORDER_SOME : ORDER_NEITHER, from);
	player_end(g->by, a);
	return rc == -EXDEV ? 0 : rc;
}

struct listing {
	struct folders *p;
	const struct line *line; /* of its mount; NULL: no request fails */
	unsigned int faults;	 /* that it had when the listing began */
	bool has[FOLDERS], has_file;
};

/* What has a document that cannot be read is shown as a file: it may be a domain. */
static bool is_unreadable(const struct listing *l, unsigned int i, const char *name)
{
	const char *dir = dir_of(i).text + strlen(TOP "/");
	return l->line && l->line->faults != l->faults && strncmp(name, dir, strlen(dir)) == 0 &&
	       strcmp(name + strlen(dir), ".h5") == 0;
}

static int note_name(void *arg, const char *name, enum engine_kind kind)
{
	struct listing *l = arg;
	for (unsigned int i = 0; i < FOLDERS; i++)
		if ((kind == ENGINE_DIR && strcmp(dir_of(i).text + strlen(TOP "/"), name) == 0) ||
		    is_unreadable(l, i, name)) {
			l->has[i] = true;
			return 0;
		}
	if (kind == ENGINE_PLAIN && strcmp(name, "file.dat") == 0)
		l->has_file = true;
	else
		FAULT(l->p, "%s is listed, and nobody has made it", name);
	return 0;
}

static int list_dir(struct program *g, unsigned int i, struct err *err)
{
	const struct line *line = &g->by->box->line;
	struct listing l = {.p = g->p, .line = line, .faults = line->faults};
	struct order_act *a = begin_dir(g, "list", i);
	const uint64_t from = now(g);
	if (!a)
		return 0;
	const int rc = engine_list(g->e, dir_of(i).text, note_name, &l, err);
	if (!player_note(g->by, l.has_file ? "list with a file" : "list", dir_of(i).text, rc)) {
		player_end(g->by, a);
		return rc;
	}
	if (rc == -ENOENT) {
		look_cached(g, a, ORDER_NEITHER, from);
	} else if (!rc) {
		struct order_step *s =
			player_look(g->by, a, l.has_file ? ORDER_THERE : ORDER_SHOW, 0, from);
		s->at = s->to;
		s->absent_from = from;
	}
	player_end(g->by, a);
	return rc;
}

static int list_top(struct program *g, struct err *err)
{
	const struct line *line = &g->by->box->line;
	struct listing l = {.p = g->p, .line = line, .faults = line->faults};
	const uint64_t from = now(g);
	const int rc = engine_list(g->e, TOP, note_name, &l, err);
	if (!player_note(g->by, "list", TOP, rc) || rc)
		return rc;
	for (unsigned int i = 0; i < FOLDERS; i++) {
		struct order_act *a = begin_dir(g, l.has[i] ? "listed" : "not listed", i);
		if (!a)
			return 0;
		order_step(a, l.has[i] ? ORDER_SOME : ORDER_NEITHER, 0, from, now(g), false);
		player_end(g->by, a);
	}
	return 0;
}

/* ---- their files ---- */

static int write_bytes(struct program *g, struct engine_file *f, uint16_t number, struct err *err)
{
	char text[FILE_SIZE + 1];
	snprintf(text, sizeof(text), "file %011u", number);
	int rc = engine_resize(f, 0, err);
	if (!rc && engine_pwrite(f, text, FILE_SIZE, 0, err) < 0)
		rc = -EIO;
	player_wait(g->by);
	return rc;
}

static int create_file(struct program *g, unsigned int i, struct err *err)
{
	struct order_act *a = begin_file(g, "create", i);
	const uint64_t from = now(g);
	const unsigned int repeated = g->by->box->line.repeated;
	struct engine_file *f;
	if (!a)
		return 0;
	int rc = engine_open_write(g->e, file_of(i).text, ENGINE_CREATE | ENGINE_TRUNCATE, &f, err);
	if (rc) {
		if (player_note(g->by, "open", file_of(i).text, rc) && rc == -ENOENT)
			look_cached(g, a, ORDER_NEITHER, from);
		player_end(g->by, a);
		return rc;
	}
	player_look(g->by, a, ORDER_SEE, 0, from);
	const uint16_t number = ++g->p->nfiles;
	const uint64_t closes = now(g);
	rc = write_bytes(g, f, number, err);
	/* If it could not be written, what remains is an empty file. */
	const bool written = !rc;
	if (!rc)
		rc = engine_flush(f, err);
	const bool done = player_note(g->by, a->what, file_of(i).text, rc) && !rc;
	if (done && player_has_repeated(g->by, repeated))
		order_step(a, ORDER_REPLACE, number, closes, now(g), false)->skip = true;
	order_step(a, ORDER_REPLACE, written ? number : UINT16_MAX, closes, now(g), !done);
	g->by->has_draft |= !done;
	engine_file_close(f);
	player_end(g->by, a);
	return rc;
}

/* The number of a file, or a negative errno. */
static int number_of(struct folders *p, struct engine_file *f, struct err *err)
{
	char text[FILE_SIZE + 1] = "";
	const ssize_t n = engine_pread(f, text, FILE_SIZE, 0, NULL, err);
	const unsigned long number = n == FILE_SIZE ? strtoul(text + 5, NULL, 10) : 0;
	if (n == 0)
		return UINT16_MAX;
	if (n > 0 && (!number || number > p->nfiles))
		FAULT(p, "a file has %zd bytes that nobody has written", n);
	return n < 0 ? (int)n : (int)number;
}

static int read_file(struct program *g, unsigned int i, struct err *err)
{
	struct order_act *a = begin_file(g, "read", i);
	const uint64_t from = now(g);
	struct engine_file *f;
	if (!a)
		return 0;
	int rc = engine_file_open(g->e, file_of(i).text, &f, err);
	const uint64_t opened = now(g);
	if (!rc) {
		rc = number_of(g->p, f, err);
		engine_file_close(f);
	}
	if (player_note(g->by, a->what, file_of(i).text, rc) && (rc > 0 || rc == -ENOENT))
		player_look(g->by, a, ORDER_SHOW, (uint16_t)(rc > 0 ? rc : 0), from)->until =
			opened;
	player_end(g->by, a);
	return rc > 0 ? 0 : rc;
}

/* The folder has a document, or gets one. If another mount has removed the document within the last
 * second, the engine may not know that. */
static void plan_keep(struct program *g, struct order_act *a, uint64_t from, bool is_done)
{
	struct order_step *s = order_step(a, ORDER_FILL, 1, from, now(g), !is_done);
	s->at = a->at - FOLDERS;
	s->from = s->absent_from = player_since(g->by, a, s->at, from);
}

static int remove_file(struct program *g, unsigned int i, struct err *err)
{
	struct order_act *a = begin_file(g, "remove", i);
	const uint64_t from = now(g);
	const unsigned int repeated = g->by->box->line.repeated;
	if (!a)
		return 0;
	const int rc = engine_unlink(g->e, file_of(i).text, err);
	const bool answered = player_note(g->by, a->what, file_of(i).text, rc);
	if (answered && rc == -ENOENT) {
		player_look(g->by, a, ORDER_SHOW, 0, from);
	} else {
		const bool done = answered && !rc && !player_has_repeated(g->by, repeated);
		plan_keep(g, a, from, done);
		order_step(a, done && !g->by->plain_delete ? ORDER_REMOVE : ORDER_WIPE, 0, from,
			   now(g), !done);
	}
	player_end(g->by, a);
	return rc;
}

static int rename_file(struct program *g, unsigned int i, struct err *err)
{
	struct order_act *a =
		player_begin(g->by, "rename", register_of_file(i), register_of_file(1 - i));
	const uint64_t from = now(g);
	const unsigned int repeated = g->by->box->line.repeated;
	if (!a)
		return 0;
	const int rc = engine_rename(g->e, file_of(i).text, file_of(1 - i).text, 0, err);
	const bool answered = player_note(g->by, a->what, file_of(i).text, rc);
	const bool done = answered && !rc, again = player_has_repeated(g->by, repeated);
	/* ENOENT: the file, or the other folder is not there. */
	if (!answered || rc != -ENOENT) {
		plan_keep(g, a, from, done);
		if (!done)
			order_step(a, ORDER_SEE, 0, from, 0, true);
		else if (again)
			order_step(a, ORDER_LINK, 0, from, now(g), false)->skip = true;
		order_step(a, done ? ORDER_LINK : ORDER_GIVE, 0, from, now(g), !done);
		order_step(a, g->by->plain_delete ? ORDER_WIPE : ORDER_DROP, 0, from, now(g),
			   !done || again);
	}
	player_end(g->by, a);
	return rc;
}

/* ---- a program ---- */

static int call(struct program *g, struct err *err)
{
	const unsigned int i = rng_below(&g->by->random, FOLDERS);
	switch (rng_below(&g->by->random, 14)) {
	case 0:
	case 1:
		return make_dir(g, i, err);
	case 2:
	case 3:
	case 4:
		return remove_dir(g, i, err);
	case 5:
		return rename_dir(g, i, err);
	case 6:
		return list_dir(g, i, err);
	case 7:
		return list_top(g, err);
	case 8:
		return read_file(g, i, err);
	case 9:
		return remove_file(g, i, err);
	case 10:
		return rename_file(g, i, err);
	default:
		return create_file(g, i, err);
	}
}

int folders_run(struct folders *p, struct player *by, struct err *err)
{
	struct program g = {p, by, by->box->engine};
	by->order = &p->order;
	const unsigned int calls = 1 + rng_below(&by->random, CALLS_MAX);
	int first = 0;
	for (unsigned int i = 0; i < calls && !player_is_dead(by) && !by->has_draft; i++) {
		const bool asks = player_is_answer(first);
		const int rc = call(&g, asks ? err : NULL);
		first = asks ? rc : first;
		player_wait(by);
	}
	return player_is_answer(first) ? 0 : first;
}

struct folders *folders_new(void)
{
	struct folders *p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	return p;
}

void folders_free(struct folders *p)
{
	if (p)
		str_release(&p->faults);
	free(p);
}

int folders_set_up(struct engine *e, struct err *err)
{
	return engine_mkdir(e, TOP, err);
}

/* ---- the end ---- */

static bool is_stored(struct store *bucket, const char *path, const char *document)
{
	char key[128];
	snprintf(key, sizeof(key), "%s%s", path, document);
	return call_head(bucket, key, NULL, NULL) == 0;
}

/* What the bucket has, and whether a mount shows it. */
static void look_at_end(struct folders *p, struct engine *e, struct store *bucket, unsigned int i,
			uint16_t last[ORDER_REGISTERS])
{
	struct listing top = {.p = p}, l = {.p = p};
	struct engine_file *f;
	struct err err = ERR_INIT;
	const bool has_file = is_stored(bucket, file_of(i).text, "");
	last[i] = is_stored(bucket, dir_of(i).text, "/.domain.json");
	if (engine_list(e, TOP, note_name, &top, &err))
		FAULT(p, "they cannot be listed: %s", err.msg);
	const int rc = engine_list(e, dir_of(i).text, note_name, &l, &err);
	if (rc != (top.has[i] ? 0 : -ENOENT))
		FAULT(p, "dir%u is %s, and listing it returns %d", i,
		      top.has[i] ? "there" : "not there", rc);
	if (top.has[i] != (last[i] || has_file) || l.has_file != has_file)
		FAULT(p, "dir%u: the bucket has %s document and %s file, and a mount shows %s", i,
		      last[i] ? "a" : "no", has_file ? "a" : "no",
		      l.has_file   ? "both"
		      : top.has[i] ? "an empty folder"
				   : "nothing");
	if (has_file && !engine_file_open(e, file_of(i).text, &f, &err)) {
		last[register_of_file(i)] = (uint16_t)number_of(p, f, &err);
		engine_file_close(f);
	} else if (has_file) {
		FAULT(p, "the file of dir%u cannot be opened: %s", i, err.msg);
	}
}

static void describe(struct folders *p, const uint16_t last[ORDER_REGISTERS])
{
	char text[200];
	FAULT(p,
	      "no order of the calls leads from documents %u and %u, and files %u and %u, to %u, "
	      "%u, "
	      "%u, %u",
	      p->first[0], p->first[1], p->first[2], p->first[3], last[0], last[1], last[2],
	      last[3]);
	for (unsigned int i = 0; i < p->order.n; i++) {
		order_describe(&p->order, i, text, sizeof(text));
		FAULT(p, "%s", text);
	}
}

bool folders_check(struct folders *p, struct engine *e, struct store *bucket, bool order_matters)
{
	uint16_t last[ORDER_REGISTERS] = {0};
	enum order_result found = ORDER_FOUND;
	for (unsigned int i = 0; i < FOLDERS; i++)
		look_at_end(p, e, bucket, i, last);
	if (!p->faults.b.len && order_matters)
		found = order_search(&p->order, p->first, last);
	if (found == ORDER_IMPOSSIBLE)
		describe(p, last);
	memcpy(p->first, last, sizeof(last));
	p->acts = p->order.n;
	p->order.n = 0;
	return found != ORDER_TOO_LARGE;
}
