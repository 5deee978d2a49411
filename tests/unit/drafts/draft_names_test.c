/* SPDX-License-Identifier: Apache-2.0 */
/* Names of drafts: listings, removals and renamings, of drafts that are open and that have failed.
 */
#include "drafts_fixture.h"

#include <storage/renames.h>

#include "draft_files.h"

static int rename_code(struct world *w, const char *from, const char *to, unsigned int flags)
{
	return engine_rename(w->e, from, to, flags, NULL);
}

static void rename_ok(struct world *w, const char *from, const char *to)
{
	struct err err = ERR_INIT;
	if (engine_rename(w->e, from, to, 0, &err))
		fail_msg("%s", err.msg);
}

static void check_absent(struct world *w, const char *path)
{
	struct engine_stat st;
	struct engine_file *f;
	assert_int_equal(engine_lookup(w->e, path, &st, NULL), -ENOENT);
	assert_int_equal(engine_file_open(w->e, path, &f, NULL), -ENOENT);
}

static void directories_show_what_only_drafts_have(void **state)
{
	struct world w;
	table_begin(&w, true, 0);
	world_put(&w, "dir/b", "x", 1);
	world_put(&w, "dir/d", "x", 1);
	static const char *const names[] = {"dir/e", "dir/a", "dir/c", "dir/b", "top"};
	struct engine_file *files[5];
	for (int i = 0; i < 5; i++)
		files[i] = open_write(&w, names[i], NEW);
	check_list(&w, "dir", "a= b= c= d= e=");
	check_list(&w, "", "dir/ top=");
	flush_ok(files[0]);
	for (int i = 0; i < 5; i++)
		engine_file_close(files[i]);
	check_list(&w, "dir", "a= b= c= d= e=");
	assert_int_equal(engine_unlink(w.e, "dir/a", NULL), 0);
	check_list(&w, "dir", "b= c= d= e=");
	table_end(&w);
}

static void a_directory_with_a_draft_is_not_empty(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	assert_int_equal(engine_mkdir(w.e, "dir", NULL), 0);
	struct engine_file *f = open_write(&w, "dir/a", NEW);
	assert_int_equal(engine_rmdir(w.e, "dir", NULL), -ENOTEMPTY);
	assert_int_equal(engine_mkdir(w.e, "dir/a", NULL), -EEXIST);
	assert_int_equal(engine_rmdir(w.e, "dir/a", NULL), -ENOTDIR);
	assert_int_equal(engine_unlink(w.e, "dir/a", NULL), 0);
	assert_int_equal(engine_rmdir(w.e, "dir", NULL), 0);
	put_text(f, 0, "lost");
	close_ok(f);
	assert_int_equal(table_journal(&w), 0);
	table_end(&w);
}

/* ---- removing ---- */

static void a_removed_draft_is_not_committed(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	struct engine_file *f = open_write(&w, "a", NEW);
	put_text(f, 0, "bytes");
	world_open_gate(&w);
	assert_int_equal(engine_unlink(w.e, "a", NULL), 0);
	assert_int_equal(w.gate->n, 0);
	check_absent(&w, "a");
	assert_int_equal(engine_unlink(w.e, "a", NULL), -ENOENT);
	put_text(f, 5, " more");
	check_text(f, "bytes more");
	assert_int_equal(engine_sync(f, NULL), 0);
	flush_ok(f);
	/* The name is free for another file. */
	make_file(&w, "a", "other");
	engine_file_close(f);
	check_bucket(&w, "a", "other");
	assert_int_equal(table_journal(&w), 0);
	table_end(&w);
}

/* The process is killed, and the next mount finds the journal as it is. */
static void recover_copy(struct world *w)
{
	char command[160], path[96];
	atomic_uint_fast64_t left = 0;
	struct drafts *killed = w->e->drafts;
	snprintf(command, sizeof(command), "cp -a %s/journal %s/killed", w->f.path, w->f.path);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof(path), "%s/killed", w->f.path);
	const struct engine_options opt = {.bucket = w->f.path, .journal_dir = path};
	w->e->drafts = NULL;
	assert_int_equal(drafts_new(&w->e->bucket, &opt, &w->e->drafts, NULL), 0);
	drafts_recover(&w->e->bucket, w->e->drafts, drafts_journal(w->e->drafts), NULL, &left);
	drafts_free(w->e->drafts);
	w->e->drafts = killed;
}

