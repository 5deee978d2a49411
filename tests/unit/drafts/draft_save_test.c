/* SPDX-License-Identifier: Apache-2.0 */
/* Commits that fail: what stays, what the name shows, and what a later commit does. */
#include "drafts_fixture.h"

#include <time.h>

#include "draft_files.h"

static const char *error_of(struct world *w, const char *path)
{
	static char buf[2048];
	return note_of(w, path, "user.hsds.error", buf, sizeof(buf));
}

static void a_failed_commit_is_made_by_the_next_flush(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	bool alone = false;
	table_begin(&w, false, 0);
	struct engine_file *f = open_write(&w, "a", NEW);
	put_text(f, 0, "bytes");
	shut_gate(&w, -EACCES);
	assert_int_equal(engine_flush(f, &err), -EACCES);
	assert_non_null(strstr(err.msg, "refused by the test"));
	assert_non_null(strstr(error_of(&w, "a"), "refused by the test; draft "));
	/* The close does not try the same bytes again. */
	const unsigned int before = w.gate->n;
	engine_file_close(f);
	assert_int_equal(w.gate->n, before);
	assert_true(draft_of(&w, "a", &alone) && alone);
	check_name(&w, "a", "bytes");
	assert_int_equal(table_counts(&w).drafts_failed, 1);
	assert_int_equal(table_counts(&w).drafts_open, 0);
	assert_int_equal(table_counts(&w).commit_failures, 1);
	/* Who writes the name goes on with the draft. */
	f = open_write(&w, "a", 0);
	assert_int_equal(table_counts(&w).drafts_failed, 0);
	assert_int_equal(engine_flush(f, &err), -EACCES);
	world_open_gate(&w);
	flush_ok(f);
	check_bucket(&w, "a", "bytes");
	assert_string_equal(error_of(&w, "a"), "");
	engine_file_close(f);
	assert_false(has_draft(&w, "a"));
	assert_int_equal(table_journal(&w), 0);
	assert_int_equal(table_counts(&w).commits, 1);
	assert_int_equal(table_counts(&w).commit_failures, 2);
	table_end(&w);
}

/* Another storage needs room that a full bucket does not have, and the storage of the first attempt
 * cannot always be deleted. */
static void a_repeated_commit_uses_the_same_storage(void **state)
{
	struct world w;
	size_t n;
	table_begin(&w, false, 0);
	w.e->bucket.domains = (struct domain_bucket){
		.env = &w.e->bucket.env, .store = w.e->bucket.store, .schemas = schema_all()};
	uint8_t *bytes = file_bytes(ONE, &n);
	struct engine_file *f = open_write(&w, "a.h5", NEW);
	assert_int_equal(engine_pwrite(f, bytes, n, 0, NULL), n);
	free(bytes);
	int rc = -ENOSPC;
	for (unsigned int at = 1; rc; at++) {
		gate_fail(w.gate, at, -ENOSPC);
		w.gate->later = true;
		rc = engine_flush(f, NULL);
		assert_int_equal(rc, rc ? -ENOSPC : 0);
		assert_int_equal(w.gate->ops[STORE_DELETE], 0);
	}
	engine_file_close(f);
	table_end(&w);
}

/* The bytes have changed since the flush, so the last close tries it. */
static void a_close_commits_what_came_after_a_failed_flush(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	struct engine_file *f = open_write(&w, "a", NEW);
	put_text(f, 0, "one");
	shut_gate(&w, -EIO);
	assert_int_equal(engine_flush(f, NULL), -EIO);
	world_open_gate(&w);
	put_text(f, 0, "two");
	engine_file_close(f);
	check_bucket(&w, "a", "two");
	assert_int_equal(table_journal(&w), 0);
	table_end(&w);
}

/* Truncated: for example by the program that failed, which is called again. */
static void a_failed_draft_is_written_anew(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	world_put(&w, "a", "old", 3);
	struct engine_file *f = open_write(&w, "a", NEW);
	put_text(f, 0, "long text");
	shut_gate(&w, -EIO);
	engine_file_close(f);
	world_open_gate(&w);
	check_name(&w, "a", "old");
	assert_true(error_of(&w, "a")[0]);
	make_file(&w, "a", "new");
	check_bucket(&w, "a", "new");
	check_name(&w, "a", "new");
	assert_string_equal(error_of(&w, "a"), "");
	assert_int_equal(table_journal(&w), 0);
	table_end(&w);
}

