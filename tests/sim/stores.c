/* SPDX-License-Identifier: Apache-2.0 */
/* See stores.h. All that the engines share is used by the running thread only: baton.h. */
#include "stores.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hsmount/engine.h>

#include "baton.h"
#include "session.h"
#include "store_calls.h"
#include "template.h"

enum {
	CALLS_MAX = 6,
	STILL = 18,	/* stores, and domains, that never change */
	ROOT_KEYS = 40, /* of objects of schema v1 */
	STORAGE = 0x5a,
	WALK_S = 600, /* for which what a listing has shown may be kept */
	WIDE_S = 300, /* likewise the listing itself, of a root that takes many requests */
	FEW = 8	      /* the writer stops before the periods of a fact are full */
};
#define SECOND UINT64_C(1000000000)

/* A program. */
struct program_of {
	struct stores *p;
	struct player *by; /* NULL: at the end, by an engine that has seen nothing */
	struct engine *e;
	struct scheduler *scheduler;
	struct stores_call *call;
	uint64_t begin, end;
	unsigned int faults; /* of its mount when the call began */
};

#define FAULT(p, ...) player_fault(&(p)->faults, "stores", __VA_ARGS__)

static uint64_t now(const struct program_of *g)
{
	return scheduler_moment(g->scheduler);
}

static const char *who(const struct program_of *g)
{
	return g->by ? "a mount" : "at the end, a mount";
}

static void path_of(char path[STORES_PATH], const char *dir, const char *name)
{
	snprintf(path, STORES_PATH, "%s%s%s", dir, dir[0] ? "/" : "", name);
}

/* ---- facts ---- */

/* While a change is on its way, a mount may see what was before, and what comes. */
static void begin_change(struct stores *p, unsigned int i, uint64_t from)
{
	uint16_t values[STORES_FACTS];
	stores_facts(&stores_places[i], p->keys[i], p->values[i], values);
	for (unsigned int k = 0; k < STORES_FACTS; k++) {
		struct stores_fact *f = &p->facts[i][k];
		if (f->n && f->periods[f->n - 1].value == values[k])
			continue;
		if (f->n == STORES_PERIODS)
			abort();
		f->periods[f->n].value = values[k];
		f->periods[f->n].from = f->n ? from : 0;
		f->periods[f->n++].until = ORDER_NEVER;
	}
}

static void end_change(struct stores *p, unsigned int i, uint64_t until)
{
	for (unsigned int k = 0; k < STORES_FACTS; k++) {
		struct stores_fact *f = &p->facts[i][k];
		if (f->n > 1 && f->periods[f->n - 2].until == ORDER_NEVER)
			f->periods[f->n - 2].until = until;
	}
}

static bool was(const struct stores_fact *f, uint16_t value, uint64_t from, uint64_t until)
{
	for (unsigned int i = 0; i < f->n; i++)
		if (f->periods[i].value == value && f->periods[i].from <= until &&
		    f->periods[i].until >= from)
			return true;
	return false;
}

static void expect(struct program_of *g, unsigned int place, enum stores_fact_kind kind,
		   uint16_t value, uint64_t from, uint64_t until)
{
	static const char *const kinds[STORES_FACTS] = {
		"listed as",	 "found as", "its file is listed as", "its file is found as",
		"listed at all", "version",  "first chunk",	      "second chunk"};
	const struct stores_place *p = &stores_places[place];
	const struct stores_fact *f = &g->p->facts[place][kind];
	if (was(f, value, from, until))
		return;
	FAULT(g->p, "%s shows %s/%s [%llu, %llu]: %s: %u, and that is wrong; periods:", who(g),
	      p->dir, p->name, (unsigned long long)from, (unsigned long long)until, kinds[kind],
	      value);
	for (unsigned int i = 0; i < f->n; i++)
		FAULT(g->p, "  %u [%llu, %llu]", f->periods[i].value,
		      (unsigned long long)f->periods[i].from,
		      (unsigned long long)f->periods[i].until);
}

/* ---- the foreign writer ---- */

