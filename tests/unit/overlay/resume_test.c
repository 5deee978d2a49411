/* SPDX-License-Identifier: Apache-2.0 */
/* A commit of a draft of an earlier process: its map is opened again for appending, whatever it
 * ends with, and a later process finds what was noted. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <glob.h>

#include <overlay/draft_plan.h>

#include "overlay_fixture.h"

enum { RECORD = 32, NOTED = 3 /* records: SEAL, MARK, SYNC */, MAP_MAX = 4096, FILE_MAX = 8192 };

struct state {
	struct overlay_fixture f;
	char id[JOURNAL_ID];
	char map[200];
	uint8_t bytes[MAP_MAX];
	size_t n;
};

static size_t read_map(const struct state *s, uint8_t bytes[MAP_MAX])
{
	FILE *f = fopen(s->map, "rb");
	assert_non_null(f);
	const size_t n = fread(bytes, 1, MAP_MAX, f);
	fclose(f);
	return n;
}

static void write_map(const struct state *s, const uint8_t *bytes, size_t n)
{
	FILE *f = fopen(s->map, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

/* A draft with two generations and, at its end, bytes that were written after a sync. */
static void begin(struct state *s)
{
	struct draft_snapshot *snapshot;
	char pattern[160];
	glob_t found;
	memset(s, 0, sizeof(*s));
	fixture_begin(&s->f, 1 << 30);
	struct draft *d = make_draft(&s->f, &about_new);
	memcpy(s->id, draft_id(d), JOURNAL_ID);
	assert_int_equal(draft_write(d, 0, "first", 5, NULL), 0);
	assert_int_equal(draft_write(d, 5000, "second", 6, NULL), 0);
	assert_int_equal(draft_mark(d, 4, NULL), 0);
	assert_int_equal(draft_seal(d, &snapshot, NULL), 0);
	assert_int_equal(draft_write(d, 2, "third", 5, NULL), 0);
	draft_snapshot_close(snapshot);
	assert_int_equal(draft_sync(d, NULL), 0);
	assert_int_equal(draft_resize(d, 6000, NULL), 0);
	draft_close(d);
	snprintf(pattern, sizeof(pattern), "%s/2/*/%s/map", s->f.path, s->id);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	snprintf(s->map, sizeof(s->map), "%s", found.gl_pathv[0]);
	globfree(&found);
	s->n = read_map(s, s->bytes);
	assert_int_equal(s->n, 9 * RECORD);
}

static struct draft *open_draft(struct state *s)
{
	struct draft *d;
	struct err err = ERR_INIT;
	if (draft_open(s->f.j, s->id, NULL, &d, &err))
		fail_msg("%s", err.msg);
	return d;
}

static size_t read_file(struct draft *d, uint8_t bytes[FILE_MAX])
{
	size_t got;
	assert_int_equal(draft_read(d, 0, bytes, FILE_MAX, &got, NULL), 0);
	return got;
}

static void mark(struct draft *d, uint64_t value)
{
	struct err err = ERR_INIT;
	if (draft_mark(d, value, &err))
		fail_msg("%s", err.msg);
}

/* Compares the file, and returns its mark. *is_marked: nothing was written after it. */
static uint64_t check(struct state *s, const uint8_t *bytes, size_t n, bool *is_marked)
{
	static uint8_t found[FILE_MAX];
	struct draft_stat stat;
	struct draft *d = open_draft(s);
	assert_int_equal(read_file(d, found), n);
	assert_memory_equal(found, bytes, n);
	draft_get_stat(d, &stat);
	draft_close(d);
	*is_marked = stat.is_marked;
	return stat.mark;
}

/* Cuts the map that was appended to, of n records at first. */
static void cut_again(struct state *s, size_t n, uint64_t old, const uint8_t *file, size_t size)
{
	uint8_t bytes[MAP_MAX];
	bool is_marked;
	const size_t end = read_map(s, bytes);
	for (size_t at = n * RECORD; at <= end; at++) {
		const bool is_noted = at >= (n + 2) * RECORD;
		write_map(s, bytes, at);
		assert_int_equal(check(s, file, size, &is_marked), is_noted ? 99 : old);
		assert_true(is_marked || !is_noted);
	}
}

static void a_map_may_end_at_every_byte(void **state)
{
	static struct state s;
	static uint8_t file[FILE_MAX];
	uint8_t now[MAP_MAX];
	struct draft_stat stat;
	bool is_marked;
	begin(&s);
	for (size_t at = RECORD; at <= s.n; at++) {
		const size_t n = at / RECORD;
		write_map(&s, s.bytes, at);
		struct draft *d = open_draft(&s);
		const size_t size = read_file(d, file);
		draft_get_stat(d, &stat);
		assert_int_equal(draft_mark(d, 99, NULL), -EROFS);
		assert_int_equal(draft_resume(d, NULL), 0);
		/* Nothing has happened yet. */
		assert_int_equal(read_map(&s, now), at);
		assert_memory_equal(now, s.bytes, at);
		mark(d, 99);
		draft_close(d);
		assert_int_equal(read_map(&s, now), (n + NOTED) * RECORD);
		assert_memory_equal(now, s.bytes, n * RECORD);
		assert_int_equal(check(&s, file, size, &is_marked), 99);
		assert_true(is_marked);
		if (at % RECORD == 0)
			cut_again(&s, n, stat.mark, file, size);
	}
	fixture_end(&s.f);
}

/* The records that follow the sync do not count, and the mark does, after each restart. */
static void a_mark_survives_a_restart_of_the_machine(void **state)
{
	static struct state s;
	static uint8_t file[FILE_MAX];
	bool is_marked;
	begin(&s);
	for (int i = 0; i < 3; i++) {
		journal_close(s.f.j);
		snprintf((char *)s.f.boot, sizeof(s.f.boot), "boot %d", i);
		fixture_open(&s.f, 1 << 30);
		struct draft *d = open_draft(&s);
		const size_t size = read_file(d, file);
		assert_int_equal(size, 5006); /* not 6000 */
		assert_int_equal(draft_resume(d, NULL), 0);
		mark(d, 100 + (uint64_t)i);
		draft_close(d);
		assert_int_equal(check(&s, file, size, &is_marked), 100 + i);
		assert_true(is_marked);
	}
	fixture_end(&s.f);
}

static const char large[PLAN_INLINE_MAX + 1] = "a document that is too large for the plan";

static void put_plan(struct draft *d)
{
	struct plan_operation ops[2] = {
		{.action = PLAN_PUT, .key = "large", .version = ""},
		{.action = PLAN_PUT,
		 .phase = 1,
		 .body = PLAN_RANGE,
		 .key = "range",
		 .version = "",
		 .length = 7},
	};
	struct draft_snapshot *s;
	struct err err = ERR_INIT;
	assert_int_equal(draft_seal(d, &s, NULL), 0);
	plan_digest("fithird", 7, ops[1].sha256);
	if (draft_set_body(d, &ops[0], large, sizeof(large), &err) ||
	    draft_put_plan(d, ops, 2, NULL, &err) || draft_note_operation(d, 0, PLAN_DONE, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(ops[0].body, PLAN_FILE);
	draft_snapshot_close(s);
}

static void check_plan(struct state *s)
{
	static char bytes[sizeof(large)];
	struct plan plan;
	struct draft_snapshot *snapshot;
	struct draft *d = open_draft(s);
	assert_int_equal(draft_resume(d, NULL), -EINVAL); /* it must be completed */
	assert_int_equal(draft_seal(d, &snapshot, NULL), 0);
	assert_int_equal(draft_get_plan(d, &plan, NULL), 0);
	assert_int_equal(plan.count, 2);
	assert_true(plan.operations[0].done && !plan.operations[1].done);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(draft_read_planned(d, snapshot, &plan.operations[i], bytes, NULL),
				 0);
	assert_memory_equal(bytes, "fithird", 7);
	plan_release(&plan);
	draft_snapshot_close(snapshot);
	assert_int_equal(draft_drop(d, NULL), 0);
}

static void a_draft_gets_a_plan(void **state)
{
	static struct state s;
	begin(&s);
	struct draft *d = open_draft(&s);
	assert_int_equal(draft_resume(d, NULL), 0);
	mark(d, 7);
	put_plan(d);
	draft_close(d);
	check_plan(&s);
	fixture_end(&s.f);
}

/* The commit has ended, or was given up, in the process that has put the plan. */
static void a_plan_is_removed(void **state)
{
	static struct state s;
	for (int drops = 0; drops < 2; drops++) {
		begin(&s);
		struct draft *d = open_draft(&s);
		assert_int_equal(draft_resume(d, NULL), 0);
		put_plan(d);
		assert_int_equal(draft_remove_plan(d, NULL), 0);
		assert_int_equal(room_used(&s.f), 0);
		if (drops) {
			assert_int_equal(draft_drop(d, NULL), 0);
		} else {
			draft_close(d);
			assert_int_equal(draft_drop(open_draft(&s), NULL), 0);
		}
		fixture_end(&s.f);
	}
}

static void the_bytes_do_not_change(void **state)
{
	static struct state s;
	begin(&s);
	struct draft *d = open_draft(&s);
	assert_int_equal(draft_resume(d, NULL), 0);
	mark(d, 7);
	assert_int_equal(draft_write(d, 0, "x", 1, NULL), -EROFS);
	assert_int_equal(draft_resize(d, 0, NULL), -EROFS);
	assert_int_equal(draft_describe(d, "a", "a", "", NULL), -EROFS);
	draft_close(d);
	d = make_draft(&s.f, &about_new);
	assert_int_equal(draft_resume(d, NULL), -EINVAL); /* it is no draft of an earlier process */
	assert_int_equal(draft_drop(d, NULL), 0);
	fixture_end(&s.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_map_may_end_at_every_byte),
		cmocka_unit_test(a_mark_survives_a_restart_of_the_machine),
		cmocka_unit_test(a_draft_gets_a_plan),
		cmocka_unit_test(a_plan_is_removed),
		cmocka_unit_test(the_bytes_do_not_change),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