static void the_end_tries_once_more(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	for (int i = 0; i < 3; i++) {
		char name[] = "a0";
		name[1] = (char)('0' + i);
		struct engine_file *f = open_write(&w, name, NEW);
		put_text(f, 0, name);
		shut_gate(&w, -EIO);
		engine_file_close(f);
		world_open_gate(&w);
	}
	assert_int_equal(table_counts(&w).drafts_failed, 3);
	world_open_gate(&w);
	drafts_free(w.e->drafts);
	assert_int_equal(table_journal(&w), 0);
	check_bucket(&w, "a0", "a0");
	check_bucket(&w, "a1", "a1");
	check_bucket(&w, "a2", "a2");
	table_new(&w, 0);
	table_end(&w);
}

static void what_fails_at_the_end_stays_in_the_journal(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	struct engine_file *f = open_write(&w, "a", NEW);
	put_text(f, 0, "bytes");
	shut_gate(&w, -EIO);
	engine_file_close(f);
	drafts_free(w.e->drafts);
	assert_int_equal(table_journal(&w), 1);
	world_open_gate(&w);
	table_new(&w, 0);
	assert_int_equal(table_journal(&w), 1);
	assert_false(has_draft(&w, "a"));
	/* The next mount finishes the commit. */
	const struct timespec moment = {.tv_nsec = 5000000};
	drafts_start(w.e->drafts);
	for (int i = 0; i < 1000 && table_journal(&w); i++)
		nanosleep(&moment, NULL);
	assert_int_equal(table_journal(&w), 0);
	check_bucket(&w, "a", "bytes");
	assert_int_equal(table_counts(&w).drafts_left, 0);
	table_end(&w);
}

/* ---- another program has changed the name ---- */

static void a_conflict_is_not_repeated(void **state)
{
	struct world w;
	bool alone = true;
	table_begin(&w, false, 0);
	struct engine_file *f = open_write(&w, "a", NEW);
	put_text(f, 0, "ours");
	world_put(&w, "a", "theirs", 6);
	assert_int_equal(engine_flush(f, NULL), -ESTALE);
	check_name(&w, "a", "theirs");
	assert_true(draft_of(&w, "a", &alone) && !alone);
	put_text(f, 4, " more");
	world_open_gate(&w);
	assert_int_equal(engine_flush(f, NULL), -ESTALE);
	assert_int_equal(w.gate->n, 0);
	engine_file_close(f);
	assert_int_equal(changes_of(&w), 0);
	/* The name shows what the bucket has. */
	assert_false(has_draft(&w, "a"));
	check_name(&w, "a", "theirs");
	assert_non_null(strstr(error_of(&w, "a"), "another program has changed it"));
	assert_int_equal(table_counts(&w).drafts_failed, 1);
	assert_int_equal(table_journal(&w), 1);
	drafts_free(w.e->drafts);
	assert_int_equal(table_journal(&w), 1);
	check_bucket(&w, "a", "theirs");
	table_new(&w, 0);
	table_end(&w);
}

/* The object is gone before the commit has begun: its first bytes tell what it is. */
static void what_lay_beneath_is_gone(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	world_put(&w, "a", "0123456789", 10);
	struct engine_file *f = open_write(&w, "a", 0);
	put_text(f, 9, "x");
	assert_int_equal(call_delete(w.gate->base.inner, "a", NULL, NULL), 0);
	assert_int_equal(engine_flush(f, NULL), -ESTALE);
	engine_file_close(f);
	assert_false(has_draft(&w, "a"));
	assert_int_equal(table_counts(&w).drafts_failed, 1);
	assert_int_equal(table_journal(&w), 1);
	table_end(&w);
}

static void make_conflict(struct world *w, const char *path)
{
	struct engine_file *f = open_write(w, path, NEW);
	put_text(f, 0, "ours");
	world_put(w, path, "theirs", 6);
	assert_int_equal(engine_flush(f, NULL), -ESTALE);
	engine_file_close(f);
}

