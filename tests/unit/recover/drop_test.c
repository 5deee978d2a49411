/* SPDX-License-Identifier: Apache-2.0 */
/* Deleting drafts, and what their commits have stored. */
#include "fixture.h"

#include <data/tree.h>
#include <schema/schema.h>
#include <bucket/schemas.h>

static const struct draft_about about_new = {
	.kind = DRAFT_NEW, .path = "home/a.h5", .name = "home/a.h5", .version = ""};

static uint64_t mark(uint32_t number, uint32_t failed, enum commit_state state)
{
	const struct commit_record m = {
		.number = number, .failed = failed, .state = state, .is_last = true};
	return commit_record_encode(&m);
}

/* Puts an object into the storage of a commit: its root group, or another one. */
static void store_part(struct journal_dir *j, const char *id, uint32_t number, bool is_root)
{
	const struct schema_ops *schema = schema_all()[0];
	char key[SCHEMA_KEY_MAX + 1];
	uint32_t root;
	const struct storage storage = commit_storage(schema, id, number);
	struct tree *t = tree_new(1 << 20);
	assert_int_equal(tree_add(t, &root, NULL), 0);
	tree_edit(t, root)->kind = OBJECT_GROUP;
	assert_int_equal(schema->writer->adopt(t, &storage, 0, NULL), 0);
	if (is_root)
		assert_true(schema->writer->object_key(t, root, key, sizeof(key)) > 0);
	else
		snprintf(key, sizeof(key), "%sd/part", storage.prefix);
	bucket_put(j->b, key, "{}");
	tree_free(t);
}

static bool has_storage(struct journal_dir *j, const char *id, uint32_t number)
{
	char pattern[SCHEMA_KEY_MAX + 100];
	glob_t found;
	snprintf(pattern, sizeof(pattern), "%s/%s*", j->b->dir,
		 commit_storage(schema_all()[0], id, number).prefix);
	const bool has = glob(pattern, GLOB_PERIOD, NULL, &found) == 0 && found.gl_pathc > 2;
	globfree(&found);
	return has;
}

static void drop(struct journal_dir *j, const char *id)
{
	const struct engine_options opt = journal_options();
	j->text[0] = '\0';
	if (engine_drafts_drop(journal_drafts(j), id, &opt, journal_add_note, j, &j->err))
		fail_msg("%s", j->err.msg);
}

static void a_draft_is_deleted(void **state)
{
	struct journal_dir j;
	char id[JOURNAL_ID];
	const struct engine_options opt = journal_options();
	journal_begin(&j, *state);
	/* Without a commit, the bucket is not opened. */
	journal_add(&j, "no such bucket", &about_new, "1", 0, id);
	drop(&j, id);
	assert_string_equal(j.text, "");
	assert_string_equal(journal_text(&j, NULL), "");
	assert_int_equal(engine_drafts_drop(j.drafts, id, &opt, NULL, NULL, &j.err), -ENOENT);
	journal_add(&j, "", &about_new, "1", mark(1, 0, COMMIT_ENDED), id);
	store_part(&j, id, 1, true);
	drop(&j, id);
	assert_string_equal(j.text, "");
	assert_true(has_storage(&j, id, 1));
	journal_end(&j);
}

static void a_draft_in_use_is_refused(void **state)
{
	struct journal_dir j;
	struct draft *d;
	char id[JOURNAL_ID];
	const struct engine_options opt = journal_options();
	journal_begin(&j, *state);
	journal_add(&j, "", &about_new, "1", mark(1, 0, COMMIT_BEGUN), id);
	store_part(&j, id, 1, false);
	struct journal *journal = journal_of(&j, "");
	assert_int_equal(draft_open(journal, id, NULL, &d, NULL), 0);
	assert_int_equal(engine_drafts_drop(journal_drafts(&j), id, &opt, NULL, NULL, &j.err),
			 -EBUSY);
	assert_true(has_storage(&j, id, 1));
	draft_close(d);
	journal_close(journal);
	journal_end(&j);
}

static void the_storage_of_its_commits_is_deleted(void **state)
{
	struct journal_dir j;
	char id[JOURNAL_ID];
	journal_begin(&j, *state);
	journal_add(&j, "", &about_new, "1", mark(4, 1, COMMIT_BEGUN), id);
	for (uint32_t n = 2; n <= 6; n++)
		store_part(&j, id, n, false);
	drop(&j, id);
	assert_non_null(strstr(j.text, "deleted 1 object below "));
	for (uint32_t n = 2; n <= 6; n++) /* 3 has failed, 4 is the last one, 5 its repetition */
		assert_int_equal(has_storage(&j, id, n), n == 2 || n == 6);
	assert_string_equal(journal_text(&j, NULL), "");
	journal_end(&j);
}

