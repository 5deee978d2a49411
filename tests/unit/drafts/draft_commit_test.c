/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commits that are interrupted at each request, and repeated: by the same process, with the same
 * number or a larger one, and by the next mount. Other writers that come at each request.
 */
#include "draft_fixture.h"

#include "draft_files.h"
#include "sampling.h"

/* What a name has. */
enum what { NOTHING, TEXT, FIRST, SECOND, WHATS };

static const struct {
	const char *file; /* NULL: "text", or nothing */
	uint32_t objects; /* of the domain */
	size_t keys;	  /* in the bucket, if nothing else is there */
	enum commit_kind kind;
} whats[WHATS] = {
	[NOTHING] = {0},
	[TEXT] = {.keys = 1, .kind = COMMIT_OBJECT},
	[FIRST] = {.file = ONE, .objects = 2, .keys = 4, .kind = COMMIT_DOMAIN},
	[SECOND] = {.file = OTHER, .objects = 2, .keys = 6, .kind = COMMIT_DOMAIN},
};

static void write_what(struct world *w, enum what what)
{
	if (whats[what].file)
		world_write_file(w, whats[what].file);
	else
		world_write(w, "text", 4);
}

static const char *bare; /* NULL, or where `name` leads if it is that of a domain */

/* Gives the name something, and opens a draft with something else. */
static void begin(struct world *w, bool is_dir, const char *name, enum what old, enum what new)
{
	world_begin(w, is_dir, 0);
	world_put(w, "other.txt", "", 0); /* a directory is not removed when it is empty */
	if (old != NOTHING) {
		world_draft(w, bare && old != TEXT ? bare : name);
		write_what(w, old);
		world_must_commit(w, whats[old].kind);
	}
	world_draft(w, name);
	write_what(w, new);
	world_open_gate(w);
}

/* What a reader sees. */
static enum what seen(struct world *w, const char *name)
{
	struct call_result res;
	const char *path = name;
	size_t n;
	names_changed(w->e->bucket.names, name);
	auto_names_node struct names_node *node = world_find(w, name);
	if (!node)
		return NOTHING;
	path = node->path;
	if (node->kind == NAMES_DOMAIN) {
		assert_int_equal(world_objects(w, path), 2);
		return world_chunks(w, path) == 1 ? FIRST : SECOND;
	}
	assert_int_equal(node->kind, NAMES_OBJECT);
	assert_int_equal(call_get(w->gate->base.inner, path, 0, STORE_TO_END, 0, NULL, &res, NULL),
			 0);
	enum what what = WHATS;
	for (enum what i = TEXT; what == WHATS && i < WHATS; i++) {
		auto_free uint8_t *bytes = whats[i].file ? file_bytes(whats[i].file, &n) : NULL;
		if (bytes ? res.body.len == n && memcmp(res.body.data, bytes, n) == 0
			  : res.body.len == 4 && memcmp(res.body.data, "text", 4) == 0)
			what = i;
	}
	bytes_release(&res.body);
	return what;
}

static void check_done(struct world *w, const char *name, enum what new)
{
	assert_int_equal(w->result.kind, whats[new].kind);
	assert_int_equal(seen(w, name), new);
	world_check_version(w, name);
	world_collect(w);
	assert_int_equal(seen(w, name), new);
	if (world_keys(w, "") != whats[new].keys + 1) {
		auto_free char *all = world_content(w, "");
		fail_msg("%zu keys are left:\n%s", world_keys(w, ""), all);
	}
}

/* ---- interruptions ---- */

enum how { SAME_NUMBER, NEXT_NUMBER, RECOVERED, HOWS };

/* The process ends, and the next one finds the draft. */
static void recover(struct world *w)
{
	char id[JOURNAL_ID];
	struct draft_stat stat;
	struct err err = ERR_INIT;
	strcpy(id, draft_id(w->draft));
	draft_close(w->draft);
	world_names(w);
	if (draft_open(w->f.j, id, NULL, &w->draft, &err))
		fail_msg("%s", err.msg);
	draft_get_stat(w->draft, &stat);
	w->number = commit_record_decode(stat.mark).number;
}

