/* SPDX-License-Identifier: Apache-2.0 */
/* See folders.h. All that the engines share is used by the running thread only: baton.h. */
#include "folders_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hsmount/engine.h>

#include "store_calls.h"

/* The search for an order takes long if there are many acts. */
enum { CALLS_MAX = 5, ACTS_MAX = 22 /* of a part */ };
#define TOP FOLDERS_TOP

/* ---- names and registers ---- */

struct folders_path folders_dir(unsigned int i)
{
	struct folders_path p;
	snprintf(p.text, sizeof(p.text), TOP "/dir%u", i);
	return p;
}

static const char *name_of(unsigned int file)
{
	return folders_is_domain(file) ? "file.h5" : "file.dat";
}

struct folders_path folders_file(unsigned int file)
{
	struct folders_path p;
	snprintf(p.text, sizeof(p.text), TOP "/dir%u/%s", file % FOLDERS, name_of(file));
	return p;
}

struct order_act *folders_begin_dir(struct folders_program *g, const char *what, unsigned int i)
{
	return player_begin(g->by, what, i, folders_register(i));
}

/* The register of the domain of a folder; or of the other file beside a file. */
static unsigned int also_of(const struct order_act *a)
{
	return a->at < FOLDERS ? folders_register(a->at + FOLDERS)
			       : folders_register((a->at - FOLDERS) ^ FOLDERS);
}

void folders_look_cached(struct folders_program *g, struct order_act *a, enum order_kind kind,
			 uint64_t from)
{
	struct order_step *s = player_look(g->by, a, kind, 0, from);
	s->also = also_of(a);
	s->from = s->absent_from;
}

void folders_look_at_files(struct folders_program *g, struct order_act *a, unsigned int i,
			   enum order_kind kind, uint64_t from, bool skip)
{
	struct order_step *s = player_look(g->by, a, kind, 0, from);
	s->at = folders_register(i);
	s->to = s->also = folders_register(i + FOLDERS);
	s->skip = skip;
}

static uint64_t now(const struct folders_program *g)
{
	return folders_now(g);
}

/* ---- folders ---- */

static int make_dir(struct folders_program *g, unsigned int i, struct err *err)
{
	struct order_act *a = folders_begin_dir(g, "mkdir", i);
	const uint64_t from = now(g);
	const unsigned int repeated = g->by->box->line.repeated;
	if (!a)
		return 0;
	const int rc = engine_mkdir(g->e, folders_dir(i).text, err);
	const bool answered = player_note(g->by, a->what, folders_dir(i).text, rc);
	if (answered && rc == -EEXIST)
		folders_look_cached(g, a, ORDER_SOME, from);
	if (answered && !rc) {
		folders_look_cached(g, a, ORDER_NEITHER, from);
		if (player_has_repeated(g->by, repeated))
			order_step(a, ORDER_MAKE, 1, from, now(g), false)->skip = true;
	}
	if (!answered || rc != -EEXIST)
		order_step(a, ORDER_MAKE, 1, from, now(g), !answered || rc);
	player_end(g->by, a);
	return rc;
}

/* The folder is empty, then its document goes. One without gets one first. */
static void plan_rmdir(struct folders_program *g, struct order_act *a, uint64_t from, bool is_done,
		       bool repeated)
{
	struct order_step *s = order_step(a, ORDER_NEITHER, 0, from, now(g), !is_done);
	s->at = a->to;
	s->also = also_of(a);
	order_step(a, ORDER_FILL, 1, from, now(g), !is_done)->skip = true;
	order_step(a, ORDER_WIPE, 0, from, now(g), !is_done)->skip = repeated;
}

/* A draft is an entry, too, and it may wait in the journal. */
static bool may_have_draft(const struct folders_program *g, unsigned int i)
{
	const struct order *o = &g->p->order;
	for (unsigned int k = 0; k < o->n; k++)
		for (const struct order_step *s = o->acts[k].steps; s->kind; s++)
			if (o->acts[k].engine == g->by->box->number && s->may &&
			    (s->kind == ORDER_REPLACE || s->kind == ORDER_RENEW) &&
			    s->at >= FOLDERS && (s->at - FOLDERS) % FOLDERS == i)
				return true;
	return false;
}

static int remove_dir(struct folders_program *g, unsigned int i, struct err *err)
{
	struct order_act *a = folders_begin_dir(g, "rmdir", i);
	const uint64_t from = now(g);
	const unsigned int repeated = g->by->box->line.repeated;
	if (!a)
		return 0;
	const int rc = engine_rmdir(g->e, folders_dir(i).text, err);
	const bool answered = player_note(g->by, a->what, folders_dir(i).text, rc);
	if (answered && rc == -ENOENT) {
		folders_look_cached(g, a, ORDER_NEITHER, from);
	} else if (answered && rc == -ENOTEMPTY) {
		folders_look_at_files(g, a, i, ORDER_SOME, from, may_have_draft(g, i));
	} else {
		plan_rmdir(g, a, from, answered && !rc, player_has_repeated(g->by, repeated));
	}
	player_end(g->by, a);
	return rc == -ENOTEMPTY ? 0 : rc;
}

