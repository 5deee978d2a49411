/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a draft: what was written, holes, and what only the bucket has. */
#include "fixture.h"
#include "store_calls.h"

static const struct draft_about about_new = {
	.kind = DRAFT_NEW, .path = "home/a", .name = "home/a", .version = ""};

static void bytes_are_read_without_the_bucket(void **state)
{
	struct journal_dir j;
	struct engine_draft *d;
	struct draft *live;
	char id[JOURNAL_ID], buf[8];
	uint64_t start, end = 0;
	journal_begin(&j, *state);
	struct journal *journal = journal_of(&j, "no such bucket");
	assert_int_equal(draft_create(journal, &about_new, NULL, &live, NULL), 0);
	assert_int_equal(draft_write(live, 0, "head", 4, NULL), 0);
	assert_int_equal(draft_write(live, 1 << 20, "tail", 4, NULL), 0);
	assert_int_equal(draft_resize(live, 2 << 20, NULL), 0);
	memcpy(id, draft_id(live), JOURNAL_ID);
	const struct engine_options opt = journal_options();
	assert_int_equal(engine_draft_open(journal_drafts(&j), id, &opt, &d, &j.err), -EBUSY);
	draft_close(live);
	journal_close(journal);

	assert_int_equal(engine_draft_open(j.drafts, id, &opt, &d, &j.err), 0);
	assert_int_equal(engine_draft_size(d), 2 << 20);
	assert_true(engine_draft_next(d, &start, &end));
	assert_true(start == 0 && end == 4);
	assert_true(engine_draft_next(d, &start, &end));
	assert_true(start == 1 << 20 && end == (1 << 20) + 4);
	assert_int_equal(engine_draft_read(d, buf, 4, start, &j.err), 0);
	assert_memory_equal(buf, "tail", 4);
	assert_false(engine_draft_next(d, &start, &end));
	assert_int_equal(engine_draft_read(d, buf, 8, (2 << 20) - 4, &j.err), -EIO);
	engine_draft_close(d);
	journal_end(&j);
}

/* The version that a mount would have noted. */
static void read_version(struct journal_dir *j, const char *key, char *version, size_t room)
{
	struct store *store = store_dir_new(&j->env, j->b->dir, NULL);
	struct store_meta meta;
	assert_non_null(store);
	assert_int_equal(call_head(store, key, &meta, NULL), 0);
	snprintf(version, room, "o:%s", meta.etag);
	store_free(store);
}

static void bytes_beneath_come_from_the_bucket(void **state)
{
	struct journal_dir j;
	struct engine_draft *d;
	char id[2][JOURNAL_ID], buf[8], version[256];
	struct engine_options opt = journal_options();
	journal_begin(&j, *state);
	bucket_put(j.b, "home/a", "old bytes");
	read_version(&j, "home/a", version, sizeof(version));
	const struct draft_about about = {.kind = DRAFT_CHANGE,
					  .path = "home/a",
					  .name = "home/a",
					  .version = version,
					  .beneath = 9};
	journal_add(&j, "", &about, "new", 0, id[0]);
	journal_drafts(&j);
	int rc = engine_draft_open(j.drafts, id[0], &opt, &d, &j.err);
	if (rc)
		fail_msg("%s", j.err.msg);
	rc = engine_draft_read(d, buf, 5, 1, &j.err);
	if (rc)
		fail_msg("%s", j.err.msg);
	assert_memory_equal(buf, "ew by", 5);
	engine_draft_close(d);

	bucket_put(j.b, "home/a", "other bytes");
	assert_int_equal(engine_draft_open(j.drafts, id[0], &opt, &d, &j.err), 0);
	assert_int_equal(engine_draft_read(d, buf, 3, 0, &j.err), 0);
	assert_true(engine_draft_read(d, buf, 5, 1, &j.err) < 0);
	engine_draft_close(d);

	/* A bucket of which only the identity is known, and another one. */
	journal_add(&j, "not there", &about, "new", 0, id[1]);
	assert_int_equal(engine_draft_open(j.drafts, id[1], &opt, &d, &j.err), -ENOENT);
	opt.bucket = j.b->dir;
	assert_int_equal(engine_draft_open(j.drafts, id[1], &opt, &d, &j.err), -EINVAL);
	assert_non_null(strstr(j.err.msg, "is not the bucket of draft"));
	journal_end(&j);
}

static void a_draft_that_cannot_be_read_is_explained(void **state)
{
	struct journal_dir j;
	struct engine_draft *d;
	char id[JOURNAL_ID];
	const struct engine_options opt = journal_options();
	journal_begin(&j, *state);
	journal_add(&j, "", &about_new, "new", 0, id);
	journal_damage(&j, id, "map", "");
	journal_drafts(&j);
	for (int i = 0; i < 2; i++) {
		const int rc = engine_draft_open(j.drafts, id, &opt, &d, &j.err);
		assert_int_equal(rc, i ? -EBADMSG : -ENODATA);
		assert_non_null(strstr(j.err.msg, "/spool.*, each byte at its own offset"));
	}
	journal_end(&j);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bytes_are_read_without_the_bucket),
		TEST(bytes_beneath_come_from_the_bucket),
		TEST(a_draft_that_cannot_be_read_is_explained),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
