/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A domain in memory, its image with a draft above it, and updates of the domain with what the
 * tests have changed in the draft.
 */
#ifndef TESTS_DOMAIN_UPDATE_FIXTURE_H
#define TESTS_DOMAIN_UPDATE_FIXTURE_H

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
#include <data/tree_diff.h>
#include <update/apply.h>
#include <update/complete.h>
#include <import/import.h>
#include <domain/puts.h>
#include <update/update.h>
#include <h5file/h5file.h>
#include <image/image.h>
#include <overlay/draft_plan.h>
#include <journal/gc_log.h>
#include <bucket/schemas.h>

#include "data_file.h"
#include "gate.h"
#include "header_edit.h"
#include "mem_store.h"
#include "overlay_fixture.h"

#define DOMAIN_PATH "home/u/a.h5"
enum { NOW = 1800000000, ROOM = 8 << 20 };

struct world {
	struct overlay_fixture f;
	struct gc_log *log;
	struct env import_env; /* its random bytes are always the same */
	struct gate *gate;
	struct cache *cache;
	struct domain *domain;
	struct image *image;
	struct source source; /* of the image */
	struct update_base *base;
	struct draft *draft;
	struct draft_snapshot *snapshot;
	char id[JOURNAL_ID];
	uint64_t now;  /* of the clock */
	uint64_t seed; /* of the next update */
	unsigned int begun;
	int begin_code; /* the result of update_options.begin */
	atomic_bool cancelled;
	struct update_result result; /* of the last update */
	struct err err;
};

/* ---- a domain ---- */

static inline void world_random(const struct env *env, void *bytes, size_t n)
{
	memset(bytes, 0x5a, n);
}

static inline uint64_t world_clock(const struct env *env)
{
	return ((const struct world *)env->ctx)->now;
}

static inline int world_open_file(void *ctx, struct source **out, struct err *err)
{
	*out = source_file_source(ctx);
	return 0;
}

static inline void world_import(struct world *w, const char *name)
{
	char path[1024];
	struct source_file *file;
	struct import_result result;
	struct err err = ERR_INIT;
	snprintf(path, sizeof(path), "%s/tests/data/%s", getenv("HSMOUNT_SOURCE"), name);
	assert_int_equal(source_file_open(path, &file, &err), 0);
	const struct import_options opt = {
		.env = &w->import_env,
		.store = w->gate->base.inner,
		.schema = schema_all()[0],
		.path = DOMAIN_PATH,
		.local_user = "u",
		.puts = 4,
		.now_ns = INT64_C(1700000000) * 1000000000,
		.file = {.name = "/data/file.h5", .open = world_open_file, .ctx = file},
	};
	if (domain_import(&opt, &result, &err))
		fail_msg("%s", err.msg);
	source_file_close(file);
}

static inline int world_read_image(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct world *w = ctx;
	const ssize_t got = image_read(w->image, NULL, buf, n, offset, NULL, err);
	return got == (ssize_t)n ? 0 : got < 0 ? (int)got : err_set(err, -EIO, "short read");
}

static inline struct image *image_of(struct world *w, struct domain *d)
{
	struct image *img;
	struct err err = ERR_INIT;
	const struct chunk_source chunks = domain_chunk_source(d);
	const struct image_options opt = {.domain_dir = "home/u"};
	if (image_new(&w->f.env, w->cache, domain_tree(d), &chunks, &opt, &img, &err))
		fail_msg("%s", err.msg);
	return img;
}

/* Opens the domain for writing, as a program does. */
static inline void world_open(struct world *w)
{
	const struct draft_beneath beneath = {.read = world_read_image, .ctx = w};
	struct draft_about about = {.kind = DRAFT_CHANGE,
				    .path = DOMAIN_PATH,
				    .name = "/" DOMAIN_PATH,
				    .version = "d:etag",
				    .created_ns = 1234567890123456789};
	const struct domain_bucket bucket = {
		.env = &w->f.env, .store = &w->gate->base, .schemas = schema_all()};
	struct err err = ERR_INIT;
	if (domain_open(&bucket, DOMAIN_PATH, NULL, &w->domain, &err))
		fail_msg("%s", err.msg);
	w->image = image_of(w, w->domain);
	w->source = (struct source){
		.size = image_size(w->image), .read_at = world_read_image, .ctx = w};
	about.beneath = w->source.size;
	w->base = update_base_new(w->domain, w->image);
	assert_non_null(w->base);
	if (draft_create(w->f.j, &about, &beneath, &w->draft, &err))
		fail_msg("%s", err.msg);
	memcpy(w->id, draft_id(w->draft), JOURNAL_ID);
	gate_open(w->gate);
}

