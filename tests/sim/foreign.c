/* SPDX-License-Identifier: Apache-2.0 */
/* See foreign.h. All that the engines share is used by the running thread only: baton.h. */
#include "foreign.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hsmount/engine.h>

#include "baton.h"
#include "program.h"
#include "store_calls.h"
#include "template.h"

#define DIR_NAME "foreign"
#define PATH	 DIR_NAME "/domain.h5"
enum { CALLS_MAX = 5, FIRST_VALUE = 1, FIRST_STORAGE = 0x30, ROWS_OF_DOMAIN = 1000 };
/* Registers of a domain. */
enum { ROOT, X0, X1, ROWS, OBJECTS };

/* A program. */
struct program_of {
	struct foreign *p;
	struct player *by;
	struct engine *e;
	uint64_t begin, begin_ns; /* of the call */
	unsigned int changes;	  /* that there were at its beginning */
	unsigned int faults;	  /* likewise, of its mount */
	uint64_t opened;	  /* what an open shows was there before */
	uint64_t fetched;	  /* the same for chunks */
};

#define FAULT(p, ...) player_fault(&(p)->faults, "foreign writer", __VA_ARGS__)

static uint64_t now(const struct program_of *g)
{
	return player_moment(g->by);
}

/* ---- values ---- */

static uint64_t bytes_of(uint16_t value)
{
	return value == FIRST_VALUE ? FIRST_VALUE : value * UINT64_C(0x0001000100010001);
}

/* Returns 0 if nobody has written these bytes. */
static uint16_t value_of(const struct foreign *p, uint64_t bytes)
{
	const uint16_t value = (uint16_t)bytes;
	return value && value <= p->nvalues && bytes_of(value) == bytes ? value : 0;
}

static bool are_equal(const uint64_t *v, unsigned int n)
{
	for (unsigned int i = 1; i < n; i++)
		if (v[i] != v[0])
			return false;
	return true;
}

static uint64_t row_of(uint16_t domain, uint64_t chunk)
{
	return chunk ? domain * (uint64_t)ROWS_OF_DOMAIN + chunk : 1;
}

/* The registers that a content shows. Returns false if it is a mixture. */
static bool registers_of(struct foreign *p, const struct content *c, uint16_t v[ORDER_REGISTERS])
{
	v[ROOT] = value_of(p, c->tag);
	/* An engine leaves the first element as it was. */
	v[X0] = value_of(p, c->x[1]);
	v[X1] = value_of(p, c->x[CONTENT_CHUNK]);
	v[ROWS] = (uint16_t)c->nrows;
	bool whole = v[ROOT] && v[X0] && v[X1] && are_equal(c->x + 1, CONTENT_CHUNK - 1) &&
		     are_equal(c->x + CONTENT_CHUNK, CONTENT_CHUNK);
	for (uint64_t i = 0; i < c->nrows; i++)
		whole = whole && c->rows[i] == row_of((uint16_t)c->uid, i / CONTENT_CHUNK);
	return whole;
}

static struct foreign_domain *domain_of(struct foreign *p, uint64_t uid)
{
	for (unsigned int i = 0; i < p->ndomains; i++)
		if (p->domains[i].number == uid)
			return &p->domains[i];
	return NULL;
}

/* ---- acts ---- */

static struct order_act *begin(struct program_of *g, struct order *o, const char *what,
			       unsigned int at)
{
	g->by->order = o;
	struct order_act *a = player_begin(g->by, what, at, at);
	if (a) {
		a->begin = g->begin;
		a->begin_ns = g->begin_ns;
	}
	return a;
}

/* Adds an act with one step. */
static void add(struct program_of *g, struct order *o, const char *what, unsigned int at,
		enum order_kind kind, uint16_t value, uint64_t from, uint64_t until)
{
	struct order_act *a = begin(g, o, what, at);
	if (!a)
		return;
	order_step(a, kind, value, from, until, false);
	player_end(g->by, a);
}

