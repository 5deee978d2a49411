/* SPDX-License-Identifier: Apache-2.0 */
/* See acls.h. All that the engines share is used by the running thread only: baton.h. */
#include "acls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hsmount/engine.h>

#include "program.h"

#define ATTRIBUTE "user.hsds.acls"
#define FOLDER	  "acls"
/* The list of a new domain, and that of a new folder. */
enum { FIRST_LIST = 1, CALLS_MAX = 6, TEXT_MAX = 1024 };
/* Registers. */
enum { DOMAIN_X, DOMAIN_Y, THE_FOLDER, PATHS, FILES = PATHS };

static const char *const paths[PATHS] = {FOLDER "/x.h5", FOLDER "/y.h5", FOLDER};

/* A program. */
struct program_of {
	struct acls *p;
	struct player *by;
	struct engine *e;
};

#define FAULT(p, ...) player_fault(&(p)->faults, "access control lists", __VA_ARGS__)

static uint64_t now(const struct program_of *g)
{
	return player_moment(g->by);
}

static bool has_repeated(const struct program_of *g, unsigned int before)
{
	return player_has_repeated(g->by, before);
}

/* Names and their lists are cached for a second. */
static void look_cached(struct program_of *g, struct order_act *a, uint16_t value, uint64_t from)
{
	struct order_step *s = player_look(g->by, a, ORDER_SHOW, value, from);
	s->from = s->absent_from;
}

/* ---- lists ---- */

/* Returns the number of a list, or a negative errno. */
static int read_list(struct acls *p, struct engine *e, unsigned int at, struct err *err)
{
	char text[TEXT_MAX];
	const ssize_t n = engine_getxattr(e, paths[at], ATTRIBUTE, text, sizeof(text) - 1, err);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	const char *user = strstr(text, "\"user");
	const int number = user ? atoi(user + strlen("\"user")) : FIRST_LIST;
	if (number < FIRST_LIST || number > p->nlists)
		FAULT(p, "%s has a list that nobody has set: %s", paths[at], text);
	return number;
}

static int write_list(struct program_of *g, unsigned int at, uint16_t number, struct err *err)
{
	char text[TEXT_MAX];
	const int n = snprintf(text, sizeof(text),
			       "{\"user%u\":{\"create\":false,\"read\":true,\"update\":false,"
			       "\"delete\":false,\"readACL\":false,\"updateACL\":false}}",
			       number);
	const int rc = engine_setxattr(g->e, paths[at], ATTRIBUTE, text, (size_t)n, 0, err);
	player_note(g->by, "set the list of", paths[at], rc);
	return rc;
}

static int get(struct program_of *g, unsigned int at, struct err *err)
{
	struct order_act *a = player_begin(g->by, "get", at, at);
	const uint64_t from = now(g);
	if (!a)
		return 0;
	const int rc = read_list(g->p, g->e, at, err);
	if (player_note(g->by, "get the list of", paths[at], rc) && (rc > 0 || rc == -ENOENT))
		look_cached(g, a, (uint16_t)(rc > 0 ? rc : 0), from);
	player_end(g->by, a);
	return rc > 0 ? 0 : rc;
}

static int set(struct program_of *g, unsigned int at, struct err *err)
{
	struct order_act *a = player_begin(g->by, "set", at, at);
	const uint64_t from = now(g);
	const unsigned int repeated = g->by->box->line.repeated;
	if (!a)
		return 0;
	const uint16_t number = ++g->p->nlists;
	const int rc = write_list(g, at, number, err);
	const bool answered = !player_is_dead(g->by), done = answered && !rc;
	if (answered && rc == -ENOENT) {
		look_cached(g, a, 0, from);
	} else {
		if (done && has_repeated(g, repeated))
			order_step(a, ORDER_SET, number, from, now(g), false)->skip = true;
		order_step(a, ORDER_SET, number, from, now(g), !done);
	}
	player_end(g->by, a);
	return rc;
}

/* ---- domains ---- */

/* Another act of the same call: what it does to files. */
static struct order_act *begin_file(struct program_of *g, const struct order_act *a)
{
	return player_begin(g->by, "its file", FILES + a->at, FILES + a->to);
}