static inline void world_close(struct world *w)
{
	draft_snapshot_close(w->snapshot);
	w->snapshot = NULL;
	assert_int_equal(draft_drop(w->draft, NULL), 0);
	update_base_free(w->base);
	image_unref(w->image);
	domain_unref(w->domain);
	domain_puts_free(w->result.documents);
	w->result = (struct update_result){.removed = GC_NONE};
	w->draft = NULL;
}

static inline struct world *world_new(const char *file, unsigned int workers)
{
	struct world *w = calloc(1, sizeof(*w));
	assert_non_null(w);
	fixture_begin(&w->f, ROOM);
	assert_int_equal(gc_log_new(w->f.j, &w->log, NULL), 0);
	w->f.env.pool = pool_new(workers);
	w->f.env.now = world_clock;
	w->f.env.ctx = w;
	w->now = 1;
	w->import_env = w->f.env;
	w->import_env.random = world_random;
	w->gate = gate_new(store_mem_new(&w->f.env, NULL));
	w->cache = cache_new(&w->f.env, 1, NULL);
	assert_non_null(w->cache);
	world_import(w, file);
	w->seed = 1;
	return w;
}

static inline struct world *world_begin_with(const char *file)
{
	struct world *w = world_new(file, 0);
	world_open(w);
	return w;
}

static inline struct world *world_begin(void)
{
	return world_begin_with("update.h5");
}

static inline void world_end(struct world *w)
{
	struct budget_stats stats;
	if (w->draft)
		world_close(w);
	budget_get_stats(w->f.budget, &stats);
	assert_int_equal(stats.used[BUDGET_TREES], 0);
	cache_free(w->cache);
	store_free(&w->gate->base);
	pool_free(w->f.env.pool);
	gc_log_free(w->log);
	fixture_end(&w->f);
	free(w);
}

/* ---- updates ---- */

static inline int world_begin_update(void *ctx, struct err *err)
{
	struct world *w = ctx;
	w->begun++;
	return w->begin_code ? err_set(err, w->begin_code, "refused by the test") : 0;
}

static inline int world_update(struct world *w)
{
	const struct update_options opt = {
		.env = &w->f.env,
		.store = &w->gate->base,
		.draft = w->draft,
		.log = w->log,
		.begin = world_begin_update,
		.ctx = w,
		.seed = w->seed,
		.puts = 4,
		.now_ns = INT64_C(1000000000) * NOW,
		.cancelled = &w->cancelled,
	};
	struct update_options sealed = opt;
	domain_puts_free(w->result.documents);
	w->err = (struct err)ERR_INIT;
	w->result = (struct update_result){.removed = GC_NONE};
	int rc = draft_seal(w->draft, &w->snapshot, &w->err);
	if (rc)
		return rc;
	sealed.snapshot = w->snapshot;
	rc = domain_update(w->base, &sealed, &w->result, &w->err);
	assert_true(rc || !w->result.refused);
	if (!rc) {
		draft_snapshot_accept(w->snapshot);
		w->seed++;
	}
	draft_snapshot_close(w->snapshot);
	w->snapshot = NULL;
	return rc;
}

/* The puts and deletes that the bucket got. */
static inline unsigned int world_changes(const struct world *w)
{
	return w->gate->ops[STORE_PUT] + w->gate->ops[STORE_DELETE];
}

static inline void world_must_update(struct world *w, unsigned int puts, unsigned int deletes)
{
	gate_open(w->gate);
	if (world_update(w))
		fail_msg("%s", w->err.msg);
	assert_int_equal(w->result.puts, puts);
	assert_int_equal(w->result.deletes, deletes);
	assert_int_equal(w->gate->ops[STORE_PUT], puts);
	assert_int_equal(w->gate->ops[STORE_DELETE], deletes);
}

/* An update that fails before it changes the bucket. */
static inline void world_must_fail(struct world *w, int code, bool refused)
{
	gate_open(w->gate);
	const int rc = world_update(w);
	if (rc != code)
		fail_msg("%d instead of %d: %s", rc, code, w->err.msg);
	assert_int_equal(w->result.refused, refused);
	assert_int_equal(world_changes(w), 0);
}

/* ---- what the bucket has ---- */

struct opened {
	struct domain *domain;
	struct image *image;
	struct source source;
	struct h5file *file;
};

static inline int opened_read(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	const struct opened *o = ctx;
	const ssize_t got = image_read(o->image, NULL, buf, n, offset, NULL, err);
	return got == (ssize_t)n ? 0 : got < 0 ? (int)got : err_set(err, -EIO, "short read");
}

