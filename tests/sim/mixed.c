/* SPDX-License-Identifier: Apache-2.0 */
/* See mixed.h. All that the engines share is used by the running thread only: baton.h. */
#include "mixed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hsmount/engine.h>

#include "program.h"
#include "store_calls.h"

#define FOLDER "mixed"
enum {
	CALLS_MAX = 5,
	DOUBTS_MAX = 3,
	UPPER = 8,    /* a domain of this number has the value number << UPPER */
	EMPTY = 0xff, /* the plain object without a byte */
	FILES_MAX = EMPTY - 1,
};

/* A program. */
struct program_of {
	struct mixed *p;
	struct player *by;
	struct engine *e;
};

#define FAULT(p, ...) player_fault(&(p)->faults, "domains and plain objects", __VA_ARGS__)

struct name {
	char path[24];
};

static struct name name_of(unsigned int i)
{
	struct name n;
	snprintf(n.path, sizeof(n.path), FOLDER "/m%u.h5", i);
	return n;
}

static uint64_t now(const struct program_of *g)
{
	return player_moment(g->by);
}

/* What the engine knows of a name is valid for a second. */
static struct order_step *look(struct program_of *g, struct order_act *a, enum order_kind kind,
			       uint16_t value, uint64_t from)
{
	struct order_step *s = player_look(g->by, a, kind, value, from);
	s->from = s->absent_from;
	return s;
}

/* A look-up asks for the domain and the object one after the other, so the two may exchange the
 * name meanwhile (DETAILS.md, "Changing names"). */
static void look_in_vain(struct program_of *g, struct order_act *a, uint64_t from)
{
	struct order_act *b = player_begin(g->by, "and", a->at, a->at);
	look(g, a, ORDER_TOP_LACKS, 1 << UPPER, from);
	if (!b)
		return;
	look(g, b, ORDER_TOP_LACKS, 1, from);
	b->begin_ns = a->begin_ns;
	b->begin = a->begin;
	player_end(g->by, b);
}

/* An act that may have happened in part, or may do so later. */
static void fail(struct program_of *g)
{
	g->p->may_leave = true;
	g->p->ndoubts++;
}

static bool has_repeated(const struct program_of *g, unsigned int before)
{
	return player_has_repeated(g->by, before);
}

/* ---- reading ---- */

static int number_of_bytes(struct mixed *p, const char *what, const char *bytes, size_t n)
{
	const unsigned long number = program_plain_number(bytes, n);
	if (n == 0)
		return EMPTY;
	if (number && number <= p->nobjects)
		return (int)number;
	if (!p->is_over)
		FAULT(p, "%s has %zu bytes that nobody has written", what, n);
	return EMPTY;
}

/* Returns what a file is, or a negative errno. */
static int value_of(struct mixed *p, struct engine_file *f, const char *what, struct err *err)
{
	const struct program by = {.file = NULL};
	struct op op = {.kind = OP_READ};
	char bytes[PROGRAM_FILE + 1];
	const ssize_t n = engine_pread(f, bytes, sizeof(bytes), 0, NULL, err);
	if (n < 0)
		return (int)n;
	if (n < PROGRAM_FILE || memcmp(bytes, "\x89HDF\r\n\x1a\n", 8) != 0)
		return number_of_bytes(p, what, bytes, (size_t)n);
	const int rc = program_read(&by, &op, f, err);
	return rc ? rc : (int)op.before.uid << UPPER;
}

/* *opened: the moment at which the open has returned. by may be NULL, and opened then, too. */
static int read_name(struct mixed *p, struct engine *e, unsigned int at, const struct player *by,
		     uint64_t *opened, struct err *err)
{
	struct engine_file *f;
	int rc = engine_file_open(e, name_of(at).path, &f, err);
	if (by)
		*opened = player_moment(by);
	if (rc)
		return rc;
	rc = value_of(p, f, name_of(at).path, err);
	engine_file_close(f);
	return rc;
}