/* A commit that has failed is made again by the next mount, unless the name was removed. */
static void a_removed_draft_is_not_recovered(void **state)
{
	for (int removed = 0; removed < 2; removed++) {
		struct world w;
		table_begin(&w, false, 0);
		struct engine_file *f = open_write(&w, "a", NEW);
		put_text(f, 0, "bytes");
		shut_gate(&w, -EIO);
		assert_int_equal(engine_flush(f, NULL), -EIO);
		world_open_gate(&w);
		if (removed)
			assert_int_equal(engine_unlink(w.e, "a", NULL), 0);
		recover_copy(&w);
		assert_int_equal(in_bucket(&w, "a"), !removed);
		engine_file_close(f);
		table_end(&w);
	}
}

static void a_removal_removes_the_committed_file_too(void **state)
{
	struct world w;
	table_begin(&w, true, 0);
	world_put(&w, "a", "old", 3);
	struct engine_file *f = open_write(&w, "a", 0);
	put_text(f, 0, "new");
	shut_gate(&w, -EIO);
	assert_int_not_equal(engine_unlink(w.e, "a", NULL), 0);
	assert_true(has_draft(&w, "a"));
	world_open_gate(&w);
	assert_int_equal(engine_unlink(w.e, "a", NULL), 0);
	assert_false(in_bucket(&w, "a"));
	close_ok(f);
	assert_false(in_bucket(&w, "a"));
	check_absent(&w, "a");
	table_end(&w);
}

static void a_failed_draft_can_be_removed(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	struct engine_file *f = open_write(&w, "a", NEW);
	shut_gate(&w, -EIO);
	engine_file_close(f);
	assert_int_equal(table_journal(&w), 1);
	assert_int_equal(engine_unlink(w.e, "a", NULL), 0);
	assert_int_equal(table_journal(&w), 0);
	world_open_gate(&w);
	check_absent(&w, "a");
	table_end(&w);
}

/* ---- renaming ---- */

static void an_open_draft_follows(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	assert_int_equal(engine_mkdir(w.e, "dir", NULL), 0);
	struct engine_file *f = open_write(&w, "a.tmp", NEW);
	put_text(f, 0, "bytes");
	world_open_gate(&w);
	rename_ok(&w, "a.tmp", "dir/a");
	assert_int_equal(changes_of(&w), 0);
	check_absent(&w, "a.tmp");
	check_name(&w, "dir/a", "bytes");
	check_list(&w, "dir", "a=");
	put_text(f, 5, " more");
	close_ok(f);
	check_bucket(&w, "dir/a", "bytes more");
	assert_false(in_bucket(&w, "a.tmp"));
	assert_int_equal(table_journal(&w), 0);
	table_end(&w);
}

static void a_draft_replaces_what_has_the_new_name(void **state)
{
	struct world w;
	bool alone = true;
	table_begin(&w, false, 0);
	world_put(&w, "there", "old", 3);
	assert_int_equal(engine_mkdir(w.e, "dir", NULL), 0);
	struct engine_file *f = open_write(&w, "a", NEW), *g = open_write(&w, "b", NEW);
	put_text(f, 0, "from a");
	put_text(g, 0, "from b");
	assert_int_equal(rename_code(&w, "a", "there", RENAME_NOREPLACE), -EEXIST);
	assert_int_equal(rename_code(&w, "a", "b", RENAME_NOREPLACE), -EEXIST);
	assert_int_equal(rename_code(&w, "there", "b", RENAME_NOREPLACE), -EEXIST);
	assert_int_equal(rename_code(&w, "a", "dir", 0), -EISDIR);
	assert_int_equal(rename_code(&w, "a", "none/a", 0), -ENOENT);
	assert_int_equal(rename_code(&w, "a", "b/a", 0), -ENOTDIR);
	assert_int_equal(rename_code(&w, "a", "dir/.domain.json", 0), -EINVAL);
	assert_int_equal(rename_code(&w, "dir", "c", 0), -EXDEV);
	assert_int_equal(rename_code(&w, "none", "b", 0), -ENOENT);
	rename_ok(&w, "a", "b");
	check_name(&w, "b", "from a");
	rename_ok(&w, "b", "there");
	assert_true(draft_of(&w, "there", &alone) && !alone);
	check_name(&w, "there", "old");
	close_ok(g); /* it has no name any more */
	close_ok(f);
	check_bucket(&w, "there", "from a");
	assert_false(in_bucket(&w, "a") || in_bucket(&w, "b"));
	assert_int_equal(table_journal(&w), 0);
	table_end(&w);
}