static int repeat(struct world *w, enum how how)
{
	struct draft_stat stat;
	draft_get_stat(w->draft, &stat);
	if (how == RECOVERED)
		recover(w);
	else if (how == NEXT_NUMBER)
		w->number++;
	/* A commit that has not begun is the first one. */
	return world_commit_as(w, w->number ? w->number : 1, true);
}

static void interrupt(bool is_dir, const char *name, enum what old, enum what new, enum how how,
		      unsigned int at, bool after, bool *ended)
{
	struct world w;
	begin(&w, is_dir, name, old, new);
	w.gate->at = at;
	w.gate->later = true;
	w.gate->after = after;
	w.gate->code = -EIO;
	const int rc = world_commit(&w, true);
	*ended = w.gate->n < at;
	if (*ended) {
		if (rc)
			fail_msg("%s", w.err.msg);
	} else {
		assert_true(rc == -EIO);
		world_open_gate(&w);
		const enum what now = seen(&w, name);
		const bool changes_kind = old && whats[old].kind != whats[new].kind;
		assert_true(now == old || now == new || (is_dir && changes_kind && now == NOTHING));
		/* And once more in the middle of the repetition. */
		w.gate->at = at;
		w.gate->later = true;
		w.gate->after = !after;
		w.gate->code = -EIO;
		if (repeat(&w, how)) {
			world_open_gate(&w);
			if (repeat(&w, how))
				fail_msg("old %d new %d how %d at %u after %d: %s", old, new, how,
					 at, after, w.err.msg);
		}
	}
	world_open_gate(&w);
	check_done(&w, name, new);
	world_end(&w);
}

static void interrupt_all(bool is_dir, const char *name, enum how how)
{
	const unsigned int step = sampling_step(3);
	for (enum what old = NOTHING; old < WHATS; old++)
		for (enum what new = TEXT; new < WHATS; new ++)
			for (int after = 0; after < 2; after++) {
				bool ended = false;
				for (unsigned int at = 1 + (old + new) % step; !ended; at += step)
					interrupt(is_dir, name, old, new, how, at, after, &ended);
			}
}

static void an_interrupted_commit_is_finished(void **state)
{
	for (enum how how = SAME_NUMBER; how < HOWS; how++)
		interrupt_all(false, "home/x.h5", how);
}

static void it_is_finished_in_a_directory(void **state)
{
	interrupt_all(true, "x.h5", NEXT_NUMBER);
	interrupt_all(true, "x.h5", RECOVERED);
}

static void it_is_finished_for_a_name_without_extension(void **state)
{
	interrupt_all(false, "run", NEXT_NUMBER);
	interrupt_all(true, "run", SAME_NUMBER);
}

/* The domain `run` is replaced under the name that a mount shows. */
static void it_is_finished_for_the_name_that_is_shown(void **state)
{
	bare = "run";
	interrupt_all(false, "run.h5", RECOVERED);
	interrupt_all(true, "run.h5", NEXT_NUMBER);
	bare = NULL;
}

/* The object was put, and the domain was not removed. If the commit cannot find out about the
 * domain, it fails: otherwise both would stay. */
static void a_failed_look_up_removes_no_less(void **state)
{
	unsigned int failures = 0;
	bool reached = true;
	bare = "run";
	for (unsigned int at = 1; reached; at++) {
		struct world w;
		begin(&w, false, "run.h5", FIRST, TEXT);
		gate_fail(w.gate, 2, -EIO);
		w.gate->later = true;
		assert_int_equal(world_commit(&w, true), -EIO);
		world_open_gate(&w);
		assert_int_equal(seen(&w, "run.h5"), TEXT); /* it has been put */
		names_changed(w.e->bucket.names, "run.h5");
		names_changed(w.e->bucket.names, "run");
		gate_fail(w.gate, at, -EIO);
		const int rc = repeat(&w, NEXT_NUMBER);
		reached = w.gate->n >= at;
		assert_true(rc == 0 || (rc == -EIO && reached));
		failures += rc != 0;
		world_open_gate(&w);
		if (rc)
			assert_int_equal(repeat(&w, NEXT_NUMBER), 0);
		check_done(&w, "run.h5", TEXT);
		world_end(&w);
	}
	bare = NULL;
	assert_true(failures > 3);
}