/* If a domain was replaced, another mount may have deleted what an open of it needs. */
static int read_file(struct program_of *g, unsigned int at, uint16_t *value, struct err *err)
{
	struct order_act *a = player_begin(g->by, "read", at, at);
	const uint64_t from = now(g);
	uint64_t opened;
	if (!a)
		return 0;
	const int rc = read_name(g->p, g->e, at, g->by, &opened, err);
	if (player_note(g->by, a->what, name_of(at).path, rc) && rc == -ENOENT) {
		look_in_vain(g, a, from);
	} else if (rc > 0 && !player_is_dead(g->by)) {
		*value = (uint16_t)rc;
		look(g, a, ORDER_TOP, *value, from)->until = *value & ORDER_UPPER ? now(g) : opened;
	}
	player_end(g->by, a);
	return rc > 0 || rc == -EIO ? 0 : rc;
}

struct listing {
	struct mixed *p;
	bool has[MIXED_NAMES];
};

static int note_name(void *arg, const char *name, enum engine_kind kind)
{
	struct listing *l = arg;
	for (unsigned int i = 0; i < MIXED_NAMES; i++)
		if (strcmp(name_of(i).path + strlen(FOLDER "/"), name) == 0) {
			l->has[i] = true;
			if (kind == ENGINE_DIR)
				FAULT(l->p, "%s is listed as a directory", name);
			return 0;
		}
	FAULT(l->p, "%s is listed, and nobody has made it", name);
	return 0;
}

static int list_all(struct program_of *g, struct err *err)
{
	struct listing l = {.p = g->p};
	const uint64_t from = now(g);
	const int rc = engine_list(g->e, FOLDER, note_name, &l, err);
	const bool answered = player_note(g->by, "list", FOLDER, rc) && !rc;
	for (unsigned int i = 0; answered && i < g->p->names; i++) {
		struct order_act *a = player_begin(g->by, "list", i, i);
		if (!a)
			return 0;
		look(g, a, l.has[i] ? ORDER_THERE : ORDER_SHOW, 0, from);
		player_end(g->by, a);
	}
	return rc;
}

/* ---- writing ---- */

static int write_domain(struct program_of *g, struct engine_file *f, unsigned int number,
			struct err *err)
{
	const struct program by = program_of_player(g->by, g->p->file, g->p->n_file);
	struct op op = {.kind = OP_CREATE};
	content_init(&op.after, number);
	const int rc = program_create(&by, &op, f, err);
	g->p->is_over |= rc != 0;
	return rc;
}

/* What may happen of a commit that has failed, at any later moment and more than once. */
static void plan_failed(struct program_of *g, const struct order_act *a, uint16_t value,
			uint64_t closes)
{
	const enum order_kind kinds[] = {ORDER_TOP_RENEW, ORDER_TOP_CLEAR, ORDER_TOP_BACK};
	const bool is_object = !(value & ORDER_UPPER);
	for (unsigned int i = 0; i < (is_object ? 3 : 2); i++) {
		struct order_act *b = player_begin(g->by, "may write", a->at, a->at);
		if (!b)
			return;
		order_step(b, kinds[i], value, closes, ORDER_NEVER, true)->of =
			(unsigned int)(a - g->p->order.acts);
		player_end(g->by, b);
	}
	fail(g);
}

static void plan_commit(struct program_of *g, struct order_act *a, uint16_t value, uint64_t closes,
			bool repeated)
{
	const uint64_t until = now(g);
	if (repeated)
		order_step(a, ORDER_TOP_RENEW, value, closes, until, false)->skip = true;
	if (g->p->is_tree)
		order_step(a, ORDER_TOP_CLEAR, value, closes, until, false)->skip = repeated;
	order_step(a, ORDER_TOP_RENEW, value, closes, until, false);
	if (!g->p->is_tree)
		order_step(a, ORDER_TOP_CLEAR, value, closes, until, false)->skip = repeated;
}

static int write_and_close(struct program_of *g, struct order_act *a, struct engine_file *f,
			   uint16_t value, struct err *err)
{
	const unsigned int repeated = g->by->box->line.repeated;
	const bool is_domain = value & ORDER_UPPER;
	const uint64_t closes = now(g);
	int rc = is_domain ? write_domain(g, f, value >> UPPER, err)
			   : program_write_plain(f, value, err);
	const bool is_whole = !rc && !player_is_dead(g->by);
	player_wait(g->by);
	if (!rc)
		rc = engine_flush(f, err);
	const bool done = player_note(g->by, a->what, name_of(a->at).path, rc) && !rc;
	if (done) {
		plan_commit(g, a, value, closes, has_repeated(g, repeated));
	} else {
		plan_failed(g, a, value, closes);
		/* If a plain file could not be written, what remains is an empty one. */
		if (!is_domain && !is_whole)
			plan_failed(g, a, EMPTY, closes);
	}
	g->by->has_draft |= !done;
	return rc;
}

