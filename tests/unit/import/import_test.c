/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports: what is put, in which order, and what a reader sees if the import ends after any of its
 * requests. The bucket after an import that was continued is that of one that was not interrupted,
 * byte for byte.
 */
#include "import_fixture.h"

#include <domain/documents.h>
#include <storage/change.h>

enum { PUTS = STORED + 2 /* the document and the record */ };

static void test_whole(void **state)
{
	static const unsigned int workers[] = {0, 1, 4};
	char *first = NULL;
	for (size_t i = 0; i < 3; i++) {
		struct world w;
		struct import_result result;
		world_init(&w, workers[i]);
		world_must_import(&w, &result);
		assert_string_equal(w.notes, "");
		assert_int_equal(w.gate->ops[STORE_PUT], PUTS);
		assert_int_equal(w.gate->ops[STORE_DELETE], 1);
		assert_int_equal(w.gate->ops[STORE_LIST], 1); /* of marks */
		assert_int_equal(result.objects, OBJECTS);
		assert_int_equal(result.chunks, CHUNKS);
		assert_int_equal(result.found, 0);
		assert_int_equal(result.left_out, 0);
		assert_int_equal(w.done, w.total);
		assert_true(w.total > 0);
		assert_int_equal(w.opened, 1);
		assert_int_equal(world_keys(&w, ""), STORED + 1);
		assert_int_equal(world_objects(&w, "home/ann/run.h5"), OBJECTS);
		char *content = world_content(&w, "");
		if (first)
			assert_string_equal(content, first);
		free(first);
		first = content;
		world_release(&w);
	}
	free(first);
}

/* Number of requests of an import. */
static unsigned int requests_of(struct world *w)
{
	world_open_gate(w);
	world_must_import(w, NULL);
	return w->gate->n;
}

/* One request fails, in every possible place; or all from there on, as if the program had ended
 * there; or their answers are lost. Nothing is visible then, and the same command completes the
 * import. */
static void check_failures(bool later, bool after)
{
	struct world clean;
	world_init(&clean, 0);
	const unsigned int n = requests_of(&clean);
	const unsigned int summary = n - 4; /* beside the document */
	char *want = world_content(&clean, "");
	for (unsigned int i = 1; i <= n; i++) {
		struct world w;
		struct err err;
		world_init(&w, 0);
		w.gate->later = later;
		w.gate->after = after;
		const int rc = world_import_failing(&w, i, -EIO, &err);
		if (i == summary && !later) {
			assert_int_equal(rc, 0);
			assert_non_null(strstr(w.notes, "the summary for HSDS is not stored: "));
			assert_int_equal(world_keys(&w, ""), STORED);
			assert_int_equal(world_objects(&w, "home/ann/run.h5"), OBJECTS);
			world_release(&w);
			continue;
		}
		assert_int_equal(rc, -EIO);
		assert_non_null(strstr(err.msg, "by the test"));
		const uint32_t objects = world_objects(&w, "home/ann/run.h5");
		/* The last requests put the document, look for marks and for the record, and
		 * delete the record. The import does not end with the summary. */
		const bool complete = i > n - 3 || (after && i >= summary);
		if (objects != (complete ? OBJECTS : 0))
			fail_msg("request %u of %u: %u objects", i, n, objects);
		if (after && i == n) /* the record was deleted */
			assert_int_equal(world_import(&w, NULL, &err), -EEXIST);
		else
			world_must_import(&w, NULL);
		world_check_content(&w, want);
		world_release(&w);
	}
	free(want);
	world_release(&clean);
}

static void test_failures(void **state)
{
	check_failures(false, false);
	check_failures(true, false);
	check_failures(true, true);
}

/* The machine stops after any request of an import. The domain does not appear without its objects,
 * and the same command completes the import although some of what it has put is lost. */
