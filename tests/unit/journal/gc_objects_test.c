/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of removed objects: in a draft, of a process, and of a process that has ended. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <journal/gc_log.h>
#include <overlay/draft_plan.h>
#include <journal/gc_objects.h>

#include "overlay_fixture.h"

static struct gc_object objects[] = {{"d-1", "etag"}, {"g-2", ""}};
static const struct gc_objects_list list = {
	.path = "home/a.h5", .root = "g-0", .count = 2, .objects = objects};

struct rig {
	struct overlay_fixture f;
	struct draft *d;
	struct gc_log *l;
};

static void rig_begin(struct rig *r)
{
	struct draft_about about = {
		.kind = DRAFT_NEW, .path = "home/a.h5", .name = "/home/a.h5", .version = ""};
	struct err err = ERR_INIT;
	fixture_begin(&r->f, 8 << 20);
	if (draft_create(r->f.j, &about, NULL, &r->d, &err) || gc_log_new(r->f.j, &r->l, &err))
		fail_msg("%s", err.msg);
}

static void rig_end(struct rig *r)
{
	gc_log_free(r->l);
	assert_int_equal(draft_drop(r->d, NULL), 0);
	fixture_end(&r->f);
}

static void check_list(const struct gc_objects *r)
{
	const struct gc_objects_list *got = gc_objects_get(r);
	assert_string_equal(got->path, list.path);
	assert_string_equal(got->root, list.root);
	assert_int_equal(got->count, list.count);
	for (uint32_t i = 0; i < list.count; i++) {
		assert_string_equal(got->objects[i].id, objects[i].id);
		assert_string_equal(got->objects[i].version, objects[i].version);
	}
}

struct taken {
	struct gc_objects *r;
	int code;
};

static int take(void *ctx, struct gc_objects *r)
{
	struct taken *t = ctx;
	if (t->code)
		return t->code;
	assert_null(t->r);
	t->r = r;
	return 0;
}

/* What the next mount finds. */
static struct gc_objects *take_left(struct rig *r, struct gc_log_taken *counts)
{
	struct taken t = {0};
	assert_int_equal(gc_objects_take_left(r->l, take, &t, counts, NULL), 0);
	return t.r;
}

static struct gc_objects *put_and_take(struct rig *r)
{
	struct gc_objects *got;
	assert_int_equal(draft_put_removed(r->d, &list, NULL), 0);
	assert_int_equal(draft_take_removed(r->d, &got, NULL), 0);
	assert_non_null(got);
	return got;
}

/* Lists of processes, in the directory of the bucket. */
static size_t count_files(const struct rig *r)
{
	char pattern[128];
	glob_t found = {.gl_pathc = 0};
	snprintf(pattern, sizeof(pattern), "%s/1/*/*.removed", r->f.path);
	const int rc = glob(pattern, 0, NULL, &found);
	assert_true(rc == 0 || rc == GLOB_NOMATCH);
	const size_t n = found.gl_pathc;
	globfree(&found);
	return n;
}

static void a_draft_has_a_list_until_it_is_taken(void **state)
{
	struct rig r;
	struct gc_objects *got;
	struct gc_log_taken counts;
	rig_begin(&r);
	assert_int_equal(draft_take_removed(r.d, &got, NULL), 0);
	assert_null(got);
	assert_int_equal(draft_put_removed(r.d, &list, NULL), 0);
	assert_null(take_left(&r, &counts)); /* it is not done */
	assert_int_equal(draft_put_removed(r.d, NULL, NULL), 0);
	assert_int_equal(draft_take_removed(r.d, &got, NULL), 0);
	assert_null(got);
	assert_int_equal(draft_put_removed(r.d, &list, NULL), 0);
	assert_int_equal(draft_remove_plan(r.d, NULL), 0); /* with all that belongs to it */
	assert_int_equal(draft_take_removed(r.d, &got, NULL), 0);
	assert_null(got);
	got = put_and_take(&r);
	check_list(got);
	assert_int_equal(count_files(&r), 1);
	gc_objects_forget(r.l, got);
	assert_int_equal(count_files(&r), 0);
	assert_null(take_left(&r, &counts));
	rig_end(&r);
}

static void a_draft_of_an_earlier_process_gets_no_list(void **state)
{
	struct rig r;
	struct gc_objects *got;
	char id[JOURNAL_ID];
	rig_begin(&r);
	memcpy(id, draft_id(r.d), JOURNAL_ID);
	draft_close(r.d);
	assert_int_equal(draft_open(r.f.j, id, NULL, &r.d, NULL), 0);
	assert_int_equal(draft_put_removed(r.d, &list, NULL), -EROFS);
	assert_int_equal(draft_take_removed(r.d, &got, NULL), 0);
	assert_null(got);
	rig_end(&r);
}

static void a_later_process_takes_it_over(void **state)
{
	struct rig r;
	struct gc_log_taken counts;
	struct taken refuses = {.code = -ENOMEM};
	rig_begin(&r);
	struct gc_objects *got = put_and_take(&r);
	assert_null(take_left(&r, &counts)); /* its process lives */
	gc_objects_close(got);
	gc_objects_close(NULL);
	assert_int_equal(gc_objects_take_left(r.l, take, &refuses, &counts, NULL), -ENOMEM);
	got = take_left(&r, &counts);
	assert_non_null(got);
	assert_int_equal(counts.entries, 1);
	check_list(got);
	gc_objects_close(got);
	got = take_left(&r, &counts);
	assert_non_null(got);
	gc_objects_forget(r.l, got);
	assert_null(take_left(&r, &counts));
	rig_end(&r);
}

/* Writes bytes into each list that no process has. */
static void damage(struct rig *r, uint64_t at, const void *bytes, size_t n)
{
	char command[1200];
	snprintf(command, sizeof(command), "ls %s/1/*/*.removed", r->f.path);
	FILE *p = popen(command, "r");
	char path[1024];
	assert_non_null(p);
	while (fgets(path, sizeof(path), p)) {
		path[strcspn(path, "\n")] = '\0';
		const int fd = open(path, O_WRONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(pwrite(fd, bytes, n, (off_t)at), n);
		close(fd);
	}
	pclose(p);
}

static void damaged_lists_are_set_aside(void **state)
{
	struct rig r;
	struct gc_log_taken counts;
	rig_begin(&r);
	gc_objects_close(put_and_take(&r));
	damage(&r, 30, "X", 1);
	assert_null(take_left(&r, &counts));
	assert_int_equal(counts.set_aside, 1);
	assert_null(take_left(&r, &counts));
	assert_int_equal(counts.set_aside, 0);
	rig_end(&r);
}

static void lists_are_checked_before_they_are_written(void **state)
{
	struct rig r;
	char long_path[GC_PATH + 2];
	struct gc_object bad = {"", "v"};
	struct gc_objects_list l = list;
	rig_begin(&r);
	memset(long_path, 'a', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	l.path = long_path;
	assert_int_equal(draft_put_removed(r.d, &l, NULL), -EINVAL);
	l = list;
	l.root = "";
	assert_int_equal(draft_put_removed(r.d, &l, NULL), -EINVAL);
	l = list;
	l.count = 1;
	l.objects = &bad;
	assert_int_equal(draft_put_removed(r.d, &l, NULL), -EINVAL);
	rig_end(&r);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_draft_has_a_list_until_it_is_taken),
		TEST(a_draft_of_an_earlier_process_gets_no_list),
		TEST(a_later_process_takes_it_over),
		TEST(damaged_lists_are_set_aside),
		TEST(lists_are_checked_before_they_are_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