/* It may be that of a domain that was renamed. */
static void complete_storage_is_kept(void **state)
{
	struct journal_dir j;
	char id[JOURNAL_ID];
	journal_begin(&j, *state);
	journal_add(&j, "", &about_new, "1", mark(1, 0, COMMIT_BEGUN), id);
	store_part(&j, id, 1, true);
	store_part(&j, id, 1, false);
	drop(&j, id);
	assert_non_null(strstr(j.text, "kept the objects below "));
	assert_true(has_storage(&j, id, 1));
	journal_end(&j);
}

/* The bucket has refused the last commit, so no domain has its storage. That of an earlier one may
 * be a domain. */
static void refused_storage_is_deleted(void **state)
{
	struct journal_dir j;
	char id[JOURNAL_ID];
	const struct commit_record m = {.number = 2, .failed = 1, .state = COMMIT_REFUSED};
	journal_begin(&j, *state);
	journal_add(&j, "", &about_new, "1", commit_record_encode(&m), id);
	assert_non_null(strstr(journal_text(&j, NULL), "it could not be committed: another program "
						       "has changed the file"));
	for (uint32_t n = 1; n <= 3; n++) {
		store_part(&j, id, n, true);
		store_part(&j, id, n, false);
	}
	drop(&j, id);
	assert_non_null(strstr(j.text, "deleted 2 objects below "));
	for (uint32_t n = 1; n <= 3; n++)
		assert_int_equal(has_storage(&j, id, n), n != 2);
	assert_string_equal(journal_text(&j, NULL), "");
	journal_end(&j);
}

static void a_damaged_draft_is_deleted(void **state)
{
	static const char *const files[] = {"map", "draft"};
	struct journal_dir j;
	char id[JOURNAL_ID];
	journal_begin(&j, *state);
	for (int i = 0; i < 2; i++)
		for (int listed = 0; listed < 2; listed++) {
			journal_add(&j, "", &about_new, "1", mark(2, 0, COMMIT_BEGUN), id);
			store_part(&j, id, 2, false);
			journal_damage(&j, id, files[i], "");
			if (listed)
				journal_text(&j, NULL);
			drop(&j, id);
			/* Without the description, the folder of the domain is not known. */
			assert_int_equal(has_storage(&j, id, 2), i);
			assert_non_null(
				strstr(j.text, i ? "may be left in the bucket" : "deleted"));
			assert_string_equal(journal_text(&j, NULL), "");
		}
	journal_end(&j);
}

/* Its path is that of its own description, wherever it is in the list of the journal. */
static void damaged_drafts_beside_others(void **state)
{
	enum { DAMAGED = 5 };
	static const struct draft_about about_other = {
		.kind = DRAFT_NEW, .path = "home/b.h5", .name = "home/b.h5", .version = ""};
	struct journal_dir j;
	char id[DAMAGED][JOURNAL_ID], other[JOURNAL_ID], expected[256];
	journal_begin(&j, *state);
	journal_add(&j, "", &about_other, "1", 0, other);
	for (int i = 0; i < DAMAGED; i++) {
		journal_add(&j, "", &about_new, "1", mark(2, 0, COMMIT_BEGUN), id[i]);
		store_part(&j, id[i], 2, false);
		journal_damage(&j, id[i], "map", "");
	}
	journal_text(&j, NULL); /* sets them aside */
	for (int i = 0; i < DAMAGED; i++) {
		drop(&j, id[i]);
		assert_false(has_storage(&j, id[i], 2));
	}
	snprintf(expected, sizeof(expected),
		 "%s waiting 1 %s home/b.h5: the program that wrote it had not closed it\n", other,
		 j.b->dir);
	assert_string_equal(journal_text(&j, NULL), expected);
	journal_end(&j);
}

static void without_the_bucket_it_is_said(void **state)
{
	struct journal_dir j;
	char id[JOURNAL_ID];
	journal_begin(&j, *state);
	journal_add(&j, "not there", &about_new, "1", mark(1, 0, COMMIT_BEGUN), id);
	drop(&j, id);
	assert_non_null(strstr(j.text, "objects that its commit has stored may be left in the "
				       "bucket: "));
	assert_string_equal(journal_text(&j, NULL), "");
	journal_end(&j);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_draft_is_deleted),
		TEST(a_draft_in_use_is_refused),
		TEST(the_storage_of_its_commits_is_deleted),
		TEST(complete_storage_is_kept),
		TEST(refused_storage_is_deleted),
		TEST(a_damaged_draft_is_deleted),
		TEST(damaged_drafts_beside_others),
		TEST(without_the_bucket_it_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
