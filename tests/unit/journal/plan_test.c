/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: what was put is read again, also by a later process, with the bytes that they mean. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <glob.h>

#include <overlay/draft_plan.h>

#include <journal/plan_codec.h>
#include "overlay_fixture.h"

static const struct plan_operation operations[] = {
	{.action = PLAN_PUT,
	 .condition = PLAN_IF_ABSENT,
	 .body = PLAN_RANGE,
	 .phase = 1,
	 .key = "chunk",
	 .version = "",
	 .offset = 2,
	 .length = 5,
	 .sha256 = "digest"},
	{.action = PLAN_PUT,
	 .condition = PLAN_IF_VERSION,
	 .body = PLAN_INLINE,
	 .phase = 2,
	 .key = "document",
	 .version = "\"etag\"",
	 .bytes = "{}",
	 .length = 2,
	 .sha256 = "other"},
	{.action = PLAN_DELETE, .phase = 3, .key = "old", .version = ""},
};

/* A plan with a body of each kind. */
static const char large[PLAN_INLINE_MAX + 1] = "a document that is too large for the plan";

enum { COUNT = sizeof(operations) / sizeof(operations[0]) };

/* A draft with a snapshot of the 8 bytes "original". */
static struct draft *make_sealed(struct overlay_fixture *f, struct draft_snapshot **s)
{
	fixture_begin(f, 1 << 20);
	struct draft *d = make_draft(f, &about_new);
	assert_int_equal(draft_write(d, 0, "original", 8, NULL), 0);
	assert_int_equal(draft_seal(d, s, NULL), 0);
	return d;
}

static void compare(const struct plan *plan)
{
	assert_int_equal(plan->count, COUNT);
	assert_int_equal(plan->size, 8);
	for (uint32_t i = 0; i < COUNT; i++) {
		const struct plan_operation *a = &operations[i], *b = &plan->operations[i];
		assert_int_equal(a->action, b->action);
		assert_int_equal(a->condition, b->condition);
		assert_int_equal(a->body, b->body);
		assert_int_equal(a->phase, b->phase);
		assert_int_equal(a->offset, b->offset);
		assert_int_equal(a->length, b->length);
		assert_string_equal(a->key, b->key);
		assert_string_equal(a->version, b->version);
		assert_memory_equal(a->sha256, b->sha256, PLAN_DIGEST);
	}
	assert_memory_equal(plan->operations[1].bytes, "{}", 2);
}

static void a_later_process_finishes_a_plan(void **state)
{
	struct overlay_fixture f;
	struct draft_snapshot *s;
	struct plan plan;
	char id[JOURNAL_ID], bytes[8];
	struct draft *d = make_sealed(&f, &s);
	assert_int_equal(draft_get_plan(d, &plan, NULL), -ENOENT);
	assert_int_equal(draft_put_plan(d, operations, COUNT, NULL, NULL), 0);
	assert_int_equal(draft_note_operation(d, 1, PLAN_DONE, NULL), 0);
	/* The program goes on. */
	assert_int_equal(draft_write(d, 2, "changed", 7, NULL), 0);
	assert_int_equal(draft_resize(d, 5, NULL), 0);
	memcpy(id, draft_id(d), JOURNAL_ID);
	draft_snapshot_close(s);
	draft_close(d);
	/* The plan is durable, and so is what it needs. */
	journal_close(f.j);
	memcpy(f.boot, "other boot", 10);
	fixture_open(&f, 1 << 20);
	assert_int_equal(draft_open(f.j, id, NULL, &d, NULL), 0);
	assert_int_equal(draft_get_plan(d, &plan, NULL), 0);
	compare(&plan);
	assert_false(plan.operations[0].done);
	assert_true(plan.operations[1].done);
	plan_release(&plan);
	assert_int_equal(draft_seal(d, &s, NULL), 0);
	assert_int_equal(draft_snapshot_source(s)->size, 8);
	assert_int_equal(source_read(draft_snapshot_source(s), 0, bytes, 8, NULL), 0);
	assert_memory_equal(bytes, "original", 8);
	assert_int_equal(draft_put_plan(d, operations, COUNT, NULL, NULL), -EROFS);
	/* What was done may be taken back. */
	assert_int_equal(draft_note_operation(d, 1, PLAN_VOID, NULL), 0);
	assert_int_equal(draft_get_plan(d, &plan, NULL), 0);
	assert_false(plan.operations[1].done);
	plan_release(&plan);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(draft_note_operation(d, i, PLAN_DONE, NULL), 0);
	assert_int_equal(draft_get_plan(d, &plan, NULL), 0);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_true(plan.operations[i].done);
	plan_release(&plan);
	draft_snapshot_close(s);
	assert_int_equal(draft_remove_plan(d, NULL), 0);
	assert_int_equal(draft_get_plan(d, &plan, NULL), -ENOENT);
	assert_int_equal(draft_drop(d, NULL), 0);
	fixture_end(&f);
}