static void add_absence(struct program_of *g)
{
	struct order_act *a = begin(g, &g->p->names, "no domain", 0);
	if (!a)
		return;
	player_look(g->by, a, ORDER_SHOW, 0, g->begin);
	player_end(g->by, a);
}

static bool is_chunk(unsigned int at)
{
	return at == X0 || at == X1;
}

/* An open whose listing has failed does not learn the versions of chunks: it shows those that were
 * there when they were read first (DETAILS.md, "Freshness"). */
static void note_fetched(struct program_of *g)
{
	g->fetched = g->by->box->line.faults != g->faults ? now(g) : g->opened;
}

/* Adds what an open has shown, but for one register. Returns the domain, or NULL. */
static struct foreign_domain *add_content(struct program_of *g, const struct content *c,
					  const char *who, unsigned int but)
{
	struct foreign_domain *d = domain_of(g->p, c->uid);
	uint16_t v[ORDER_REGISTERS] = {0};
	if (!d || !registers_of(g->p, c, v)) {
		FAULT(g->p, "engine %u, %s: what it reads is no content that the domain had",
		      g->by->box->number, who);
		return NULL;
	}
	add(g, &g->p->names, who, 0, ORDER_SHOW, d->number, g->begin, g->opened);
	for (unsigned int i = 0; i < OBJECTS; i++)
		if (i != but)
			add(g, &d->order, who, i, ORDER_SHOW, v[i], g->begin,
			    is_chunk(i) ? g->fetched : g->opened);
	return d;
}

/* ---- the foreign writer ---- */

static struct template template_of(const struct foreign *p, uint16_t tag)
{
	return (struct template){.path = PATH,
				 .storage = (uint8_t)(FIRST_STORAGE + p->number),
				 .uid = p->number,
				 .tag = bytes_of(tag),
				 .rows = p->rows};
}

static struct order *order_of(struct foreign *p)
{
	return &domain_of(p, p->number)->order;
}

static void make_domain(struct program_of *g)
{
	struct foreign *p = g->p;
	if (p->ndomains == FOREIGN_DOMAINS || p->number > 200)
		return;
	struct foreign_domain *d = &p->domains[p->ndomains++];
	p->number++;
	p->rows = CONTENT_CHUNK;
	*d = (struct foreign_domain){.number = p->number};
	for (unsigned int i = 0; i < OBJECTS; i++)
		d->first[i] = i == ROWS ? CONTENT_CHUNK : FIRST_VALUE;
	const struct template t = template_of(p, FIRST_VALUE);
	template_put_objects(p->bucket, &t);
	player_wait(g->by);
	const uint64_t from = now(g);
	template_put_document(p->bucket, &t, TEMPLATE_DOMAIN);
	p->is_there = true;
	add(g, &p->names, "make", 0, ORDER_PUT, p->number, from, now(g));
}

static void put_root(struct program_of *g)
{
	const uint16_t value = ++g->p->nvalues;
	const struct template t = template_of(g->p, value);
	const uint64_t from = now(g);
	template_put_document(g->p->bucket, &t, TEMPLATE_ROOT);
	add(g, order_of(g->p), "put", ROOT, ORDER_PUT, value, from, now(g));
}

static void put_chunk(struct program_of *g, unsigned int chunk)
{
	const uint16_t value = ++g->p->nvalues;
	const uint64_t bytes = bytes_of(value), all[CONTENT_CHUNK] = {bytes, bytes, bytes, bytes};
	const struct template t = template_of(g->p, 0);
	const uint64_t from = now(g);
	template_put_chunk(g->p->bucket, &t, chunk ? "1/1" : "1/0", all);
	add(g, order_of(g->p), "put", chunk ? X1 : X0, ORDER_PUT, value, from, now(g));
}

