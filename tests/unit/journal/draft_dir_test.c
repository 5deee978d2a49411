/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a draft, and its lock. */
#include "disk_calls.h"

#include "overlay_fixture.h"

struct rig {
	struct overlay_fixture f;
	struct draft *d; /* of another process */
	char id[JOURNAL_ID];
};

static void begin(struct rig *r)
{
	fixture_begin(&r->f, 1 << 30);
	r->d = make_draft(&r->f, &about_new);
	memcpy(r->id, draft_id(r->d), JOURNAL_ID);
}

static int open_code(struct rig *r, const char *name)
{
	struct draft *d;
	const int rc = draft_open(r->f.j, r->id, NULL, &d, NULL);
	if (rc)
		return rc;
	assert_string_equal(draft_get_about(d)->name, name);
	assert_int_equal(draft_drop(d, NULL), 0);
	return 0;
}

static void describe(void *ctx)
{
	struct rig *r = ctx;
	assert_int_equal(draft_describe(r->d, "home/u/b", "/home/u/b.h5", "", NULL), 0);
}

static void describe_and_close(void *ctx)
{
	struct rig *r = ctx;
	describe(r);
	draft_close(r->d);
	r->d = NULL;
}

/* Another process replaces the description after it was opened, and before it is locked. The lock
 * of the old file means nothing. */
static void a_description_is_replaced_before_it_is_locked(void **state)
{
	struct rig r;
	begin(&r);
	disk.ctx = &r;
	disk.other = describe;
	assert_int_equal(open_code(&r, ""), -EBUSY);
	disk.other = describe_and_close;
	assert_int_equal(open_code(&r, "/home/u/b.h5"), 0);
	fixture_end(&r.f);
}

/* Not -EBUSY: the recovery passes over drafts that another process has open. */
static void a_failed_lock_is_an_error(void **state)
{
	struct rig r;
	begin(&r);
	assert_int_equal(open_code(&r, ""), -EBUSY);
	describe_and_close(&r);
	disk.reads = true;
	disk_fail(FAILS_FOR_GOOD, 3, ENOLCK); /* after the directory and the file were opened */
	assert_int_equal(open_code(&r, ""), -ENOLCK);
	assert_string_equal(disk.failed, "flock");
	disk.how = WORKS;
	assert_int_equal(open_code(&r, "/home/u/b.h5"), 0);
	fixture_end(&r.f);
}

static int note_unreadable(void *ctx, const struct journal_item *item)
{
	assert_int_equal(item->state, JOURNAL_UNREADABLE);
	++*(unsigned int *)ctx;
	return 0;
}

/* Its first bytes would be those of a description that is right. */
static void a_description_that_is_too_long_is_refused(void **state)
{
	struct rig r;
	struct err err = ERR_INIT;
	struct draft *d;
	char command[160];
	unsigned int n = 0;
	begin(&r);
	draft_close(r.d);
	snprintf(command, sizeof(command), "printf x >> $(echo %s/2/*/%s/draft)", r.f.path, r.id);
	assert_int_equal(system(command), 0);
	assert_int_equal(draft_open(r.f.j, r.id, NULL, &d, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "4097"));
	assert_int_equal(journal_list(r.f.j, note_unreadable, &n, NULL), 0);
	assert_int_equal(n, 1);
	/* As after a restart: what was set aside takes room. */
	journal_close(r.f.j);
	fixture_open(&r.f, 1 << 30);
	fixture_end(&r.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_description_is_replaced_before_it_is_locked),
		cmocka_unit_test(a_failed_lock_is_an_error),
		cmocka_unit_test(a_description_that_is_too_long_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
