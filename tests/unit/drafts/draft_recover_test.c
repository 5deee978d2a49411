/* SPDX-License-Identifier: Apache-2.0 */
/* What drafts_recover() does with the drafts that an earlier process has left. */
#include <glob.h>

#include "draft_fixture.h"

#include <cache/cache.h>
#include <overlay/draft_plan.h>

static const struct commit_record begun = {.number = 1, .state = COMMIT_BEGUN, .is_last = true};

static uint64_t recover_unless(struct world *w, bool cancelled)
{
	const atomic_bool stop = cancelled;
	atomic_uint_fast64_t left = 0;
	drafts_recover(&w->e->bucket, w->e->drafts, w->f.j, &stop, &left);
	return left;
}

static uint64_t recover(struct world *w)
{
	return recover_unless(w, false);
}

/* The process ends. If it has begun a commit, nothing was written since. */
static void end_process(struct world *w, const struct commit_record *m)
{
	struct draft_snapshot *s = NULL;
	if (m && commit_is_running(m))
		assert_int_equal(draft_seal(w->draft, &s, NULL), 0);
	if (m)
		assert_int_equal(draft_mark(w->draft, commit_record_encode(m), NULL), 0);
	draft_snapshot_close(s);
	draft_close(w->draft);
	w->draft = NULL;
}

struct items {
	unsigned int n;
	enum journal_state state;
	char id[JOURNAL_ID], why[ERR_MAX];
};

static int note_item(void *ctx, const struct journal_item *item)
{
	struct items *i = ctx;
	i->n++;
	i->state = item->state;
	snprintf(i->id, sizeof(i->id), "%s", item->id);
	snprintf(i->why, sizeof(i->why), "%s", item->why);
	return 0;
}

static struct items items(struct world *w)
{
	struct items i = {.n = 0};
	assert_int_equal(journal_list(w->f.j, note_item, &i, NULL), 0);
	return i;
}

static void a_commit_that_has_begun_is_finished(void **state)
{
	struct world w;
	world_begin(&w, false, 0);
	assert_int_equal(recover(&w), 0);
	for (int last = 0; last < 2; last++) {
		const struct commit_record m = {
			.number = 1, .state = COMMIT_BEGUN, .is_last = last};
		world_draft(&w, last ? "home/a" : "home/b");
		world_write(&w, "hello", 5);
		end_process(&w, &m);
		assert_int_equal(recover(&w), 0);
		world_check_object(&w, last ? "home/a" : "home/b", "hello", 5);
		assert_int_equal(items(&w).n, 0);
	}
	world_end(&w);
}

/* A part of a new file would replace what the bucket has. */
static void what_was_written_after_a_failed_commit_is_left(void **state)
{
	struct world w;
	struct draft_snapshot *s;
	world_begin(&w, false, 0);
	world_draft(&w, "home/a");
	world_write(&w, "hello", 5);
	assert_int_equal(draft_seal(w.draft, &s, NULL), 0);
	assert_int_equal(draft_mark(w.draft, commit_record_encode(&begun), NULL), 0);
	draft_snapshot_close(s);
	world_write(&w, "he", 2);
	end_process(&w, NULL);
	assert_int_equal(recover(&w), 1);
	assert_int_equal(items(&w).n, 1);
	world_end(&w);
}

/* The bucket gets the reason why it is no domain, too. */
static void the_reason_is_stored(void **state)
{
	struct world w;
	char note[STORE_NOTE_MAX + 1];
	world_begin(&w, false, 0);
	world_draft(&w, "home/a.h5");
	world_write(&w, "\x89HDF\r\n\x1a\n", 8);
	end_process(&w, &begun);
	assert_int_equal(recover(&w), 0);
	assert_int_equal(call_note(w.gate->base.inner, "home/a.h5", note, NULL), 0);
	assert_string_equal(note, "it is damaged: superblock: file ends too early");
	world_end(&w);
}

/* Nobody knows whether the program had finished. */
static void without_a_commit_a_draft_is_left(void **state)
{
	static const struct commit_record ended = {
		.number = 2, .state = COMMIT_ENDED, .is_last = true};
	struct world w;
	world_begin_text(&w, "home/a", "hello");
	end_process(&w, NULL);
	world_draft(&w, "home/b");
	world_write(&w, "hello", 5);
	end_process(&w, &ended);
	for (int i = 0; i < 2; i++)
		assert_int_equal(recover(&w), 2);
	assert_int_equal(items(&w).n, 2);
	assert_int_equal(world_keys(&w, ""), 0);
	world_end(&w);
}