static void add_rows(struct program_of *g)
{
	struct foreign *p = g->p;
	const uint64_t chunk = p->rows / CONTENT_CHUNK, row = row_of(p->number, chunk);
	const uint64_t all[CONTENT_CHUNK] = {row, row, row, row};
	char key[16];
	if (p->rows == CONTENT_ROWS)
		return;
	p->rows += CONTENT_CHUNK;
	const struct template t = template_of(p, 0);
	snprintf(key, sizeof(key), "2/%u", (unsigned int)chunk);
	template_put_chunk(p->bucket, &t, key, all);
	player_wait(g->by);
	const uint64_t from = now(g);
	template_put_document(p->bucket, &t, TEMPLATE_ROWS);
	add(g, order_of(p), "extend", ROWS, ORDER_PUT, (uint16_t)p->rows, from, now(g));
}

static void delete_key(struct program_of *g, const char *key)
{
	if (call_delete(g->p->bucket, key, NULL, NULL))
		abort();
	player_wait(g->by);
}

static void remove_domain(struct program_of *g)
{
	struct foreign *p = g->p;
	const struct template t = template_of(p, 0);
	struct str prefix = {0}, root = {0};
	auto_page struct store_page page = {0};
	const uint64_t from = now(g);
	p->has_removed = true;
	p->is_there = false;
	template_prefix(&t, &prefix);
	str_addf(&root, "%s.group.json", str_text(&prefix));
	delete_key(g, PATH "/.domain.json");
	add(g, &p->names, "remove", 0, ORDER_WIPE, 0, from, now(g));
	delete_key(g, str_text(&root));
	if (call_list_all(p->bucket, str_text(&prefix), false, UINT32_MAX, &page, NULL))
		abort();
	for (size_t i = 0; i < page.n; i++)
		delete_key(g, page.items[i].key);
	str_release(&prefix);
	str_release(&root);
}

static void write_as_service(struct program_of *g)
{
	struct foreign *p = g->p;
	pthread_mutex_lock(&p->lock);
	const unsigned int what = rng_below(&g->by->random, 10);
	p->changes++;
	scheduler_note(g->by->box->line.scheduler, "foreign writer: %u", p->is_there ? what : 99);
	if (!p->is_there)
		make_domain(g);
	else if (what < 3)
		put_root(g);
	else if (what < 7)
		put_chunk(g, what % 2);
	else if (what < 9)
		add_rows(g);
	else
		remove_domain(g);
	p->changes++;
	pthread_mutex_unlock(&p->lock);
}

/* ---- engines ---- */

/* A chunk that was overwritten cannot be read, and a read ends before it (SEMANTICS.md,
 * "Freshness"). */
static int answer_of(const struct program_of *g, int rc)
{
	return rc == -EIO && g->p->changes != g->changes ? -ESTALE : rc;
}

static int read_domain(struct program_of *g, struct err *err)
{
	struct engine_file *f;
	struct op op = {.kind = OP_READ, .waits = rng_below(&g->by->random, 5)};
	const struct program p = program_of_player(g->by, NULL, 0);
	int rc = engine_file_open(g->e, PATH, &f, err);
	g->opened = now(g);
	if (!rc) {
		rc = program_read(&p, &op, f, err);
		engine_file_close(f);
	}
	note_fetched(g);
	if (!player_note(g->by, "read", PATH, rc))
		return rc;
	if (rc == -ENOENT)
		add_absence(g);
	else if (!rc && op.mixed)
		FAULT(g->p, "engine %u has read two contents in one open", g->by->box->number);
	else if (!rc)
		add_content(g, &op.before, "read", OBJECTS);
	return answer_of(g, rc);
}

/* Closes a file that it has changed. If a part of the change could not be written, what was written
 * is stored nevertheless if it is a complete file (DETAILS.md, "Failed writes"). */
