/* SPDX-License-Identifier: Apache-2.0 */
/* See links.h. All that the engines share is used by the running thread only: baton.h. */
#include "links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hsmount/check.h>
#include <hsmount/engine.h>

#include "baton.h"
#include "linked_file.h"
#include "process.h"
#include "store_calls.h"

#define FILE_KEY LINKS_DIR "/data.bin"
#define PATH	 LINKS_DIR "/domain.h5"
enum {
	CALLS_MAX = 6,
	ACTS_MAX = 36,
	MAYBES_MAX = 5, /* with more the search for an order takes too long */
	ATTEMPTS_MAX = 8,
	IMAGE_MAX = 1 << 20,
	STEPS_MAX = 40, /* between two reads */
	STEP_NS = 100000000,
	FIRST = 2048,	   /* bytes of a read that reads no data */
	FIRST_MAX = 20000, /* likewise, of one that reads a part of them */
};

/* A program. */
struct program_of {
	struct links *p;
	struct player *by;
	uint64_t begin;
};

#define FAULT(p, ...) player_fault(&(p)->faults, "links", __VA_ARGS__)

static uint64_t now(const struct program_of *g)
{
	return player_moment(g->by);
}

/* ---- what changes ---- */

/* Returns a number for end_change(). */
static unsigned int begin_change(struct links *p)
{
	p->changing++;
	return ++p->changes;
}

/* linked: see links.linked, if nobody else has changed anything meanwhile. */
static void end_change(struct links *p, unsigned int number, uint16_t linked)
{
	const bool was_alone = --p->changing == 0 && p->changes == number;
	p->linked = was_alone ? linked : 0;
	p->changes++;
}

/* Whether nothing has changed since. */
static bool is_quiet(const struct links *p, unsigned int changes)
{
	return !p->changing && p->changes == changes;
}

static void put_file(struct program_of *g)
{
	struct links *p = g->p;
	size_t n;
	if (p->nversions == LINKS_VERSIONS || p->version > 60000)
		return;
	p->version = (uint16_t)(p->version + 1 + rng_below(&g->by->random, 2));
	uint8_t *bytes = linked_file(p->version, &n);
	const unsigned int change = begin_change(p), i = p->nversions++;
	p->versions[i].version = p->version;
	p->versions[i].from = now(g);
	p->versions[i].until = ORDER_NEVER;
	if (call_put(p->bucket, FILE_KEY, bytes, n, NULL, NULL, NULL))
		abort();
	if (i && p->is_there)
		p->versions[i - 1].until = now(g);
	p->is_there = true;
	end_change(p, change, p->linked);
	free(bytes);
}

static void remove_file(struct program_of *g)
{
	struct links *p = g->p;
	const unsigned int change = begin_change(p);
	if (call_delete(p->bucket, FILE_KEY, NULL, NULL))
		abort();
	p->versions[p->nversions - 1].until = now(g);
	p->is_there = false;
	end_change(p, change, p->linked);
}

/* The foreign writer. */
static void write_file(struct program_of *g)
{
	struct links *p = g->p;
	pthread_mutex_lock(&p->writer);
	if (p->is_there && rng_once_in(&g->by->random, 4))
		remove_file(g);
	else
		put_file(g);
	pthread_mutex_unlock(&p->writer);
	scheduler_note(g->by->box->line.scheduler, "file of links: version %u%s", p->version,
		       p->is_there ? "" : " removed");
}

/* ---- links ---- */

static int run_command(struct box *b, bool aborts, bool replaces, struct err *err)
{
	struct engine_link link = {.key = FILE_KEY};
	const struct engine_import opt = {.file = aborts ? NULL : FILE_KEY,
					  .link = &link,
					  .path = PATH,
					  .abort = aborts,
					  .replace = replaces && !aborts,
					  .local_user = "ann"};
	const int rc = engine_import(b->engine, &opt, err);
	world_cut_message(b->world, err);
	return b->line.dead ? -EIO : rc;
}

/* No request arrives late: `--abort` may have deleted the storage by then, and the document leads
 * to nothing (DETAILS.md, "Imports"). */
static enum fault fault_from(struct rng *r)
{
	static const enum fault faults[] = {FAULT_REFUSED,  FAULT_FAILED,    FAULT_LOST,
					    FAULT_REPEATED, FAULT_SLOW,	     FAULT_EXPIRED,
					    FAULT_KILL,	    FAULT_KILL_AFTER};
	return faults[rng_below(r, sizeof(faults) / sizeof(faults[0]))];
}