/* One request fails, and nothing is cached. That is no conflict, and the next mount knows that the
 * commit is to be made. */
static void a_failed_look_up_is_no_conflict(void **state)
{
	for (enum what old = TEXT; old < WHATS; old++)
		for (enum what new = TEXT; new < WHATS; new ++)
			for (unsigned int at = 1; at <= 10; at++) {
				struct world w;
				struct draft_stat stat;
				begin(&w, false, "x.h5", old, new);
				names_changed(w.e->bucket.names, "x.h5");
				w.gate->at = at;
				w.gate->code = -EIO;
				const int rc = world_commit(&w, true);
				const bool failed = w.gate->n >= at && rc;
				assert_int_equal(rc, failed ? -EIO : 0);
				world_open_gate(&w);
				draft_get_stat(w.draft, &stat);
				assert_int_equal(commit_record_decode(stat.mark).state,
						 failed ? COMMIT_BEGUN : COMMIT_ENDED);
				if (failed) {
					recover(&w);
					assert_int_equal(world_commit_as(&w, 1, true), 0);
				}
				check_done(&w, "x.h5", new);
				world_end(&w);
			}
}

/* ---- drafts over an object that is there no more ---- */

/* What lies beneath: an object in one version. */
struct old_version {
	struct world *w;
	const char *key;
	char etag[STORE_ETAG_MAX];
};

static int read_old(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct old_version *o = ctx;
	const struct store_cond cond = {.if_match = o->etag};
	struct call_result res;
	int rc = call_get(o->w->gate->base.inner, o->key, offset, n, 0, &cond, &res, err);
	if (rc == -ENOENT)
		rc = err_set(err, -ESTALE, "it was deleted");
	if (!rc)
		memcpy(buf, res.body.data, n);
	bytes_release(&res.body);
	return rc;
}

/* Changes a few bytes of an object of n bytes. */
static void change_object(struct world *w, struct old_version *o, const uint8_t *bytes, size_t n,
			  uint64_t at, const char *by)
{
	char version[COMMIT_VERSION];
	const struct draft_beneath beneath = {.read = read_old, .ctx = o};
	*o = (struct old_version){.w = w, .key = "x.h5"};
	world_put(w, "other.txt", "", 0);
	world_put(w, o->key, bytes, n);
	auto_names_node struct names_node *node = world_find(w, o->key);
	assert_int_equal(commit_version_of(node, version), 0);
	strcpy(o->etag, node->meta.etag);
	const struct draft_about about = {.kind = DRAFT_CHANGE,
					  .path = o->key,
					  .name = o->key,
					  .version = version,
					  .beneath = n,
					  .created_ns = INT64_C(1700000000000000000)};
	assert_int_equal(draft_create(w->f.j, &about, &beneath, &w->draft, NULL), 0);
	assert_int_equal(draft_write(w->draft, at, by, 1, NULL), 0);
}

static int reopen(struct world *w, struct old_version *o)
{
	char id[JOURNAL_ID];
	struct draft_stat stat;
	const struct draft_beneath beneath = {.read = read_old, .ctx = o};
	strcpy(id, draft_id(w->draft));
	draft_close(w->draft);
	world_names(w);
	assert_int_equal(draft_open(w->f.j, id, &beneath, &w->draft, NULL), 0);
	draft_get_stat(w->draft, &stat);
	return (int)commit_record_decode(stat.mark).number;
}

