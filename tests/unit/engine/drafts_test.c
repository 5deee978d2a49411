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
	/* Nothing was written: the file was truncated all the same. */
	engine_file_close(open_write(&w, "a", ENGINE_TRUNCATE));
	check_bucket(&w, "a", "");
	table_end(&w);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_file_is_written_and_committed),
		TEST(an_empty_file_is_stored_at_the_close),
		TEST(a_replaced_file_is_seen_after_the_commit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