static void what_was_done_belongs_to_one_plan(void **state)
{
	struct overlay_fixture f;
	struct draft_snapshot *s;
	struct plan plan;
	char path[128];
	glob_t found;
	struct draft *d = make_sealed(&f, &s);
	assert_int_equal(draft_put_plan(d, operations, COUNT, NULL, NULL), 0);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(draft_note_operation(d, i, PLAN_DONE, NULL), 0);
	/* A crash may leave the old file beside the new plan. */
	snprintf(path, sizeof(path), "%s/2/*/*/done", f.path);
	assert_int_equal(glob(path, 0, NULL, &found), 0);
	snprintf(path, sizeof(path), "%s/kept", f.path);
	assert_int_equal(link(found.gl_pathv[0], path), 0);
	assert_int_equal(draft_put_plan(d, operations, COUNT, NULL, NULL), 0);
	assert_int_equal(link(path, found.gl_pathv[0]), 0);
	assert_int_equal(truncate(found.gl_pathv[0], 2 * 24 + 7), 0);
	assert_int_equal(draft_note_operation(d, 2, PLAN_DONE, NULL), 0);
	assert_int_equal(draft_get_plan(d, &plan, NULL), 0);
	assert_false(plan.operations[0].done || plan.operations[1].done);
	assert_true(plan.operations[2].done);
	plan_release(&plan);
	globfree(&found);
	draft_snapshot_close(s);
	assert_int_equal(draft_put_plan(d, operations, COUNT, NULL, NULL), -EINVAL);
	assert_int_equal(draft_drop(d, NULL), 0);
	fixture_end(&f);
}

static void make_bodies(struct draft *d, struct plan_operation ops[3])
{
	for (unsigned int i = 0; i < 3; i++)
		ops[i] = (struct plan_operation){.action = PLAN_PUT, .key = "key", .version = ""};
	assert_int_equal(draft_set_body(d, &ops[0], "small", 5, NULL), 0);
	assert_int_equal(draft_set_body(d, &ops[1], large, sizeof(large), NULL), 0);
	ops[2].body = PLAN_RANGE;
	ops[2].offset = 3;
	ops[2].length = 4;
	plan_digest("gina", 4, ops[2].sha256);
	assert_int_equal(ops[0].body, PLAN_INLINE);
	assert_int_equal(ops[1].body, PLAN_FILE);
}

static void assert_bodies(struct draft *d, struct draft_snapshot *s, int code)
{
	static char bytes[sizeof(large)];
	struct plan plan;
	assert_int_equal(draft_get_plan(d, &plan, NULL), 0);
	assert_int_equal(plan.count, 3);
	assert_int_equal(draft_read_planned(d, s, &plan.operations[0], bytes, NULL), 0);
	assert_memory_equal(bytes, "small", 5);
	assert_int_equal(draft_read_planned(d, s, &plan.operations[1], bytes, NULL), code);
	if (code == 0)
		assert_memory_equal(bytes, large, sizeof(large));
	assert_int_equal(draft_read_planned(d, s, &plan.operations[2], bytes, NULL), 0);
	assert_memory_equal(bytes, "gina", 4);
	plan.operations[2].offset = 2;
	assert_int_equal(draft_read_planned(d, s, &plan.operations[2], bytes, NULL), -EBADMSG);
	plan_release(&plan);
}

static void open_later(struct overlay_fixture *f, const char *id, struct draft **d)
{
	struct err err = ERR_INIT;
	journal_close(f->j);
	fixture_open(f, 1 << 20);
	if (draft_open(f->j, id, NULL, d, &err))
		fail_msg("%s", err.msg);
}