/* The file of the bucket and its draft move together. */
static void a_file_with_a_draft_is_renamed(void **state)
{
	const bool dirs[] = {false, true};
	for (int i = 0; i < 2; i++) {
		struct world w;
		table_begin(&w, dirs[i], 0);
		world_put(&w, "a", "0123456789", 10);
		struct engine_file *f = open_write(&w, "a", 0), *g = open_write(&w, "b", NEW);
		put_text(f, 0, "XX");
		rename_ok(&w, "a", "b");
		assert_false(has_draft(&w, "a"));
		check_bucket(&w, "b", "0123456789");
		check_name(&w, "b", "0123456789");
		check_text(f, "XX23456789");
		engine_file_close(g);
		check_bucket(&w, "b", "0123456789");
		flush_ok(f);
		check_bucket(&w, "b", "XX23456789");
		rename_ok(&w, "b", "c");
		put_text(f, 9, "Z");
		close_ok(f);
		check_bucket(&w, "c", "XX2345678Z");
		assert_false(in_bucket(&w, "a") || in_bucket(&w, "b"));
		assert_int_equal(table_journal(&w), 0);
		table_end(&w);
	}
}

/* Before its first change the journal does not have the draft. */
static void a_draft_without_a_change_is_renamed(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	world_put(&w, "a", "0123", 4);
	struct engine_file *f = open_write(&w, "a", 0);
	rename_ok(&w, "a", "b");
	check_text(f, "0123");
	put_text(f, 0, "X");
	close_ok(f);
	check_bucket(&w, "b", "X123");
	assert_false(in_bucket(&w, "a"));
	table_end(&w);
}

static void a_file_replaces_a_draft(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	world_put(&w, "a", "bytes", 5);
	struct engine_file *f = open_write(&w, "draft", NEW);
	put_text(f, 0, "lost");
	rename_ok(&w, "a", "draft");
	close_ok(f);
	check_bucket(&w, "draft", "bytes");
	check_name(&w, "draft", "bytes");
	assert_int_equal(table_journal(&w), 0);
	table_end(&w);
}

/* rsync and others write a temporary file, close it and rename it. */
static void a_committed_file_is_renamed_over_another(void **state)
{
	struct world w;
	table_begin(&w, true, 0);
	world_put(&w, "a", "old", 3);
	make_file(&w, ".a.Q3ZrN", "new");
	rename_ok(&w, ".a.Q3ZrN", "a");
	check_bucket(&w, "a", "new");
	check_name(&w, "a", "new");
	check_absent(&w, ".a.Q3ZrN");
	make_file(&w, ".a.X", "newer");
	rename_ok(&w, ".a.X", "a");
	check_name(&w, "a", "newer");
	table_end(&w);
}

static void a_failed_draft_is_renamed(void **state)
{
	struct world w;
	char buf[512];
	table_begin(&w, false, 0);
	struct engine_file *f = open_write(&w, "a", NEW);
	put_text(f, 0, "bytes");
	shut_gate(&w, -EIO);
	engine_file_close(f);
	world_open_gate(&w);
	rename_ok(&w, "a", "b");
	check_name(&w, "b", "bytes");
	assert_true(note_of(&w, "b", "user.hsds.error", buf, sizeof(buf))[0]);
	f = open_write(&w, "b", 0);
	close_ok(f);
	check_bucket(&w, "b", "bytes");
	table_end(&w);
}

/* The commit failed, because the answer to its put was lost. */
static void fail_after_put(struct world *w, const char *path)
{
	struct engine_file *f = open_write(w, path, NEW);
	put_text(f, 0, "bytes");
	shut_gate(w, -EIO);
	w->gate->after = true;
	assert_int_equal(engine_flush(f, NULL), -EIO);
	engine_file_close(f);
	world_open_gate(w);
	assert_true(in_bucket(w, path));
	assert_true(has_draft(w, path));
}

