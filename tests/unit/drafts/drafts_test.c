/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts by name: creating, sharing, committing, and what others see meanwhile. */
#include "drafts_fixture.h"

#include <fcntl.h>

static void a_new_file_is_written_and_committed(void **state)
{
	const bool dirs[] = {false, true};
	for (int i = 0; i < 2; i++) {
		struct world w;
		table_begin(&w, dirs[i], 0);
		struct engine_file *f = open_write(&w, "a.txt", ONLY_NEW);
		bool alone = false;
		assert_true(draft_of(&w, "a.txt", &alone) && alone);
		put_text(f, 0, "hello");
		put_text(f, 5, " world");
		check_text(f, "hello world");
		check_name(&w, "a.txt", "hello world");
		assert_false(in_bucket(&w, "a.txt"));
		world_open_gate(&w);
		flush_ok(f);
		assert_int_equal(changes_of(&w), 1);
		check_bucket(&w, "a.txt", "hello world");
		/* The writer still has the draft, others have the committed file. */
		assert_true(draft_of(&w, "a.txt", &alone) && !alone);
		check_name(&w, "a.txt", "hello world");
		world_open_gate(&w);
		engine_file_close(f);
		assert_int_equal(w.gate->n, 0);
		assert_false(has_draft(&w, "a.txt"));
		assert_int_equal(table_journal(&w), 0);
		check_name(&w, "a.txt", "hello world");
		assert_int_equal(table_counts(&w).commits, 1);
		assert_int_equal(table_counts(&w).bytes_written, 11);
		assert_int_equal(table_counts(&w).drafts_open, 0);
		table_end(&w);
	}
}

/* An empty file is stored at the close, not by the flush of a program that has not written. */
static void an_empty_file_is_stored_at_the_close(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	struct engine_file *f = open_write(&w, "empty", ENGINE_CREATE);
	flush_ok(f);
	assert_false(in_bucket(&w, "empty"));
	engine_file_close(f);
	check_bucket(&w, "empty", "");
	f = open_write(&w, "synced", ENGINE_CREATE);
	assert_int_equal(engine_sync(f, NULL), 0);
	check_bucket(&w, "synced", "");
	world_open_gate(&w);
	engine_file_close(f);
	assert_int_equal(changes_of(&w), 0);
	table_end(&w);
}

static void a_replaced_file_is_seen_after_the_commit(void **state)
{
	struct world w;
	bool alone = true;
	table_begin(&w, true, 0);
	world_put(&w, "a", "old bytes", 9);
	struct engine_file *f = open_write(&w, "a", ENGINE_TRUNCATE), *reader = NULL;
	assert_int_equal(engine_file_open(w.e, "a", &reader, NULL), 0);
	put_text(f, 0, "new");
	assert_true(draft_of(&w, "a", &alone) && !alone);
	check_name(&w, "a", "old bytes");
	close_ok(f);
	check_name(&w, "a", "new");
	engine_file_close(reader);
	/* An open that does not come to the truncation changes nothing. */
	assert_int_equal(open_write_code(&w, "a", ENGINE_TRUNCATE), 0);
	assert_int_equal(table_journal(&w), 0);
	check_bucket(&w, "a", "new");
	/* Nothing was written: the file was truncated all the same. */
	engine_file_close(open_write(&w, "a", ENGINE_TRUNCATE));
	check_bucket(&w, "a", "");
	table_end(&w);
}

/* ---- sharing ---- */

static void all_writers_share_the_draft(void **state)
{
	struct world w;
	struct engine_stat a, b;
	table_begin(&w, false, 0);
	struct engine_file *first = open_write(&w, "a", NEW), *second = open_write(&w, "a", 0);
	put_text(first, 0, "one two");
	put_text(second, 4, "TWO");
	check_text(first, "one TWO");
	engine_file_stat(first, &a);
	engine_file_stat(second, &b);
	assert_int_equal(a.version, b.version);
	assert_true(a.draft && a.size == 7 && a.size_exact && a.mode == 0644);
	assert_true(a.version >> 63);
	assert_false(engine_file_cacheable(first));
	/* Truncating at the open is seen by both, as on a disk. */
	struct engine_file *third = open_write(&w, "a", ENGINE_TRUNCATE);
	check_text(first, "");
	put_text(third, 0, "three");
	engine_file_close(third);
	engine_file_close(first);
	assert_false(in_bucket(&w, "a"));
	assert_int_equal(table_counts(&w).drafts_open, 1);
	engine_file_close(second);
	check_bucket(&w, "a", "three");
	table_end(&w);
}