static bool is_full(const struct stores *p, unsigned int place)
{
	for (unsigned int k = 0; k < STORES_FACTS; k++)
		if (p->facts[place][k].n + FEW > STORES_PERIODS)
			return true;
	return false;
}

static void key_of(char key[STORES_PATH], unsigned int place, unsigned int i)
{
	char path[STORES_PATH];
	path_of(path, stores_places[place].dir, stores_places[place].name);
	if (snprintf(key, STORES_PATH, "%s%s", path, stores_key(&stores_places[place], i)) < 0)
		abort();
}

static void put(struct store *s, const char *key, const char *body, size_t n)
{
	if (call_put(s, key, body, n, NULL, NULL, NULL))
		abort();
}

static void put_domain(struct stores *p, const char *path)
{
	const struct template t = {.path = path, .storage = STORAGE, .rows = CONTENT_CHUNK};
	template_put_document(p->bucket, &t, TEMPLATE_DOMAIN);
}

static void put_body(struct stores *p, unsigned int place, unsigned int i)
{
	char key[STORES_PATH], path[STORES_PATH], body[STORES_BODY];
	const size_t n = stores_body(&stores_places[place], i, p->values[place][i], body);
	key_of(key, place, i);
	path_of(path, stores_places[place].dir, stores_places[place].name);
	if (stores_is_domain(&stores_places[place]) && i == 0)
		put_domain(p, path);
	else
		put(p->bucket, key, body, n);
}

static void change_key(struct program_of *g, unsigned int place, unsigned int i, bool removes)
{
	struct stores *p = g->p;
	char key[STORES_PATH];
	key_of(key, place, i);
	p->changes[place]++;
	if (removes) {
		p->keys[place] &= ~(1u << i);
	} else {
		p->values[place][i] = ++p->nvalues + 1;
		p->keys[place] |= 1u << i;
	}
	begin_change(p, place, now(g));
	if (!removes)
		put_body(p, place, i);
	else if (call_delete(p->bucket, key, NULL, NULL))
		abort();
	end_change(p, place, now(g));
	p->changes[place]++;
	scheduler_note(g->scheduler, "stores: %s %s", removes ? "delete" : "put", key);
	player_wait(g->by);
}

/* As tools make a store: what marks it comes last, and goes first. */
static void make(struct program_of *g, unsigned int place)
{
	for (unsigned int i = 0; i < STORES_KEYS && stores_key(&stores_places[place], i); i++)
		change_key(g, place, i, false);
}

static void unmake(struct program_of *g, unsigned int place)
{
	for (unsigned int i = STORES_KEYS; i-- > 0;)
		if (g->p->keys[place] & 1u << i)
			change_key(g, place, i, true);
}

static void toggle(struct program_of *g, unsigned int place, unsigned int i)
{
	change_key(g, place, i, g->p->keys[place] & 1u << i);
}

static void write_as_others(struct program_of *g)
{
	struct stores *p = g->p;
	struct rng *r = &g->by->random;
	pthread_mutex_lock(&p->lock);
	const unsigned int place = rng_below(r, STORES_PLACES), what = rng_below(r, 8);
	const struct stores_place *at = &stores_places[place];
	if (is_full(p, place) || p->nvalues > 60000)
		;
	else if (!stores_is_store(at))
		toggle(g, place, stores_key(at, 1) ? what % 2 : 0);
	else if (!p->keys[place])
		make(g, place);
	else if (what < 3)
		change_key(g, place, STORES_CHUNK_0 + what % 2, false);
	else if (what == 3)
		toggle(g, place, STORES_CHUNK_0);
	else if (what < 6)
		change_key(g, place, stores_version_key(at), false);
	else
		unmake(g, place);
	pthread_mutex_unlock(&p->lock);
}

/* ---- what never changes ---- */

static const char *const vault_keys[] = {"vault/c/k", "vault/d.zarr/zarr.json", "vault/e/k"};

