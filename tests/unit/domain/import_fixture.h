/* SPDX-License-Identifier: Apache-2.0 */
/* Imports of tests/data/import.h5 to a bucket in memory whose requests can be made to fail. */
#ifndef TESTS_DOMAIN_IMPORT_FIXTURE_H
#define TESTS_DOMAIN_IMPORT_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/source_file.h>
#include <domain/domain.h>
#include <domain/import.h>
#include <schema/schema.h>
#include <store/implement.h>

#include "store_calls.h"

enum {
	OBJECTS = 15, /* of the file, see tests/data/import.py */
	CHUNKS = 14,  /* that are not all fill */
};

/* A wrapper that counts requests, and lets some of them fail. It keeps the keys of deferred puts
 * until they are synchronised, for world_power_cut(). */
struct gate {
	struct store base;
	atomic_uint n;	 /* requests so far */
	unsigned int at; /* the number of the request that fails, from 1; 0: none does */
	bool later;	 /* all later ones fail, too */
	bool after;	 /* they reach the bucket before they fail */
	int code;
	atomic_uint ops[STORE_OPS];
	char life[8];
	int sync; /* the result of store_sync() */
	unsigned int syncs;
	unsigned int ndeferred;
	char *deferred[64];
};

static inline struct gate *gate_of(struct store *s)
{
	return (struct gate *)s;
}

static inline bool gate_fails(const struct gate *g, unsigned int n)
{
	return g->at && (n == g->at || (g->later && n > g->at));
}

static inline void gate_submit(struct store *s, struct store_request *req)
{
	struct gate *g = gate_of(s);
	bool *fails = store_slot(s, req);
	*fails = gate_fails(g, atomic_fetch_add(&g->n, 1) + 1);
	atomic_fetch_add(&g->ops[req->op], 1);
	if (*fails && !g->after)
		store_fail(s, req, g->code, "%s: refused by the test", req->key);
	else
		store_pass(s, req);
}

static inline void gate_completed(struct store *s, struct store_request *req)
{
	struct gate *g = gate_of(s);
	const bool *fails = store_slot(s, req);
	if (req->deferred && g->life[0]) {
		assert_true(g->ndeferred < sizeof(g->deferred) / sizeof(g->deferred[0]));
		g->deferred[g->ndeferred++] = strdup(req->key);
	}
	if (*fails)
		store_fail(s, req, g->code, "%s: lost by the test", req->key);
	else
		store_complete(s, req);
}

static inline void gate_forget(struct gate *g)
{
	while (g->ndeferred)
		free(g->deferred[--g->ndeferred]);
}

static inline int gate_sync(struct store *s, struct err *err)
{
	struct gate *g = gate_of(s);
	g->syncs++;
	if (g->sync)
		return err_set(err, g->sync, "the disk failed in the test");
	gate_forget(g);
	return 0;
}

static inline const char *gate_life(struct store *s)
{
	return gate_of(s)->life;
}

static inline void gate_free(struct store *s)
{
	gate_forget(gate_of(s));
	store_wrapper_free(s);
}

static const struct store_ops gate_ops = {
	.name = "gate",
	.submit = gate_submit,
	.completed = gate_completed,
	.sync = gate_sync,
	.life = gate_life,
	.free = gate_free,
};

struct world {
	struct env env;
	struct gate *gate;
	struct store *store; /* the gate over a bucket in memory */
	struct source_file *file;
	struct import_options opt;
	unsigned int opened;  /* times that the file was opened */
	int check;	      /* result of the check of the file's version */
	uint8_t seed;	      /* of the storage's id */
	char notes[4096];     /* all lines */
	uint64_t done, total; /* of the last report of progress */
};

static inline void world_random(const struct env *env, void *bytes, size_t n)
{
	const struct world *w = env->ctx;
	memset(bytes, w->seed, n);
}

static inline int world_open_file(void *ctx, struct source **out, struct err *err)
{
	struct world *w = ctx;
	char path[1024];
	w->opened++;
	snprintf(path, sizeof(path), "%s/tests/data/import.h5", getenv("HSMOUNT_SOURCE"));
	source_file_close(w->file);
	w->file = NULL;
	int rc = source_file_open(path, &w->file, err);
	if (!rc)
		*out = source_file_source(w->file);
	return rc;
}

static inline int world_check_file(void *ctx, struct err *err)
{
	struct world *w = ctx;
	return w->check ? err_set(err, w->check, "the file has changed") : 0;
}

static inline void world_note(void *ctx, const char *line)
{
	struct world *w = ctx;
	const size_t n = strlen(w->notes);
	snprintf(w->notes + n, sizeof(w->notes) - n, "%s\n", line);
}

static inline void world_progress(void *ctx, uint64_t done, uint64_t total)
{
	struct world *w = ctx;
	w->done = done;
	w->total = total;
}

