/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of updates: what other programs have changed since is a conflict, and an update that
 * could not be completed is completed by the next one.
 */
#include "update_edits.h"
#include <overlay/draft_plan.h>

/* ---- conflicts ---- */

static void must_conflict(struct world *w)
{
	auto_free char *before = gate_content(w->gate, "");
	gate_open(w->gate);
	const int rc = world_update(w);
	if (rc != -ESTALE)
		fail_msg("%d: %s", rc, w->err.msg);
	assert_false(w->result.refused);
	assert_int_equal(w->result.puts, 0);
	auto_free char *after = gate_content(w->gate, "");
	assert_string_equal(before, after);
}

static void touch(struct world *w, const char *key)
{
	auto_free char *text = world_text(w, key);
	auto_free char *longer = malloc(strlen(text) + 2);
	sprintf(longer, "%s\n", text);
	gate_put(w->gate, key, longer, strlen(longer));
}

static void a_document_has_another_version(void **state)
{
	char key[SCHEMA_KEY_MAX + 1];
	struct world *w = world_begin();
	world_key(w, "", key);
	edit_attribute(w->draft);
	touch(w, key);
	must_conflict(w);
	assert_int_equal(w->begun, 0);
	assert_int_equal(world_changes(w), 0);
	must_conflict(w);
	world_end(w);
}

static void a_document_is_gone(void **state)
{
	char key[SCHEMA_KEY_MAX + 1];
	struct world *w = world_begin();
	world_key(w, "c", key);
	edit_remove_attribute(w->draft);
	assert_int_equal(call_delete(w->gate->base.inner, key, NULL, NULL), 0);
	must_conflict(w);
	assert_int_equal(world_changes(w), 0);
	world_end(w);
}

/* Other objects may have changed. */
static void other_documents_are_not_asked_for(void **state)
{
	char key[SCHEMA_KEY_MAX + 1];
	struct world *w = world_begin();
	world_key(w, "d", key);
	edit_remove_attribute(w->draft);
	touch(w, key);
	world_must_update(w, 1, 0);
	assert_int_equal(w->gate->ops[STORE_GET], 1);
	world_end(w);
}

static void a_chunk_has_another_version(void **state)
{
	char key[SCHEMA_KEY_MAX + 1];
	struct world *w = world_begin();
	world_chunk_key(w, "grid", 1, key);
	edit_one_chunk(w->draft);
	gate_put(w->gate, key, "0123456789abcdef", 16);
	must_conflict(w);
	/* It remains a conflict. */
	must_conflict(w);
	world_end(w);
}

static void a_removed_chunk_has_another_version(void **state)
{
	char key[SCHEMA_KEY_MAX + 1];
	struct world *w = world_begin();
	world_chunk_key(w, "line", 3, key);
	edit_lose_chunk(w->draft);
	gate_put(w->gate, key, "0123456789", 10);
	must_conflict(w);
	world_end(w);
}

/* The file gets a chunk that the domain did not have: so does the domain, by another program. */
static void a_chunk_has_appeared(void **state)
{
	char key[SCHEMA_KEY_MAX + 1];
	struct world *w = world_begin();
	world_chunk_key(w, "grid", 0, key);
	/* The first record of the index is that of chunk 1; now it is that of chunk 0. */
	const uint64_t record = edit_chunk_at(w->draft, edit_path(w->draft, "grid"), 2, 0);
	const uint8_t column = 0;
	edit_write(w->draft, record - 16, &column, 1);
	gate_put(w->gate, key, "0123456789abcdef", 16);
	must_conflict(w);
	world_end(w);
}

static void put_root(struct store *bucket)
{
	struct store_page page = {0};
	assert_int_equal(call_list_all(bucket, "db/", false, UINT32_MAX, &page, NULL), 0);
	for (size_t i = 0; i < page.n; i++)
		if (strstr(page.items[i].key, "/.group.json") && !strstr(page.items[i].key, "/g/"))
			assert_int_equal(
				call_put(bucket, page.items[i].key, "{}", 2, NULL, NULL, NULL), 0);
	store_page_release(&page);
}

/* After it was read, and before it is put. */
static void a_document_changes_meanwhile(void **state)
{
	struct world *w = world_begin();
	edit_attribute(w->draft);
	gate_open(w->gate);
	w->gate->other_at = 2;
	w->gate->other = put_root;
	assert_int_equal(world_update(w), -ESTALE);
	assert_int_equal(w->result.puts, 0);
	assert_int_equal(w->begun, 1);
	world_end(w);
}

/* ---- nothing begins ---- */

static void the_caller_may_refuse(void **state)
{
	struct plan plan;
	struct world *w = world_begin();
	edit_much(w->draft);
	w->begin_code = -EROFS;
	world_must_fail(w, -EROFS, false);
	assert_int_equal(w->begun, 1);
	assert_int_equal(draft_get_plan(w->draft, &plan, NULL), -ENOENT);
	w->begin_code = 0;
	if (world_update(w))
		fail_msg("%s", w->err.msg);
	world_check_same(w);
	world_end(w);
}