static char *path_of(const struct overlay_fixture *f, const char *name)
{
	static char path[256];
	glob_t found;
	snprintf(path, sizeof(path), "%s/2/*/*/%s", f->path, name);
	assert_int_equal(glob(path, 0, NULL, &found), 0);
	snprintf(path, sizeof(path), "%s", found.gl_pathv[0]);
	globfree(&found);
	return path;
}

static void bodies_outlive_the_process(void **state)
{
	struct overlay_fixture f;
	struct draft_snapshot *s;
	struct plan_operation ops[3];
	struct stat st;
	char id[JOURNAL_ID], path[256];
	struct draft *d = make_sealed(&f, &s);
	make_bodies(d, ops);
	assert_int_equal(draft_put_plan(d, ops, 3, NULL, NULL), 0);
	assert_bodies(d, s, 0);
	memcpy(id, draft_id(d), JOURNAL_ID);
	draft_snapshot_close(s);
	draft_close(d);
	open_later(&f, id, &d);
	assert_int_equal(draft_seal(d, &s, NULL), 0);
	assert_bodies(d, s, 0);
	assert_int_equal(draft_add_body(d, "a", 1, &ops[0].offset, NULL), -EROFS);
	draft_snapshot_close(s);
	snprintf(path, sizeof(path), "%s", path_of(&f, "bodies"));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(draft_remove_plan(d, NULL), 0);
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(draft_drop(d, NULL), 0);
	struct journal_stats stats;
	journal_get_stats(f.j, &stats);
	assert_int_equal(stats.spool_used, 0);
	fixture_end(&f);
}

/* A process leaves a draft with bodies; their file is changed. */
static struct draft *make_left(struct overlay_fixture *f, char id[JOURNAL_ID])
{
	struct draft_snapshot *s;
	struct plan_operation ops[3];
	struct draft *d = make_sealed(f, &s);
	make_bodies(d, ops);
	assert_int_equal(draft_put_plan(d, ops, 3, NULL, NULL), 0);
	memcpy(id, draft_id(d), JOURNAL_ID);
	draft_snapshot_close(s);
	draft_close(d);
	return NULL;
}

static void a_changed_body_is_noticed(void **state)
{
	struct overlay_fixture f;
	struct draft_snapshot *s;
	char id[JOURNAL_ID];
	struct draft *d = make_left(&f, id);
	const int fd = open(path_of(&f, "bodies"), O_WRONLY);
	assert_int_equal(pwrite(fd, "A", 1, 0), 1);
	open_later(&f, id, &d);
	assert_int_equal(draft_seal(d, &s, NULL), 0);
	assert_bodies(d, s, -EBADMSG);
	assert_int_equal(ftruncate(fd, 7), 0);
	assert_bodies(d, s, -EBADMSG);
	draft_snapshot_close(s);
	close(fd);
	assert_int_equal(draft_drop(d, NULL), 0);
	fixture_end(&f);
}

static void missing_bodies_make_a_draft_unreadable(void **state)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct overlay_fixture f;
		char id[JOURNAL_ID];
		struct err err = ERR_INIT;
		struct draft *d = make_left(&f, id);
		if (i == 0)
			assert_int_equal(unlink(path_of(&f, "bodies")), 0);
		else
			assert_int_equal(truncate(path_of(&f, "bodies"), sizeof(large) - 1), 0);
		assert_int_equal(draft_open(f.j, id, NULL, &d, &err), -EBADMSG);
		assert_non_null(strstr(err.msg, i == 0 ? "is missing" : "the plan needs 65537"));
		assert_int_equal(journal_drop(f.j, id, NULL), 0);
		fixture_end(&f);
	}
}

static void a_plan_names_only_bodies_that_exist(void **state)
{
	struct overlay_fixture f;
	struct draft_snapshot *s;
	struct plan_operation ops[3];
	struct draft *d = make_sealed(&f, &s);
	const uint64_t used = room_used(&f);
	make_bodies(d, ops);
	assert_int_equal(room_used(&f), used + 17 * 4096);
	ops[1].offset = 1;
	assert_int_equal(draft_put_plan(d, ops, 3, NULL, NULL), -EINVAL);
	assert_int_equal(draft_remove_plan(d, NULL), 0);
	ops[1].offset = 0;
	assert_int_equal(draft_put_plan(d, ops, 3, NULL, NULL), -EINVAL);
	assert_int_equal(room_used(&f), used);
	draft_snapshot_close(s);
	assert_int_equal(draft_drop(d, NULL), 0);
	fixture_end(&f);
}

