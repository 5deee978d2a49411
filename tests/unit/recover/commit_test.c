/* SPDX-License-Identifier: Apache-2.0 */
/* Committing drafts on request: by the state in which the journal has them. */
#include "fixture.h"

#include <sys/stat.h>

static const struct draft_about about_new = {
	.kind = DRAFT_NEW, .path = "home/a", .name = "home/a", .version = ""};
static const struct draft_about about_replace = {
	.kind = DRAFT_REPLACE, .path = "home/x.h5", .name = "home/x.h5", .version = "d:other"};

/* Commits, and returns the result. fault: as in engine_options. */
static int commit_with(struct journal_dir *j, const char *id, const char *fault)
{
	struct engine_options opt = journal_options();
	const struct engine_draft_commit how = {.bucket = &opt, .line = journal_add_note, .arg = j};
	opt.user = "ann";
	opt.debug_fault = fault;
	j->text[0] = '\0';
	j->err = (struct err)ERR_INIT;
	return engine_drafts_commit(journal_drafts(j), id, &how, &j->err);
}

static int commit(struct journal_dir *j, const char *id)
{
	return commit_with(j, id, NULL);
}

static void must_commit(struct journal_dir *j, const char *id)
{
	if (commit(j, id))
		fail_msg("%s", j->err.msg);
	assert_string_equal(j->text, "");
	assert_string_equal(journal_text(j, NULL), "");
}