static void test_power_cut(void **state)
{
	struct world clean;
	world_init(&clean, 0);
	strcpy(clean.gate->life, "1");
	const unsigned int n = requests_of(&clean);
	char *want = world_content(&clean, "");
	assert_int_equal(clean.gate->syncs, 1);
	for (unsigned int i = 1; i <= n; i++) {
		struct world w;
		struct err err;
		world_init(&w, 0);
		strcpy(w.gate->life, "1");
		w.gate->later = true;
		assert_int_equal(world_import_failing(&w, i, -EIO, &err), -EIO);
		gate_power_cut(w.gate);
		assert_int_equal(world_objects(&w, w.opt.path), i > n - 3 ? OBJECTS : 0);
		world_must_import(&w, NULL);
		world_check_content(&w, want);
		world_release(&w);
	}
	free(want);
	world_release(&clean);
}

/* The disk could not write everything: nothing of it is used, although it seems to be stored. */
static void test_failed_sync(void **state)
{
	struct world w;
	struct err err;
	struct import_result result;
	uint64_t deleted;
	world_init(&w, 0);
	strcpy(w.gate->life, "1");
	w.gate->sync = -EIO;
	assert_int_equal(world_import(&w, NULL, &err), -EIO);
	assert_non_null(strstr(err.msg, "the disk failed in the test; the same command"));
	assert_int_equal(world_objects(&w, w.opt.path), 0);
	w.gate->sync = 0;
	world_open_gate(&w);
	world_must_import(&w, &result);
	assert_non_null(strstr(w.notes, "everything is put once more"));
	assert_int_equal(result.found, 0);
	assert_int_equal(result.chunks, CHUNKS);
	world_release(&w);

	/* Not even this can be noted in the record. */
	world_init(&w, 0);
	strcpy(w.gate->life, "1");
	w.gate->sync = -EIO;
	w.gate->later = true;
	assert_int_equal(world_import_failing(&w, 5 + CHUNKS + OBJECTS + 1, -EIO, &err), -EIO);
	assert_non_null(strstr(err.msg, "the disk failed in the test; remove what is stored"));
	assert_int_equal(domain_import_abort(&w.opt, &deleted, &err), 0);
	assert_int_equal(world_keys(&w, ""), 0);
	world_release(&w);
}

static int emit_nothing(const struct schema_tally *t, const struct schema_scan *scan,
			struct bytes *out, struct err *err)
{
	return err_set(err, -ENOMEM, "the test has no memory");
}

/* The domain is complete without a summary. */
static void test_no_summary(void **state)
{
	struct world w;
	world_init(&w, 0);
	struct schema_ops ops = *w.opt.schema;
	struct schema_writer writer = *ops.writer;
	struct schema_tally_ops tally = *writer.tally;
	ops.writer = &writer;
	writer.tally = &tally;
	tally.emit = emit_nothing;
	w.opt.schema = &ops;
	world_must_import(&w, NULL);
	assert_non_null(strstr(w.notes, "summary for HSDS is not stored: the test has no memory;"));
	assert_int_equal(w.gate->ops[STORE_PUT], PUTS - 1);
	assert_int_equal(world_objects(&w, "home/ann/run.h5"), OBJECTS);
	world_release(&w);
}

/* What was stored before is not put again. */
static void test_continued(void **state)
{
	struct world w;
	struct import_result result;
	struct err err;
	world_init(&w, 0);
	w.gate->later = true;
	assert_int_equal(world_import_failing(&w, 4 + 8, -EIO, &err), -EIO);
	assert_non_null(strstr(err.msg, "the same command continues the import"));
	assert_non_null(strstr(err.msg, "dataset /"));
	assert_non_null(strstr(err.msg, ": chunk ("));
	const size_t stored = world_keys(&w, "db/5a5a5a5a-5a5a5a5a/");
	assert_true(stored > 3);
	world_open_gate(&w);
	world_must_import(&w, &result);
	assert_int_equal(result.found, stored);
	assert_int_equal(result.chunks, CHUNKS);
	assert_int_equal(w.gate->ops[STORE_PUT], PUTS - 1 - stored);
	assert_int_equal(w.gate->ops[STORE_LIST], 2);
	assert_int_equal(w.done, w.total);
	world_release(&w);
}

/* Removing leaves the bucket as it was, wherever the import has ended, and wherever the removal
 * itself ends. */