/* A domain was made meanwhile. The storage of this one is deleted, the draft waits. */
static void a_conflict_leaves_only_the_draft(void **state)
{
	struct world w;
	size_t n;
	table_begin(&w, false, 0);
	auto_free uint8_t *bytes = file_bytes(ONE, &n);
	struct engine_file *f = open_write(&w, "a.h5", NEW);
	assert_int_equal(engine_pwrite(f, bytes, n, 0, NULL), n);
	world_put(&w, "a.h5/.domain.json", "{}", 2);
	assert_int_equal(engine_flush(f, NULL), -ESTALE);
	assert_true(world_keys(&w, "db/") > 0);
	world_collect(&w);
	assert_int_equal(world_keys(&w, "db/"), 0);
	/* Also under another name. */
	assert_int_equal(call_delete(w.gate->base.inner, "a.h5/.domain.json", NULL, NULL), 0);
	names_changed(w.e->bucket.names, "a.h5");
	engine_rename(w.e, "a.h5", "b.h5", 0, NULL);
	assert_int_equal(engine_flush(f, NULL), -ESTALE);
	engine_file_close(f);
	drafts_free(w.e->drafts);
	assert_int_equal(table_journal(&w), 1);
	table_new(&w, 0);
	world_open_gate(&w);
	atomic_uint_fast64_t left = 0;
	drafts_recover(&w.e->bucket, w.e->drafts, drafts_journal(w.e->drafts), NULL, &left);
	assert_int_equal(left, 1);
	assert_int_equal(changes_of(&w), 0);
	assert_int_equal(world_keys(&w, ""), 0);
	table_end(&w);
}

static void a_later_commit_drops_the_draft_in_conflict(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	make_conflict(&w, "a");
	make_conflict(&w, "b");
	assert_int_equal(table_journal(&w), 2);
	struct engine_file *f = open_write(&w, "a", NEW);
	put_text(f, 0, "again");
	assert_true(error_of(&w, "a")[0]);
	assert_int_equal(table_journal(&w), 3);
	close_ok(f);
	check_bucket(&w, "a", "again");
	assert_string_equal(error_of(&w, "a"), "");
	assert_int_equal(table_journal(&w), 1);
	assert_int_equal(engine_unlink(w.e, "b", NULL), 0);
	assert_string_equal(error_of(&w, "b"), "");
	assert_int_equal(table_journal(&w), 0);
	table_end(&w);
}

/* ---- domains ---- */

static void write_hdf5(struct engine_file *f, const char *file)
{
	size_t n;
	uint8_t *bytes = file_bytes(file, &n);
	assert_int_equal(engine_resize(f, 0, NULL), 0);
	assert_int_equal(engine_pwrite(f, bytes, n, 0, NULL), n);
	free(bytes);
}

static void check_kind(struct world *w, const char *path, enum engine_kind kind)
{
	struct engine_stat st;
	assert_int_equal(engine_lookup(w->e, path, &st, NULL), 0);
	assert_int_equal(st.kind, kind);
}

static void a_closed_hdf5_file_becomes_a_domain(void **state)
{
	const bool dirs[] = {false, true};
	for (int i = 0; i < 2; i++) {
		struct world w;
		table_begin(&w, dirs[i], 4);
		struct engine_file *f = open_write(&w, "a.h5", NEW);
		write_hdf5(f, ONE);
		check_kind(&w, "a.h5", ENGINE_PLAIN);
		flush_ok(f);
		check_kind(&w, "a.h5", ENGINE_DOMAIN);
		assert_int_equal(world_chunks(&w, "a.h5"), 1);
		/* The program goes on, and the name changes meanwhile. */
		write_hdf5(f, OTHER);
		assert_int_equal(engine_rename(w.e, "a.h5", "b.h5", 0, NULL), 0);
		assert_int_equal(world_chunks(&w, "b.h5"), 1);
		close_ok(f);
		assert_int_equal(world_chunks(&w, "b.h5"), 3);
		assert_int_equal(world_objects(&w, "a.h5"), 0);
		check_list(&w, "", "b.h5");
		/* Over the domain, and then a plain object over it. */
		f = open_write(&w, "b.h5", ENGINE_TRUNCATE);
		write_hdf5(f, ONE);
		close_ok(f);
		assert_int_equal(world_chunks(&w, "b.h5"), 1);
		make_file(&w, "b.h5", "text");
		check_kind(&w, "b.h5", ENGINE_PLAIN);
		assert_int_equal(engine_unlink(w.e, "b.h5", NULL), 0);
		check_list(&w, "", "");
		assert_int_equal(table_journal(&w), 0);
		table_end(&w);
	}
}