/* Runs the command in a process of its own, of which a request may fail. */
static int link_once(struct program_of *g, bool aborts, bool replaces, bool fails, struct err *err)
{
	struct box *b = calloc(1, sizeof(*b));
	struct world *w = g->by->box->world;
	if (!b)
		abort();
	box_init(b, w, PROCESS_ENGINE, rng_next(&g->by->random), true);
	if (fails)
		line_arm(&b->line, fault_from(&g->by->random), 1 + rng_below(&g->by->random, 12),
			 NULL, false);
	const int rc = run_command(b, aborts, replaces, err);
	scheduler_note(b->line.scheduler, "link%s%s: %d %s", aborts ? " --abort" : "",
		       replaces ? " --replace" : "", rc, err->msg);
	const bool is_certain = !b->line.faults && !b->line.repeated;
	box_release(b);
	free(b);
	return rc || is_certain ? rc : 1;
}

/* A link that has failed is continued or removed, until nothing unfinished is left. */
static void tidy(struct program_of *g, bool replaces)
{
	bool aborts = rng_once_in(&g->by->random, 2);
	int rc = -EIO;
	for (unsigned int i = 0; rc < 0 && i < ATTEMPTS_MAX; i++) {
		struct err err = ERR_INIT;
		rc = link_once(g, aborts, replaces, false, &err);
		if (aborts && rc == -ENOENT)
			rc = 0;
		aborts = !aborts;
	}
}

static bool had_since_begin(const struct program_of *g, unsigned int i)
{
	return g->p->versions[i].until >= g->begin;
}

static void add_step(struct program_of *g, struct order_act *a, bool replaces, uint16_t version,
		     bool may, bool skip)
{
	order_step(a, replaces ? ORDER_RENEW : ORDER_MAKE, version, g->begin, now(g), may)->skip =
		skip;
}

/* The act of a link. It gives the domain a version between the first one and the last one; if there
 * are several, all but one are skipped. */
static void add_act(struct program_of *g, bool replaces, unsigned int first, unsigned int last,
		    bool may)
{
	struct links *p = g->p;
	struct order_act *a = player_begin(g->by, replaces ? "link over" : "link", 0, 0);
	if (!a)
		return;
	p->maybes += may;
	if (replaces)
		order_step(a, ORDER_SEE, 0, g->begin, now(g), may);
	for (unsigned int i = first; i <= last; i++)
		if (had_since_begin(g, i))
			add_step(g, a, replaces, p->versions[i].version, may, first < last);
	player_end(g->by, a);
}

/* Returns the only version that the file had since the call began, or 0. */
static uint16_t add_acts(struct program_of *g, bool replaces, bool may)
{
	struct links *p = g->p;
	unsigned int n = 0, first = 0, last = 0;
	for (unsigned int i = 0; i < p->nversions; i++)
		if (had_since_begin(g, i)) {
			first = n++ ? first : i;
			last = i;
		}
	for (unsigned int i = first; may && n && i <= last; i++)
		if (had_since_begin(g, i))
			add_act(g, replaces, i, i, true);
	if (n >= ORDER_STEPS)
		p->maybes = MAYBES_MAX + 1;
	else if (!may && n)
		add_act(g, replaces, first, last, false);
	return n == 1 ? p->versions[first].version : 0;
}

static int link_file(struct program_of *g, struct err *err)
{
	struct links *p = g->p;
	const bool replaces = rng_once_in(&g->by->random, 2);
	const bool fails = rng_once_in(&g->by->random, 4);
	pthread_mutex_lock(&p->linker);
	g->begin = now(g);
	const unsigned int change = begin_change(p);
	const int rc = link_once(g, false, replaces, fails, err);
	const bool is_refused = !fails && (rc == -EEXIST || rc == -ENOENT);
	uint16_t version = 0;
	if (rc < 0 && !is_refused) {
		p->may_leave = true;
		tidy(g, replaces);
	}
	if (!is_refused)
		version = add_acts(g, replaces, rc != 0);
	p->may_leave |= rc == 1;
	end_change(p, change, is_refused ? p->linked : rc ? 0 : version);
	pthread_mutex_unlock(&p->linker);
	return 0;
}

/* ---- programs of mounts ---- */

/* Reads the file in two parts, between which others may run. The first one has so many bytes, or
 * half of the file. Returns 0, or a negative errno if a part cannot be read. */