static void test_abort(void **state)
{
	struct world clean;
	world_init(&clean, 0);
	const unsigned int n = requests_of(&clean);
	world_release(&clean);
	for (unsigned int i = 3; i < n - 2; i++) {
		struct world w;
		struct err err;
		uint64_t deleted;
		world_init(&w, 0);
		world_put(&w, "home/.domain.json", FOLDER);
		w.seed = 1;
		w.opt.path = "home/other.h5";
		world_must_import(&w, NULL);
		w.seed = 2;
		w.opt.path = "home/ann/run.h5";
		char *before = world_content(&w, "");
		w.gate->later = true;
		assert_int_equal(world_import_failing(&w, i, -EIO, &err), -EIO);
		w.gate->at = 1 + i % 9;
		w.gate->code = -EACCES;
		(void)domain_import_abort(&w.opt, &deleted, &err);
		world_open_gate(&w);
		const int rc = domain_import_abort(&w.opt, &deleted, &err);
		if (rc && rc != -ENOENT)
			fail_msg("%u: %s", i, err.msg);
		char *content = world_content(&w, "");
		assert_string_equal(content, before);
		free(content);
		free(before);
		assert_int_equal(domain_import_abort(&w.opt, &deleted, &err), -ENOENT);
		world_release(&w);
	}
}

/* An import that is complete but for its record is not removed. */
static void test_abort_of_a_complete_one(void **state)
{
	struct world w;
	struct err err;
	struct import_result result;
	uint64_t deleted;
	world_init(&w, 0);
	const unsigned int n = requests_of(&w);
	world_release(&w);
	world_init(&w, 0);
	assert_int_equal(world_import_failing(&w, n, -EIO, &err), -EIO);
	assert_int_equal(domain_import_abort(&w.opt, &deleted, &err), -EBUSY);
	assert_int_equal(world_objects(&w, w.opt.path), OBJECTS);
	world_must_import(&w, &result);
	assert_true(result.finished_earlier);
	assert_int_equal(w.opened, 1);
	assert_int_equal(domain_import_abort(&w.opt, &deleted, &err), -ENOENT);
	world_release(&w);
}

static struct schema_document *read_document(struct world *w, const char *path)
{
	const struct document_place place = {
		.env = &w->env, .store = w->store, .schema = w->opt.schema};
	struct schema_document *d = NULL;
	assert_int_equal(document_get(&place, path, &d, NULL), 0);
	assert_non_null(d);
	return d;
}

static void check_other_storage(struct world *w, const char *a, const char *b)
{
	struct schema_document *x = read_document(w, a), *y = read_document(w, b);
	assert_string_not_equal(x->info.root, y->info.root);
	schema_document_unref(x);
	schema_document_unref(y);
}

static void rename_domain(struct world *w, const char *to)
{
	const struct change c = {.env = &w->env, .store = w->store, .schema = w->opt.schema};
	struct schema_document *d = read_document(w, w->opt.path);
	struct change_garbage garbage = {0};
	assert_int_equal(change_rename_domain(&c, w->opt.path, d, to, NULL, &garbage, NULL), 0);
	schema_document_unref(d);
}

/* An import has lacked only its last step, and then its domain was renamed. Removing and continuing
 * complete it; the second one then makes a domain with a storage of its own. */
static void test_renamed(void **state)
{
	struct world w;
	struct err err;
	struct import_result result;
	uint64_t deleted;
	world_init(&w, 0);
	const unsigned int n = requests_of(&w);
	world_release(&w);
	for (int continues = 0; continues < 2; continues++) {
		world_init(&w, 0);
		w.seed = 1;
		assert_int_equal(world_import_failing(&w, n, -EIO, &err), -EIO);
		rename_domain(&w, "home/ann/moved.h5");
		w.seed = 2;
		if (continues)
			world_must_import(&w, &result);
		else
			assert_int_equal(domain_import_abort(&w.opt, &deleted, &err), 0);
		assert_non_null(strstr(w.notes, "renamed to /home/ann/moved.h5"));
		assert_int_equal(world_objects(&w, "home/ann/moved.h5"), OBJECTS);
		assert_int_equal(world_keys(&w, "db/.import-"), 0);
		assert_int_equal(domain_import_abort(&w.opt, &deleted, &err), -ENOENT);
		assert_int_equal(deleted, 0);
		if (continues)
			check_other_storage(&w, "home/ann/moved.h5", w.opt.path);
		world_release(&w);
	}
}