/* The plan stays because the bucket cannot be reached, and the program goes on. */
static void the_snapshot_of_a_plan_does_not_change(void **state)
{
	struct overlay_fixture f;
	struct draft_snapshot *s;
	char id[JOURNAL_ID], bytes[8];
	struct draft *d = make_sealed(&f, &s);
	assert_int_equal(draft_put_plan(d, operations, COUNT, NULL, NULL), 0);
	for (unsigned int i = 0; i < 3; i++) {
		draft_snapshot_close(s);
		assert_int_equal(draft_write(d, i, "changed", 7, NULL), 0);
		assert_int_equal(draft_seal(d, &s, NULL), 0);
		assert_int_equal(draft_snapshot_source(s)->size, 8);
		assert_int_equal(source_read(draft_snapshot_source(s), 0, bytes, 8, NULL), 0);
		assert_memory_equal(bytes, "original", 8);
	}
	draft_snapshot_close(s);
	assert_int_equal(size_of(d), 9);
	memcpy(id, draft_id(d), JOURNAL_ID);
	draft_close(d);
	open_later(&f, id, &d);
	assert_int_equal(draft_seal(d, &s, NULL), 0);
	assert_int_equal(source_read(draft_snapshot_source(s), 0, bytes, 8, NULL), 0);
	assert_memory_equal(bytes, "original", 8);
	draft_snapshot_close(s);
	assert_int_equal(draft_drop(d, NULL), 0);
	fixture_end(&f);
}

static void without_a_plan_the_next_snapshot_is_new(void **state)
{
	struct overlay_fixture f;
	struct draft_snapshot *s;
	char bytes[7];
	struct draft *d = make_sealed(&f, &s);
	assert_int_equal(draft_put_plan(d, operations, COUNT, NULL, NULL), 0);
	draft_snapshot_close(s);
	assert_int_equal(draft_write(d, 2, "changed", 7, NULL), 0);
	assert_int_equal(draft_remove_plan(d, NULL), 0);
	assert_int_equal(draft_seal(d, &s, NULL), 0);
	assert_int_equal(draft_snapshot_source(s)->size, 9);
	assert_int_equal(source_read(draft_snapshot_source(s), 2, bytes, 7, NULL), 0);
	assert_memory_equal(bytes, "changed", 7);
	draft_snapshot_close(s);
	assert_int_equal(draft_drop(d, NULL), 0);
	fixture_end(&f);
}

/* 100,000 operations, with keys as those of chunks and with documents of 1 KiB. */
static void a_large_plan_fits(void **state)
{
	enum { MANY = 100000 };
	static char keys[MANY][88];
	struct overlay_fixture f;
	struct draft_snapshot *s;
	struct plan plan;
	struct stat st;
	static char document[1024] = "{}", read[1024];
	struct plan_operation *ops = calloc(MANY, sizeof(*ops));
	assert_non_null(ops);
	fixture_begin(&f, 256 << 20);
	struct draft *d = make_draft(&f, &about_new);
	assert_int_equal(draft_write(d, 0, "original", 8, NULL), 0);
	assert_int_equal(draft_seal(d, &s, NULL), 0);
	for (unsigned int i = 0; i < MANY; i++) {
		snprintf(keys[i], sizeof(keys[i]),
			 "db/0568d8c5-a77e-11e4/d/4f7e-3f9e15-5cf0da/.dataset-%06u.json", i);
		ops[i] = (struct plan_operation){.action = PLAN_PUT,
						 .condition = PLAN_IF_VERSION,
						 .key = keys[i],
						 .version = "0123456789abcdef0123456789abcdef"};
		assert_int_equal(draft_set_body(d, &ops[i], document, sizeof(document), NULL), 0);
	}
	assert_int_equal(draft_put_plan(d, ops, MANY, NULL, NULL), 0);
	assert_int_equal(stat(path_of(&f, "plan"), &st), 0);
	assert_in_range(st.st_size, MANY * 100, MANY * 170 + PLAN_INLINE_SUM);
	assert_int_equal(draft_get_plan(d, &plan, NULL), 0);
	assert_int_equal(plan.count, MANY);
	for (unsigned int i = 0; i < MANY; i += MANY - 1)
		assert_int_equal(draft_read_planned(d, s, &plan.operations[i], read, NULL), 0);
	assert_memory_equal(read, document, sizeof(document));
	plan_release(&plan);
	draft_snapshot_close(s);
	assert_int_equal(draft_drop(d, NULL), 0);
	free(ops);
	fixture_end(&f);
}

