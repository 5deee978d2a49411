/* SPDX-License-Identifier: Apache-2.0 */
/* A plan of 200 operations, the bucket that it changes, and a store that watches and fails. */
#ifndef DOMAIN_APPLY_FIXTURE_H
#define DOMAIN_APPLY_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <glob.h>
#include <stdatomic.h>

#include <update/apply.h>
#include <store/implement.h>
#include <overlay/draft_plan.h>

#include "mem_store.h"
#include "overlay_fixture.h"
#include "store_calls.h"

enum { COUNT = 200, PHASES = 10, TEXT = 64, FILE_SIZE = 8000, FOREVER = INT32_MAX };

/* ---- the plan ---- */

static const struct part {
	uint32_t phase;
	unsigned int n;
	enum plan_action action;
	enum plan_condition condition;
	enum plan_body body;
	const char *key; /* NULL: a new one for each operation */
} parts[] = {
	{1, 60, PLAN_PUT, PLAN_IF_ABSENT, PLAN_RANGE, NULL},
	{2, 20, PLAN_PUT, PLAN_IF_ABSENT, PLAN_INLINE, NULL},
	{3, 49, PLAN_PUT, PLAN_IF_VERSION, PLAN_FILE, NULL},
	{3, 1, PLAN_PUT, PLAN_IF_VERSION, PLAN_INLINE, "p3/moves"},
	{4, 20, PLAN_PUT, PLAN_IF_VERSION, PLAN_INLINE, NULL},
	{5, 20, PLAN_DELETE, PLAN_IF_VERSION, PLAN_NO_BODY, NULL},
	{6, 9, PLAN_PUT, PLAN_IF_VERSION, PLAN_INLINE, NULL},
	{6, 1, PLAN_PUT, PLAN_IF_VERSION, PLAN_INLINE, "p6/circle"},
	{7, 1, PLAN_PUT, PLAN_IF_VERSION, PLAN_FILE, "p6/circle"},
	{7, 8, PLAN_PUT, PLAN_ALWAYS, PLAN_RANGE, NULL},
	{8, 10, PLAN_DELETE, PLAN_ALWAYS, PLAN_NO_BODY, NULL},
	{8, 1, PLAN_DELETE, PLAN_IF_VERSION, PLAN_NO_BODY, "p3/moves"},
};
enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

static uint8_t file_byte(uint64_t offset)
{
	return (uint8_t)(offset * 13 + offset / 256);
}

/* ---- a store that watches and fails ---- */

struct world;
struct trial {
	struct store base;
	struct world *w;
	bool is_ordered; /* asserts the order of the phases */
	bool has_life;
	atomic_uint changes;	 /* PUTs and DELETEs */
	atomic_uint others;	 /* other requests */
	atomic_uint retried;	 /* changes that may have been made before */
	atomic_int open[PHASES]; /* operations of the phase that are not done */
	atomic_uint syncs;
	/* The changes from `at` on, `times` of them, fail with `code`; lost: they are done. */
	unsigned int at, times;
	int code;
	bool lost;
};

struct trial_slot {
	bool is_hit;
	uint32_t phase;
};

struct world {
	struct overlay_fixture f;
	char bucket[64]; /* "": in memory */
	struct trial *trial;
	struct store *store;
	struct draft *d;
	struct draft_snapshot *s;
	char id[JOURNAL_ID];
	struct plan_operation ops[COUNT];
	char keys[COUNT][TEXT], versions[COUNT][STORE_ETAG_MAX], texts[COUNT][TEXT];
	unsigned int done[COUNT]; /* calls of done() */
	unsigned int calls, cancel_after;
	atomic_bool cancelled;
};

static bool is_change(const struct store_request *req)
{
	return req->op == STORE_PUT || req->op == STORE_DELETE;
}