static void a_failed_draft_may_be_in_the_bucket(void **state)
{
	struct world w;
	table_begin(&w, true, 0);
	fail_after_put(&w, "a");
	assert_int_equal(engine_unlink(w.e, "a", NULL), 0);
	check_absent(&w, "a");
	fail_after_put(&w, "a");
	rename_ok(&w, "a", "b");
	assert_false(in_bucket(&w, "a"));
	check_name(&w, "b", "bytes");
	struct engine_file *f = open_write(&w, "b", 0);
	put_text(f, 5, " more");
	close_ok(f);
	check_bucket(&w, "b", "bytes more");
	/* The same bytes again: the object is found. */
	fail_after_put(&w, "c");
	f = open_write(&w, "c", 0);
	close_ok(f);
	check_bucket(&w, "c", "bytes");
	assert_int_equal(table_journal(&w), 0);
	table_end(&w);
}

static void make_domain(struct world *w, const char *path)
{
	size_t n;
	auto_free uint8_t *bytes = file_bytes(ONE, &n);
	struct engine_file *f = open_write(w, path, NEW);
	assert_int_equal(engine_pwrite(f, bytes, n, 0, NULL), n);
	close_ok(f);
}

static struct bytes document_of(struct world *w, const char *key)
{
	struct call_result res;
	assert_int_equal(call_get(w->gate->base.inner, key, 0, STORE_TO_END, 0, NULL, &res, NULL),
			 0);
	return res.body;
}

/* A file whose commit has put its document, without an answer. */
static struct engine_file *lose_document(struct world *w, const char *key)
{
	size_t n;
	auto_free uint8_t *bytes = file_bytes(ONE, &n);
	for (unsigned int at = 1;; at++) {
		table_begin(w, false, 0);
		struct engine_file *f = open_write(w, "a.h5", NEW);
		assert_int_equal(engine_pwrite(f, bytes, n, 0, NULL), n);
		gate_fail(w->gate, at, -EIO);
		w->gate->after = w->gate->later = true;
		assert_int_equal(engine_flush(f, NULL), -EIO);
		world_open_gate(w);
		if (in_bucket(w, key))
			return f;
		engine_file_close(f);
		table_end(w);
	}
}

/* The document of a commit that has failed arrives after the file was renamed: before or after the
 * next commit. That gives the file its new name, or fails. The two domains have storage of their
 * own. */
static void a_renamed_draft_has_storage_of_its_own(void **state)
{
	static const char old[] = "a.h5/.domain.json", new[] = "b.h5/.domain.json";
	for (int later = 0; later < 2; later++) {
		struct world w;
		struct engine_file *f = lose_document(&w, old);
		auto_bytes struct bytes late = document_of(&w, old);
		assert_int_equal(call_delete(w.gate->base.inner, old, NULL, NULL), 0);
		names_changed(w.e->bucket.names, "a.h5");
		rename_ok(&w, "a.h5", "b.h5");
		if (!later)
			gate_put(w.gate, old, late.data, late.len);
		const int rc = engine_flush(f, NULL);
		if (later)
			gate_put(w.gate, old, late.data, late.len);
		assert_int_equal(rc, later ? 0 : -ESTALE);
		assert_int_equal(in_bucket(&w, new), !rc);
		assert_int_equal(world_objects(&w, "a.h5"), 2);
		if (!rc) {
			assert_int_equal(world_objects(&w, "b.h5"), 2);
			auto_bytes struct bytes doc = document_of(&w, new);
			assert_memory_not_equal(doc.data, late.data, 40);
		}
		engine_file_close(f);
		assert_int_equal(table_journal(&w), rc ? 1 : 0);
		table_end(&w);
	}
}

/* A rename was half done, and this mount has finished it. No other mount can be about to do so when
 * a file replaces the domain. */