static void check_object(struct journal_dir *j, const char *key, const char *expected)
{
	char path[300], found[64] = "";
	snprintf(path, sizeof(path), "%s/%s", j->b->dir, key);
	FILE *f = fopen(path, "rb");
	if (!expected) {
		assert_null(f);
		return;
	}
	assert_non_null(f);
	found[fread(found, 1, sizeof(found) - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(found, expected);
}

static void a_draft_of_each_state_is_committed(void **state)
{
	static const struct commit_record marks[] = {
		{.number = 0},
		{.number = 1, .state = COMMIT_BEGUN, .is_last = true},
		{.number = 3, .failed = 2, .state = COMMIT_BEGUN},
		{.number = 1, .state = COMMIT_REFUSED, .is_last = true},
	};
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		struct journal_dir j;
		char id[JOURNAL_ID], key[32];
		struct draft_about about = about_new;
		journal_begin(&j, *state);
		snprintf(key, sizeof(key), "home/file%zu", i);
		about.path = about.name = key;
		const uint64_t mark = marks[i].number ? commit_record_encode(&marks[i]) : 0;
		journal_add(&j, "", &about, "text", mark, id);
		must_commit(&j, id);
		check_object(&j, key, "text");
		assert_int_equal(commit(&j, id), -ENOENT);
		journal_end(&j);
	}
}

/* The bucket has it, and another program may have changed it since. */
static void what_was_committed_is_only_deleted(void **state)
{
	static const struct commit_record ended = {
		.number = 1, .state = COMMIT_ENDED, .is_last = true};
	struct journal_dir j;
	struct draft *d;
	struct draft_snapshot *s;
	char id[JOURNAL_ID];
	journal_begin(&j, *state);
	struct journal *journal = journal_of(&j, "");
	assert_int_equal(draft_create(journal, &about_new, NULL, &d, NULL), 0);
	memcpy(id, draft_id(d), JOURNAL_ID);
	assert_int_equal(draft_write(d, 0, "text", 4, NULL), 0);
	assert_int_equal(draft_seal(d, &s, NULL), 0);
	draft_snapshot_close(s);
	assert_int_equal(draft_mark(d, commit_record_encode(&ended), NULL), 0);
	draft_close(d);
	journal_close(journal);
	must_commit(&j, id);
	check_object(&j, "home/a", NULL);
	journal_end(&j);
}

static uint64_t mark_of(struct journal_dir *j, const char *id)
{
	struct draft *d;
	struct draft_stat stat;
	struct journal *journal = journal_of(j, "");
	assert_int_equal(draft_open(journal, id, NULL, &d, NULL), 0);
	draft_get_stat(d, &stat);
	draft_close(d);
	journal_close(journal);
	return stat.mark;
}

/* A conflict that is found before the commit has begun is not noted: no mount repeats the commit,
 * and it succeeds when the name is free. */
static void a_name_that_is_taken(void **state)
{
	struct journal_dir j;
	char id[JOURNAL_ID];
	journal_begin(&j, *state);
	journal_add(&j, "", &about_new, "text", 0, id);
	bucket_put(j.b, "home/a", "theirs");
	assert_int_equal(commit(&j, id), -ESTALE);
	assert_non_null(strstr(j.err.msg, "another program has changed it"));
	assert_non_null(strstr(j.err.msg, "`hsimage recover export "));
	assert_int_equal(mark_of(&j, id), 0);
	check_object(&j, "home/a", "theirs");
	bucket_remove(j.b, "home/a");
	must_commit(&j, id);
	check_object(&j, "home/a", "text");
	journal_end(&j);
}

static void another_version_is_not_replaced(void **state)
{
	struct journal_dir j;
	char id[JOURNAL_ID];
	journal_begin(&j, *state);
	journal_add(&j, "", &about_replace, "text", 0, id);
	assert_int_equal(commit(&j, id), -ESTALE);
	assert_int_equal(mark_of(&j, id), 0);
	journal_end(&j);
}

static void a_reason_is_passed(void **state)
{
	struct journal_dir j;
	char id[JOURNAL_ID];
	journal_begin(&j, *state);
	journal_add(&j, "", &about_new, "\x89HDF\r\n\x1a\n", 0, id);
	assert_int_equal(commit(&j, id), 0);
	assert_string_equal(j.text, "stored as a plain file: it is damaged: superblock: file ends "
				    "too early\n");
	journal_end(&j);
}

/* Each request for the file fails in turn. The message says what to do, which depends on whether
 * the commit has begun. */
static void requests_that_fail(void **state)
{
	unsigned int seen[2] = {0, 0};
	int rc = -EIO;
	for (unsigned int n = 1; rc; n++) {
		struct journal_dir j;
		char id[JOURNAL_ID], fault[64];
		journal_begin(&j, *state);
		journal_add(&j, "", &about_new, "text", 0, id);
		snprintf(fault, sizeof(fault), "fail:%u+:EIO@home/a*", n);
		rc = commit_with(&j, id, fault);
		if (rc) {
			const bool has_begun = mark_of(&j, id) != 0;
			assert_int_equal(rc, -EIO);
			assert_int_equal(!strstr(j.err.msg, "completes it"), !has_begun);
			assert_int_equal(!strstr(j.err.msg, "`hsimage recover drop "), has_begun);
			seen[has_begun]++;
			must_commit(&j, id);
		}
		check_object(&j, "home/a", "text");
		bucket_remove(j.b, "home/a");
		journal_end(&j);
	}
	assert_true(seen[false] && seen[true]);
}

static void what_cannot_be_committed(void **state)
{
	struct journal_dir j;
	struct draft *d;
	struct draft_about about = about_new;
	char id[JOURNAL_ID];
	journal_begin(&j, *state);
	journal_add(&j, "", &about_new, "text", 0, id);
	struct journal *journal = journal_of(&j, "");
	assert_int_equal(draft_open(journal, id, NULL, &d, NULL), 0);
	assert_int_equal(commit(&j, id), -EBUSY);
	assert_non_null(strstr(j.err.msg, "close the file, or unmount, and try again"));
	draft_close(d);
	journal_close(journal);
	journal_damage(&j, id, "spool.0", "");
	assert_int_equal(commit(&j, id), -EBADMSG);
	assert_non_null(strstr(j.err.msg, "spool.*, each byte at its own offset"));
	about.path = about.name = "../a";
	journal_add(&j, "", &about, "text", 0, id);
	assert_int_equal(commit(&j, id), -EINVAL);
	assert_non_null(strstr(j.err.msg, "no object can have this path"));
	assert_int_equal(commit(&j, "x"), -EINVAL);
	journal_end(&j);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_draft_of_each_state_is_committed),
		TEST(what_was_committed_is_only_deleted),
		TEST(a_name_that_is_taken),
		TEST(another_version_is_not_replaced),
		TEST(a_reason_is_passed),
		TEST(requests_that_fail),
		TEST(what_cannot_be_committed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