/* Whether a commit fails whose k-th request, from 1, reaches the bucket while its answer is lost.
 */
static bool fails_at(struct world *w, unsigned int k)
{
	struct engine_file *f = open_write(w, "a.h5", NEW);
	write_hdf5(f, ONE);
	gate_fail(w->gate, k, -EIO);
	w->gate->after = true;
	const bool fails = engine_flush(f, NULL) != 0;
	engine_file_close(f);
	world_open_gate(w);
	return fails;
}

/* A failed commit may have made the domain. Then it is renamed with the draft, and replaced by the
 * next commit. Its storage goes, and nothing else. */
static void a_failed_domain_is_renamed(void **state)
{
	unsigned int k = 0;
	bool fails = true;
	while (fails) {
		struct world w;
		table_begin(&w, k % 2, 4);
		fails = fails_at(&w, ++k);
		assert_int_equal(engine_rename(w.e, "a.h5", "b.h5", 0, NULL), 0);
		engine_file_close(open_write(&w, "b.h5", fails ? 0 : NEW));
		struct engine_file *f = open_write(&w, "b.h5", fails ? 0 : NEW);
		if (!fails)
			write_hdf5(f, ONE);
		close_ok(f);
		world_collect(&w);
		assert_int_equal(world_objects(&w, "b.h5"), 2);
		assert_int_equal(world_chunks(&w, "b.h5"), 1);
		assert_int_equal(world_objects(&w, "a.h5"), 0);
		check_list(&w, "", "b.h5");
		assert_int_equal(engine_unlink(w.e, "b.h5", NULL), 0);
		world_collect(&w);
		assert_int_equal(world_keys(&w, ""), 0);
		table_end(&w);
	}
	assert_in_range(k, 4, 100);
}

/* It was incomplete, and a program completes it. */
static void a_plain_object_becomes_a_domain(void **state)
{
	struct world w;
	size_t n;
	uint8_t *bytes = file_bytes(ONE, &n);
	table_begin(&w, true, 4);
	struct engine_file *f = open_write(&w, "a.h5", NEW);
	assert_int_equal(engine_pwrite(f, bytes, n - 1, 0, NULL), n - 1);
	close_ok(f);
	check_kind(&w, "a.h5", ENGINE_PLAIN);
	f = open_write(&w, "a.h5", 0);
	assert_int_equal(engine_pwrite(f, bytes + n - 1, 1, n - 1, NULL), 1);
	flush_ok(f);
	check_kind(&w, "a.h5", ENGINE_PLAIN);
	engine_file_close(f);
	check_kind(&w, "a.h5", ENGINE_DOMAIN);
	assert_int_equal(world_objects(&w, "a.h5"), 2);
	free(bytes);
	table_end(&w);
}

/* cp -a sets attributes before it closes the file. */
static void a_new_acl_is_no_conflict(void **state)
{
	static const char acl[] = "{\"ann\": {\"create\": true, \"read\": true, \"update\": true, "
				  "\"delete\": true, \"readACL\": true, \"updateACL\": true}}";
	struct world w;
	table_begin(&w, true, 4);
	struct engine_file *f = open_write(&w, "a.h5", NEW);
	write_hdf5(f, ONE);
	assert_int_equal(
		engine_setxattr(w.e, "a.h5", "user.hsds.acls", acl, sizeof(acl) - 1, 0, NULL), 0);
	close_ok(f);
	f = open_write(&w, "a.h5", NEW);
	write_hdf5(f, OTHER);
	assert_int_equal(
		engine_setxattr(w.e, "a.h5", "user.hsds.acls", acl, sizeof(acl) - 1, 0, NULL), 0);
	flush_ok(f);
	assert_int_equal(world_chunks(&w, "a.h5"), 3);
	assert_int_equal(
		engine_setxattr(w.e, "a.h5", "user.hsds.acls", acl, sizeof(acl) - 1, 0, NULL), 0);
	write_hdf5(f, ONE);
	close_ok(f);
	assert_int_equal(world_chunks(&w, "a.h5"), 1);
	assert_int_equal(table_journal(&w), 0);
	table_end(&w);
}