/* What a mount shows of the vault: 1 + enum engine_kind, or 0. */
static const struct secret {
	const char *name;
	uint16_t listed[GATE_DENIALS], found[GATE_DENIALS];
} secrets[] = {
	{"a.h5", {2, 2, 2}, {2, 2, 2}},	  {"b", {0, 1, 1}, {2, 1, 1}},
	{"b.h5", {2, 2, 0}, {2, 2, 0}},	  {"c", {1, 1, 1}, {1, 1, 1}},
	{"d.zarr", {0, 0, 1}, {1, 1, 1}}, {"d.zarr.nc", {2, 2, 0}, {2, 2, 0}},
	{"e", {1, 1, 1}, {1, 1, 1}},
};
enum { SECRETS = sizeof(secrets) / sizeof(secrets[0]), SECRET_STORE = 4 };
_Static_assert(ENGINE_DIR == 0 && ENGINE_DOMAIN == 1, "the table has numbers");

static void put_store_of(struct stores *p, const char *key)
{
	static const char group[] = "{\"zarr_format\":3,\"node_type\":\"group\"}";
	put(p->bucket, key, group, strlen(group));
}

static void set_up(struct program_of *g)
{
	struct stores *p = g->p;
	const struct template t = {.path = "", .storage = STORAGE, .rows = CONTENT_CHUNK};
	char key[STORES_PATH];
	pthread_mutex_lock(&p->lock);
	for (unsigned int i = 0; !p->is_set_up && i < STILL; i++) {
		snprintf(key, sizeof(key), "herd/h%02u.zarr/zarr.json", i);
		put_store_of(p, key);
		snprintf(key, sizeof(key), "flat/d%02u.h5", i);
		put_domain(p, key);
	}
	for (unsigned int i = 0; !p->is_set_up && i < ROOT_KEYS; i++) {
		snprintf(key, sizeof(key), "%02x%03x-g-%08x-1234-11e9-8123-0123456789ab", i * 6, i,
			 i);
		put(p->bucket, key, "{}", 2);
	}
	if (!p->is_set_up) {
		template_put_objects(p->bucket, &t);
		put_domain(p, "vault/a.h5");
		put_domain(p, "vault/b");
		for (size_t i = 0; i < sizeof(vault_keys) / sizeof(vault_keys[0]); i++)
			put_store_of(p, vault_keys[i]);
		put(p->bucket, "zoo/always.dat", "x", 1);
		for (unsigned int i = 0; i < STORES_PLACES; i++)
			begin_change(p, i, 0);
	}
	p->is_set_up = true;
	pthread_mutex_unlock(&p->lock);
}

/* ---- calls ---- */

static unsigned int denial_of(const struct stores *p, unsigned int engine)
{
	return (unsigned int)((p->seed / 2 + engine) % GATE_DENIALS);
}

/* A failed request makes the engine show less, and it may remember that. */
static void look_for_faults(struct program_of *g)
{
	const struct box *b = g->by->box;
	if (g->p->engines[b->number].faults != b->line.faults) {
		g->p->engines[b->number].faults = b->line.faults;
		g->p->engines[b->number].at_ns = baton_now() + 1;
	}
}

static void begin_call(struct program_of *g, const char *listed)
{
	struct stores *p = g->p;
	g->begin = now(g);
	if (!g->by)
		return;
	look_for_faults(g);
	g->faults = g->by->box->line.faults;
	g->call = &p->calls[p->ncalls++ % STORES_CALLS];
	*g->call = (struct stores_call){.engine = g->by->box->number,
					.listed = listed,
					.begin = g->begin,
					.begin_ns = baton_now()};
}

static bool has_failed(const struct program_of *g)
{
	return g->by && (player_is_dead(g->by) || g->by->box->line.faults != g->faults);
}

/* Returns whether the engine has had its answer. */
static bool end_call(struct program_of *g, const char *what, const char *path, int rc)
{
	g->end = now(g);
	if (!g->by)
		return true;
	look_for_faults(g);
	g->call->end_ns = baton_now();
	g->call->has_ended = true;
	g->p->acts++;
	return player_note(g->by, what, path, rc);
}