/* Also if it is the first link of its group. */
static void a_name_that_a_domain_cannot_hold_is_refused(void **state)
{
	struct world *w = world_begin();
	const uint64_t group = edit_path(w->draft, "a/empty");
	edit_add_link(w->draft, group, ".", 50, edit_path(w->draft, "c"));
	world_must_fail(w, -EOPNOTSUPP, true);
	assert_non_null(strstr(w->err.msg, "link .: a domain cannot hold it"));
	edit_unlink(w->draft, group, ".");
	world_must_update(w, 0, 0);
	world_check_same(w);
	world_end(w);
}

static void it_can_be_cancelled(void **state)
{
	struct world *w = world_begin();
	edit_much(w->draft);
	atomic_store(&w->cancelled, true);
	world_must_fail(w, -ECANCELED, false);
	assert_int_equal(w->begun, 0);
	atomic_store(&w->cancelled, false);
	if (world_update(w))
		fail_msg("%s", w->err.msg);
	world_check_same(w);
	world_end(w);
}

/* ---- errors that pass ---- */

static void fail_once(struct world *w, unsigned int n)
{
	gate_fail(w->gate, n, -EHOSTUNREACH);
	w->gate->later = true;
	assert_int_equal(world_update(w), -EHOSTUNREACH);
	assert_false(w->result.refused);
	gate_open(w->gate);
	w->now += 2000000000;
}

static unsigned int count_requests(void (*make)(struct draft *d))
{
	struct world *w = world_begin();
	make(w->draft);
	gate_open(w->gate);
	assert_int_equal(world_update(w), 0);
	const unsigned int n = w->gate->n;
	world_end(w);
	return n;
}

/* The program goes on writing after an update that has failed. */
static void the_file_changes_before_the_repetition(void **state)
{
	const unsigned int n = count_requests(edit_much);
	for (unsigned int i = 1; i <= n; i += 3) {
		struct world *w = world_begin();
		struct err err = ERR_INIT;
		edit_much(w->draft);
		fail_once(w, i);
		/* The same chunk, whose bytes the plan takes from the file, and others. */
		edit_one_chunk(w->draft);
		fill_chunk(w->draft, 0, 3000);
		edit_contiguous(w->draft);
		edit_rename(w->draft, edit_path(w->draft, "a"), "plain", "plane");
		/* First what was planned, then the rest. */
		for (int k = 0; k < 2; k++)
			if (world_update(w))
				fail_msg("request %u of %u: %s", i, n, w->err.msg);
		world_check_same(w);
		assert_int_equal(draft_sync(w->draft, &err), 0);
		world_must_update(w, 0, 0);
		world_end(w);
	}
}

/* The plan is completed although the file is what it was at first. */
static void the_file_goes_back_before_the_repetition(void **state)
{
	uint8_t before[16];
	struct world *w = world_begin();
	const uint64_t at = edit_chunk(w->draft, edit_path(w->draft, "grid"), 2, 0);
	edit_read(w->draft, at, before, sizeof(before));
	edit_one_chunk(w->draft);
	fail_once(w, 1);
	edit_write(w->draft, at, before, sizeof(before));
	world_must_update(w, 1, 0);
	world_must_update(w, 1, 0);
	world_check_same(w);
	world_end(w);
}

/* The next file cannot be stored, but the plan of the one before is completed. */
static void the_file_is_damaged_before_the_repetition(void **state)
{
	struct world *w = world_begin();
	edit_attribute(w->draft);
	fail_once(w, 2);
	edit_write(w->draft, root_of(w->draft), "XXXX", 4);
	world_update(w);
	assert_int_equal(w->result.puts, 1);
	assert_int_equal(world_changes(w), 1);
	world_must_fail(w, -EIO, true);
	edit_write(w->draft, 0, "XXXX", 4);
	world_must_fail(w, -EIO, true);
	edit_write(w->draft, 0, "\x89HDF", 4);
	edit_write(w->draft, root_of(w->draft), "OHDR", 4);
	world_must_update(w, 0, 0);
	world_check_same(w);
	world_end(w);
}

static void nothing_but_the_journal_is_left(void **state)
{
	struct world *w = world_begin();
	edit_much(w->draft);
	fail_once(w, 14);
	world_end(w);
	update_base_free(NULL);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_document_has_another_version),
		TEST(a_document_is_gone),
		TEST(other_documents_are_not_asked_for),
		TEST(a_chunk_has_another_version),
		TEST(a_removed_chunk_has_another_version),
		TEST(a_chunk_has_appeared),
		TEST(a_document_changes_meanwhile),
		TEST(the_caller_may_refuse),
		TEST(a_name_that_a_domain_cannot_hold_is_refused),
		TEST(it_can_be_cancelled),
		TEST(the_file_changes_before_the_repetition),
		TEST(the_file_goes_back_before_the_repetition),
		TEST(the_file_is_damaged_before_the_repetition),
		TEST(nothing_but_the_journal_is_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