/* Opens the domain as another reader does, who must be able to read all of it. */
static inline void opened_begin(struct world *w, struct opened *o)
{
	uint8_t piece[4096];
	struct err err = ERR_INIT;
	o->domain = gate_domain(w->gate, DOMAIN_PATH);
	assert_non_null(o->domain);
	const struct tree *t = domain_tree(o->domain);
	if (tree_missing(t) || tree_problems(t))
		fail_msg("%u objects are missing, %s", tree_missing(t),
			 tree_problems(t) ? tree_problem(t, 0) : "no problem");
	o->image = image_of(w, o->domain);
	o->source = (struct source){.size = image_size(o->image), .read_at = opened_read, .ctx = o};
	for (uint64_t at = 0; at < o->source.size; at += sizeof(piece)) {
		const uint64_t left = o->source.size - at;
		if (opened_read(o, at, piece, left < sizeof(piece) ? left : sizeof(piece), &err))
			fail_msg("byte %llu: %s", (unsigned long long)at, err.msg);
	}
	if (h5file_open(&o->source, NULL, &o->file, &err))
		fail_msg("%s", err.msg);
}

static inline void opened_end(struct opened *o)
{
	h5file_close(o->file);
	image_unref(o->image);
	domain_unref(o->domain);
}

/* The object to which a path of hard links leads; OBJECT_NONE: there is none. */
static inline uint32_t find_object(const struct tree *t, const char *path)
{
	uint32_t at = tree_nth(t, 0);
	while (*path && at != OBJECT_NONE) {
		const struct object *o = &tree_object(t, at)->o;
		const size_t n = strcspn(path, "/");
		at = OBJECT_NONE;
		for (uint32_t i = 0; o->kind == OBJECT_GROUP && i < o->group.nlinks; i++)
			if (o->group.links[i].cls == LINK_HARD &&
			    strlen(o->group.links[i].name) == n &&
			    memcmp(o->group.links[i].name, path, n) == 0)
				at = o->group.links[i].target;
		path += n + (path[n] == '/');
	}
	return at;
}

/* The id of an object in the bucket; "": there is none. */
static inline void world_id(struct world *w, const char *path, char id[64])
{
	struct domain *d = gate_domain(w->gate, DOMAIN_PATH);
	const uint32_t number = find_object(domain_tree(d), path);
	snprintf(id, 64, "%s",
		 number == OBJECT_NONE ? "" : tree_object(domain_tree(d), number)->o.id);
	domain_unref(d);
}

/* The key of the document of an object of the domain that is open, or of a chunk of it. */
static inline void world_key(struct world *w, const char *path, char key[SCHEMA_KEY_MAX + 1])
{
	const uint32_t number = find_object(domain_tree(w->domain), path);
	assert_true(domain_object_key(w->domain, number, key, SCHEMA_KEY_MAX + 1) > 0);
}

static inline void world_summary_key(struct world *w, char key[SCHEMA_KEY_MAX + 1])
{
	world_key(w, "", key);
	strcpy(strrchr(key, '/'), "/.info.json");
}

static inline void world_chunk_key(struct world *w, const char *path, uint64_t chunk,
				   char key[SCHEMA_KEY_MAX + 1])
{
	const uint32_t number = find_object(domain_tree(w->domain), path);
	assert_true(domain_chunk_key(w->domain, number, chunk, key, SCHEMA_KEY_MAX + 1) > 0);
}

static inline bool world_has(struct world *w, const char *key)
{
	struct store_meta meta;
	const int rc = call_head(w->gate->base.inner, key, &meta, NULL);
	assert_true(rc == 0 || rc == -ENOENT);
	return rc == 0;
}

/* An object of the bucket as text. Heap. */
static inline char *world_text(struct world *w, const char *key)
{
	struct call_result res;
	assert_int_equal(call_get(w->gate->base.inner, key, 0, STORE_TO_END, 0, NULL, &res, NULL),
			 0);
	char *text = strndup((const char *)res.body.data, res.body.len);
	bytes_release(&res.body);
	return text;
}

/* ---- the file and the bucket have the same content ---- */

static inline int world_difference(void *ctx, const char *path, const char *text)
{
	fail_msg("%s: %s", path, text);
	return -1;
}

static inline int world_take_chunk(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	*(struct h5file_chunk *)ctx = *chunk;
	return 0;
}

/* The elements of a chunk. False: it is not stored. */
static inline bool world_elements(struct h5file *f, uint32_t number, uint64_t chunk,
				  struct elems *out)
{
	struct h5file_chunk found = {.size = 0};
	auto_bytes struct bytes stored = {0};
	struct err err = ERR_INIT;
	assert_int_equal(h5file_chunks(f, number, chunk, chunk + 1, world_take_chunk, &found, &err),
			 0);
	if (!found.size)
		return false;
	if (h5file_chunk_read(f, &found, &stored, &err) ||
	    h5file_chunk_decode(f, number, &found, &stored, out, &err))
		fail_msg("%s", err.msg);
	return true;
}