/* The phase of a key; of one that is changed twice, the first that is not done. */
static uint32_t phase_of(const struct trial *t, const char *key)
{
	const uint32_t phase = (uint32_t)(key[1] - '0');
	if (strcmp(key, "p6/circle") == 0)
		return atomic_load(&t->open[6]) ? 6 : 7;
	if (strcmp(key, "p3/moves") == 0)
		return atomic_load(&t->open[3]) ? 3 : 8;
	return phase;
}

static void trial_submit(struct store *s, struct store_request *req)
{
	struct trial *t = (struct trial *)s;
	struct trial_slot *slot = store_private(s, req);
	*slot = (struct trial_slot){.is_hit = false};
	if (!is_change(req)) {
		atomic_fetch_add(&t->others, 1);
		store_pass(s, req);
		return;
	}
	const unsigned int n = atomic_fetch_add(&t->changes, 1) + 1;
	if (req->cond.retried)
		atomic_fetch_add(&t->retried, 1);
	slot->is_hit = t->at && n >= t->at && n - t->at < t->times;
	slot->phase = phase_of(t, req->key);
	for (unsigned int i = 0; t->is_ordered && i < slot->phase; i++)
		if (atomic_load(&t->open[i]) != 0)
			fail_msg("%s is changed before phase %u is done", req->key, i);
	if (slot->is_hit && !t->lost)
		store_fail(s, req, t->code, "object %s: injected", req->key);
	else
		store_pass(s, req);
}

static void trial_completed(struct store *s, struct store_request *req)
{
	struct trial *t = (struct trial *)s;
	const struct trial_slot *slot = store_private(s, req);
	if (is_change(req))
		atomic_fetch_sub(&t->open[slot->phase], 1);
	if (slot->is_hit)
		store_fail(s, req, t->code, "object %s: injected", req->key);
	else
		store_complete(s, req);
}

static unsigned int count_done(struct world *w)
{
	struct plan plan;
	unsigned int n = 0;
	assert_int_equal(draft_get_plan(w->d, &plan, NULL), 0);
	for (uint32_t i = 0; i < plan.count; i++)
		n += plan.operations[i].done;
	plan_release(&plan);
	return n;
}

/* What is not durable is not noted. */
static int trial_sync(struct store *s, struct err *err)
{
	struct trial *t = (struct trial *)s;
	atomic_fetch_add(&t->syncs, 1);
	if (t->has_life && t->is_ordered) {
		const unsigned int noted = count_done(t->w), changes = atomic_load(&t->changes);
		assert_true(noted < changes);
		for (unsigned int i = 0; i < COUNT; i++)
			if (t->w->ops[i].phase == t->w->ops[changes - 1].phase)
				assert_true(noted <= i);
	}
	return store_sync(t->base.inner, err);
}

static const char *trial_life(struct store *s)
{
	struct trial *t = (struct trial *)s;
	return t->has_life ? "a boot" : "";
}

static const struct store_ops trial_ops = {
	.name = "trial",
	.submit = trial_submit,
	.completed = trial_completed,
	.sync = trial_sync,
	.life = trial_life,
	.free = store_wrapper_free,
};

/* ---- the world ---- */

static void make_operation(struct world *w, unsigned int i, const struct part *part)
{
	struct plan_operation *op = &w->ops[i];
	const size_t n = 10 + i % 7;
	uint8_t range[TEXT];
	*op = (struct plan_operation){.action = part->action,
				      .condition = part->condition,
				      .body = part->body,
				      .phase = part->phase,
				      .key = w->keys[i],
				      .version = w->versions[i]};
	if (part->key)
		snprintf(w->keys[i], TEXT, "%s", part->key);
	else
		snprintf(w->keys[i], TEXT, "p%u/%03u", part->phase, i);
	if (part->body == PLAN_NO_BODY)
		return;
	op->length = n;
	snprintf(w->texts[i], TEXT, "new %03u and so on", i);
	if (part->body == PLAN_INLINE)
		op->bytes = w->texts[i];
	if (part->body == PLAN_FILE)
		assert_int_equal(draft_add_body(w->d, w->texts[i], n, &op->offset, NULL), 0);
	if (part->body == PLAN_RANGE) {
		op->offset = 20 * i;
		for (size_t k = 0; k < n; k++)
			range[k] = file_byte(op->offset + k);
		memcpy(w->texts[i], range, n);
	}
	plan_digest(w->texts[i], n, op->sha256);
}

