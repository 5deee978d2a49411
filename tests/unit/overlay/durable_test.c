/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is durable when a function of the journal says so. The disk notes each file and directory
 * that has changed since its last fsync(): see disk_calls.h.
 */
#include "disk_calls.h"

#include <journal/gc_log.h>
#include <overlay/draft_plan.h>

#include "overlay_fixture.h"

/* Not durable, as doc/JOURNAL.md says: checksums, reasons for people, and what a plan has done. */
static const char *const exempt[] = {"sums.", "why", "done", NULL};

static void begin(struct overlay_fixture *f)
{
	disk_watch(exempt);
	fixture_begin(f, 1 << 30);
}

static void end(struct overlay_fixture *f, struct draft *d)
{
	disk_unwatch();
	assert_int_equal(draft_drop(d, NULL), 0);
	fixture_end(f);
}

static void write_at(struct draft *d, uint64_t offset, size_t n)
{
	static const uint8_t bytes[100000] = {1, 2, 3};
	struct err err = ERR_INIT;
	if (draft_write(d, offset, bytes, n, &err))
		fail_msg("%s", err.msg);
}

static void sync_ok(struct draft *d)
{
	struct err err = ERR_INIT;
	if (draft_sync(d, &err))
		fail_msg("%s", err.msg);
	disk_assert_durable("draft_sync()");
}

/* As at the beginning of a commit. A snapshot without a mark means nothing later. */
static struct draft_snapshot *seal_marked(struct draft *d)
{
	struct draft_snapshot *s;
	assert_int_equal(draft_seal(d, &s, NULL), 0);
	assert_int_equal(draft_mark(d, 3, NULL), 0);
	return s;
}

static struct disk_file look(const struct overlay_fixture *f, const struct draft *d,
			     const char *name)
{
	char path[256], found[256];
	snprintf(path, sizeof(path), "ls -d %s/2/*/%s/%s", f->path, draft_id(d), name);
	FILE *p = popen(path, "r");
	assert_non_null(p);
	assert_non_null(fgets(found, sizeof(found), p));
	assert_int_equal(pclose(p), 0);
	found[strcspn(found, "\n")] = '\0';
	return disk_look(found);
}

/* The names of a new draft, of its directory and of the journal, its bytes and its map. */
static void a_new_draft_is_synced_whole(void **state)
{
	struct overlay_fixture f;
	begin(&f);
	struct draft *d = make_draft(&f, &about_change);
	write_at(d, 5, 100000);
	assert_non_null(disk_dirty());
	sync_ok(d);
	const struct disk_file spool = look(&f, d, "spool.0"), map = look(&f, d, "map");
	assert_int_equal(spool.syncs, 1);
	assert_int_equal(map.syncs, 1);
	assert_int_equal(look(&f, d, "draft").syncs, 1);
	assert_int_equal(look(&f, d, "").syncs, 1);
	/* The map says that the bytes are durable, so it comes last. */
	assert_true(map.synced_at > spool.synced_at);
	assert_int_equal(map.synced_at, disk.syncs);
	/* Without a change, nothing is synced again. */
	sync_ok(d);
	assert_int_equal(map.synced_at, disk.syncs);
	write_at(d, 7, 1);
	sync_ok(d);
	assert_int_equal(look(&f, d, "spool.0").syncs, 2);
	assert_int_equal(look(&f, d, "map").syncs, 2);
	end(&f, d);
}

/* Each of the generations, also one that is new since the last sync. */
static void each_generation_is_synced(void **state)
{
	struct overlay_fixture f;
	struct draft_snapshot *s;
	begin(&f);
	struct draft *d = make_draft(&f, &about_new);
	write_at(d, 0, 70000);
	assert_int_equal(draft_seal(d, &s, NULL), 0);
	write_at(d, 10, 70000);
	sync_ok(d);
	assert_int_equal(look(&f, d, "spool.0").syncs, 1);
	assert_int_equal(look(&f, d, "spool.1").syncs, 1);
	draft_snapshot_close(s);
	/* The two are joined, and a third one begins. */
	assert_int_equal(draft_seal(d, &s, NULL), 0);
	write_at(d, 20, 70000);
	sync_ok(d);
	assert_int_equal(look(&f, d, "spool.2").syncs, 1);
	draft_snapshot_close(s);
	end(&f, d);
}