static inline bool is_fill(const struct dataset *ds, const struct elems *e)
{
	for (size_t i = 0; i < e->fixed.len; i++) {
		const size_t k = i % ds->type->size;
		if (e->fixed.data[i] != (k < ds->fill.fixed.len ? ds->fill.fixed.data[k] : 0))
			return false;
	}
	return true;
}

/* a: in the file; b: in the bucket. What is outside of the shape does not count. */
static inline void compare_chunk(struct h5file *a, uint32_t na, struct h5file *b, uint32_t nb,
				 uint64_t chunk, const uint32_t *map)
{
	struct elems ea = {0}, eb = {0};
	const struct dataset *ds = &tree_object(h5file_tree(a), na)->o.dataset;
	const bool has_a = world_elements(a, na, chunk, &ea);
	const bool has_b = world_elements(b, nb, chunk, &eb);
	if (has_a && has_b)
		assert_int_equal(elems_diff(ds->type, ds->grid.chunk_elems, &ea, &eb, map),
				 ds->grid.chunk_elems);
	else if (has_a)
		assert_true(is_fill(ds, &ea));
	else if (has_b)
		assert_true(is_fill(ds, &eb));
	elems_release(&ea);
	elems_release(&eb);
}

/* Another reader finds in the bucket what the file has. */
static inline void world_check_same(struct world *w)
{
	static const struct tree_diff_sink sink = {.difference = world_difference};
	struct opened o;
	struct h5file *file;
	struct draft_snapshot *s;
	struct err err = ERR_INIT;
	uint64_t n;
	opened_begin(w, &o);
	assert_int_equal(draft_seal(w->draft, &s, NULL), 0);
	if (h5file_open(draft_snapshot_source(s), NULL, &file, &err))
		fail_msg("%s", err.msg);
	const struct tree *t = h5file_tree(file);
	uint32_t *map = calloc(tree_numbers(t), sizeof(*map));
	assert_int_equal(tree_diff(t, h5file_tree(o.file), 0, &sink, map, &n, &err), 0);
	for (uint32_t i = 0; i < tree_count(t); i++) {
		const uint32_t number = tree_nth(t, i);
		const struct object *ob = &tree_object(t, number)->o;
		for (uint64_t k = 0; ob->kind == OBJECT_DATASET && k < ob->dataset.grid.nchunks;
		     k++)
			compare_chunk(file, number, o.file, map[number], k, map);
	}
	free(map);
	h5file_close(file);
	draft_snapshot_close(s);
	opened_end(&o);
}

/* ---- another process ---- */

/* The process ends; a later one runs the plan that it has left, if there is one. */
static inline int world_resume(struct world *w)
{
	const struct draft_beneath beneath = {.read = world_read_image, .ctx = w};
	struct plan plan;
	struct apply_result out;
	struct err err = ERR_INIT;
	draft_close(w->draft);
	gc_log_free(w->log);
	journal_close(w->f.j);
	fixture_open(&w->f, ROOM);
	assert_int_equal(gc_log_new(w->f.j, &w->log, NULL), 0);
	w->result.removed = GC_NONE;
	if (draft_open(w->f.j, w->id, &beneath, &w->draft, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(draft_seal(w->draft, &w->snapshot, NULL), 0);
	int rc = draft_get_plan(w->draft, &plan, &err);
	if (rc == -ENOENT)
		return 0;
	assert_int_equal(rc, 0);
	const struct apply apply = {.env = &w->f.env,
				    .store = &w->gate->base,
				    .draft = w->draft,
				    .snapshot = w->snapshot,
				    .plan = &plan,
				    .is_repeated = true,
				    .puts = 4};
	const struct complete complete = {
		.apply = &apply, .schema = schema_all()[0], .path = DOMAIN_PATH};
	rc = complete_run(&complete, &out, &w->err);
	if (rc == -ESTALE)
		complete_withdraw(&complete);
	if (!rc)
		assert_int_equal(
			apply_note_removed(&apply, w->log, DOMAIN_PATH, &w->result.removed, NULL),
			0);
	plan_release(&plan);
	if (rc)
		return rc;
	assert_int_equal(draft_remove_plan(w->draft, NULL), 0);
	return 0;
}

static inline void world_recover(struct world *w)
{
	if (world_resume(w))
		fail_msg("%s", w->err.msg);
}

#endif