static inline void world_init(struct world *w, unsigned int workers)
{
	*w = (struct world){.seed = 0x5a};
	w->env = env_real(NULL, pool_new(workers));
	w->env.random = world_random;
	w->env.ctx = w;
	w->env.budget =
		budget_new(&(struct budget_limits){.bytes = 64 << 20, .metadata_min = 64 << 20});
	w->gate = calloc(1, sizeof(*w->gate));
	store_wrap(&w->gate->base, &gate_ops, store_mem_new(&w->env, NULL), sizeof(bool), 0);
	w->store = &w->gate->base;
	w->opt = (struct import_options){
		.env = &w->env,
		.store = w->store,
		.schema = schema_all()[0],
		.path = "home/ann/run.h5",
		.local_user = "ann",
		.puts = 4,
		.now_ns = INT64_C(1700000000000000000),
		.file = {.name = "/data/run.h5",
			 .size = 21786,
			 .mtime_ns = 12345,
			 .open = world_open_file,
			 .check = world_check_file,
			 .ctx = w},
		.note = world_note,
		.progress = world_progress,
		.ctx = w,
	};
}

static inline void world_release(struct world *w)
{
	struct budget_stats stats;
	budget_get_stats(w->env.budget, &stats);
	assert_int_equal(stats.used[BUDGET_LOADS], 0);
	assert_int_equal(stats.used[BUDGET_TREES], 0);
	source_file_close(w->file);
	store_free(w->store);
	pool_free(w->env.pool);
	budget_free(w->env.budget);
}

/* All requests succeed from now on, and are counted from 0. */
static inline void world_open_gate(struct world *w)
{
	w->gate->at = 0;
	w->gate->n = 0;
	for (int i = 0; i < STORE_OPS; i++)
		w->gate->ops[i] = 0;
}

static inline int world_import(struct world *w, struct import_result *out, struct err *err)
{
	struct import_result unused;
	*err = (struct err)ERR_INIT;
	w->notes[0] = '\0';
	return domain_import(&w->opt, out ? out : &unused, err);
}

/* The n-th request of an import fails. */
static inline int world_import_failing(struct world *w, unsigned int n, int code, struct err *err)
{
	world_open_gate(w);
	w->gate->at = n;
	w->gate->code = code;
	const int rc = world_import(w, NULL, err);
	world_open_gate(w);
	return rc;
}

static inline void world_must_import(struct world *w, struct import_result *out)
{
	struct err err = ERR_INIT;
	if (world_import(w, out, &err))
		fail_msg("%s (%s)", err.msg, w->notes);
}

/* The machine stops and starts again: of the objects that are not durable, every second one is
 * empty and the others are gone. Works without workers only. */
static inline void world_power_cut(struct world *w)
{
	struct gate *g = w->gate;
	for (unsigned int i = 0; i < g->ndeferred; i++) {
		if (i % 2)
			assert_int_equal(call_delete(g->base.inner, g->deferred[i], NULL, NULL), 0);
		else
			assert_int_equal(
				call_put(g->base.inner, g->deferred[i], "", 0, NULL, NULL, NULL),
				0);
	}
	gate_forget(g);
	g->life[0]++;
}

/* Opens the domain as a reader does: its number of objects, 0 if there is none. */
static inline uint32_t world_objects(struct world *w, const char *path)
{
	struct domain *d;
	struct err err = ERR_INIT;
	const int rc = domain_open(
		&(struct domain_bucket){.env = &w->env, .store = w->store, .schemas = schema_all()},
		path, NULL, &d, &err);
	if (rc == -ENOENT)
		return 0;
	if (rc)
		fail_msg("%s", err.msg);
	const uint32_t n = tree_count(domain_tree(d));
	assert_int_equal(tree_missing(domain_tree(d)), 0);
	assert_int_equal(tree_problems(domain_tree(d)), 0);
	domain_unref(d);
	return n;
}

/* All keys below a prefix with their content, as one text, without the times in records. */
static inline char *world_content(struct world *w, const char *prefix)
{
	auto_page struct store_page page = {0};
	struct bytes all = {0};
	assert_int_equal(call_list_all(w->store, prefix, false, UINT32_MAX, &page, NULL), 0);
	for (size_t i = 0; i < page.n; i++) {
		struct call_result res;
		const char *key = page.items[i].key;
		assert_int_equal(call_get(w->store, key, 0, STORE_TO_END, 0, NULL, &res, NULL), 0);
		assert_int_equal(bytes_append(&all, key, strlen(key)), 0);
		for (size_t k = 0; k < res.body.len; k++) {
			char hex[3];
			snprintf(hex, sizeof(hex), "%02x", res.body.data[k]);
			assert_int_equal(bytes_append(&all, hex, 2), 0);
		}
		assert_int_equal(bytes_append(&all, "\n", 1), 0);
		bytes_release(&res.body);
	}
	assert_int_equal(bytes_append(&all, "", 1), 0);
	return (char *)all.data;
}

static inline size_t world_keys(struct world *w, const char *prefix)
{
	auto_page struct store_page page = {0};
	assert_int_equal(call_list_all(w->store, prefix, false, UINT32_MAX, &page, NULL), 0);
	return page.n;
}

static inline void world_put(struct world *w, const char *key, const char *text)
{
	assert_int_equal(call_put(w->store, key, text, strlen(text), NULL, NULL, NULL), 0);
}

#define FOLDER "{\"owner\": \"olaf\", \"acls\": {}, \"created\": 1.0, \"lastModified\": 1.0}"

#endif