/* Whether no request of the engine has failed for so long before the call, and during it. */
static bool is_clean(const struct program_of *g, uint64_t ns)
{
	const uint64_t at = g->by ? g->p->engines[g->by->box->number].at_ns : 0;
	return !at || (!has_failed(g) && at + ns < g->call->begin_ns);
}

/* Since when the engine may know what it shows. dir: whose listings count for so long; NULL: none.
 */
static uint64_t known_since(const struct program_of *g, const char *dir, unsigned int seconds)
{
	uint64_t since = g->begin;
	const uint64_t ttl = g->by ? g->by->box->ttl_ns : 0;
	for (unsigned int i = 0; g->by && ttl && i < STORES_CALLS; i++) {
		const struct stores_call *c = &g->p->calls[i];
		const bool walks = dir && c->listed && strcmp(c->listed, dir) == 0;
		if (c == g->call || !c->begin || c->engine != g->call->engine)
			continue;
		if (!c->has_ended ||
		    c->end_ns + ttl + walks * seconds * SECOND >= g->call->begin_ns)
			since = min_u64(since, c->begin);
	}
	return since;
}

static bool is_answer(int rc)
{
	return !rc || rc == -ENOENT || rc == -ESTALE;
}

/* ---- look-ups ---- */

static void judge_found(struct program_of *g, const char *dir, const char *name, uint16_t value)
{
	const uint64_t since = known_since(g, dir, WALK_S);
	for (unsigned int i = 0; i < STORES_PLACES; i++) {
		const struct stores_place *p = &stores_places[i];
		if (strcmp(p->dir, dir) != 0)
			continue;
		if (strcmp(p->name, name) == 0)
			expect(g, i, STORES_FOUND, value, since, g->end);
		else if (p->file && strcmp(p->file, name) == 0)
			expect(g, i, STORES_FILE_FOUND, value, since, g->end);
	}
}

/* All files that never change are alike. A wrong size would hide data: the kernel reads no further.
 */
static void judge_size(struct program_of *g, const char *dir, const char *name,
		       const struct engine_stat *st)
{
	const bool is_herd = strcmp(dir, "herd") == 0;
	const bool is_still = (is_herd || strcmp(dir, "flat") == 0) && name[3] == '.';
	uint64_t *size = &g->p->sizes[is_herd];
	if (!is_still || st->kind != ENGINE_DOMAIN || !st->size_exact)
		return;
	if (*size && *size != st->size)
		FAULT(g->p, "%s shows %s/%s with %llu bytes, and others of this kind have %llu",
		      who(g), dir, name, (unsigned long long)st->size, (unsigned long long)*size);
	*size = st->size;
}

static int look_up(struct program_of *g, const char *dir, const char *name, bool with_size,
		   struct err *err)
{
	struct engine_stat st = {.kind = ENGINE_DIR};
	char path[STORES_PATH];
	path_of(path, dir, name);
	begin_call(g, NULL);
	const int rc = with_size ? engine_getattr(g->e, path, &st, err)
				 : engine_lookup(g->e, path, &st, err);
	if (end_call(g, "look up", path, rc) && (!rc || rc == -ENOENT) &&
	    is_clean(g, WALK_S * SECOND))
		judge_found(g, dir, name, rc ? 0 : (uint16_t)(1 + st.kind));
	if (!rc && with_size)
		judge_size(g, dir, name, &st);
	return rc;
}

/* ---- listings ---- */

enum { ENTRIES_MAX = 2 * STILL + 8, ENTRY = 40 };

struct listing {
	struct {
		char name[ENTRY];
		enum engine_kind kind;
	} entries[ENTRIES_MAX];
	unsigned int n;
	bool is_wrong; /* it is not in order, or too long */
};

static int take_entry(void *arg, const char *name, enum engine_kind kind)
{
	struct listing *l = arg;
	if (l->n == ENTRIES_MAX || (l->n && strcmp(l->entries[l->n - 1].name, name) >= 0)) {
		l->is_wrong = true;
		return 0;
	}
	snprintf(l->entries[l->n].name, ENTRY, "%s", name);
	l->entries[l->n++].kind = kind;
	return 0;
}