/* The first write ends at a request, and is repeated. */
static bool interrupt_change(bool is_dir, bool to_domain, enum how how, unsigned int at, bool after)
{
	struct world w;
	struct old_version o;
	size_t n;
	world_begin(&w, is_dir, 0);
	auto_free uint8_t *bytes = file_bytes(ONE, &n);
	bytes[20] = 1;
	change_object(&w, &o, bytes, n, to_domain ? 20 : 3000, to_domain ? "" : "X");
	gate_fail(w.gate, at, -EIO);
	w.gate->later = true;
	w.gate->after = after;
	const int rc = world_commit_as(&w, 1, true);
	const bool ended = w.gate->n < at;
	assert_int_equal(rc, ended ? 0 : -EIO);
	world_open_gate(&w);
	if (!ended) {
		const int number = how == RECOVERED ? reopen(&w, &o) : 1;
		if (world_commit_as(&w, number ? (uint32_t)number : 1, true))
			fail_msg("dir %d domain %d how %d at %u after %d: %s", is_dir, to_domain,
				 how, at, after, w.err.msg);
	}
	assert_int_equal(w.result.kind, to_domain ? COMMIT_DOMAIN : COMMIT_OBJECT);
	world_check_version(&w, "x.h5");
	bytes[to_domain ? 20 : 3000] = to_domain ? 0 : 'X';
	if (to_domain)
		assert_int_equal(seen(&w, "x.h5"), FIRST);
	else
		world_check_object(&w, "x.h5", bytes, n);
	world_collect(&w);
	assert_int_equal(world_keys(&w, ""), to_domain ? 5 : 2);
	world_end(&w);
	return ended;
}

static void a_change_of_an_object_is_finished(void **state)
{
	for (int kind = 0; kind < 4; kind++)
		for (int how = 0; how < 2; how++)
			for (int after = 0; after < 2; after++) {
				unsigned int at = 1;
				while (!interrupt_change(kind & 1, kind & 2,
							 how ? RECOVERED : SAME_NUMBER, at, after))
					at++;
			}
}

/* ---- other writers ---- */

static const char *other_key;

static void other_write(struct store *bucket)
{
	assert_int_equal(call_put(bucket, other_key, "{}", 2, NULL, NULL, NULL), 0);
}

/* Another writer changes what is replaced, at each request. Its change is not lost. */
static void another_writer_is_noticed(void **state)
{
	for (enum what old = TEXT; old < WHATS; old++)
		for (enum what new = TEXT; new < WHATS; new ++) {
			bool ended = false;
			for (unsigned int at = 1; !ended; at++) {
				struct world w;
				begin(&w, false, "x.h5", old, new);
				other_key = old == TEXT ? "x.h5" : "x.h5/.domain.json";
				w.gate->other_at = at;
				w.gate->other = other_write;
				const int rc = world_commit(&w, true);
				ended = w.gate->n < at;
				w.gate->other_at = 0;
				if (rc)
					assert_int_equal(rc, -ESTALE);
				if (rc || !ended)
					world_check_object(&w, other_key, "{}", 2);
				world_end(&w);
			}
		}
}

static void assert_stale(struct world *w, const char *key, const char *text)
{
	assert_int_equal(world_commit(w, true), -ESTALE);
	assert_int_equal(world_commit(w, true), -ESTALE);
	world_check_object(w, key, text, strlen(text));
}

/* The answer to the PUT of a changed object is lost. The PUT that is sent again cannot read the
 * object that lay beneath, and finds its own one, or that of another writer. */