struct listing {
	struct folders *p;
	const struct line *line;     /* of its mount; NULL: no request fails */
	unsigned int faults;	     /* that it had when the listing began */
	bool has[FOLDERS], files[2]; /* files: the plain object, the domain */
};

/* What has a document that cannot be read is shown as a file: it may be a domain. */
static bool is_unreadable(const struct listing *l, unsigned int i, const char *name)
{
	const char *dir = folders_dir(i).text + strlen(TOP "/");
	return l->line && l->line->faults != l->faults && strncmp(name, dir, strlen(dir)) == 0 &&
	       strcmp(name + strlen(dir), ".h5") == 0;
}

static int note_name(void *arg, const char *name, enum engine_kind kind)
{
	struct listing *l = arg;
	for (unsigned int i = 0; i < FOLDERS; i++)
		if ((kind == ENGINE_DIR &&
		     strcmp(folders_dir(i).text + strlen(TOP "/"), name) == 0) ||
		    is_unreadable(l, i, name)) {
			l->has[i] = true;
			return 0;
		}
	/* A domain that could not be written is a plain object. */
	for (unsigned int i = 0; i < 2; i++)
		if ((kind == (i ? ENGINE_DOMAIN : ENGINE_PLAIN) || l->p->is_torn) &&
		    strcmp(name, name_of(i * FOLDERS)) == 0) {
			l->files[i] = true;
			return 0;
		}
	FOLDERS_FAULT(l->p, "%s is listed, and nobody has made it", name);
	return 0;
}

static int list_dir(struct folders_program *g, unsigned int i, struct err *err)
{
	const struct line *line = &g->by->box->line;
	struct listing l = {.p = g->p, .line = line, .faults = line->faults};
	struct order_act *a = folders_begin_dir(g, "list", i);
	const uint64_t from = now(g);
	if (!a)
		return 0;
	const int rc = engine_list(g->e, folders_dir(i).text, note_name, &l, err);
	const bool answered = player_note(g->by, a->what, folders_dir(i).text, rc);
	if (answered && rc == -ENOENT)
		folders_look_cached(g, a, ORDER_NEITHER, from);
	for (unsigned int k = 0; answered && !rc && k < 2; k++) {
		struct order_step *s =
			player_look(g->by, a, l.files[k] ? ORDER_THERE : ORDER_SHOW, 0, from);
		s->at = folders_register(i + k * FOLDERS);
		s->absent_from = from;
	}
	player_end(g->by, a);
	return rc;
}

static int list_top(struct folders_program *g, struct err *err)
{
	const struct line *line = &g->by->box->line;
	struct listing l = {.p = g->p, .line = line, .faults = line->faults};
	const uint64_t from = now(g);
	const int rc = engine_list(g->e, TOP, note_name, &l, err);
	if (!player_note(g->by, "list", TOP, rc) || rc)
		return rc;
	for (unsigned int i = 0; i < FOLDERS; i++) {
		struct order_act *a = folders_begin_dir(g, l.has[i] ? "listed" : "not listed", i);
		if (!a)
			return 0;
		order_step(a, l.has[i] ? ORDER_SOME : ORDER_NEITHER, 0, from, now(g), false)->also =
			also_of(a);
		player_end(g->by, a);
	}
	return 0;
}

/* ---- a program ---- */

static int move(struct folders_program *g, unsigned int i, struct err *err)
{
	enum folders_moved moved;
	return folders_move(g, i, false, &moved, err);
}

static int call(struct folders_program *g, struct err *err)
{
	struct rng *r = &g->by->random;
	const unsigned int i = rng_below(r, FOLDERS);
	const unsigned int file = rng_once_in(r, 3) ? i + FOLDERS : i;
	switch (rng_below(r, 16)) {
	case 0:
	case 1:
		return make_dir(g, i, err);
	case 2:
	case 3:
		return remove_dir(g, i, err);
	case 4:
	case 5:
	case 6:
		return move(g, i, err);
	case 7:
	case 8:
		return list_dir(g, i, err);
	case 9:
		return list_top(g, err);
	case 10:
		return folders_read(g, file, err);
	case 11:
		return folders_remove(g, file, err);
	case 12:
		return folders_rename(g, file, err);
	default:
		return folders_create(g, file, err);
	}
}

int folders_run(struct folders *p, struct player *by, struct err *err)
{
	struct folders_program g = {p, by, by->box->engine};
	by->order = &p->order;
	const unsigned int calls = 1 + rng_below(&by->random, CALLS_MAX);
	int first = 0;
	for (unsigned int i = 0;
	     i < calls && p->order.n < ACTS_MAX && !player_is_dead(by) && !by->has_draft; i++) {
		const bool asks = player_is_answer(first);
		const int rc = call(&g, asks ? err : NULL);
		first = asks ? rc : first;
		player_wait(by);
	}
	return player_is_answer(first) || p->is_torn ? 0 : first;
}

struct folders *folders_new(const uint8_t *file, size_t n)
{
	struct folders *p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->file = file;
	p->n_file = n;
	p->first[0] = 1;
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
	const int rc = engine_mkdir(e, TOP, err);
	return rc ? rc : engine_mkdir(e, folders_dir(0).text, err);
}