static void an_exclusive_open_needs_a_free_name(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	world_put(&w, "there", "x", 1);
	struct engine_file *f = open_write(&w, "a", ONLY_NEW);
	assert_int_equal(open_write_code(&w, "a", ONLY_NEW), -EEXIST);
	assert_int_equal(open_write_code(&w, "there", ONLY_NEW), -EEXIST);
	close_ok(f);
	assert_int_equal(open_write_code(&w, "a", ONLY_NEW), -EEXIST);
	check_bucket(&w, "there", "x");
	table_end(&w);
}

/* A flush of bytes that are in the bucket sends nothing, and so does the close. */
static void only_changes_are_committed(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	struct engine_file *f = open_write(&w, "a", NEW), *other = open_write(&w, "a", 0);
	put_text(f, 0, "first");
	flush_ok(f);
	world_open_gate(&w);
	flush_ok(f);
	flush_ok(other);
	assert_int_equal(engine_sync(f, NULL), 0);
	engine_file_close(f);
	assert_int_equal(w.gate->n, 0);
	put_text(other, 5, " second");
	flush_ok(other);
	check_bucket(&w, "a", "first second");
	put_text(other, 12, " third");
	engine_file_close(other);
	check_bucket(&w, "a", "first second third");
	table_end(&w);
}

/* ---- readers ---- */

static void a_reader_keeps_the_draft_that_it_has_opened(void **state)
{
	struct world w;
	struct engine_stat st;
	struct engine_file *reader = NULL, *late = NULL;
	table_begin(&w, false, 0);
	struct engine_file *f = open_write(&w, "a", NEW);
	put_text(f, 0, "bytes");
	engine_file_stat(f, &st);
	assert_int_equal(engine_open_draft(w.e, st.version, &reader, NULL), 0);
	assert_int_equal(engine_pwrite(reader, "x", 1, 0, NULL), -EBADF);
	close_ok(f);
	assert_false(has_draft(&w, "a"));
	assert_true(engine_draft_stat_version(w.e, st.version, &st));
	assert_int_equal(st.size, 5);
	make_file(&w, "a", "other");
	check_text(reader, "bytes");
	assert_int_equal(table_journal(&w), 1);
	assert_int_equal(engine_open_draft(w.e, st.version, &late, NULL), 0);
	engine_file_close(reader);
	engine_file_close(late);
	assert_int_equal(table_journal(&w), 0);
	assert_false(engine_draft_stat_version(w.e, st.version, &st));
	assert_int_equal(engine_open_draft(w.e, st.version, &late, NULL), -ESTALE);
	check_name(&w, "a", "other");
	table_end(&w);
}

/* ---- plain objects that are changed ---- */

static void a_change_keeps_the_other_bytes(void **state)
{
	struct world w;
	struct engine_stat st;
	table_begin(&w, true, 0);
	world_put(&w, "dir/a", "0123456789", 10);
	struct engine_file *f = open_write(&w, "dir/a", 0);
	check_text(f, "0123456789");
	assert_int_equal(table_journal(&w), 0);
	engine_file_stat(f, &st);
	assert_int_equal(st.size, 10);
	assert_true(st.mtime_ns > 0 && st.draft);
	assert_int_equal(engine_seek(f, 3, SEEK_DATA), 3);
	assert_int_equal(engine_seek(f, 3, SEEK_HOLE), 10);
	assert_int_equal(engine_seek(f, 10, SEEK_DATA), -ENXIO);
	put_text(f, 2, "XY");
	check_text(f, "01XY456789");
	check_name(&w, "dir/a", "0123456789");
	flush_ok(f);
	check_bucket(&w, "dir/a", "01XY456789");
	/* What lies beneath is the new object now. */
	put_text(f, 8, "ZZZZ");
	check_text(f, "01XY4567ZZZZ");
	flush_ok(f);
	assert_int_equal(engine_resize(f, 4, NULL), 0);
	assert_int_equal(engine_resize(f, 6, NULL), 0);
	assert_int_equal(engine_seek(f, 0, SEEK_HOLE), 4);
	close_ok(f);
	world_check_object(&w, "dir/a", "01XY\0\0", 6);
	assert_int_equal(table_journal(&w), 0);
	table_end(&w);
}

static int write_byte(struct engine_file *f)
{
	return engine_pwrite(f, "x", 1, 0, NULL) == 1 ? 0 : -EIO;
}