static void an_own_object_is_found_although_the_old_one_is_gone(void **state)
{
	static const struct store_retry_options quick = {
		.attempts = 3, .base_ms = 1, .cap_ms = 1, .budget_ms = 60000};
	for (unsigned int i = 0; i < 4; i++) {
		const bool theirs = i % 2, has_marks = i / 2;
		struct world w;
		struct old_version o;
		uint8_t bytes[100] = "plain";
		world_begin(&w, false, 0);
		store_mem_set_lacks(w.gate->base.inner, has_marks ? 0 : STORE_MEM_NO_MARKS, NULL,
				    NULL);
		change_object(&w, &o, bytes, sizeof(bytes), 50, "X");
		w.e->bucket.store = store_retry_new(w.e->bucket.store, &quick, NULL);
		assert_non_null(w.e->bucket.store);
		other_key = "x.h5";
		gate_fail(w.gate, 1, -EAGAIN);
		w.gate->after = true;
		w.gate->other_at = theirs ? 2 : 0;
		w.gate->other = other_write;
		assert_int_equal(world_commit(&w, true), theirs ? -ESTALE : 0);
		assert_int_equal(w.gate->ops[STORE_PUT], 2);
		assert_int_equal(w.gate->ops[STORE_HEAD], 1);
		bytes[50] = 'X';
		if (theirs) {
			world_check_object(&w, "x.h5", "{}", 2);
		} else {
			world_check_object(&w, "x.h5", bytes, sizeof(bytes));
			world_names(&w);
			world_check_version(&w, "x.h5");
		}
		world_end(&w);
	}
}

/* Before the commit. */
static void a_changed_name_fails(void **state)
{
	for (enum what old = NOTHING; old < WHATS; old++)
		for (enum what new = TEXT; new < WHATS; new ++) {
			struct world w;
			const bool as_domain = old ? old != TEXT : new != TEXT;
			const char *key = as_domain ? "x.h5/.domain.json" : "x.h5";
			begin(&w, false, "x.h5", old, new);
			world_put(&w, key, "{}", 2);
			assert_stale(&w, key, "{}");
			world_end(&w);
		}
}

static void a_removed_name_fails(void **state)
{
	for (enum what old = TEXT; old < WHATS; old++)
		for (enum what new = TEXT; new < WHATS; new ++) {
			struct world w;
			const char *key = old == TEXT ? "x.h5" : "x.h5/.domain.json";
			if ((old == TEXT) != (new == TEXT))
				continue; /* it looks as if the first attempt was interrupted */
			begin(&w, false, "x.h5", old, new);
			assert_int_equal(call_delete(w.gate->base.inner, key, NULL, NULL), 0);
			assert_int_equal(world_commit(&w, true), -ESTALE);
			assert_int_equal(world_commit(&w, true), -ESTALE);
			assert_int_equal(seen(&w, "x.h5"), NOTHING);
			world_end(&w);
		}
}

/* ---- what is written after a failed commit ---- */

static void later_bytes_are_not_lost(void **state)
{
	for (enum what first = TEXT; first < WHATS; first++)
		for (enum what then = TEXT; then < WHATS; then++)
			for (unsigned int at = 1; at <= 7; at++) {
				struct world w;
				begin(&w, false, "x.h5", NOTHING, first);
				w.gate->at = at;
				w.gate->later = w.gate->after = true;
				w.gate->code = -EIO;
				const int rc = world_commit(&w, true);
				world_open_gate(&w);
				write_what(&w, then);
				const int again = world_commit(&w, true);
				/* An object whose put seemed to fail is like that of another
				 * program. */
				if (again == -ESTALE) {
					assert_true(rc && first == TEXT && then != TEXT);
				} else {
					assert_int_equal(again, 0);
					check_done(&w, "x.h5", then);
				}
				world_end(&w);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interrupted_commit_is_finished),
		cmocka_unit_test(it_is_finished_in_a_directory),
		cmocka_unit_test(it_is_finished_for_a_name_without_extension),
		cmocka_unit_test(it_is_finished_for_the_name_that_is_shown),
		cmocka_unit_test(a_failed_look_up_removes_no_less),
		cmocka_unit_test(a_failed_look_up_is_no_conflict),
		cmocka_unit_test(a_change_of_an_object_is_finished),
		cmocka_unit_test(another_writer_is_noticed),
		cmocka_unit_test(an_own_object_is_found_although_the_old_one_is_gone),
		cmocka_unit_test(a_changed_name_fails),
		cmocka_unit_test(a_removed_name_fails),
		cmocka_unit_test(later_bytes_are_not_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