static int read_uid(struct engine *e, unsigned int at, struct err *err)
{
	const struct program p = {.file = NULL};
	struct op op = {.kind = OP_READ};
	struct engine_file *f;
	int rc = engine_file_open(e, paths[at], &f, err);
	if (rc)
		return rc;
	rc = program_read(&p, &op, f, err);
	engine_file_close(f);
	return rc ? rc : (int)op.before.uid;
}

/* If a domain was replaced, another mount may have deleted what an open of it needs. */
static int read_domain(struct program_of *g, unsigned int at, struct err *err)
{
	struct order_act *a = player_begin(g->by, "read", FILES + at, FILES + at);
	const uint64_t from = now(g);
	if (!a)
		return 0;
	const int rc = read_uid(g->e, at, err);
	if (player_note(g->by, a->what, paths[at], rc) && (rc > 0 || rc == -ENOENT))
		player_look(g->by, a, ORDER_SHOW, (uint16_t)(rc > 0 ? rc : 0), from);
	player_end(g->by, a);
	return rc > 0 || rc == -EIO ? 0 : rc;
}

/* A program that copies a file sets its list before it closes it. If nothing has the name, the
 * draft has the list. The journal does not have it. */
static int set_inside(struct program_of *g, struct order_act *a, uint16_t *number, struct err *err)
{
	const uint64_t from = now(g);
	const uint16_t next = ++g->p->nlists;
	const int rc = write_list(g, a->at, next, err);
	order_step(a, ORDER_SET, next, from, now(g), false)->skip = true;
	*number = rc ? *number : next;
	return rc;
}

static int close_new(struct program_of *g, struct order_act *a, struct order_act *b,
		     struct engine_file *f, uint16_t number, uint16_t uid, struct err *err)
{
	const uint64_t closes = now(g);
	const unsigned int repeated = g->by->box->line.repeated;
	const int rc = engine_flush(f, err);
	const bool done = player_note(g->by, "create", paths[a->at], rc) && !rc;
	if (done && has_repeated(g, repeated)) {
		order_step(a, ORDER_FILL, number, closes, now(g), false)->skip = true;
		order_step(b, ORDER_RENEW, uid, closes, now(g), false)->skip = true;
	}
	order_step(b, ORDER_RENEW, uid, closes, now(g), !done);
	if (!done)
		order_step(a, ORDER_FILL, FIRST_LIST, closes, ORDER_NEVER, false)->skip = true;
	order_step(a, ORDER_FILL, number, closes, now(g), !done);
	g->by->has_draft |= !done;
	g->p->may_leave |= !done;
	return rc;
}

static int create(struct program_of *g, unsigned int at, struct err *err)
{
	struct order_act *a = player_begin(g->by, "create", at, at);
	const struct program p = program_of_player(g->by, g->p->file, g->p->n_file);
	struct op op = {.kind = OP_CREATE};
	struct engine_file *f;
	uint16_t number = FIRST_LIST;
	if (!a)
		return 0;
	struct order_act *b = begin_file(g, a);
	if (!b)
		return 0;
	const uint64_t from = now(g);
	const uint16_t uid = (uint16_t)++g->p->nfiles;
	content_init(&op.after, uid);
	int rc = engine_open_write(g->e, paths[at], ENGINE_CREATE | ENGINE_TRUNCATE, &f, err);
	if (!rc) {
		player_look(g->by, b, ORDER_SEE, 0, from);
		rc = program_create(&p, &op, f, err);
		g->p->is_torn |= rc != 0;
		int set = 0;
		if (!rc && rng_once_in(&g->by->random, 3))
			set = set_inside(g, a, &number, err);
		player_wait(g->by);
		/* The file is whole, whatever its list is. */
		if (!rc && !player_is_dead(g->by))
			rc = close_new(g, a, b, f, number, uid, err);
		else
			g->by->has_draft = g->p->may_leave = true;
		rc = rc ? rc : set;
		engine_file_close(f);
	}
	player_end(g->by, a);
	player_end(g->by, b);
	return rc;
}