/* Random changes, with and without snapshots. */
static void any_changes_are_synced(void **state)
{
	struct overlay_fixture f;
	uint32_t random = 1;
	begin(&f);
	struct draft *d = make_draft(&f, &about_new);
	struct draft_snapshot *s = NULL;
	for (int i = 0; i < 400; i++) {
		random = random * 1664525 + 1013904223;
		const uint32_t at = random >> 8 & 0xffff, what = random >> 24 & 15;
		if (what < 6)
			write_at(d, at, 1 + at % 5000);
		else if (what < 8)
			assert_int_equal(draft_resize(d, at, NULL), 0);
		else if (what < 9)
			assert_int_equal(draft_allocate(d, FALLOC_FL_ZERO_RANGE, at, 5000, NULL),
					 0);
		else if (what < 10)
			assert_int_equal(draft_allocate(d, 0, at, 5000, NULL), 0);
		else if (what < 11)
			assert_int_equal(draft_mark(d, at, NULL), 0);
		else if (what < 13 && !s)
			s = seal_marked(d);
		else if (what < 13) {
			draft_snapshot_close(s);
			s = NULL;
		} else
			sync_ok(d);
	}
	draft_snapshot_close(s);
	sync_ok(d);
	end(&f, d);
}

static const char body[PLAN_INLINE_MAX + 1] = "a body that is too large for the plan";

static void put_plan(struct draft *d)
{
	struct plan_operation ops[] = {
		{.action = PLAN_PUT, .key = "small", .version = ""},
		{.action = PLAN_PUT, .key = "large", .version = ""},
	};
	struct err err = ERR_INIT;
	assert_int_equal(draft_set_body(d, &ops[0], "text", 4, NULL), 0);
	assert_int_equal(draft_set_body(d, &ops[1], body, sizeof(body), NULL), 0);
	struct draft_snapshot *s = seal_marked(d);
	if (draft_put_plan(d, ops, 2, NULL, &err))
		fail_msg("%s", err.msg);
	disk_assert_durable("draft_put_plan()");
	draft_snapshot_close(s);
}

/* The draft and the bodies first. */
static void a_plan_is_durable_with_what_it_needs(void **state)
{
	struct overlay_fixture f;
	begin(&f);
	struct draft *d = make_draft(&f, &about_new);
	for (int i = 0; i < 2; i++) {
		write_at(d, 100 * (uint64_t)i, 70000);
		put_plan(d);
		const struct disk_file plan = look(&f, d, "plan"), bodies = look(&f, d, "bodies");
		assert_true(plan.synced_at > bodies.synced_at);
		assert_true(bodies.synced_at > look(&f, d, "map").synced_at);
		assert_int_equal(look(&f, d, "").synced_at, disk.syncs);
		assert_int_equal(draft_remove_plan(d, NULL), 0);
	}
	end(&f, d);
}

/* A new name is durable at once if the draft was. Otherwise the next sync makes it durable. */
static void a_new_name_is_durable(void **state)
{
	struct overlay_fixture f;
	begin(&f);
	struct draft *d = make_draft(&f, &about_new);
	assert_int_equal(draft_describe(d, "home/u/b", "/home/u/b.h5", "", NULL), 0);
	sync_ok(d);
	assert_int_equal(draft_describe(d, "home/u/c", "/home/u/c.h5", "", NULL), 0);
	disk_assert_durable("draft_describe()");
	/* A version of the bucket never stands beside the mark of an earlier commit. */
	assert_int_equal(draft_mark(d, 4, NULL), 0);
	assert_int_equal(draft_describe(d, "home/u/c", "/home/u/c.h5", "o:2", NULL), 0);
	disk_assert_durable("draft_describe() after draft_mark()");
	end(&f, d);
}

/* After a power loss, the next mount repeats a commit if the map has no change after its mark. */
static void a_change_after_a_failed_commit_is_noted_first(void **state)
{
	struct overlay_fixture f;
	begin(&f);
	struct draft *d = make_draft(&f, &about_new);
	write_at(d, 0, 100);
	draft_snapshot_close(seal_marked(d));
	sync_ok(d);
	const struct disk_file before = look(&f, d, "map");
	write_at(d, 10, 5);
	const struct disk_file after = look(&f, d, "map");
	assert_int_equal(after.syncs, before.syncs + 1);
	assert_true(look(&f, d, "spool.0").is_dirty);
	write_at(d, 10, 6);
	assert_int_equal(look(&f, d, "map").syncs, after.syncs);
	sync_ok(d);
	end(&f, d);
}