static void an_invalid_operation_is_refused(void **state)
{
	static const struct {
		struct plan_operation op;
		const char *why;
	} cases[] = {
		{{.action = 3, .key = "k", .version = ""}, "an unknown action"},
		{{.action = PLAN_PUT, .key = "k", .version = ""},
		 "a body that does not fit its action"},
		{{.action = PLAN_DELETE, .body = PLAN_INLINE, .key = "k", .version = ""},
		 "a body that does not fit its action"},
		{{.action = PLAN_DELETE, .key = "", .version = ""}, "no key"},
		{{.action = PLAN_DELETE, .condition = PLAN_IF_ABSENT, .key = "k", .version = ""},
		 "a condition that does not fit its action"},
		{{.action = PLAN_DELETE, .key = "k", .version = "v"},
		 "a version that does not fit its condition"},
		{{.action = PLAN_DELETE, .condition = PLAN_IF_VERSION, .key = "k", .version = ""},
		 "a version that does not fit its condition"},
		{{.action = PLAN_DELETE, .key = "k", .version = "", .length = 1},
		 "a length or a digest without a body"},
		{{.action = PLAN_PUT,
		  .body = PLAN_RANGE,
		  .key = "k",
		  .version = "",
		  .offset = 4,
		  .length = 5},
		 "a range outside of the file"},
		{{.action = PLAN_PUT,
		  .body = PLAN_FILE,
		  .key = "k",
		  .version = "",
		  .offset = UINT64_MAX,
		  .length = 5},
		 "a range outside of the file"},
		{{.action = PLAN_PUT, .body = PLAN_FILE, .key = "k", .version = ""},
		 "a range outside of the file"},
	};
	struct overlay_fixture f;
	struct draft_snapshot *s;
	struct draft *d = make_sealed(&f, &s);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = ERR_INIT;
		assert_int_equal(draft_put_plan(d, &cases[i].op, 1, NULL, &err), -EINVAL);
		if (!strstr(err.msg, cases[i].why))
			fail_msg("%s", err.msg);
	}
	draft_snapshot_close(s);
	assert_int_equal(draft_drop(d, NULL), 0);
	fixture_end(&f);
}

static void no_changed_byte_of_a_plan_is_believed(void **state)
{
	struct overlay_fixture f;
	struct draft_snapshot *s;
	struct plan plan;
	char path[128];
	uint8_t bytes[1024];
	glob_t found;
	struct draft *d = make_sealed(&f, &s);
	assert_int_equal(draft_put_plan(d, operations, COUNT, NULL, NULL), 0);
	snprintf(path, sizeof(path), "%s/2/*/*/plan", f.path);
	assert_int_equal(glob(path, 0, NULL, &found), 0);
	const int fd = open(found.gl_pathv[0], O_RDWR);
	const ssize_t n = read(fd, bytes, sizeof(bytes));
	assert_true(n > 0 && n < (ssize_t)sizeof(bytes));
	for (ssize_t i = 0; i < n; i++) {
		const uint8_t changed = bytes[i] ^ (uint8_t)(1 << i % 8);
		assert_int_equal(pwrite(fd, &changed, 1, i), 1);
		assert_int_equal(draft_get_plan(d, &plan, NULL), -EBADMSG);
		assert_int_equal(pwrite(fd, &bytes[i], 1, i), 1);
	}
	for (ssize_t i = n - 1; i >= 0; i--) {
		assert_int_equal(ftruncate(fd, i), 0);
		assert_int_equal(draft_get_plan(d, &plan, NULL), -EBADMSG);
	}
	close(fd);
	globfree(&found);
	draft_snapshot_close(s);
	assert_int_equal(draft_drop(d, NULL), 0);
	fixture_end(&f);
}