static int read_numbers(struct engine_file *f, size_t first, const struct player *by,
			unsigned int steps, struct linked_numbers *out, struct err *err)
{
	struct engine_stat st;
	uint8_t *bytes = malloc(IMAGE_MAX);
	engine_file_stat(f, &st);
	if (!bytes || st.size > IMAGE_MAX)
		abort();
	const size_t half = first < st.size ? first : (size_t)st.size / 2;
	ssize_t got = engine_pread(f, bytes, half, 0, NULL, err);
	size_t n = got < 0 ? 0 : (size_t)got;
	for (; steps; steps--) {
		player_wait(by);
		baton_sleep(STEP_NS);
	}
	/* A read ends before a chunk that cannot be read. */
	if (n == half) {
		got = engine_pread(f, bytes + half, (size_t)st.size - half, half, NULL, err);
		n += got < 0 ? 0 : (size_t)got;
	}
	linked_numbers_add(out, bytes, n);
	free(bytes);
	return got < 0 ? (int)got : n < st.size ? -EIO : 0;
}

static size_t size_of(uint16_t version)
{
	size_t n;
	free(linked_file(version, &n));
	return n;
}

/* What a program has read must be whole, or the beginning of it. */
static void check_numbers(struct links *p, const struct world *w, unsigned int engine,
			  const struct linked_numbers *v, int rc)
{
	const bool is_same = v->data == v->attribute;
	if (v->is_mixed)
		FAULT(p, "engine %u has read data of two versions of the file", engine);
	else if (v->n && w->is_s3 && !is_same)
		FAULT(p, "engine %u has read data of version %u in a domain of version %u", engine,
		      v->data, v->attribute);
	else if (v->n && !is_same && size_of(v->data) != size_of(v->attribute))
		FAULT(p, "engine %u has read data of a file of another size", engine);
	else if (!rc && (v->n != LINKED_DATA || !v->attribute))
		FAULT(p, "engine %u has read %u numbers", engine, v->n);
}

static int read_domain(struct program_of *g, struct err *err)
{
	struct links *p = g->p;
	const unsigned int changes = p->changes, faults = g->by->box->line.faults;
	const bool must = p->linked && p->is_there && p->linked == p->version;
	struct linked_numbers v = {0};
	struct rng *r = &g->by->random;
	struct engine_file *f;
	int rc = engine_file_open(g->by->box->engine, PATH, &f, err);
	const uint64_t opened = now(g);
	const bool is_absent = rc == -ENOENT;
	if (!rc) {
		const size_t first = rng_once_in(r, 3) ? FIRST : 1 + rng_below(r, FIRST_MAX);
		rc = read_numbers(f, first, g->by, rng_below(r, STEPS_MAX), &v, err);
		engine_file_close(f);
	}
	if (!player_note(g->by, "read", PATH, rc))
		return rc;
	check_numbers(p, g->by->box->world, g->by->box->number, &v, rc);
	/* A request that fails may have begun for another reader. */
	if (must && (rc == -EIO || rc == -ESTALE) && is_quiet(p, changes) &&
	    g->by->box->line.faults == faults && !strstr(err->msg, "by the simulation"))
		FAULT(p, "engine %u cannot read what nobody has changed: %s", g->by->box->number,
		      err->msg);
	struct order_act *a = v.attribute || is_absent ? player_begin(g->by, "read", 0, 0) : NULL;
	if (a) {
		player_look(g->by, a, ORDER_SHOW, v.attribute, g->begin)->until = opened;
		player_end(g->by, a);
	}
	return rc == -EIO ? -ESTALE : rc;
}

/* It loses what it has. If another program was faster, the daemon looks the name up again and tries
 * once more (DETAILS.md, "Changing names"); perhaps it was its own first request. */
static void plan_removal(struct program_of *g, struct order_act *a, bool may, bool plain_delete)
{
	for (unsigned int i = 0; i < (may ? 2 : 1); i++) {
		order_step(a, ORDER_SEE, 0, g->begin, now(g), may);
		order_step(a, plain_delete ? ORDER_WIPE : ORDER_DROP, 0, g->begin, now(g), may);
	}
}

static int remove_domain(struct program_of *g, struct err *err)
{
	struct links *p = g->p;
	struct player *by = g->by;
	const unsigned int change = begin_change(p), repeated = by->box->line.repeated;
	struct order_act *a = player_begin(by, "remove", 0, 0);
	const int rc = engine_unlink(by->box->engine, PATH, err);
	const bool is_dead = !player_note(by, "remove", PATH, rc);
	const bool may = rc || is_dead || player_has_repeated(by, repeated);
	if (a && rc == -ENOENT && !is_dead)
		player_look(by, a, ORDER_SHOW, 0, g->begin);
	else if (a && !may && !by->plain_delete)
		order_step(a, ORDER_REMOVE, 0, g->begin, now(g), false);
	else if (a && (rc != -ESTALE || is_dead))
		plan_removal(g, a, may, by->plain_delete);
	if (a)
		player_end(by, a);
	p->may_leave |= may && rc != -ENOENT;
	end_change(p, change, 0);
	return rc;
}