static int store_change(struct program_of *g, const struct op *op, struct engine_file *f,
			uint16_t value, struct err *err)
{
	const unsigned int at = op->change == CHANGE_TAG ? ROOT : op->change == CHANGE_X0 ? X0 : X1;
	uint16_t v[ORDER_REGISTERS] = {0};
	struct foreign_domain *d = add_content(g, &op->before, "open to change", at);
	if (!d || !registers_of(g->p, &op->before, v))
		return 0;
	struct order_act *a = begin(g, &d->order, "change", at);
	const uint64_t closes = now(g);
	g->p->changes++;
	const int rc = op->rc ? op->rc : engine_flush(f, err);
	g->p->changes++;
	const bool done = player_note(g->by, "change", PATH, rc) && !rc;
	const uint64_t closed = now(g);
	if (!a)
		return rc;
	order_step(a, ORDER_SHOW, v[at], g->begin, is_chunk(at) ? g->fetched : g->opened, false);
	order_step(a, ORDER_REPLACE, value, closes, closed, !done);
	player_end(g->by, a);
	if (done)
		add(g, &g->p->names, "has changed", 0, ORDER_SHOW, d->number, closes, closed);
	g->by->has_draft |= !done;
	return rc;
}

static int change_domain(struct program_of *g, struct err *err)
{
	static const enum change_kind kinds[] = {CHANGE_TAG, CHANGE_X0, CHANGE_X1};
	struct engine_file *f;
	struct op op = {.kind = OP_CHANGE, .change = kinds[rng_below(&g->by->random, 3)]};
	const struct program p = program_of_player(g->by, NULL, 0);
	int rc = engine_open_write(g->e, PATH, 0, &f, err);
	if (rc) {
		if (player_note(g->by, "open", PATH, rc) && rc == -ENOENT)
			add_absence(g);
		return rc;
	}
	const uint16_t value = ++g->p->nvalues;
	g->opened = now(g);
	rc = op.rc = program_change(&p, &op, f, bytes_of(value), err);
	note_fetched(g);
	for (unsigned int i = rng_below(&g->by->random, 20); i; i--)
		player_wait(g->by);
	if (op.was_open && !player_is_dead(g->by))
		rc = store_change(g, &op, f, value, err);
	else
		g->by->has_draft = true;
	engine_file_close(f);
	return answer_of(g, rc);
}

struct listing {
	struct foreign *p;
	bool has;
};

static int note_name(void *arg, const char *name, enum engine_kind kind)
{
	struct listing *l = arg;
	if (strcmp(name, PATH + strlen(DIR_NAME "/")) != 0 || kind != ENGINE_DOMAIN)
		FAULT(l->p, "%s is listed as %d", name, kind);
	l->has = true;
	return 0;
}

static int list_domain(struct program_of *g, struct err *err)
{
	struct listing l = {.p = g->p};
	const int rc = engine_list(g->e, DIR_NAME, note_name, &l, err);
	if (player_note(g->by, l.has ? "list" : "list nothing", PATH, rc) &&
	    (!rc || rc == -ENOENT)) {
		if (l.has)
			add(g, &g->p->names, "list", 0, ORDER_THERE, 0, g->begin, now(g));
		else
			add_absence(g);
	}
	return rc;
}

/* ---- a program ---- */

static int call(struct program_of *g, struct err *err)
{
	g->begin = now(g);
	g->begin_ns = baton_now();
	g->changes = g->p->changes;
	g->faults = g->by->box->line.faults;
	const unsigned int what = rng_below(&g->by->random, 10);
	if (what < 5) {
		write_as_service(g);
		return 0;
	}
	return what < 7	  ? read_domain(g, err)
	       : what < 9 ? change_domain(g, err)
			  : list_domain(g, err);
}

int foreign_run(struct foreign *p, struct player *by, struct err *err)
{
	struct program_of g = {.p = p, .by = by, .e = by->box->engine};
	const unsigned int calls = 1 + rng_below(&by->random, CALLS_MAX);
	int first = 0;
	for (unsigned int i = 0; i < calls && !player_is_dead(by) && !by->has_draft; i++) {
		const bool asks = player_is_answer(first);
		const int rc = call(&g, asks ? err : NULL);
		first = asks ? rc : first;
		player_wait(by);
	}
	/* What the domain lacks while it is being removed is EIO. */
	return player_is_answer(first) || p->has_removed ? 0 : first;
}

