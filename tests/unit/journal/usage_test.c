/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts that no mount has open count against the limit of the spool, until they are deleted. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <glob.h>

#include "overlay_fixture.h"

enum { SIZE = 1 << 20, LIMIT = 2 << 20 };

static uint64_t left(struct overlay_fixture *f)
{
	struct journal_stats stats;
	journal_get_stats(f->j, &stats);
	assert_true(stats.spool_used >= stats.spool_left);
	return stats.spool_left;
}

static void write_some(struct draft *d, size_t n, int code, struct err *err)
{
	static uint8_t bytes[LIMIT];
	assert_int_equal(draft_write(d, 0, bytes, n, err), code);
}

static void reopen(struct overlay_fixture *f)
{
	journal_close(f->j);
	fixture_open(f, LIMIT);
}

static void make_left(struct overlay_fixture *f, char id[JOURNAL_ID])
{
	struct draft *d = make_draft(f, &about_new);
	memcpy(id, draft_id(d), JOURNAL_ID);
	write_some(d, SIZE, 0, NULL);
	assert_int_equal(left(f), 0);
	draft_close(d);
	assert_in_range(left(f), SIZE, SIZE + (64 << 10));
}

static void a_draft_that_is_left_counts(void **state)
{
	struct overlay_fixture f;
	char id[JOURNAL_ID];
	fixture_begin(&f, LIMIT);
	make_left(&f, id);
	for (unsigned int mount = 0; mount < 2; mount++, reopen(&f)) {
		struct err err = ERR_INIT;
		struct draft *d = make_draft(&f, &about_new);
		assert_in_range(left(&f), SIZE, SIZE + (64 << 10));
		write_some(d, SIZE, -ENOSPC, &err);
		assert_non_null(strstr(err.msg, "hsimage recover"));
		write_some(d, SIZE / 2, 0, NULL);
		assert_int_equal(draft_drop(d, NULL), 0);
	}
	assert_int_equal(journal_drop(f.j, id, NULL), 0);
	assert_in_range(left(&f), 0, 64 << 10);
	struct draft *d = make_draft(&f, &about_new);
	write_some(d, SIZE + SIZE / 2, 0, NULL);
	assert_int_equal(draft_drop(d, NULL), 0);
	fixture_end(&f);
}

static struct draft *make_gaps(struct overlay_fixture *f)
{
	struct draft *d = make_draft(f, &about_new);
	for (uint64_t i = 0; i < 10000; i++)
		assert_int_equal(draft_write(d, 2 * i, "x", 1, NULL), 0);
	return d;
}

/* It may be larger than what was written. */
static void the_map_of_a_draft_counts(void **state)
{
	struct overlay_fixture f;
	fixture_begin(&f, LIMIT);
	struct draft *d = make_gaps(&f);
	const uint64_t used = room_used(&f);
	assert_true(used > 10000 * 32);
	draft_close(d);
	assert_int_equal(left(&f), used);
	assert_int_equal(draft_drop(make_gaps(&f), NULL), 0);
	assert_int_equal(left(&f), used);
	fixture_end(&f);
}

static void a_recovered_draft_gives_its_room_back(void **state)
{
	struct overlay_fixture f;
	char id[JOURNAL_ID];
	struct draft *d;
	fixture_begin(&f, LIMIT);
	make_left(&f, id);
	reopen(&f);
	assert_int_equal(draft_open(f.j, id, NULL, &d, NULL), 0);
	draft_close(d);
	assert_in_range(left(&f), SIZE, SIZE + (64 << 10));
	assert_int_equal(draft_open(f.j, id, NULL, &d, NULL), 0);
	assert_int_equal(draft_drop(d, NULL), 0);
	assert_int_equal(left(&f), 0);
	fixture_end(&f);
}

/* Another process's draft has its room there. */
static void an_open_draft_does_not_count(void **state)
{
	struct overlay_fixture f;
	struct journal *other;
	struct journal_stats stats;
	fixture_begin(&f, LIMIT);
	struct draft *d = make_draft(&f, &about_new);
	write_some(d, SIZE, 0, NULL);
	const struct journal_settings settings = {
		.path = f.path, .bucket = "b", .spool_size = LIMIT, .boot = f.boot};
	assert_int_equal(journal_open(&settings, &f.env, &other, NULL), 0);
	journal_get_stats(other, &stats);
	assert_int_equal(stats.spool_used, 0);
	journal_close(other);
	assert_int_equal(draft_drop(d, NULL), 0);
	fixture_end(&f);
}

static int ignore(void *ctx, const struct journal_item *item)
{
	return 0;
}

static void unreadable_drafts_count(void **state)
{
	struct overlay_fixture f;
	char id[JOURNAL_ID], path[128];
	glob_t found;
	fixture_begin(&f, LIMIT);
	make_left(&f, id);
	snprintf(path, sizeof(path), "%s/2/*/*/draft", f.path);
	assert_int_equal(glob(path, 0, NULL, &found), 0);
	assert_int_equal(truncate(found.gl_pathv[0], 7), 0);
	globfree(&found);
	assert_int_equal(journal_list(f.j, ignore, NULL, NULL), 0);
	assert_in_range(left(&f), SIZE, SIZE + (64 << 10));
	reopen(&f);
	assert_in_range(left(&f), SIZE, SIZE + (64 << 10));
	assert_int_equal(journal_drop(f.j, id, NULL), 0);
	assert_int_equal(left(&f), 0);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_draft_that_is_left_counts),
		cmocka_unit_test(the_map_of_a_draft_counts),
		cmocka_unit_test(a_recovered_draft_gives_its_room_back),
		cmocka_unit_test(an_open_draft_does_not_count),
		cmocka_unit_test(unreadable_drafts_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