/* value: of a plain file that is copied; or 0: a new one. */
static int write_file(struct program_of *g, unsigned int at, bool is_domain, uint16_t value,
		      struct err *err)
{
	struct mixed *p = g->p;
	struct engine_file *f;
	struct order_act *a;
	if (!value && (is_domain ? p->ndomains : p->nobjects) == FILES_MAX)
		return 0;
	a = player_begin(g->by, is_domain ? "write a domain" : "write", at, at);
	if (!a)
		return 0;
	const uint64_t from = now(g);
	int rc =
		engine_open_write(g->e, name_of(at).path, ENGINE_CREATE | ENGINE_TRUNCATE, &f, err);
	if (!rc) {
		look(g, a, ORDER_TOP_SEE, 0, from);
		if (!value)
			value = (uint16_t)(is_domain ? ++p->ndomains << UPPER : ++p->nobjects);
		rc = write_and_close(g, a, f, value, err);
		engine_file_close(f);
	} else {
		player_note(g->by, "open", name_of(at).path, rc);
	}
	player_end(g->by, a);
	return rc;
}

static int copy_file(struct program_of *g, unsigned int at, unsigned int to, struct err *err)
{
	uint16_t value = 0;
	const int rc = read_file(g, at, &value, err);
	const bool copies = !rc && value && !(value & ORDER_UPPER) && value != EMPTY;
	return copies && !player_is_dead(g->by) ? write_file(g, to, false, value, err) : rc;
}

/* ---- names ---- */

/* A step of a call that has failed. in_time: all its requests have had an answer. */
static void add_maybe(struct program_of *g, struct order_act *a, enum order_kind kind,
		      uint64_t from, bool in_time)
{
	struct order_step *s = order_step(a, kind, 0, from, now(g), !in_time);
	s->skip = kind == ORDER_TOP_CLEAR_TO || kind == ORDER_TOP_BACK;
	s->rest = in_time && !s->skip;
}

/* What may have happened of a call on names. Any mount may finish a rename later. faults: those of
 * the engine before the call. */
static void plan_maybe(struct program_of *g, struct order_act *a, uint64_t from,
		       unsigned int faults)
{
	const bool in_time = g->by->box->line.faults == faults && !player_is_dead(g->by);
	const bool is_rename = a->at != a->to;
	add_maybe(g, a, ORDER_TOP_FIND, from, in_time);
	if (is_rename) {
		if (g->p->is_tree)
			add_maybe(g, a, ORDER_TOP_CLEAR_TO, from, in_time);
		add_maybe(g, a, ORDER_TOP_GIVE, from, in_time);
		if (!g->p->is_tree)
			add_maybe(g, a, ORDER_TOP_CLEAR_TO, from, in_time);
		/* The copy of a plain object is withdrawn. */
		add_maybe(g, a, ORDER_TOP_BACK, from, in_time);
	}
	add_maybe(g, a, g->by->plain_delete ? ORDER_TOP_WIPE : ORDER_TOP_LEAVE, from,
		  in_time && !is_rename);
	fail(g);
}

static int remove_file(struct program_of *g, unsigned int at, struct err *err)
{
	struct order_act *a = player_begin(g->by, "remove", at, at);
	const uint64_t from = now(g);
	const unsigned int repeated = g->by->box->line.repeated, faults = g->by->box->line.faults;
	if (!a)
		return 0;
	const int rc = engine_unlink(g->e, name_of(at).path, err);
	const bool answered = player_note(g->by, a->what, name_of(at).path, rc);
	if (answered && rc == -ENOENT) {
		look_in_vain(g, a, from);
	} else if (answered && !rc && !has_repeated(g, repeated)) {
		order_step(a, ORDER_TOP_FIND, 0, from, now(g), false);
		order_step(a, g->by->plain_delete ? ORDER_TOP_WIPE : ORDER_TOP_LEAVE, 0, from,
			   now(g), false);
	} else {
		plan_maybe(g, a, from, faults);
	}
	player_end(g->by, a);
	return rc;
}