static void a_file_replaces_a_domain_whose_rename_was_finished(void **state)
{
	static const char old[] = "a.h5/.domain.json", new[] = "b.h5/.domain.json";
	bool was_half_done = false;
	for (unsigned int at = 1; !was_half_done; at++) {
		struct world w;
		table_begin(&w, false, 0);
		struct bucket *bucket = &w.e->bucket;
		bucket->renames = renames_new(&bucket->env);
		assert_non_null(bucket->renames);
		store_mem_set_lacks(w.gate->base.inner, STORE_MEM_NO_MOVE, NULL, NULL);
		make_domain(&w, "a.h5");
		gate_fail(w.gate, at, -EIO);
		engine_rename(w.e, "a.h5", "b.h5", 0, NULL);
		world_open_gate(&w);
		was_half_done = in_bucket(&w, old) && in_bucket(&w, new);
		if (was_half_done) {
			world_late_ns += INT64_C(3600000000000);
			garbage_collect(bucket->garbage, UINT64_MAX);
			assert_false(in_bucket(&w, old));
			make_file(&w, "b.h5", "text");
			check_bucket(&w, "b.h5", "text");
			assert_false(in_bucket(&w, new));
			world_late_ns = 0;
		}
		renames_free(bucket->renames);
		bucket->renames = NULL;
		table_end(&w);
	}
}

/* Another mount renames the same file to the same name, of which there is a domain. */
static void rename_it(struct store *bucket)
{
	assert_int_equal(call_put(bucket, "x.h5", "text", 4, NULL, NULL, NULL), 0);
	call_delete(bucket, "x.h5/.domain.json", NULL, NULL);
	call_delete(bucket, "a.dat", NULL, NULL);
}

static void two_renames_over_a_domain_lose_no_file(void **state)
{
	unsigned int at = 0;
	for (bool ended = false; !ended;) {
		struct world w;
		table_begin(&w, false, 0);
		make_domain(&w, "x.h5");
		make_file(&w, "a.dat", "text");
		world_open_gate(&w);
		w.gate->other_at = ++at;
		w.gate->other = rename_it;
		const int rc = engine_rename(w.e, "a.dat", "x.h5", 0, NULL);
		ended = w.gate->n < at;
		assert_true(ended ? !rc : !rc || rc == -ENOENT || rc == -ESTALE || rc == -EBUSY);
		check_bucket(&w, "x.h5", "text");
		assert_false(in_bucket(&w, "x.h5/.domain.json"));
		assert_false(in_bucket(&w, "a.dat"));
		table_end(&w);
	}
	assert_true(at > 5);
}

/* Another program replaces a file while a program of this mount has it open and renames it, or its
 * directory: the commit is a conflict, as without the rename. */
static void a_rename_does_not_hide_a_conflict(void **state)
{
	static const char *const names[] = {"x.dat", "dir/x.dat"};
	for (unsigned int i = 0; i < 4; i++) {
		struct world w;
		const char *from = names[i / 2];
		table_begin(&w, false, 0);
		w.e->rename_dir_max = 10;
		world_put(&w, from, "first", 5);
		struct engine_file *f = open_write(&w, from, i % 2 ? NEW : 0);
		put_text(f, 0, "mine");
		world_put(&w, from, "other", 5);
		if (i / 2)
			rename_ok(&w, "dir", "new");
		else
			rename_ok(&w, "x.dat", "y.dat");
		assert_int_equal(engine_flush(f, NULL), -ESTALE);
		engine_file_close(f);
		check_bucket(&w, i / 2 ? "new/x.dat" : "y.dat", "other");
		assert_int_equal(table_journal(&w), 1);
		table_end(&w);
	}
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(directories_show_what_only_drafts_have),
		TEST(a_directory_with_a_draft_is_not_empty),
		TEST(a_removed_draft_is_not_committed),
		TEST(a_removed_draft_is_not_recovered),
		TEST(a_removal_removes_the_committed_file_too),
		TEST(a_failed_draft_can_be_removed),
		TEST(an_open_draft_follows),
		TEST(a_draft_replaces_what_has_the_new_name),
		TEST(a_file_with_a_draft_is_renamed),
		TEST(a_draft_without_a_change_is_renamed),
		TEST(a_file_replaces_a_draft),
		TEST(a_committed_file_is_renamed_over_another),
		TEST(a_failed_draft_is_renamed),
		TEST(a_failed_draft_may_be_in_the_bucket),
		TEST(a_renamed_draft_has_storage_of_its_own),
		TEST(a_file_replaces_a_domain_whose_rename_was_finished),
		TEST(two_renames_over_a_domain_lose_no_file),
		TEST(a_rename_does_not_hide_a_conflict),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
