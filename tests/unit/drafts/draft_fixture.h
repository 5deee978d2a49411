/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine over a bucket in memory or in a directory, whose requests can be made to fail, and
 * drafts in a journal of their own.
 */
#ifndef TESTS_ENGINE_DRAFT_FIXTURE_H
#define TESTS_ENGINE_DRAFT_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drafts/draft_commit.h>
#include "engine/engine_internal.h"
#include <snapshots/size_cache.h>
#include <bucket/schemas.h>

#include "gate.h"
#include "mem_store.h"
#include "overlay_fixture.h"

struct world {
	struct overlay_fixture f;
	struct engine *e;
	struct gate *gate;
	char bucket[64]; /* path; "": the bucket is in memory */
	struct draft *draft;
	uint32_t number; /* of the last commit */
	struct failed_commits left;
	struct storage_sum stored;
	struct commit_result result;
	struct err err;
};

/* How much later it is than by the clock of the machine. The bucket has none for renames. */
static int64_t world_late_ns;

static inline int64_t world_wall(const struct env *env)
{
	const struct env real = env_real(NULL, NULL);
	return env_wall(&real) + world_late_ns;
}

static inline void world_names(struct world *w)
{
	const struct names_options names = {.env = &w->e->bucket.env,
					    .store = w->e->bucket.store,
					    .schemas = schema_all(),
					    .ttl_ns = UINT64_C(3600000000000)};
	names_free(w->e->bucket.names);
	w->e->bucket.names = names_new(&names);
	assert_non_null(w->e->bucket.names);
}

static inline void world_begin(struct world *w, bool is_dir, unsigned int workers)
{
	struct err err = ERR_INIT;
	*w = (struct world){0};
	fixture_begin(&w->f, 0);
	struct engine *e = calloc(1, sizeof(*e));
	assert_non_null(e);
	w->e = e;
	e->bucket.pool = pool_new(workers);
	e->bucket.env = env_real(NULL, e->bucket.pool);
	e->bucket.env.budget = w->f.budget;
	e->bucket.env.wall = world_wall;
	if (is_dir) {
		snprintf(w->bucket, sizeof(w->bucket), "%s/draft-test-XXXXXX", fixture_parent());
		assert_non_null(mkdtemp(w->bucket));
	}
	struct store *inner = is_dir ? store_dir_new(&e->bucket.env, w->bucket, &err)
				     : store_mem_new(&e->bucket.env, &err);
	w->gate = gate_new(inner);
	w->gate->has_no_clock = true;
	e->bucket.store = &w->gate->base;
	e->bucket.domains.schemas = schema_all();
	world_names(w);
	e->bucket.snapshots = snapshots_new(&e->bucket, 1 << 20);
	e->bucket.size_cache = size_cache_new(NULL, NULL, 0);
	const struct garbage_ops ops = change_garbage_ops(e);
	e->bucket.garbage = garbage_new(&e->bucket.env, &ops,
					&(struct garbage_options){.delay_ns = GARBAGE_DELAY_NS});
	e->bucket.user = strdup("ann");
	assert_true(e->bucket.snapshots && e->bucket.garbage && e->bucket.user);
}

static inline void world_end(struct world *w)
{
	char command[96];
	struct engine *e = w->e;
	if (w->draft)
		assert_int_equal(draft_drop(w->draft, NULL), 0);
	garbage_free(e->bucket.garbage);
	size_cache_free(e->bucket.size_cache);
	snapshots_free(e->bucket.snapshots);
	names_free(e->bucket.names);
	store_free(e->bucket.store);
	pool_free(e->bucket.pool);
	free(e->bucket.user);
	free(e);
	fixture_end(&w->f);
	snprintf(command, sizeof(command), "rm -rf %s", w->bucket);
	if (w->bucket[0])
		assert_int_equal(system(command), 0);
}

/* ---- the bucket: see gate.h ---- */

static inline void world_open_gate(struct world *w)
{
	gate_open(w->gate);
}

static inline void world_put(struct world *w, const char *key, const void *bytes, size_t n)
{
	gate_put(w->gate, key, bytes, n);
}

static inline char *world_content(struct world *w, const char *prefix)
{
	return gate_content(w->gate, prefix);
}