/* The bucket has everything, unless something was written after the commit. */
static void a_draft_that_was_committed_is_dropped(void **state)
{
	static const char *const later[] = {NULL, "hello", "HELLO", "hello!", ""};
	struct world w;
	for (unsigned int i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		world_begin_text(&w, "a", "hello");
		world_must_commit(&w, COMMIT_OBJECT);
		if (later[i] && later[i][0])
			assert_int_equal(draft_write(w.draft, 0, later[i], strlen(later[i]), NULL),
					 0);
		else if (later[i])
			assert_int_equal(draft_resize(w.draft, 0, NULL), 0);
		/* A commit that finds the file not complete does not change the mark. */
		struct draft_snapshot *s;
		assert_int_equal(draft_seal(w.draft, &s, NULL), 0);
		draft_snapshot_close(s);
		end_process(&w, NULL);
		world_open_gate(&w);
		assert_int_equal(recover(&w), later[i] ? 1 : 0);
		assert_int_equal(w.gate->n, 0);
		world_check_object(&w, "a", "hello", 5);
		world_end(&w);
	}
}

/* The process ends at each request of a commit, before or after the bucket got it. */
static void an_interrupted_commit_is_finished(void **state)
{
	struct world w;
	for (unsigned int at = 1; at <= 3; at++)
		for (int after = 0; after < 2; after++) {
			world_begin_text(&w, "home/a", "hello");
			gate_fail(w.gate, at, -EIO);
			w.gate->later = true;
			w.gate->after = after;
			world_commit(&w, true);
			end_process(&w, NULL);
			world_open_gate(&w);
			world_names(&w);
			assert_int_equal(recover(&w), 0);
			assert_int_equal(items(&w).n, 0);
			world_check_object(&w, "home/a", "hello", 5);
			assert_int_equal(world_keys(&w, ""), 1);
			world_end(&w);
		}
}

static void a_bucket_that_fails_leaves_the_draft(void **state)
{
	struct world w;
	world_begin_text(&w, "a", "mine");
	end_process(&w, &begun);
	gate_fail(w.gate, 1, -EACCES);
	w.gate->later = true;
	assert_int_equal(recover(&w), 1);
	assert_non_null(strstr(items(&w).why, "refused by the test"));
	world_open_gate(&w);
	assert_int_equal(recover(&w), 0);
	world_check_object(&w, "a", "mine", 4);
	world_end(&w);
}

static void the_change_of_another_writer_is_kept(void **state)
{
	struct world w;
	world_begin_text(&w, "a", "mine");
	end_process(&w, &begun);
	world_put(&w, "a", "theirs", 6);
	for (int i = 0; i < 2; i++)
		assert_int_equal(recover(&w), 1);
	world_check_object(&w, "a", "theirs", 6);
	assert_int_equal(items(&w).state, JOURNAL_LEFT);
	assert_string_equal(items(&w).why,
			    "a: another program has changed it since it was opened for writing");
	world_end(&w);
}

/* It is not made again. The reason is noted if the process that got the refusal has not. */
static void what_was_refused_waits(void **state)
{
	static const struct commit_record refused = {
		.number = 1, .state = COMMIT_REFUSED, .is_last = true};
	struct world w;
	world_begin(&w, false, 0);
	world_draft(&w, "a");
	world_write(&w, "mine", 4);
	end_process(&w, &refused);
	world_open_gate(&w);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(recover(&w), 1);
		assert_string_equal(items(&w).why, "another program has changed the file since it "
						   "was opened for writing");
	}
	assert_int_equal(w.gate->n, 0);
	world_end(&w);
}

/* A program may have gone on writing after the commit has begun. */
static void an_incomplete_file_waits(void **state)
{
	static const struct commit_record m = {.number = 1, .state = COMMIT_BEGUN};
	static const uint8_t bytes[] = "\211HDF\r\n\032\n and more";
	struct world w;
	world_begin(&w, false, 0);
	world_draft(&w, "a.h5");
	world_write(&w, bytes, sizeof(bytes));
	end_process(&w, &m);
	assert_int_equal(recover(&w), 1);
	assert_int_equal(world_keys(&w, ""), 0);
	assert_non_null(strstr(items(&w).why, "it is not complete: "));
	world_end(&w);
}