/* The objects that the plan changes, and another one. */
static void fill_bucket(struct world *w)
{
	struct store_meta meta;
	char text[TEXT];
	for (unsigned int i = 0; i < COUNT; i++) {
		const struct plan_operation *op = &w->ops[i];
		if (op->condition == PLAN_IF_ABSENT ||
		    (op->condition == PLAN_ALWAYS && op->action == PLAN_PUT))
			continue;
		/* Of a key with two operations, both name the version before the first. */
		if (call_head(w->store, op->key, &meta, NULL) == -ENOENT) {
			snprintf(text, sizeof(text), "old %03u and others", i);
			assert_int_equal(
				call_put(w->store, op->key, text, 10 + i % 7, NULL, &meta, NULL),
				0);
		}
		if (op->condition == PLAN_IF_VERSION)
			memcpy(w->versions[i], meta.etag, STORE_ETAG_MAX);
	}
	assert_int_equal(call_put(w->store, "p0/other", "other", 5, NULL, NULL, NULL), 0);
}

static void make_plan(struct world *w)
{
	uint8_t bytes[FILE_SIZE];
	unsigned int i = 0;
	for (unsigned int k = 0; k < FILE_SIZE; k++)
		bytes[k] = file_byte(k);
	w->d = make_draft(&w->f, &about_new);
	memcpy(w->id, draft_id(w->d), JOURNAL_ID);
	assert_int_equal(draft_write(w->d, 0, bytes, sizeof(bytes), NULL), 0);
	assert_int_equal(draft_seal(w->d, &w->s, NULL), 0);
	for (unsigned int p = 0; p < PARTS; p++)
		for (unsigned int k = 0; k < parts[p].n; k++)
			make_operation(w, i++, &parts[p]);
	assert_int_equal(i, COUNT);
	fill_bucket(w);
	assert_int_equal(draft_put_plan(w->d, w->ops, COUNT, NULL, NULL), 0);
}

static void reset_trial(struct world *w)
{
	struct trial *t = w->trial;
	t->at = t->times = 0;
	t->is_ordered = false;
	atomic_store(&t->changes, 0);
	atomic_store(&t->others, 0);
	atomic_store(&t->retried, 0);
	atomic_store(&t->syncs, 0);
}

enum { IN_DIR = 1, WITH_RETRY = 2 };

static struct world *open_world(unsigned int flags, unsigned int workers)
{
	struct world *w = calloc(1, sizeof(*w));
	struct store *s;
	assert_non_null(w);
	fixture_begin(&w->f, 1 << 20);
	w->f.env.pool = pool_new(workers);
	if (flags & IN_DIR) {
		snprintf(w->bucket, sizeof(w->bucket), "%s/apply-test-XXXXXX", fixture_parent());
		assert_non_null(mkdtemp(w->bucket));
		s = store_dir_new(&w->f.env, w->bucket, NULL);
	} else {
		s = store_mem_new(&w->f.env, NULL);
	}
	w->trial = calloc(1, sizeof(*w->trial));
	store_wrap(&w->trial->base, &trial_ops, s, sizeof(struct trial_slot), 0);
	w->trial->w = w;
	w->trial->has_life = flags & IN_DIR;
	w->store = &w->trial->base;
	if (flags & WITH_RETRY)
		w->store = store_retry_new(w->store, &(struct store_retry_options){.base_ms = 1},
					   NULL);
	make_plan(w);
	reset_trial(w);
	for (unsigned int i = 0; i < PHASES; i++)
		atomic_store(&w->trial->open[i], 0);
	for (unsigned int i = 0; i < COUNT; i++)
		atomic_fetch_add(&w->trial->open[w->ops[i].phase], 1);
	return w;
}