/* Without lists of names. A commit after one without an answer puts one. */
static inline size_t world_keys(struct world *w, const char *prefix)
{
	auto_page struct store_page page = {0};
	size_t n = 0;
	gate_list(w->gate, prefix, &page);
	for (size_t i = 0; i < page.n; i++)
		n += !strstr(page.items[i].key, ".hsmount-names");
	return n;
}

static inline uint32_t world_objects(struct world *w, const char *path)
{
	return gate_objects(w->gate, path);
}

/* Compares a plain object. */
static inline void world_check_object(struct world *w, const char *key, const void *bytes, size_t n)
{
	struct call_result res;
	struct err err = ERR_INIT;
	if (call_get(w->gate->base.inner, key, 0, STORE_TO_END, 0, NULL, &res, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(res.body.len, n);
	if (n)
		assert_memory_equal(res.body.data, bytes, n);
	bytes_release(&res.body);
}

/* ---- drafts ---- */

/* A draft of a file, opened with what the bucket has under its name. */
static inline void world_draft(struct world *w, const char *name)
{
	auto_names_node struct names_node *n = NULL;
	char version[COMMIT_VERSION];
	bool is_new;
	const int rc = names_resolve_for_open(w->e->bucket.names, name, &n, &is_new, &w->err);
	if (rc != -ENOENT)
		assert_int_equal(rc, 0);
	assert_int_equal(commit_version_of(n, version), 0);
	const struct draft_about about = {
		.kind = n ? DRAFT_REPLACE : DRAFT_NEW,
		.path = n ? n->path : name,
		.name = name,
		.version = version,
		.created_ns = INT64_C(1700000000000000000),
	};
	if (w->draft)
		assert_int_equal(draft_drop(w->draft, NULL), 0);
	w->draft = make_draft(&w->f, &about);
	w->number = 0;
	w->left = (struct failed_commits){0};
	w->stored = (struct storage_sum){0};
}

static inline void world_write(struct world *w, const void *bytes, size_t n)
{
	assert_int_equal(draft_resize(w->draft, 0, NULL), 0);
	assert_int_equal(draft_write(w->draft, 0, bytes, n, NULL), 0);
}

/* An engine, and a new file with a text. */
static inline void world_begin_text(struct world *w, const char *name, const char *text)
{
	world_begin(w, false, 0);
	world_draft(w, name);
	world_write(w, text, strlen(text));
}

/* Commits with a number, and describes the draft as the caller of draft_commit() does. */
static inline int world_commit_as(struct world *w, uint32_t number, bool is_last)
{
	struct draft_snapshot *s;
	w->number = number;
	w->err = (struct err)ERR_INIT;
	assert_int_equal(draft_seal(w->draft, &s, NULL), 0);
	const struct commit c = {.bucket = &w->e->bucket,
				 .draft = w->draft,
				 .snapshot = s,
				 .number = number,
				 .left = &w->left,
				 .stored = &w->stored,
				 .is_last = is_last};
	const int rc = draft_commit(&c, &w->result, &w->err);
	draft_snapshot_close(s);
	if (rc == 0 && w->result.kind != COMMIT_WAITS) {
		char name[STORE_KEY_MAX + 1];
		snprintf(name, sizeof(name), "%s", draft_get_about(w->draft)->name);
		const int described =
			draft_describe(w->draft, w->result.path, name, w->result.version, &w->err);
		assert_true(described == 0 || described == -EROFS);
	}
	return rc;
}

static inline int world_commit(struct world *w, bool is_last)
{
	return world_commit_as(w, w->number + 1, is_last);
}

static inline void world_must_commit(struct world *w, enum commit_kind kind)
{
	if (world_commit(w, true))
		fail_msg("%s", w->err.msg);
	assert_int_equal(w->result.kind, kind);
}

/* What a look-up finds after the commit has the version of its result. */
static inline void world_check_version(struct world *w, const char *name)
{
	auto_names_node struct names_node *n = NULL;
	char version[COMMIT_VERSION];
	bool is_new;
	assert_int_equal(names_resolve_for_open(w->e->bucket.names, name, &n, &is_new, NULL), 0);
	assert_int_equal(commit_version_of(n, version), 0);
	assert_string_equal(version, w->result.version);
	assert_string_equal(n->path, w->result.path);
}

#endif