static int truncate_file(struct engine_file *f)
{
	return engine_resize(f, 5, NULL);
}

static int zero_bytes(struct engine_file *f)
{
	return engine_allocate(f, FALLOC_FL_ZERO_RANGE, 0, 3, NULL);
}

static void each_change_sets_the_time(void **state)
{
	int (*const changes[])(struct engine_file * f) = {write_byte, truncate_file, zero_bytes};
	struct world w;
	struct engine_stat st;
	table_begin(&w, false, 0);
	world_put(&w, "a", "0123456789", 10);
	struct engine_file *f = open_write(&w, "a", 0);
	for (unsigned int i = 0; i < 3; i++) {
		const int64_t before = env_wall(&w.e->bucket.env);
		engine_file_stat(f, &st);
		assert_true(st.mtime_ns < before);
		assert_int_equal(changes[i](f), 0);
		engine_file_stat(f, &st);
		assert_true(st.mtime_ns >= before && st.ctime_ns >= before);
		/* The clock may not go on between two calls. */
		while (env_wall(&w.e->bucket.env) == st.mtime_ns)
			;
	}
	engine_file_close(f);
	table_end(&w);
}

static void an_open_without_a_change_leaves_nothing(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	world_put(&w, "a", "bytes", 5);
	struct engine_file *f = open_write(&w, "a", ENGINE_CREATE);
	flush_ok(f);
	assert_int_equal(engine_sync(f, NULL), 0);
	assert_int_equal(table_journal(&w), 0);
	engine_file_close(f);
	assert_int_equal(changes_of(&w), 0);
	assert_false(has_draft(&w, "a"));
	table_end(&w);
}

/* ---- HDF5 files that are not complete ---- */

static const char part[] = "\x89HDF\r\n\x1a\n and no more";

static void an_incomplete_file_waits_for_its_last_close(void **state)
{
	struct world w;
	char buf[512];
	table_begin(&w, false, 0);
	struct engine_file *f = open_write(&w, "part.h5", NEW);
	put_text(f, 0, part);
	flush_ok(f);
	assert_int_equal(engine_sync(f, NULL), 0);
	assert_false(in_bucket(&w, "part.h5"));
	check_name(&w, "part.h5", part);
	assert_string_equal(note_of(&w, "part.h5", "user.hsds.kept", buf, sizeof(buf)), "");
	engine_file_close(f);
	check_bucket(&w, "part.h5", part);
	assert_true(note_of(&w, "part.h5", "user.hsds.kept", buf, sizeof(buf))[0]);
	/* Another file of this name has no reason. */
	make_file(&w, "part.h5", "text");
	assert_string_equal(note_of(&w, "part.h5", "user.hsds.kept", buf, sizeof(buf)), "");
	table_end(&w);
}

/* A domain in the place of the object would take away what lies beneath. */
static void an_hdf5_file_that_is_changed_waits_for_its_last_close(void **state)
{
	struct world w;
	char text[sizeof(part)];
	table_begin(&w, false, 0);
	make_file(&w, "a.h5", part);
	struct engine_file *f = open_write(&w, "a.h5", 0);
	put_text(f, strlen(part) - 4, "MORE");
	flush_ok(f);
	check_bucket(&w, "a.h5", part);
	engine_file_close(f);
	memcpy(text, part, sizeof(part));
	memcpy(text + strlen(part) - 4, "MORE", 4);
	check_bucket(&w, "a.h5", text);
	table_end(&w);
}

/* ---- what cannot be opened ---- */