/* What a plan changes is in the journal, for a later process. */
static void a_plan_has_a_subject(void **state)
{
	const char *objects[] = {"d-1", "g-2"};
	uint64_t earlier[] = {7, UINT64_MAX};
	struct gc_object removed[] = {{"d-3", "etag"}, {"g-4", ""}};
	const struct plan_subject subject = {.root = "g-root",
					     .objects = objects,
					     .count = 2,
					     .earlier = earlier,
					     .nearlier = 2,
					     .removed = removed,
					     .nremoved = 2};
	struct plan plan = {.number = 0x123456789abcdef0, .generation = 1, .subject = subject};
	struct plan read;
	auto_bytes struct bytes file = {0};
	char mark[PLAN_MARK];
	assert_int_equal(plan_encode(&plan, &file, NULL), 0);
	uint8_t *copy = malloc(file.len);
	memcpy(copy, file.data, file.len);
	assert_int_equal(plan_decode(copy, file.len, &read, NULL), 0);
	assert_string_equal(read.subject.root, "g-root");
	assert_true(read.subject.count == 2 && read.subject.nearlier == 2);
	assert_string_equal(read.subject.objects[1], "g-2");
	assert_true(read.subject.earlier[1] == UINT64_MAX);
	assert_int_equal(read.subject.nremoved, 2);
	assert_string_equal(read.subject.removed[0].id, "d-3");
	assert_string_equal(read.subject.removed[0].version, "etag");
	assert_string_equal(read.subject.removed[1].version, "");
	plan_mark(7, 3, mark);
	assert_string_equal(mark, "0000000000000007-3");
	assert_true(plan_has_mark(&read, mark));
	plan_mark(8, 3, mark);
	assert_false(plan_has_mark(&read, mark));
	assert_false(plan_has_mark(&read, ""));
	plan_release(&read);
}

/* The snapshot of a plan that could not be completed is made again. It has the changes since the
 * last commit, and not all of them. */
static void a_repeated_snapshot_has_the_same_changes(void **state)
{
	struct overlay_fixture f;
	struct draft_snapshot *s;
	fixture_begin(&f, 1 << 20);
	struct draft *d = make_draft(&f, &about_change);
	assert_int_equal(draft_write(d, 0, "first", 5, NULL), 0);
	assert_int_equal(draft_seal(d, &s, NULL), 0);
	draft_snapshot_accept(s);
	draft_snapshot_close(s);
	assert_int_equal(draft_write(d, 100, "second", 6, NULL), 0);
	assert_int_equal(draft_seal(d, &s, NULL), 0);
	assert_int_equal(draft_put_plan(d, operations, COUNT, NULL, NULL), 0);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(draft_snapshot_next_changed(s, 0, 200), 100);
		assert_int_equal(draft_snapshot_next_written(s, 0, 200), 0);
		draft_snapshot_close(s);
		assert_int_equal(draft_seal(d, &s, NULL), 0);
	}
	draft_snapshot_accept(s);
	assert_int_equal(draft_remove_plan(d, NULL), 0);
	draft_snapshot_close(s);
	assert_int_equal(draft_write(d, 150, "third", 5, NULL), 0);
	assert_int_equal(draft_seal(d, &s, NULL), 0);
	assert_int_equal(draft_snapshot_next_changed(s, 0, 200), 150);
	draft_snapshot_close(s);
	assert_int_equal(draft_drop(d, NULL), 0);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_repeated_snapshot_has_the_same_changes),
		cmocka_unit_test(a_plan_has_a_subject),
		cmocka_unit_test(a_later_process_finishes_a_plan),
		cmocka_unit_test(what_was_done_belongs_to_one_plan),
		cmocka_unit_test(bodies_outlive_the_process),
		cmocka_unit_test(a_changed_body_is_noticed),
		cmocka_unit_test(missing_bodies_make_a_draft_unreadable),
		cmocka_unit_test(a_plan_names_only_bodies_that_exist),
		cmocka_unit_test(the_snapshot_of_a_plan_does_not_change),
		cmocka_unit_test(without_a_plan_the_next_snapshot_is_new),
		cmocka_unit_test(a_large_plan_fits),
		cmocka_unit_test(an_invalid_operation_is_refused),
		cmocka_unit_test(no_changed_byte_of_a_plan_is_believed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