static void close_world(struct world *w)
{
	char command[128];
	draft_snapshot_close(w->s);
	assert_int_equal(draft_drop(w->d, NULL), 0);
	store_free(w->store);
	pool_free(w->f.env.pool);
	fixture_end(&w->f);
	snprintf(command, sizeof(command), "rm -rf %s", w->bucket);
	if (w->bucket[0])
		assert_int_equal(system(command), 0);
	free(w);
}

static void find_file(const struct world *w, const char *name, char path[256])
{
	glob_t found;
	snprintf(path, 256, "%s/2/*/*", w->f.path);
	assert_int_equal(glob(path, 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++)
		if (strstr(found.gl_pathv[i], w->id))
			snprintf(path, 256, "%s/%s", found.gl_pathv[i], name);
	globfree(&found);
}

/* A later process opens the draft. */
static void restart(struct world *w, bool loses_notes)
{
	char path[256];
	struct err err = ERR_INIT;
	find_file(w, "done", path);
	draft_snapshot_close(w->s);
	draft_close(w->d);
	if (loses_notes)
		unlink(path);
	journal_close(w->f.j);
	fixture_open(&w->f, 1 << 20);
	if (draft_open(w->f.j, w->id, NULL, &w->d, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(draft_seal(w->d, &w->s, NULL), 0);
}

static bool is_last_of_key(const struct world *w, unsigned int i)
{
	for (unsigned int k = i + 1; k < COUNT; k++)
		if (strcmp(w->keys[i], w->keys[k]) == 0)
			return false;
	return true;
}

static void count_call(void *ctx, uint32_t operation, const char *etag)
{
	struct world *w = ctx;
	w->done[operation]++;
	if (w->ops[operation].action == PLAN_DELETE)
		assert_string_equal(etag, "");
	else if (is_last_of_key(w, operation))
		assert_string_not_equal(etag, "");
	if (++w->calls == w->cancel_after)
		atomic_store(&w->cancelled, true);
}

static int run_plan(struct world *w, bool is_repeated, struct apply_result *out, struct err *err)
{
	struct plan plan;
	assert_int_equal(draft_get_plan(w->d, &plan, NULL), 0);
	const struct apply a = {.env = &w->f.env,
				.store = w->store,
				.draft = w->d,
				.snapshot = w->s,
				.plan = &plan,
				.is_repeated = is_repeated,
				.puts = 8,
				.cancelled = &w->cancelled,
				.done = count_call,
				.ctx = w};
	int rc = apply_run(&a, out, err);
	assert_int_equal(rc == -ESTALE, out->conflict != APPLY_NO_CONFLICT);
	plan_release(&plan);
	return rc;
}

static void assert_runs(struct world *w, bool is_repeated, struct apply_result *out)
{
	struct err err = ERR_INIT;
	if (run_plan(w, is_repeated, out, &err))
		fail_msg("request %u, code %d: %s", w->trial->at, w->trial->code, err.msg);
}

/* The bucket is as if each operation had been done once. */
static void check_bucket(struct world *w)
{
	auto_page struct store_page page = {0};
	unsigned int objects = 1;
	reset_trial(w);
	for (unsigned int i = 0; i < COUNT; i++) {
		struct call_result res;
		const struct plan_operation *op = &w->ops[i];
		if (!is_last_of_key(w, i))
			continue;
		const int rc = call_get(w->store, op->key, 0, UINT64_MAX, 0, NULL, &res, NULL);
		assert_int_equal(rc, op->action == PLAN_PUT ? 0 : -ENOENT);
		if (rc == 0) {
			objects++;
			assert_int_equal(res.body.len, op->length);
			assert_memory_equal(res.body.data, w->texts[i], op->length);
		}
		bytes_release(&res.body);
	}
	assert_int_equal(call_list_all(w->store, "", false, UINT32_MAX, &page, NULL), 0);
	assert_int_equal(page.n, objects);
	assert_int_equal(count_done(w), COUNT);
}

#endif