/* 1 + enum engine_kind, or 0. */
static uint16_t kind_in(const struct listing *l, const char *name)
{
	for (unsigned int i = 0; i < l->n; i++)
		if (strcmp(l->entries[i].name, name) == 0)
			return (uint16_t)(1 + l->entries[i].kind);
	return 0;
}

static void judge_places(struct program_of *g, const char *dir, const struct listing *l)
{
	for (unsigned int i = 0; i < STORES_PLACES; i++) {
		const struct stores_place *p = &stores_places[i];
		if (strcmp(p->dir, dir) != 0)
			continue;
		/* The name of what is one key alone is in the first page. */
		const uint64_t since = !dir[0] && g->p->has_short_pages
					       ? known_since(g, dir, WIDE_S)
				       : stores_key(p, 1) ? known_since(g, NULL, 0)
							  : g->begin;
		const uint16_t own = kind_in(l, p->name), file = p->file ? kind_in(l, p->file) : 0;
		expect(g, i, STORES_LISTED, own, since, g->end);
		if (p->file)
			expect(g, i, STORES_FILE_LISTED, file, since, g->end);
		expect(g, i, STORES_ANY, own || file, since, g->end);
	}
}

static void judge_still(struct program_of *g, const char *dir, const struct listing *l)
{
	const bool is_herd = strcmp(dir, "herd") == 0, is_flat = strcmp(dir, "flat") == 0;
	char name[ENTRY];
	for (unsigned int i = 0; i < STILL && (is_herd || is_flat); i++) {
		snprintf(name, sizeof(name), is_herd ? "h%02u.zarr.nc" : "d%02u.h5", i);
		if (kind_in(l, name) != 1 + ENGINE_DOMAIN)
			FAULT(g->p, "%s lists %s without %s", who(g), dir, name);
	}
	if (strcmp(dir, "zoo") == 0 && kind_in(l, "always.dat") != 1 + ENGINE_PLAIN)
		FAULT(g->p, "%s lists %s without a file that is always there", who(g), dir);
	if (!dir[0] &&
	    (kind_in(l, "zoo") != 1 + ENGINE_DIR || kind_in(l, "vault") != 1 + ENGINE_DIR ||
	     kind_in(l, "db") || kind_in(l, "vault.h5")))
		FAULT(g->p, "%s lists the root without zoo and vault, or with db or vault.h5",
		      who(g));
	if (l->is_wrong)
		FAULT(g->p, "%s lists %s in a wrong order", who(g), dir);
}

static int list_dir(struct program_of *g, const char *dir, bool looks, struct err *err)
{
	struct listing l = {.n = 0};
	begin_call(g, dir);
	int rc = engine_list(g->e, dir, take_entry, &l, err);
	if (!end_call(g, "list", dir, rc) || rc) {
		if (rc && !has_failed(g))
			FAULT(g->p, "%s cannot list %s: %d", who(g), dir, rc);
		return rc;
	}
	if (is_clean(g, 2 * SECOND)) {
		judge_places(g, dir, &l);
		judge_still(g, dir, &l);
	}
	for (unsigned int i = 0; looks && i < l.n && !(g->by && player_is_dead(g->by)); i++) {
		const int seen =
			look_up(g, dir, l.entries[i].name, true, is_answer(rc) ? err : NULL);
		rc = is_answer(rc) ? seen : rc;
	}
	return rc;
}

/* ---- the vault ---- */

/* A mount that has seen no store yet takes the prefix for a directory if it cannot list it. */
static bool may_show(unsigned int denial, unsigned int i, uint16_t shown)
{
	return shown == secrets[i].listed[denial] ||
	       (denial && i == SECRET_STORE && shown == 1 + ENGINE_DIR) ||
	       (denial && i == SECRET_STORE + 1 && !shown);
}

