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
#include <import/import.h>
#include <bucket/schemas.h>

#include "gate.h"
#include "mem_store.h"

enum {
	OBJECTS = 15,		       /* of the file, see tests/data/import.py */
	CHUNKS = 14,		       /* that are not all fill */
	STORED = OBJECTS + CHUNKS + 1, /* keys of the storage, with the summary */
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

/* Opens a file of tests/data. */
static inline int world_open_data(struct world *w, const char *name, struct source **out,
				  struct err *err)
{
	char path[1024];
	w->opened++;
	snprintf(path, sizeof(path), "%s/tests/data/%s", getenv("HSMOUNT_SOURCE"), name);
	source_file_close(w->file);
	w->file = NULL;
	int rc = source_file_open(path, &w->file, err);
	if (!rc)
		*out = source_file_source(w->file);
	return rc;
}

static inline int world_open_file(void *ctx, struct source **out, struct err *err)
{
	return world_open_data(ctx, "import.h5", out, err);
}

static inline int world_open_rare(void *ctx, struct source **out, struct err *err)
{
	return world_open_data(ctx, "rare.h5", out, err);
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
	w->gate = gate_new(store_mem_new(&w->env, NULL));
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

static inline void world_open_gate(struct world *w)
{
	gate_open(w->gate);
}

static inline int world_import(struct world *w, struct import_result *out, struct err *err)
{
	struct import_result unused;
	*err = (struct err)ERR_INIT;
	w->notes[0] = '\0';
	return domain_import(&w->opt, out ? out : &unused, err);
}

/* The n-th request of an import fails; with gate.later and gate.after as the test has set them. */
static inline int world_import_failing(struct world *w, unsigned int n, int code, struct err *err)
{
	gate_count(w->gate);
	w->gate->at = n;
	w->gate->code = code;
	const int rc = world_import(w, NULL, err);
	gate_count(w->gate);
	w->gate->at = 0;
	return rc;
}

static inline void world_must_import(struct world *w, struct import_result *out)
{
	struct err err = ERR_INIT;
	if (world_import(w, out, &err))
		fail_msg("%s (%s)", err.msg, w->notes);
}

/* ---- the bucket: see gate.h ---- */

static inline uint32_t world_objects(struct world *w, const char *path)
{
	return gate_objects(w->gate, path);
}

static inline char *world_content(struct world *w, const char *prefix)
{
	return gate_content(w->gate, prefix);
}

/* Compares the whole bucket. */
static inline void world_check_content(struct world *w, const char *want)
{
	auto_free char *content = world_content(w, "");
	assert_string_equal(content, want);
}

static inline size_t world_keys(struct world *w, const char *prefix)
{
	return gate_keys(w->gate, prefix);
}

static inline void world_put(struct world *w, const char *key, const char *text)
{
	gate_put(w->gate, key, text, strlen(text));
}

#define FOLDER "{\"owner\": \"olaf\", \"acls\": {}, \"created\": 1.0, \"lastModified\": 1.0}"

#endif