static int unlink_domain(struct program_of *g, unsigned int at, struct err *err)
{
	struct order_act *a = player_begin(g->by, "remove", at, at);
	const uint64_t from = now(g);
	const unsigned int repeated = g->by->box->line.repeated;
	if (!a)
		return 0;
	const int rc = engine_unlink(g->e, paths[at], err);
	const bool answered = player_note(g->by, a->what, paths[at], rc);
	if (answered && rc == -ENOENT) {
		look_cached(g, a, 0, from);
	} else {
		const bool done = answered && !rc && !has_repeated(g, repeated);
		const enum order_kind kind =
			done && !g->by->plain_delete ? ORDER_REMOVE : ORDER_WIPE;
		struct order_act *b = begin_file(g, a);
		order_step(a, kind, 0, from, now(g), !done);
		if (b) {
			order_step(b, kind, 0, from, now(g), !done);
			player_end(g->by, b);
		}
		g->p->may_leave |= !done;
	}
	player_end(g->by, a);
	return rc;
}

/* If an earlier rename was half done, it is finished in place of this one: then the new name has
 * the file, and keeps its list. */
static void plan_finish(struct program_of *g, struct order_act *a, uint64_t from)
{
	order_step(a, ORDER_LINK, 0, from, now(g), false)->skip = a->at < FILES;
	order_step(a, ORDER_WIPE, 0, from, now(g), false);
}

static void plan_rename(struct program_of *g, struct order_act *a, uint64_t from, bool is_done,
			bool was_repeated)
{
	if (!is_done)
		order_step(a, ORDER_SEE, 0, from, 0, true);
	else if (was_repeated)
		order_step(a, ORDER_LINK, 0, from, now(g), false)->skip = true;
	order_step(a, is_done ? ORDER_LINK : ORDER_GIVE, 0, from, now(g), !is_done);
	order_step(a, g->by->plain_delete ? ORDER_WIPE : ORDER_DROP, 0, from, now(g),
		   !is_done || was_repeated);
}

/* Another mount that gives the domain the same name may have done the work. */
static bool has_twin(const struct order *o, const struct order_act *a)
{
	for (unsigned int i = 0; i < o->n; i++) {
		const struct order_act *b = &o->acts[i];
		if (b != a && b->at == a->at && b->to == a->to && b->at != b->to &&
		    (!b->end || b->end > a->begin))
			return true;
	}
	return false;
}

/* Whether an earlier rename with the same names may be half done. */
static bool is_half_done(struct order *o, const struct order_act *a)
{
	for (unsigned int i = 0; i < o->n; i++) {
		struct order_act *b = &o->acts[i];
		if (b != a && b->at == a->at && b->to == a->to && b->at != b->to &&
		    b->steps[0].kind && order_last(b)->may)
			return true;
	}
	return false;
}

static int rename_domain(struct program_of *g, unsigned int at, struct err *err)
{
	struct order_act *a = player_begin(g->by, "rename", at, 1 - at);
	const uint64_t from = now(g);
	const unsigned int repeated = g->by->box->line.repeated;
	if (!a)
		return 0;
	const int rc = engine_rename(g->e, paths[at], paths[1 - at], 0, err);
	const bool answered = player_note(g->by, a->what, paths[at], rc);
	const bool done = answered && !rc && !has_twin(&g->p->order, a);
	g->p->may_leave = true;
	if (answered && rc == -ENOENT) {
		player_end(g->by, a);
		return rc;
	}
	const bool finishes = done && is_half_done(&g->p->order, a);
	struct order_act *const both[] = {a, begin_file(g, a)};
	for (unsigned int i = 0; i < 2 && both[i]; i++) {
		if (finishes)
			plan_finish(g, both[i], from);
		else
			plan_rename(g, both[i], from, done, has_repeated(g, repeated));
	}
	if (both[1])
		player_end(g->by, both[1]);
	player_end(g->by, a);
	return rc;
}

/* ---- a program ---- */

static int call(struct program_of *g, struct err *err)
{
	struct rng *r = &g->by->random;
	const unsigned int what = rng_below(r, 14), at = rng_below(r, 2);
	if (what < 3)
		return set(g, rng_below(r, PATHS), err);
	if (what < 6)
		return get(g, rng_below(r, PATHS), err);
	if (what == 6)
		return read_domain(g, at, err);
	if (what == 7)
		return set(g, at, err);
	if (what < 11)
		return create(g, at, err);
	return what < 13 ? rename_domain(g, at, err) : unlink_domain(g, at, err);
}