/* Its checksums are those of the shorter spool. */
static void a_spool_that_was_cut_is_synced_again(void **state)
{
	struct overlay_fixture f;
	begin(&f);
	struct draft *d = make_draft(&f, &about_new);
	write_at(d, 0, 100000);
	sync_ok(d);
	assert_int_equal(draft_resize(d, 3000, NULL), 0);
	const struct disk_file cut = look(&f, d, "spool.0");
	sync_ok(d);
	assert_int_equal(look(&f, d, "spool.0").syncs, cut.syncs + 1);
	end(&f, d);
}

static void take(void *ctx, const struct gc_event *event, uint32_t number)
{
}

/* The caller removes the plan, which has the list, too, and then deletes objects of the bucket. */
static void a_list_of_removed_objects_is_durable(void **state)
{
	static struct gc_object objects[] = {{"d-1", "etag"}, {"g-2", ""}};
	static const struct gc_event list = {.type = GC_OBJECTS,
					     .path = "home/u/a",
					     .storage = "g-0",
					     .next = "",
					     .count = 2,
					     .objects = objects};
	struct overlay_fixture f;
	struct gc_log *l;
	struct gc_log_taken taken;
	uint32_t first = GC_NONE, second = GC_NONE;
	begin(&f);
	struct draft *d = make_draft(&f, &about_new);
	sync_ok(d);
	assert_int_equal(gc_log_new(f.j, &l, NULL), 0);
	assert_int_equal(gc_log_put(l, &first, &list, NULL), 0);
	disk_assert_durable("gc_log_put()");
	assert_int_equal(gc_log_put(l, &second, &list, NULL), 0);
	disk_assert_durable("gc_log_put()");
	/* Another process copies the lists, and deletes the file. */
	gc_log_free(l);
	assert_int_equal(gc_log_new(f.j, &l, NULL), 0);
	const unsigned int syncs = disk.syncs;
	assert_int_equal(gc_log_take(l, take, NULL, &taken, NULL), 0);
	assert_int_equal(taken.entries, 2);
	assert_int_equal(disk.syncs, syncs + 2); /* the new file and its name, for all entries */
	disk_assert_durable("gc_log_take()");
	gc_log_free(l);
	end(&f, d);
}

/* The mark of a draft that an earlier process has left. */
static void a_mark_of_a_resumed_draft_is_durable(void **state)
{
	struct overlay_fixture f;
	char id[JOURNAL_ID];
	begin(&f);
	struct draft *d = make_draft(&f, &about_new);
	write_at(d, 0, 1000);
	memcpy(id, draft_id(d), JOURNAL_ID);
	draft_close(d);
	assert_int_equal(draft_open(f.j, id, NULL, &d, NULL), 0);
	assert_int_equal(draft_resume(d, NULL), 0);
	struct draft_snapshot *s = seal_marked(d);
	disk_assert_durable("draft_mark()");
	draft_snapshot_close(s);
	end(&f, d);
}

/* Whichever call of a sync fails, the draft is not durable. The kernel reports a lost page once, so
 * no later sync may succeed. */
static void each_failed_sync_is_an_error(void **state)
{
	unsigned int failed = 0;
	for (unsigned int n = 1; failed + 1 == n; n++) {
		struct overlay_fixture f;
		struct draft_snapshot *s;
		begin(&f);
		struct draft *d = make_draft(&f, &about_new);
		write_at(d, 0, 70000);
		assert_int_equal(draft_seal(d, &s, NULL), 0);
		write_at(d, 10, 70000);
		disk_fail(FAILS_ONCE, n, EIO);
		const int rc = draft_sync(d, NULL);
		const bool reached = disk.calls >= n;
		disk.how = WORKS;
		assert_int_equal(rc, reached ? -EIO : 0);
		failed += reached;
		if (reached)
			assert_int_equal(draft_sync(d, NULL), -EIO);
		draft_snapshot_close(s);
		end(&f, d);
	}
	/* The description, four directories, two spools, the record of the map, the map. */
	assert_int_equal(failed, 9);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_draft_is_synced_whole),
		TEST(each_generation_is_synced),
		TEST(any_changes_are_synced),
		TEST(a_plan_is_durable_with_what_it_needs),
		TEST(a_new_name_is_durable),
		TEST(a_spool_that_was_cut_is_synced_again),
		TEST(a_change_after_a_failed_commit_is_noted_first),
		TEST(a_list_of_removed_objects_is_durable),
		TEST(a_mark_of_a_resumed_draft_is_durable),
		TEST(each_failed_sync_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