static int call(struct program_of *g, struct err *err)
{
	const unsigned int what = rng_below(&g->by->random, 12);
	g->begin = now(g);
	if (what < 3 || !g->p->version) {
		write_file(g);
		return 0;
	}
	if (what < 6)
		return link_file(g, err);
	return what < 11 ? read_domain(g, err) : remove_domain(g, err);
}

int links_run(struct links *p, struct player *by, struct err *err)
{
	struct program_of g = {.p = p, .by = by};
	const unsigned int calls = 1 + rng_below(&by->random, CALLS_MAX);
	int first = 0;
	by->order = &p->order;
	for (unsigned int i = 0; i < calls && !player_is_dead(by) && p->order.n < ACTS_MAX; i++) {
		struct err why = ERR_INIT;
		const int rc = call(&g, &why);
		if (player_is_answer(first)) {
			first = rc;
			*err = why;
		}
		player_wait(by);
	}
	return player_is_answer(first) ? 0 : first;
}

struct links *links_new(struct store *bucket)
{
	struct links *p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->bucket = bucket;
	pthread_mutex_init(&p->linker, NULL);
	pthread_mutex_init(&p->writer, NULL);
	return p;
}

void links_free(struct links *p)
{
	if (!p)
		return;
	pthread_mutex_destroy(&p->linker);
	pthread_mutex_destroy(&p->writer);
	str_release(&p->faults);
	free(p);
}

int links_set_up(struct engine *e, struct err *err)
{
	return engine_mkdir(e, LINKS_DIR, err);
}

/* ---- the end ---- */

static int note_finding(void *arg, const struct engine_check_finding *f)
{
	bool *is_bad = arg;
	*is_bad |= f->severity == ENGINE_CHECK_ERROR || f->severity == ENGINE_CHECK_UNCHECKED;
	return 0;
}

static int note_result(void *arg, const struct engine_check_result *r)
{
	(void)arg;
	(void)r;
	return 0;
}

static bool check_finds(struct engine *e)
{
	bool is_bad = false;
	struct err err = ERR_INIT;
	const struct engine_check_sink sink = {
		.finding = note_finding, .result = note_result, .arg = &is_bad};
	return engine_check(e, LINKS_DIR, true, &sink, &err) < 0 || is_bad;
}

/* Whether data of a version of the file can be read now. */
static bool can_be_read(const struct links *p, const struct world *w, uint16_t version)
{
	if (!p->is_there || w->is_s3)
		return p->is_there && version == p->version;
	return size_of(version) == size_of(p->version);
}

/* Returns the version of the domain, or 0: there is none. */
static uint16_t look_at_end(struct links *p, struct engine *e, const struct world *w)
{
	struct linked_numbers v = {0};
	struct err err = ERR_INIT;
	struct engine_file *f;
	int rc = engine_file_open(e, PATH, &f, &err);
	if (rc == -ENOENT)
		return 0;
	if (!rc) {
		rc = read_numbers(f, SIZE_MAX, NULL, 0, &v, &err);
		engine_file_close(f);
	}
	check_numbers(p, w, ENGINES_MAX, &v, rc);
	const bool can = can_be_read(p, w, v.attribute);
	if (!v.attribute || can != !rc)
		FAULT(p, "at the end, the file has version %u%s, the domain %u: %d %s", p->version,
		      p->is_there ? "" : ", which was removed", v.attribute, rc, err.msg);
	if (can == check_finds(e))
		FAULT(p, "a check finds %s in the domain", can ? "something" : "nothing");
	return v.attribute;
}

static void describe(struct links *p, uint16_t last)
{
	char text[200];
	FAULT(p, "no order of the calls leads from version %u to %u", p->first[0], last);
	for (unsigned int i = 0; i < p->order.n; i++) {
		order_describe(&p->order, i, text, sizeof(text));
		FAULT(p, "%s", text);
	}
}

bool links_check(struct links *p, struct engine *e, const struct world *w, bool order_matters)
{
	const uint16_t last[ORDER_REGISTERS] = {p->version ? look_at_end(p, e, w) : 0};
	enum order_result found = ORDER_FOUND;
	if (!p->faults.b.len && order_matters && p->maybes <= MAYBES_MAX)
		found = order_search(&p->order, p->first, last);
	if (found == ORDER_IMPOSSIBLE)
		describe(p, last[0]);
	p->acts = p->order.n;
	p->order.n = p->maybes = 0;
	p->first[0] = last[0];
	p->nversions = p->is_there;
	p->versions[0].version = p->version;
	p->versions[0].from = 0;
	p->versions[0].until = ORDER_NEVER;
	return found != ORDER_TOO_LARGE;
}