int acls_run(struct acls *p, struct player *by, struct err *err)
{
	struct program_of g = {p, by, by->box->engine};
	const unsigned int calls = 1 + rng_below(&by->random, CALLS_MAX);
	int first = 0;
	by->order = &p->order;
	for (unsigned int i = 0; i < calls && !player_is_dead(by) && !by->has_draft; i++) {
		const bool asks = player_is_answer(first);
		const int rc = call(&g, asks ? err : NULL);
		first = asks ? rc : first;
		player_wait(by);
	}
	return player_is_answer(first) || p->is_torn ? 0 : first;
}

struct acls *acls_new(const uint8_t *file, size_t n)
{
	struct acls *p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->file = file;
	p->n_file = n;
	p->nlists = FIRST_LIST;
	p->first[THE_FOLDER] = FIRST_LIST;
	return p;
}

void acls_free(struct acls *p)
{
	if (p)
		str_release(&p->faults);
	free(p);
}

int acls_set_up(struct engine *e, struct err *err)
{
	return engine_mkdir(e, FOLDER, err);
}

/* ---- the end ---- */

static void describe(struct acls *p, const uint16_t last[ORDER_REGISTERS])
{
	char text[200];
	FAULT(p,
	      "no order of the calls leads from %u, %u, and %u of the folder, and files %u, %u, to "
	      "%u, "
	      "%u, %u, files %u, %u",
	      p->first[0], p->first[1], p->first[2], p->first[3], p->first[4], last[0], last[1],
	      last[2], last[3], last[4]);
	for (unsigned int i = 0; i < p->order.n; i++) {
		order_describe(&p->order, i, text, sizeof(text));
		FAULT(p, "%s", text);
	}
}

/* The last rename that may be half done, or NULL. The storage remembers no other. */
static const struct order_act *last_half_done(struct order *o, const uint16_t last[ORDER_REGISTERS])
{
	const struct order_act *found = NULL;
	if (!last[FILES] || last[FILES] != last[FILES + 1])
		return NULL;
	for (unsigned int i = 0; i < o->n; i++) {
		struct order_act *a = &o->acts[i];
		if (a->at < THE_FOLDER && a->to != a->at && a->steps[0].kind && order_last(a)->may)
			found = a;
	}
	return found;
}

/* An engine may finish in a later part what this one has left half done. */
static void begin_next(struct acls *p, const uint16_t last[ORDER_REGISTERS])
{
	const struct order_act *half = last_half_done(&p->order, last);
	const unsigned int at = half ? half->at : 0, to = 1 - at;
	p->acts = p->order.n;
	p->order.n = 0;
	memcpy(p->first, last, sizeof(p->first));
	for (unsigned int file = 0; half && file <= FILES; file += FILES) {
		struct order_act *a =
			order_act(&p->order, "an earlier rename", 0, file + at, file + to);
		a->end = 1;
		order_step(a, ORDER_SEE, 0, 0, 0, false);
		order_step(a, ORDER_DROP, 0, 0, 0, true);
	}
}

bool acls_check(struct acls *p, struct engine *e, bool order_matters)
{
	uint16_t last[ORDER_REGISTERS] = {0};
	struct err err = ERR_INIT;
	enum order_result found = ORDER_FOUND;
	for (unsigned int i = 0; i < PATHS; i++) {
		const int rc = read_list(p, e, i, &err);
		if (rc < 0 && rc != -ENOENT && !p->is_torn)
			FAULT(p, "%s: it cannot be read: %s", paths[i], err.msg);
		last[i] = (uint16_t)(rc > 0 ? rc : 0);
	}
	for (unsigned int i = 0; i < THE_FOLDER; i++) {
		const int rc = read_uid(e, i, &err);
		if (rc < 0 && rc != -ENOENT && !p->is_torn)
			FAULT(p, "%s: its file cannot be read: %s", paths[i], err.msg);
		last[FILES + i] = (uint16_t)(rc > 0 ? rc : 0);
	}
	if (!p->faults.b.len && order_matters && !p->is_torn)
		found = order_search(&p->order, p->first, last);
	if (found == ORDER_IMPOSSIBLE)
		describe(p, last);
	begin_next(p, last);
	return found != ORDER_TOO_LARGE;
}