/* ---- the end ---- */

static bool is_stored(struct store *bucket, const char *path, const char *document)
{
	char key[128];
	snprintf(key, sizeof(key), "%s%s", path, document);
	return call_head(bucket, key, NULL, NULL) == 0;
}

static void look_at_file(struct folders *p, struct engine *e, struct store *bucket,
			 unsigned int file, bool is_listed, uint16_t last[ORDER_REGISTERS])
{
	struct err err = ERR_INIT;
	const bool is_domain = folders_is_domain(file);
	const bool is_there =
		is_stored(bucket, folders_file(file).text, is_domain ? "/.domain.json" : "");
	if (is_listed != is_there)
		FOLDERS_FAULT(p, "%s: the bucket has %s, and a mount lists %s",
			      folders_file(file).text, is_there ? "it" : "nothing",
			      is_listed ? "it" : "nothing");
	if (!is_there)
		return;
	const int rc = folders_number(p, e, file, NULL, NULL, &err);
	if (rc <= 0)
		FOLDERS_FAULT(p, "%s cannot be read: %s", folders_file(file).text, err.msg);
	last[folders_register(file)] = (uint16_t)(rc > 0 ? rc : 0);
}

/* What the bucket has, and whether a mount shows it. */
static void look_at_end(struct folders *p, struct engine *e, struct store *bucket, unsigned int i,
			uint16_t last[ORDER_REGISTERS])
{
	struct listing top = {.p = p}, l = {.p = p};
	struct err err = ERR_INIT;
	last[i] = is_stored(bucket, folders_dir(i).text, "/.domain.json");
	if (engine_list(e, TOP, note_name, &top, &err))
		FOLDERS_FAULT(p, "they cannot be listed: %s", err.msg);
	const int rc = engine_list(e, folders_dir(i).text, note_name, &l, &err);
	if (rc != (top.has[i] ? 0 : -ENOENT))
		FOLDERS_FAULT(p, "dir%u is %s, and listing it returns %d", i,
			      top.has[i] ? "there" : "not there", rc);
	bool has_file = false;
	for (unsigned int k = 0; k < 2; k++) {
		look_at_file(p, e, bucket, i + k * FOLDERS, l.files[k], last);
		has_file |= last[folders_register(i + k * FOLDERS)];
	}
	if (top.has[i] != (last[i] || has_file))
		FOLDERS_FAULT(p, "dir%u: the bucket has %s document and %s file, and a mount %s", i,
			      last[i] ? "a" : "no", has_file ? "a" : "no",
			      top.has[i] ? "shows it" : "does not show it");
}

static void describe(struct folders *p, const uint16_t last[ORDER_REGISTERS])
{
	char text[300];
	const uint16_t *f = p->first;
	FOLDERS_FAULT(p,
		      "no order of the calls leads from documents %u, %u, and files %u, %u, %u, %u "
		      "to %u, %u, and %u, %u, %u, %u",
		      f[0], f[1], f[2], f[3], f[4], f[5], last[0], last[1], last[2], last[3],
		      last[4], last[5]);
	for (unsigned int i = 0; i < p->order.n; i++) {
		order_describe(&p->order, i, text, sizeof(text));
		FOLDERS_FAULT(p, "%s", text);
	}
}

/* An engine may finish in a later part a rename of the domain that this part has left half done. */
static void begin_next(struct folders *p, const uint16_t last[ORDER_REGISTERS])
{
	const unsigned int a = folders_register(FOLDERS), b = folders_register(FOLDERS + 1);
	bool half[2] = {false};
	for (unsigned int i = 0; last[a] && last[a] == last[b] && i < p->order.n; i++) {
		struct order_act *act = &p->order.acts[i];
		if (act->at >= a && act->to >= a && act->at != act->to && act->steps[0].kind &&
		    order_last(act)->may)
			half[act->at - a] = true;
	}
	p->acts = p->order.n;
	p->order.n = p->moves = 0;
	memcpy(p->first, last, sizeof(p->first));
	for (unsigned int i = 0; i < 2; i++) {
		struct order_act *act =
			half[i] ? order_act(&p->order, "an earlier rename", 0, a + i, b - i) : NULL;
		if (!act)
			continue;
		act->end = 1;
		order_step(act, ORDER_SEE, 0, 0, 0, false);
		order_step(act, ORDER_DROP, 0, 0, 0, true);
	}
}

bool folders_check(struct folders *p, struct engine *e, struct store *bucket, bool order_matters)
{
	uint16_t last[ORDER_REGISTERS] = {0};
	enum order_result found = ORDER_FOUND;
	for (unsigned int i = 0; i < FOLDERS && !p->is_torn; i++)
		look_at_end(p, e, bucket, i, last);
	if (!p->faults.b.len && order_matters && !p->is_torn)
		found = order_search(&p->order, p->first, last);
	if (found == ORDER_IMPOSSIBLE)
		describe(p, last);
	begin_next(p, last);
	return found != ORDER_TOO_LARGE;
}