/* Whether another program gives a file the same name, or did so without an end: then each may
 * finish the work of the other one (DETAILS.md, "Renames"). */
static bool may_finish(struct mixed *p, const struct order_act *a)
{
	for (unsigned int i = 0; i < p->order.n; i++) {
		struct order_act *b = &p->order.acts[i];
		if (b != a && b->at == a->at && b->to == a->to &&
		    (!b->end || b->end > a->begin || (b->steps[0].kind && order_last(b)->may)))
			return true;
	}
	return false;
}

static void plan_rename(struct program_of *g, struct order_act *a, uint64_t from)
{
	const uint64_t until = now(g);
	order_step(a, ORDER_TOP_FIND, 0, from, until, false);
	if (g->p->is_tree)
		order_step(a, ORDER_TOP_CLEAR_TO, 0, from, until, false)->skip = true;
	order_step(a, ORDER_TOP_GIVE, 0, from, until, false);
	if (!g->p->is_tree)
		order_step(a, ORDER_TOP_CLEAR_TO, 0, from, until, false)->skip = true;
	order_step(a, g->by->plain_delete ? ORDER_TOP_WIPE : ORDER_TOP_LEAVE, 0, from, until,
		   false);
}

/* In a directory, what has the new name is removed first. Then another program may remove the file
 * that is renamed (DETAILS.md, "Changing names"). */
static void plan_made_way(struct program_of *g, const struct order_act *a, uint64_t from)
{
	struct order_act *b = player_begin(g->by, "made way", a->at, a->to);
	if (!b)
		return;
	order_step(b, ORDER_TOP_FIND, 0, from, now(g), false)->rest = true;
	order_step(b, ORDER_TOP_CLEAR_TO, 0, from, now(g), false)->rest = true;
	player_end(g->by, b);
}

static int rename_file(struct program_of *g, unsigned int at, unsigned int to, struct err *err)
{
	struct order_act *a = player_begin(g->by, "rename", at, to);
	const uint64_t from = now(g);
	const unsigned int repeated = g->by->box->line.repeated, faults = g->by->box->line.faults;
	if (!a)
		return 0;
	const int rc = engine_rename(g->e, name_of(at).path, name_of(to).path, 0, err);
	const bool answered = player_note(g->by, a->what, name_of(at).path, rc);
	g->p->may_leave = true;
	if (answered && rc == -ENOENT) {
		look_in_vain(g, a, from);
		if (g->p->is_tree)
			plan_made_way(g, a, from);
	} else if (answered && !rc && !has_repeated(g, repeated) && !may_finish(g->p, a)) {
		plan_rename(g, a, from);
	} else {
		plan_maybe(g, a, from, faults);
	}
	player_end(g->by, a);
	return rc;
}

/* ---- a program ---- */

/* All programs rename the same plain object over the same domain. */
static int call_brief(struct program_of *g, struct err *err)
{
	const unsigned int what = rng_below(&g->by->random, 10);
	uint16_t ignored;
	if (what < 4)
		return write_file(g, what / 2, what / 2, 0, err);
	return what < 9 ? rename_file(g, 0, 1, err) : read_file(g, 1, &ignored, err);
}

static int call(struct program_of *g, struct err *err)
{
	struct rng *r = &g->by->random;
	const unsigned int at = rng_below(r, g->p->names), what = rng_below(r, 16);
	const unsigned int to = (at + 1 + rng_below(r, g->p->names - 1)) % g->p->names;
	uint16_t ignored;
	if (what < 6)
		return write_file(g, at, what < 3, 0, err);
	if (what < 10)
		return rename_file(g, at, to, err);
	if (what < 13)
		return read_file(g, at, &ignored, err);
	return what == 13   ? copy_file(g, at, to, err)
	       : what == 14 ? remove_file(g, at, err)
			    : list_all(g, err);
}