static int list_vault(struct program_of *g, struct err *err)
{
	const unsigned int denial = g->by ? denial_of(g->p, g->by->box->number) : 0;
	struct listing l = {.n = 0};
	begin_call(g, "vault");
	const int rc = engine_list(g->e, "vault", take_entry, &l, err);
	if (!end_call(g, "list", "vault", rc))
		return rc;
	for (unsigned int i = 0; !rc && is_clean(g, 2 * SECOND) && i < SECRETS; i++)
		if (!may_show(denial, i, kind_in(&l, secrets[i].name)))
			FAULT(g->p, "%s that is denied %u lists vault/%s as %u", who(g), denial,
			      secrets[i].name, kind_in(&l, secrets[i].name));
	if (rc && !has_failed(g))
		FAULT(g->p, "%s cannot list the vault: %d", who(g), rc);
	return rc;
}

/* What is refused may be there: a look-up of it may fail with the error of the bucket. */
static int find_secret(struct program_of *g, struct err *err)
{
	const unsigned int denial = denial_of(g->p, g->by->box->number),
			   i = rng_below(&g->by->random, SECRETS);
	struct engine_stat st = {.kind = ENGINE_DIR};
	char path[STORES_PATH];
	path_of(path, "vault", secrets[i].name);
	begin_call(g, NULL);
	const int rc = engine_lookup(g->e, path, &st, err);
	if (!end_call(g, "look up", path, rc) || !is_clean(g, WALK_S * SECOND))
		return rc == -EACCES ? 0 : rc;
	const uint16_t value = rc ? 0 : (uint16_t)(1 + st.kind);
	if ((rc && rc != -ENOENT && !(denial && rc == -EACCES)) ||
	    (value != secrets[i].found[denial] && rc != -EACCES))
		FAULT(g->p, "%s that is denied %u finds vault/%s as %u: %d", who(g), denial,
		      secrets[i].name, value, rc);
	return rc == -EACCES ? 0 : rc;
}

/* ---- contents ---- */

static int read_store(struct program_of *g, unsigned int place, struct err *err)
{
	const struct stores_place *p = &stores_places[place];
	const struct session_options opt = {.wait = g->by ? g->by->wait : NULL,
					    .ctx = g->by ? g->by->ctx : NULL};
	uint64_t v[2 * CONTENT_CHUNK] = {0}, version = 0;
	struct session *s;
	struct engine_file *f;
	char path[STORES_PATH];
	path_of(path, p->dir, p->file);
	begin_call(g, NULL);
	const unsigned int changes = g->p->changes[place];
	int rc = engine_file_open(g->e, path, &f, err);
	const uint64_t opened = now(g);
	if (!rc) {
		rc = session_open(&s, f, SESSION_READ, &opt, err);
		if (!rc) {
			session_get_store(s, &version, v, 2 * CONTENT_CHUNK);
			rc = session_close(s, err);
		}
		engine_file_close(f);
	}
	if (!end_call(g, "read", path, rc))
		return rc;
	const bool changed = changes % 2 || g->p->changes[place] != changes;
	if (rc == -ENOENT) {
		if (is_clean(g, 2 * SECOND))
			expect(g, place, STORES_FILE_FOUND, 0, known_since(g, p->dir, WALK_S),
			       g->end);
	} else if (rc) {
		if (!changed && is_clean(g, 2 * SECOND)) /* a failure is kept for a second */
			FAULT(g->p, "%s cannot read %s: %d", who(g), path, rc);
		/* What a store lacks while it is being removed is EIO. */
		return has_failed(g) ? rc : 0;
	} else {
		const uint64_t fetched = has_failed(g) ? g->end : opened;
		expect(g, place, STORES_VERSION, (uint16_t)version, g->begin, opened);
		for (unsigned int i = 0; i < 2; i++)
			expect(g, place, (enum stores_fact_kind)(STORES_VALUE_0 + i),
			       (uint16_t)v[i * CONTENT_CHUNK], g->begin, fetched);
		for (unsigned int i = 0; i < 2 * CONTENT_CHUNK; i++)
			if (v[i] != v[i / CONTENT_CHUNK * CONTENT_CHUNK])
				FAULT(g->p, "%s shows a mixture of chunks in %s", who(g), path);
	}
	return rc;
}