/* ---- changes of plain objects ---- */

static void begin_change(struct world *w)
{
	auto_names_node struct names_node *n = NULL;
	char version[COMMIT_VERSION];
	bool is_new;
	world_begin(w, false, 0);
	w->e->bucket.cache = cache_new(&w->e->bucket.env, 1, NULL);
	world_put(w, "a", "old bytes", 9);
	assert_int_equal(names_resolve_for_open(w->e->bucket.names, "a", &n, &is_new, NULL), 0);
	assert_int_equal(commit_version_of(n, version), 0);
	const struct draft_about about = {
		.kind = DRAFT_CHANGE, .path = "a", .name = "a", .version = version, .beneath = 9};
	w->draft = make_draft(&w->f, &about);
	assert_int_equal(draft_write(w->draft, 0, "new", 3, NULL), 0);
	end_process(w, &begun);
}

static void end_change(struct world *w)
{
	cache_free(w->e->bucket.cache);
	world_end(w);
}

static void the_bytes_beneath_are_read(void **state)
{
	struct world w;
	begin_change(&w);
	assert_int_equal(recover(&w), 0);
	world_check_object(&w, "a", "new bytes", 9);
	end_change(&w);
}

static void without_the_bytes_beneath_it_is_left(void **state)
{
	struct world w;
	begin_change(&w);
	world_put(&w, "a", "other bytes", 11);
	assert_int_equal(recover(&w), 1);
	world_check_object(&w, "a", "other bytes", 11);
	assert_int_equal(items(&w).n, 1);
	end_change(&w);
}

/* ---- a domain that was changed in place ---- */

/* The commit of a draft was interrupted after its plan was durable. */
static void begin_plan(struct world *w, bool is_written_later)
{
	const struct draft_about about = {.kind = DRAFT_CHANGE,
					  .path = "d.h5",
					  .name = "d.h5",
					  .version = "d:etag",
					  .beneath = 9};
	struct plan_operation put = {.action = PLAN_PUT, .key = "planned", .version = ""};
	struct draft_snapshot *s;
	w->draft = make_draft(&w->f, &about);
	assert_int_equal(draft_write(w->draft, 0, "new", 3, NULL), 0);
	assert_int_equal(draft_seal(w->draft, &s, NULL), 0);
	assert_int_equal(draft_mark(w->draft, commit_record_encode(&begun), NULL), 0);
	assert_int_equal(draft_set_body(w->draft, &put, "body", 4, NULL), 0);
	assert_int_equal(draft_put_plan(w->draft, &put, 1, NULL, NULL), 0);
	draft_snapshot_close(s);
	if (is_written_later)
		assert_int_equal(draft_write(w->draft, 1, "later", 5, NULL), 0);
	end_process(w, NULL);
}

static void a_plan_is_completed(void **state)
{
	struct world w;
	world_begin(&w, false, 0);
	begin_plan(&w, false);
	assert_int_equal(recover(&w), 0);
	world_check_object(&w, "planned", "body", 4);
	assert_int_equal(items(&w).n, 0);
	world_end(&w);
}

/* The plan has only what was there when it was made. */
static void what_was_written_after_the_plan_is_left(void **state)
{
	struct world w;
	world_begin(&w, false, 0);
	begin_plan(&w, true);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(recover(&w), 1);
		assert_string_equal(items(&w).why,
				    "it was written to after its last commit had begun");
	}
	world_check_object(&w, "planned", "body", 4);
	assert_int_equal(w.gate->ops[STORE_PUT], 1);
	world_end(&w);
}

static void without_a_plan_it_is_left(void **state)
{
	struct world w;
	world_begin(&w, false, 0);
	const struct draft_about about = {
		.kind = DRAFT_CHANGE, .path = "d.h5", .name = "d.h5", .version = "d:etag"};
	w.draft = make_draft(&w.f, &about);
	end_process(&w, &begun);
	assert_int_equal(recover(&w), 1);
	assert_int_equal(world_keys(&w, ""), 0);
	assert_int_equal(items(&w).n, 1);
	world_end(&w);
}

/* ---- what cannot be used ---- */