struct foreign *foreign_new(struct store *bucket)
{
	struct foreign *p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->bucket = bucket;
	p->nvalues = FIRST_VALUE;
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

void foreign_free(struct foreign *p)
{
	if (!p)
		return;
	pthread_mutex_destroy(&p->lock);
	str_release(&p->faults);
	free(p);
}

/* ---- the end ---- */

static void describe(struct foreign *p, const struct order *o, const char *what,
		     const uint16_t first[ORDER_REGISTERS], const uint16_t last[ORDER_REGISTERS])
{
	char text[200];
	FAULT(p, "no order of the calls leads the %s from %u, %u, %u, %u to %u, %u, %u, %u", what,
	      first[0], first[1], first[2], first[3], last[0], last[1], last[2], last[3]);
	for (unsigned int i = 0; i < o->n; i++) {
		order_describe(o, i, text, sizeof(text));
		FAULT(p, "%s", text);
	}
}

/* What an engine shows at the end. */
static void look_at_end(struct foreign *p, struct engine *e, uint16_t v[ORDER_REGISTERS])
{
	struct engine_file *f;
	struct err err = ERR_INIT;
	struct op op = {.kind = OP_READ};
	const struct program program = {.file = NULL};
	int rc = engine_file_open(e, PATH, &f, &err);
	if (!rc) {
		rc = program_read(&program, &op, f, &err);
		engine_file_close(f);
	}
	if (rc != (p->is_there ? 0 : -ENOENT))
		FAULT(p, "at the end, the domain is %s, and it cannot be read: %d %s",
		      p->is_there ? "there" : "removed", rc, err.msg);
	else if (!rc && (op.before.uid != p->number || !registers_of(p, &op.before, v)))
		FAULT(p, "at the end, domain %llu has a content that it never had",
		      (unsigned long long)op.before.uid);
}

static enum order_result judge(struct foreign *p, const struct order *o, const char *what,
			       const uint16_t first[ORDER_REGISTERS],
			       const uint16_t last[ORDER_REGISTERS])
{
	const enum order_result found = order_search(o, first, last);
	if (found == ORDER_IMPOSSIBLE)
		describe(p, o, what, first, last);
	p->acts += o->n;
	return found;
}

/* Nobody sees the end of a domain that was removed. */
static bool judge_all(struct foreign *p, const uint16_t v[ORDER_REGISTERS])
{
	const uint16_t last[ORDER_REGISTERS] = {p->is_there ? p->number : 0};
	const uint16_t gone[ORDER_REGISTERS] = {ORDER_ANY, ORDER_ANY, ORDER_ANY, ORDER_ANY};
	bool decided = judge(p, &p->names, "name", p->first, last) != ORDER_TOO_LARGE;
	for (unsigned int i = 0; i < p->ndomains; i++) {
		struct foreign_domain *d = &p->domains[i];
		const bool is_there = p->is_there && d->number == p->number;
		decided &= judge(p, &d->order, "objects", d->first, is_there ? v : gone) !=
			   ORDER_TOO_LARGE;
	}
	return decided;
}

bool foreign_check(struct foreign *p, struct engine *e, bool order_matters)
{
	uint16_t v[ORDER_REGISTERS] = {0};
	bool decided = true;
	p->acts = 0;
	look_at_end(p, e, v);
	if (!p->faults.b.len && order_matters)
		decided = judge_all(p, v);
	p->ndomains = p->is_there;
	p->first[0] = p->is_there ? p->number : 0;
	p->domains[0] = (struct foreign_domain){.number = p->number};
	memcpy(p->domains[0].first, v, sizeof(v));
	p->names.n = 0;
	p->has_removed = false;
	return decided;
}