int mixed_run(struct mixed *p, struct player *by, struct err *err)
{
	struct program_of g = {p, by, by->box->engine};
	const unsigned int calls = 1 + rng_below(&by->random, CALLS_MAX);
	int first = 0;
	by->order = &p->order;
	for (unsigned int i = 0;
	     i < calls && !player_is_dead(by) && !by->has_draft && p->ndoubts < DOUBTS_MAX; i++) {
		const bool asks = player_is_answer(first);
		struct err *why = asks ? err : NULL;
		const int rc = by->plays == PLAY_BRIEF ? call_brief(&g, why) : call(&g, why);
		first = asks ? rc : first;
		player_wait(by);
	}
	return player_is_answer(first) || p->is_over ? 0 : first;
}

struct mixed *mixed_new(struct store *bucket, uint64_t seed, bool is_tree, const uint8_t *file,
			size_t n)
{
	struct mixed *p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->file = file;
	p->n_file = n;
	p->bucket = bucket;
	p->is_tree = is_tree;
	p->names = 2 + (unsigned int)(seed / 2 % 2);
	return p;
}

void mixed_free(struct mixed *p)
{
	if (p)
		str_release(&p->faults);
	free(p);
}

int mixed_set_up(struct engine *e, struct err *err)
{
	return engine_mkdir(e, FOLDER, err);
}

/* ---- the end ---- */

static uint16_t object_at_end(struct mixed *p, unsigned int at)
{
	struct call_result res;
	const int rc =
		call_get(p->bucket, name_of(at).path, 0, STORE_TO_END, 1 << 20, NULL, &res, NULL);
	const int value = rc ? 0
			     : number_of_bytes(p, name_of(at).path, (const char *)res.body.data,
					       res.body.len);
	bytes_release(&res.body);
	return (uint16_t)value;
}

/* What a name shows, and a plain object that is hidden. */
static uint16_t value_at_end(struct mixed *p, struct engine *e, unsigned int at)
{
	struct err err = ERR_INIT;
	const int rc = read_name(p, e, at, NULL, NULL, &err);
	const uint16_t object = object_at_end(p, at);
	if (rc < 0 && rc != -ENOENT && !p->is_over)
		FAULT(p, "%s is there and cannot be read: %s", name_of(at).path, err.msg);
	if (rc <= 0)
		return object;
	return (uint16_t)((unsigned int)rc & ORDER_UPPER) | object;
}

static void describe(struct mixed *p, const uint16_t last[ORDER_REGISTERS])
{
	char text[200];
	FAULT(p, "no order of the calls leads from %x, %x, %x to %x, %x, %x", p->first[0],
	      p->first[1], p->first[2], last[0], last[1], last[2]);
	for (unsigned int i = 0; i < p->order.n; i++) {
		order_describe(&p->order, i, text, sizeof(text));
		FAULT(p, "%s", text);
	}
}

static bool has_both(uint16_t value)
{
	return value & ORDER_UPPER && value & ~ORDER_UPPER;
}

/* Whether two names have one domain. */
static bool is_half_renamed(const uint16_t last[ORDER_REGISTERS])
{
	bool found = false;
	for (unsigned int i = 0; i < MIXED_NAMES; i++)
		for (unsigned int k = 0; k < i; k++)
			found |= last[i] & ORDER_UPPER && !((last[i] ^ last[k]) & ORDER_UPPER);
	return found;
}

bool mixed_check(struct mixed *p, struct engine *e, bool is_alone, bool order_matters)
{
	uint16_t last[ORDER_REGISTERS] = {0};
	enum order_result found = ORDER_FOUND;
	for (unsigned int i = 0; i < MIXED_NAMES; i++) {
		last[i] = value_at_end(p, e, i);
		if (has_both(last[i]) && is_alone && !p->ndoubts && !p->is_over)
			FAULT(p, "%s is a domain and a plain object, and nothing has failed",
			      name_of(i).path);
	}
	if (!p->faults.b.len && order_matters && !p->is_over)
		found = order_search(&p->order, p->first, last);
	if (found == ORDER_IMPOSSIBLE)
		describe(p, last);
	p->is_over |= is_half_renamed(last);
	memcpy(p->first, last, sizeof(p->first));
	p->acts = p->order.n;
	p->order.n = 0;
	p->ndoubts = 0;
	return found != ORDER_TOO_LARGE;
}