static void a_path_of_no_object_is_refused(void **state)
{
	static const char *const paths[] = {"../a", "", "/a", "a//b", "a/", "a/./b"};
	struct world w;
	world_begin(&w, false, 0);
	w.e->bucket.cache = cache_new(&w.e->bucket.env, 1, NULL);
	for (unsigned int i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		for (enum draft_kind kind = DRAFT_NEW; kind <= DRAFT_CHANGE; kind++) {
			const struct draft_about about = {.kind = kind,
							  .path = i % 2 ? paths[i] : "a",
							  .name = i % 2 ? "a" : paths[i],
							  .version =
								  kind == DRAFT_CHANGE ? "?" : ""};
			w.draft = make_draft(&w.f, &about);
			end_process(&w, &begun);
		}
	}
	assert_int_equal(recover(&w), 3 * sizeof(paths) / sizeof(paths[0]));
	assert_int_equal(world_keys(&w, ""), 0);
	cache_free(w.e->bucket.cache);
	world_end(&w);
}

static void a_draft_in_use_is_not_touched(void **state)
{
	struct world w;
	world_begin_text(&w, "a", "hello");
	assert_int_equal(draft_mark(w.draft, commit_record_encode(&begun), NULL), 0);
	assert_int_equal(recover(&w), 0);
	assert_int_equal(world_keys(&w, ""), 0);
	assert_int_equal(draft_write(w.draft, 0, "HELLO", 5, NULL), 0);
	world_must_commit(&w, COMMIT_OBJECT);
	world_check_object(&w, "a", "HELLO", 5);
	world_end(&w);
}

/* Changes a byte of a file of the draft. */
static void damage(const struct world *w, const char *file, long at, int byte)
{
	glob_t found;
	char pattern[160];
	snprintf(pattern, sizeof(pattern), "%s/2/*/*/%s", w->f.path, file);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	FILE *f = fopen(found.gl_pathv[0], "r+b");
	assert_non_null(f);
	assert_int_equal(fseek(f, at, SEEK_SET), 0);
	assert_int_equal(fputc(byte, f), byte);
	fclose(f);
	globfree(&found);
}

static void a_damaged_draft_is_set_aside(void **state)
{
	struct world w;
	static const char *const files[] = {"map", "draft"};
	for (unsigned int i = 0; i < 2; i++) {
		world_begin_text(&w, "a", "hello");
		end_process(&w, &begun);
		damage(&w, files[i], 20, 0x55);
		for (int again = 0; again < 2; again++) {
			assert_int_equal(recover(&w), 1);
			assert_int_equal(items(&w).state, JOURNAL_UNREADABLE);
		}
		assert_int_equal(world_keys(&w, ""), 0);
		world_end(&w);
	}
}

static void a_cancelled_recovery_goes_on_later(void **state)
{
	struct world w;
	world_begin_text(&w, "a", "hello");
	end_process(&w, &begun);
	assert_int_equal(recover_unless(&w, true), 0);
	assert_int_equal(world_keys(&w, ""), 0);
	assert_int_equal(recover(&w), 0);
	world_check_object(&w, "a", "hello", 5);
	world_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_commit_that_has_begun_is_finished),
		cmocka_unit_test(what_was_written_after_a_failed_commit_is_left),
		cmocka_unit_test(the_reason_is_stored),
		cmocka_unit_test(without_a_commit_a_draft_is_left),
		cmocka_unit_test(a_draft_that_was_committed_is_dropped),
		cmocka_unit_test(an_interrupted_commit_is_finished),
		cmocka_unit_test(a_bucket_that_fails_leaves_the_draft),
		cmocka_unit_test(the_change_of_another_writer_is_kept),
		cmocka_unit_test(what_was_refused_waits),
		cmocka_unit_test(an_incomplete_file_waits),
		cmocka_unit_test(the_bytes_beneath_are_read),
		cmocka_unit_test(without_the_bytes_beneath_it_is_left),
		cmocka_unit_test(a_plan_is_completed),
		cmocka_unit_test(what_was_written_after_the_plan_is_left),
		cmocka_unit_test(without_a_plan_it_is_left),
		cmocka_unit_test(a_path_of_no_object_is_refused),
		cmocka_unit_test(a_draft_in_use_is_not_touched),
		cmocka_unit_test(a_damaged_draft_is_set_aside),
		cmocka_unit_test(a_cancelled_recovery_goes_on_later),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