/* Whether a plain object was kept aside: it has no such note. */
static int read_note(struct program_of *g, struct err *err)
{
	char text[64];
	begin_call(g, NULL);
	const ssize_t n =
		engine_getxattr(g->e, "zoo/always.dat", "user.hsds.kept", text, sizeof(text), err);
	if (!end_call(g, "get the note of", "zoo/always.dat", (int)n))
		return (int)n;
	if (n != -ENODATA && !has_failed(g))
		FAULT(g->p, "%s shows a note of a file that has none: %zd", who(g), n);
	return has_failed(g) && n != -ENODATA ? (int)n : 0;
}

/* ---- a program ---- */

static const char *const dirs[] = {"zoo", "herd", "flat", ""};
enum { DIRS = sizeof(dirs) / sizeof(dirs[0]) };

static int find_any(struct program_of *g, struct err *err)
{
	const struct stores_place *p = &stores_places[rng_below(&g->by->random, STORES_PLACES)];
	const bool file = p->file && rng_once_in(&g->by->random, 2);
	return look_up(g, p->dir, file ? p->file : p->name, false, err);
}

static int call(struct program_of *g, struct err *err)
{
	struct rng *r = &g->by->random;
	const unsigned int what = rng_below(r, 16), place = rng_below(r, STORES_PLACES);
	if (what < 6)
		write_as_others(g);
	else if (what < 10)
		return list_dir(g, dirs[rng_below(r, DIRS)], rng_once_in(r, 2), err);
	else if (what < 12)
		return find_any(g, err);
	else if (what < 14 && stores_is_store(&stores_places[place]))
		return read_store(g, place, err);
	else if (what == 14)
		return rng_once_in(r, 2) ? find_secret(g, err) : list_vault(g, err);
	else if (what == 15)
		return read_note(g, err);
	return 0;
}

int stores_run(struct stores *p, struct player *by, struct err *err)
{
	struct program_of g = {
		.p = p, .by = by, .e = by->box->engine, .scheduler = by->box->line.scheduler};
	const unsigned int calls = 1 + rng_below(&by->random, CALLS_MAX);
	int first = 0;
	set_up(&g);
	by->box->line.denial = (enum gate_denial)denial_of(p, by->box->number);
	for (unsigned int i = 0; i < calls && !player_is_dead(by); i++) {
		const bool asks = is_answer(first);
		const int rc = call(&g, asks ? err : NULL);
		first = asks ? rc : first;
		player_wait(by);
	}
	return is_answer(first) ? 0 : first;
}

struct stores *stores_new(struct store *bucket, uint64_t seed, bool has_short_pages)
{
	struct stores *p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->bucket = bucket;
	p->seed = seed;
	p->has_short_pages = has_short_pages;
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

void stores_free(struct stores *p)
{
	if (!p)
		return;
	pthread_mutex_destroy(&p->lock);
	str_release(&p->faults);
	free(p);
}

/* ---- the end ---- */

void stores_check(struct stores *p, struct engine *e, struct scheduler *s)
{
	struct program_of g = {.p = p, .e = e, .scheduler = s};
	if (!p->is_set_up)
		return;
	for (unsigned int i = 0; i < DIRS; i++)
		list_dir(&g, dirs[i], true, NULL);
	list_vault(&g, NULL);
	for (unsigned int i = 0; i < STORES_PLACES; i++)
		if (stores_is_store(&stores_places[i]))
			read_store(&g, i, NULL);
	/* The next part. */
	for (unsigned int i = 0; i < STORES_PLACES; i++)
		for (unsigned int k = 0; k < STORES_FACTS; k++) {
			struct stores_fact *f = &p->facts[i][k];
			f->periods[0] = f->periods[f->n - 1];
			f->periods[0].from = 0;
			f->n = 1;
		}
	p->ncalls = 0;
	memset(p->calls, 0, sizeof(p->calls));
}