/* Its reason is known, and the file is whole. */
static void a_file_that_a_domain_cannot_hold_is_kept(void **state)
{
	struct world w;
	char buf[512];
	table_begin(&w, false, 4);
	struct engine_file *f = open_write(&w, "a.h5", NEW);
	write_hdf5(f, REFUSED);
	flush_ok(f);
	check_kind(&w, "a.h5", ENGINE_PLAIN);
	assert_true(note_of(&w, "a.h5", "user.hsds.kept", buf, sizeof(buf))[0]);
	write_hdf5(f, ONE);
	close_ok(f);
	check_kind(&w, "a.h5", ENGINE_DOMAIN);
	assert_string_equal(note_of(&w, "a.h5", "user.hsds.kept", buf, sizeof(buf)), "");
	table_end(&w);
}

/* ---- attributes ---- */

static void list_has(struct world *w, const char *path, const char *name, bool expected)
{
	char buf[512];
	const ssize_t n = engine_listxattr(w->e, path, buf, sizeof(buf), NULL);
	bool found = false;
	assert_true(n >= 0);
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(buf + at) + 1)
		found = found || strcmp(buf + at, name) == 0;
	assert_int_equal(found, expected);
}

static void the_reasons_are_attributes(void **state)
{
	static const char part[] = "\x89HDF\r\n\x1a\n";
	struct world w;
	char buf[512];
	table_begin(&w, false, 0);
	make_file(&w, "kept.h5", "x");
	struct engine_file *f = open_write(&w, "kept.h5", NEW);
	put_text(f, 0, part);
	engine_file_close(f);
	list_has(&w, "kept.h5", "user.hsds.kept", true);
	list_has(&w, "kept.h5", "user.hsds.error", false);
	assert_int_equal(engine_rename(w.e, "kept.h5", "b.h5", 0, NULL), 0);
	assert_true(note_of(&w, "b.h5", "user.hsds.kept", buf, sizeof(buf))[0]);
	assert_string_equal(note_of(&w, "kept.h5", "user.hsds.kept", buf, sizeof(buf)), "");
	/* The bucket has it, so the next mount shows it. */
	world_names(&w);
	assert_string_equal(note_of(&w, "b.h5", "user.hsds.kept", buf, sizeof(buf)),
			    "it is damaged: superblock: file ends too early");
	list_has(&w, "b.h5", "user.hsds.kept", true);
	make_file(&w, "b.h5", "no HDF5 file");
	assert_string_equal(note_of(&w, "b.h5", "user.hsds.kept", buf, sizeof(buf)), "");
	list_has(&w, "b.h5", "user.hsds.kept", false);
	assert_int_equal(engine_unlink(w.e, "b.h5", NULL), 0);
	assert_string_equal(note_of(&w, "b.h5", "user.hsds.kept", buf, sizeof(buf)), "");
	/* A draft that is alone has its attributes without a request. */
	f = open_write(&w, "failed", NEW);
	shut_gate(&w, -EIO);
	engine_file_close(f);
	const unsigned int before = w.gate->n;
	list_has(&w, "failed", "user.hsds.error", true);
	assert_true(error_of(&w, "failed")[0]);
	assert_int_equal(engine_getxattr(w.e, "failed", "user.hsds.owner", NULL, 0, NULL),
			 -ENODATA);
	assert_int_equal(w.gate->n, before);
	world_open_gate(&w);
	table_end(&w);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_failed_commit_is_made_by_the_next_flush),
		TEST(a_repeated_commit_uses_the_same_storage),
		TEST(a_close_commits_what_came_after_a_failed_flush),
		TEST(a_failed_draft_is_written_anew),
		TEST(the_end_tries_once_more),
		TEST(what_fails_at_the_end_stays_in_the_journal),
		TEST(a_conflict_is_not_repeated),
		TEST(what_lay_beneath_is_gone),
		cmocka_unit_test(a_conflict_leaves_only_the_draft),
		TEST(a_later_commit_drops_the_draft_in_conflict),
		TEST(a_closed_hdf5_file_becomes_a_domain),
		TEST(a_failed_domain_is_renamed),
		TEST(a_plain_object_becomes_a_domain),
		TEST(a_new_acl_is_no_conflict),
		TEST(a_file_that_a_domain_cannot_hold_is_kept),
		TEST(the_reasons_are_attributes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