/* The bucket cannot be written: the file is not even opened. */
static void test_read_only_bucket(void **state)
{
	struct world w;
	struct err err;
	world_init(&w, 0);
	/* A GET of the document, of the record, and of two folders come first. */
	assert_int_equal(world_import_failing(&w, 5, -EACCES, &err), -EACCES);
	assert_int_equal(w.opened, 0);
	assert_int_equal(world_keys(&w, ""), 0);
	world_release(&w);
}

static void check_refused(struct world *w, int code, const char *words)
{
	struct err err;
	char *before = world_content(w, "");
	const unsigned int opened = w->opened;
	assert_int_equal(world_import(w, NULL, &err), code);
	if (!strstr(err.msg, words))
		fail_msg("%s", err.msg);
	assert_int_equal(w->opened, opened);
	char *after = world_content(w, "");
	assert_string_equal(after, before);
	free(after);
	free(before);
}

static void test_target_exists(void **state)
{
	struct world w;
	world_init(&w, 0);
	world_put(&w, "home/ann/.domain.json", FOLDER);
	world_must_import(&w, NULL);
	check_refused(&w, -EEXIST, "to replace it, use --replace");
	w.opt.path = "home/ann";
	check_refused(&w, -EISDIR, "it is a folder");
	w.opt.path = "home/ann/run.h5/more.h5";
	check_refused(&w, -ENOTDIR, "home/ann/run.h5 is a domain, not a folder");
	world_put(&w, "home/ann/bad.h5/.domain.json", "{");
	w.opt.path = "home/ann/bad.h5";
	check_refused(&w, -EIO, "home/ann/bad.h5/.domain.json");
	world_release(&w);
}

/* An unfinished import of something else is in the way. */
static void test_other_record(void **state)
{
	struct world w;
	struct err err;
	world_init(&w, 0);
	w.gate->later = true;
	assert_int_equal(world_import_failing(&w, 10, -EIO, &err), -EIO);
	w.gate->later = false;
	w.opt.file.mtime_ns++;
	check_refused(&w, -EEXIST, "another version of the file; to remove");
	w.opt.file.mtime_ns--;
	w.opt.file.size++;
	check_refused(&w, -EEXIST, "--abort");
	w.opt.file.size--;
	w.opt.min_chunk = 1 << 20;
	check_refused(&w, -EEXIST, "with another --min-chunk");
	w.opt.min_chunk = 0;
	world_must_import(&w, NULL);
	world_release(&w);
}

/* The file changes while it is read: the domain does not appear, and the import cannot be
 * continued. If the file only cannot be looked at, it can. */
static void test_changed_file(void **state)
{
	static const struct {
		int code;
		const char *advice;
	} cases[] = {{-ESTALE, "remove what is stored with --abort before you try again"},
		     {-EIO, "the same command continues the import"}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;
		struct err err = ERR_INIT;
		world_init(&w, 0);
		w.check = cases[i].code;
		assert_int_equal(world_import(&w, NULL, &err), cases[i].code);
		assert_non_null(strstr(err.msg, cases[i].advice));
		assert_int_equal(world_objects(&w, w.opt.path), 0);
		assert_int_equal(world_keys(&w, "home/ann/run.h5/.domain"), 0);
		world_release(&w);
	}
}

static void test_cancelled(void **state)
{
	struct world w;
	struct err err;
	const atomic_bool cancelled = true;
	world_init(&w, 0);
	w.opt.cancelled = &cancelled;
	assert_int_equal(world_import(&w, NULL, &err), -ECANCELED);
	assert_int_equal(world_keys(&w, "home/ann/run.h5/.domain"), 0);
	w.opt.cancelled = NULL;
	world_must_import(&w, NULL);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_power_cut),
		cmocka_unit_test(test_failed_sync),
		cmocka_unit_test(test_no_summary),
		cmocka_unit_test(test_continued),
		cmocka_unit_test(test_abort),
		cmocka_unit_test(test_abort_of_a_complete_one),
		cmocka_unit_test(test_renamed),
		cmocka_unit_test(test_read_only_bucket),
		cmocka_unit_test(test_target_exists),
		cmocka_unit_test(test_other_record),
		cmocka_unit_test(test_changed_file),
		cmocka_unit_test(test_cancelled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