static void an_open_fails_for_a_reason(void **state)
{
	struct world w;
	char longest[1200], component[300];
	table_begin(&w, true, 0);
	world_put(&w, "file", "x", 1);
	world_put(&w, "dir/in", "x", 1);
	memset(component, 'n', sizeof(component));
	component[256] = '\0';
	memset(longest, 'd', sizeof(longest));
	for (int i = 200; i < 1200; i += 200)
		longest[i] = '/';
	longest[1019] = '\0';
	struct engine_file *f = open_write(&w, "draft", NEW);
	static const struct {
		const char *path;
		unsigned int flags;
		int code;
	} rows[] = {
		{"none", 0, -ENOENT},
		{"none", ENGINE_TRUNCATE, -ENOENT},
		{"no/parent", NEW, -ENOENT},
		{"file/x", NEW, -ENOTDIR},
		{"draft/x", NEW, -ENOTDIR},
		{"dir", 0, -EISDIR},
		{"dir", NEW, -EISDIR},
		{"", NEW, -EISDIR},
		{"dir/.domain.json", NEW, -EINVAL},
		{"db/x", NEW, -EINVAL},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(open_write_code(&w, rows[i].path, rows[i].flags), rows[i].code);
	assert_int_equal(open_write_code(&w, component, NEW), -ENAMETOOLONG);
	/* The document of a domain of this name would have a key that is too long. */
	assert_int_equal(open_write_code(&w, longest, NEW), -ENAMETOOLONG);
	engine_file_close(f);
	assert_int_equal(table_journal(&w), 0);
	table_end(&w);
}

static void domains_are_replaced_by_plain_files(void **state)
{
	static const char domain[] =
		"{\"root\": \"g-00000001-00000000-8888-888988-888888\", \"owner\": \"ann\", "
		"\"acls\": {}, \"created\": 1, \"lastModified\": 1}";
	struct world w;
	table_begin(&w, false, 0);
	world_put(&w, "x.h5/.domain.json", domain, sizeof(domain) - 1);
	assert_int_equal(open_write_code(&w, "x.h5", ENGINE_RESIZE), -EROFS);
	make_file(&w, "x.h5", "text");
	check_name(&w, "x.h5", "text");
	assert_false(in_bucket(&w, "x.h5/.domain.json"));
	table_end(&w);
}

static void without_a_journal_nothing_is_written(void **state)
{
	struct world w;
	struct engine_file *f = NULL;
	struct engine_stat st;
	bool alone;
	table_begin(&w, false, 0);
	world_put(&w, "a", "bytes", 5);
	struct drafts *t = w.e->drafts;
	w.e->drafts = NULL;
	assert_int_equal(open_write_code(&w, "a", 0), -EROFS);
	assert_int_equal(engine_open_draft(w.e, 1, &f, NULL), -ESTALE);
	assert_false(engine_draft_stat(w.e, "a", &st, &alone));
	assert_false(engine_draft_stat_version(w.e, 1, &st));
	assert_int_equal(engine_file_open(w.e, "a", &f, NULL), 0);
	engine_file_stat(f, &st);
	assert_int_equal(st.mode, 0444);
	assert_int_equal(engine_pwrite(f, "x", 1, 0, NULL), -EBADF);
	assert_int_equal(engine_resize(f, 1, NULL), -EBADF);
	assert_int_equal(engine_allocate(f, 0, 0, 1, NULL), -EBADF);
	assert_int_equal(engine_flush(f, NULL), -EBADF);
	assert_int_equal(engine_sync(f, NULL), -EBADF);
	engine_file_close(f);
	check_list(&w, "", "a=");
	assert_int_equal(engine_unlink(w.e, "a", NULL), 0);
	w.e->drafts = t;
	table_end(&w);
}

static void a_full_journal_refuses_bytes(void **state)
{
	struct world w;
	char block[65536] = "";
	table_begin(&w, false, 0);
	drafts_free(w.e->drafts);
	table_new(&w, 1 << 20);
	struct engine_file *f = open_write(&w, "a", NEW);
	ssize_t rc = 1;
	uint64_t at = 0, free_bytes, total;
	while (rc > 0 && at < 8 << 20) {
		rc = engine_pwrite(f, block, sizeof(block), at, NULL);
		at += rc > 0 ? (uint64_t)rc : 0;
	}
	assert_int_equal(rc, -ENOSPC);
	assert_in_range(at, 1 << 19, 1 << 20);
	assert_int_equal(table_counts(&w).spool_size, 1 << 20);
	assert_in_range(table_counts(&w).spool_used, at, 1 << 20);
	/* The bucket does not know its free space. */
	assert_int_equal(engine_space(w.e, &free_bytes, &total), 0);
	assert_int_equal(total, 1 << 20);
	assert_int_equal(free_bytes, total - table_counts(&w).spool_used);
	assert_int_equal(engine_allocate(f, 0, at, 1 << 20, NULL), -ENOSPC);
	assert_int_equal(engine_resize(f, UINT64_C(1) << 61, NULL), -EFBIG);
	assert_int_equal(engine_resize(f, 5, NULL), 0);
	assert_int_equal(engine_allocate(f, 0, 0, 7, NULL), 0);
	close_ok(f);
	world_check_object(&w, "a", block, 7);
	assert_int_equal(table_counts(&w).spool_used, 0);
	table_end(&w);
}

/* A file of which a write has failed does not replace a file of the bucket, until the bytes that it
 * lacks have been written, or cut off. */
static void a_file_that_lacks_a_part_replaces_nothing(void **state)
{
	struct world w;
	static char large[2 << 20];
	table_begin(&w, false, 0);
	drafts_free(w.e->drafts);
	table_new(&w, 1 << 20);
	struct engine_file *f = open_write(&w, "a", NEW);
	put_text(f, 0, "old");
	close_ok(f);
	for (int i = 0; i < 3; i++) {
		f = open_write(&w, "a", ENGINE_TRUNCATE);
		put_text(f, 0, "new");
		assert_int_equal(engine_pwrite(f, large, sizeof(large), 3, NULL), -ENOSPC);
		if (i == 1)
			put_text(f, 3, "er");
		if (i == 2)
			assert_int_equal(engine_resize(f, 2, NULL), 0);
		assert_int_equal(engine_flush(f, NULL), 0);
		engine_file_close(f);
		world_check_object(&w, "a",
				   i == 0   ? "old"
				   : i == 1 ? "newer"
					    : "ne",
				   i == 0   ? 3
				   : i == 1 ? 5
					    : 2);
		auto_free char *why = drafts_error(w.e->drafts, "a");
		assert_int_equal(!!why, i == 0);
		if (i == 0)
			assert_non_null(strstr(why, "it lacks a part, because a write at byte 3"));
	}
	/* A new file is what the program has written, as on a disk. */
	f = open_write(&w, "b", NEW);
	put_text(f, 0, "b");
	assert_int_equal(engine_pwrite(f, large, sizeof(large), 1, NULL), -ENOSPC);
	close_ok(f);
	world_check_object(&w, "b", "b", 1);
	assert_int_equal(table_counts(&w).spool_used, 0);
	table_end(&w);
}

/* ---- while a commit runs ---- */

static struct engine_file *writer, *joined;
static struct world *world;

static void write_more(struct store *bucket)
{
	put_text(writer, 5, " and more");
	put_text(writer, 0, "FIRST");
}

static void a_program_may_write_while_a_commit_runs(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	writer = open_write(&w, "a", NEW);
	put_text(writer, 0, "first");
	world_open_gate(&w);
	w.gate->other_at = 1;
	w.gate->other = write_more;
	flush_ok(writer);
	check_bucket(&w, "a", "first");
	check_text(writer, "FIRST and more");
	close_ok(writer);
	check_bucket(&w, "a", "FIRST and more");
	table_end(&w);
}

static void join_draft(struct store *bucket)
{
	joined = open_write(world, "a", ENGINE_CREATE);
	check_text(joined, "first");
}

/* The last close commits while another program opens the file: it gets the same draft. */
static void a_draft_that_is_being_committed_can_be_opened(void **state)
{
	struct world w;
	struct engine_stat before, after;
	table_begin(&w, false, 0);
	world = &w;
	struct engine_file *f = open_write(&w, "a", NEW);
	engine_file_stat(f, &before);
	put_text(f, 0, "first");
	world_open_gate(&w);
	w.gate->other_at = 1;
	w.gate->other = join_draft;
	engine_file_close(f);
	check_bucket(&w, "a", "first");
	engine_file_stat(joined, &after);
	assert_int_equal(before.version, after.version);
	put_text(joined, 5, " second");
	close_ok(joined);
	check_bucket(&w, "a", "first second");
	assert_int_equal(table_journal(&w), 0);
	table_end(&w);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_file_is_written_and_committed),
		TEST(an_empty_file_is_stored_at_the_close),
		TEST(a_replaced_file_is_seen_after_the_commit),
		TEST(all_writers_share_the_draft),
		TEST(an_exclusive_open_needs_a_free_name),
		TEST(only_changes_are_committed),
		TEST(a_reader_keeps_the_draft_that_it_has_opened),
		TEST(a_change_keeps_the_other_bytes),
		TEST(each_change_sets_the_time),
		TEST(an_open_without_a_change_leaves_nothing),
		TEST(an_incomplete_file_waits_for_its_last_close),
		TEST(an_hdf5_file_that_is_changed_waits_for_its_last_close),
		TEST(an_open_fails_for_a_reason),
		TEST(domains_are_replaced_by_plain_files),
		TEST(without_a_journal_nothing_is_written),
		TEST(a_full_journal_refuses_bytes),
		TEST(a_file_that_lacks_a_part_replaces_nothing),
		TEST(a_program_may_write_while_a_commit_runs),
		TEST(a_draft_that_is_being_committed_can_be_opened),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
