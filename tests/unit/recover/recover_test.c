/* SPDX-License-Identifier: Apache-2.0 */
/* The list of the drafts in a journal, and how they are found and described. */
#include "fixture.h"

#include <image/image.h>

static struct draft_about about_file(const char *name, int64_t created_ns)
{
	return (struct draft_about){.kind = DRAFT_NEW,
				    .path = name,
				    .name = name,
				    .version = "",
				    .created_ns = created_ns};
}

static uint64_t mark(uint32_t number, enum commit_state state)
{
	const struct commit_record m = {.number = number, .state = state};
	return commit_record_encode(&m);
}

static void drafts_are_listed(void **state)
{
	struct journal_dir j;
	char id[5][JOURNAL_ID], expected[1024];
	journal_begin(&j, *state);
	const struct draft_about a = about_file("a", 1), b = about_file("b", 2),
				 c = about_file("c", 3);
	journal_add(&j, "", &c, "12345", mark(1, COMMIT_BEGUN), id[2]);
	journal_add(&j, "", &a, "1", 0, id[0]);
	journal_add(&j, "", &b, "12", mark(1, COMMIT_ENDED), id[1]);
	journal_add(&j, "other", &a, "", 0, id[3]);
	snprintf(expected, sizeof(expected),
		 "%s waiting 1 %s a: the program that wrote it had not closed it\n"
		 "%s waiting 2 %s b: it was committed, but not what was written to it later\n"
		 "%s waiting 5 %s c: its commit has begun; the next mount finishes it\n",
		 id[0], j.b->dir, id[1], j.b->dir, id[2], j.b->dir);
	assert_string_equal(journal_text(&j, j.b->dir), expected);
	assert_non_null(strstr(journal_text(&j, NULL), expected));
	snprintf(expected, sizeof(expected),
		 "%s waiting 0 other a: the program that wrote it had not closed it\n", id[3]);
	assert_string_equal(journal_text(&j, "other"), expected);
	assert_string_equal(journal_text(&j, "third"), "");
	journal_end(&j);
}

/* A note is the reason why a draft is left, unless a commit has ended after it. The bytes of a note
 * are foreign. */
static void notes_are_told(void **state)
{
	static const struct {
		enum commit_state state;
		bool is_sealed;
		const char *note, *why;
	} rows[] = {
		{COMMIT_NONE, true, "no place for it",
		 "it could not be committed: no place for it"},
		{COMMIT_NONE, false, "no place for it",
		 "it could not be committed: no place for it; it was written to later"},
		{COMMIT_ENDED, false, "no place for it",
		 "it could not be committed: no place for it; it was written to later"},
		{COMMIT_ENDED, true, "no place for it",
		 "it was committed; the next mount removes it from the journal"},
		{COMMIT_BEGUN, true, "no place for it",
		 "it could not be committed: no place for it"},
		{COMMIT_NONE, true, "one\ntwo", "it could not be committed: one"},
		{COMMIT_NONE, true, "", "the program that wrote it had not closed it"},
	};
	struct journal_dir j;
	char id[JOURNAL_ID], expected[256];
	journal_begin(&j, *state);
	const struct draft_about a = about_file("a", 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct draft *d;
		struct draft_snapshot *s = NULL;
		struct journal *journal = journal_of(&j, "");
		assert_int_equal(draft_create(journal, &a, NULL, &d, NULL), 0);
		assert_int_equal(draft_write(d, 0, "1", 1, NULL), 0);
		if (rows[i].is_sealed)
			assert_int_equal(draft_seal(d, &s, NULL), 0);
		draft_snapshot_close(s);
		if (rows[i].state)
			assert_int_equal(draft_mark(d, mark(1, rows[i].state), NULL), 0);
		draft_note_why(d, rows[i].note);
		snprintf(id, sizeof(id), "%s", draft_id(d));
		draft_close(d);
		snprintf(expected, sizeof(expected), "%s waiting 1 %s a: %s\n", id, j.b->dir,
			 rows[i].why);
		assert_non_null(strstr(journal_text(&j, NULL), expected));
		journal_close(journal);
	}
	journal_end(&j);
}

static void states_are_told(void **state)
{
	struct journal_dir j;
	char id[3][JOURNAL_ID], expected[1024];
	struct draft *d;
	journal_begin(&j, *state);
	const struct draft_about a = about_file("a", 1);
	for (int i = 0; i < 3; i++)
		journal_add(&j, "", &a, "1", mark(1, COMMIT_BEGUN), id[i]);
	struct journal *journal = journal_of(&j, "");
	assert_int_equal(draft_open(journal, id[0], NULL, &d, NULL), 0);
	draft_note_why(d, "access denied");
	snprintf(expected, sizeof(expected),
		 "%s in use -1 %s a: a mount has it open; it could not be committed: access "
		 "denied\n",
		 id[0], j.b->dir);
	assert_non_null(strstr(journal_text(&j, NULL), expected));
	draft_close(d);
	snprintf(expected, sizeof(expected),
		 "%s waiting 1 %s a: it could not be committed: access denied\n", id[0], j.b->dir);
	assert_non_null(strstr(journal_text(&j, NULL), expected));

	journal_damage(&j, id[1], "draft", "xyz");
	snprintf(expected, sizeof(expected),
		 "%s unreadable -1 %s : the file `draft` has 3 bytes instead of 4096\n", id[1],
		 j.b->dir);
	journal_damage(&j, id[2], "map", "xyz");
	for (int i = 0; i < 2; i++)
		assert_non_null(strstr(journal_text(&j, NULL), expected));
	snprintf(expected, sizeof(expected),
		 "%s unreadable -1 %s a: the map has no intact record\n", id[2], j.b->dir);
	assert_non_null(strstr(journal_text(&j, NULL), expected));
	journal_close(journal);
	journal_end(&j);
}

static void ids_may_be_shortened(void **state)
{
	struct journal_dir j;
	char id[40][JOURNAL_ID], first[2] = "";
	struct err err = ERR_INIT;
	journal_begin(&j, *state);
	const struct draft_about a = about_file("a", 1);
	for (int i = 0; i < 40; i++) /* more than there are digits */
		journal_add(&j, "", &a, "1", 0, id[i]);
	journal_drafts(&j);
	for (int i = 0; i < 40; i++) {
		int same = 0;
		for (int k = 0; k < 40; k++)
			same += id[k][0] == id[i][0];
		first[0] = id[i][0];
		const int rc = engine_drafts_show(j.drafts, first, journal_add_line, &j, &err);
		assert_int_equal(rc, same > 1 ? -EINVAL : 0);
		assert_int_equal(engine_drafts_show(j.drafts, id[i], journal_add_line, &j, &err),
				 0);
	}
	static const char *const wrong[] = {"",	      "..", "../x", "0123456789ABCDEF",
					    "a/b",    "*",  "g",    "00112233445566778",
					    "\033[2J"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(engine_drafts_show(j.drafts, wrong[i], journal_add_line, &j, &err),
				 -EINVAL);
	assert_int_equal(
		engine_drafts_show(j.drafts, "0000000000000000", journal_add_line, &j, &err),
		-ENOENT);
	journal_end(&j);
}

static void check_has(const struct journal_dir *j, const char *line)
{
	if (!strstr(j->text, line))
		fail_msg("\"%s\" is not in\n%s", line, j->text);
}

static void show(struct journal_dir *j, const char *id)
{
	j->text[0] = '\0';
	if (engine_drafts_show(journal_drafts(j), id, journal_add_line, j, &j->err))
		fail_msg("%s", j->err.msg);
}

static void a_draft_is_described(void **state)
{
	struct journal_dir j;
	char id[JOURNAL_ID];
	journal_begin(&j, *state);
	struct draft_about about = {.kind = DRAFT_REPLACE,
				    .path = "home/run",
				    .name = "home/run.h5",
				    .version = "d:\"etag\"",
				    .created_ns = INT64_C(1700000000000000000)};
	journal_add(&j, "", &about, "hello", mark(3, COMMIT_BEGUN), id);
	show(&j, id);
	check_has(&j, "state: waiting: its commit has begun; the next mount finishes it\n");
	check_has(&j,
		  "file: home/run.h5\npath in the bucket: home/run\nbegun: 2023-11-14T22:13:20");
	check_has(&j, "replaces: a domain of version \"etag\"\n");
	check_has(&j, "size: 5 bytes\nwritten: 5 bytes in 1 range\n");
	check_has(&j, "commits: 3, the last one has not ended\ncontent: not an HDF5 file\n");
	check_has(&j, j.b->dir);

	about.kind = DRAFT_CHANGE;
	about.version = "o:x";
	about.beneath = 100;
	journal_add(&j, "", &about, "\211HDF\r\n\032\nand more", 0, id);
	show(&j, id);
	check_has(&j, "changes: a plain object of version x\n");
	check_has(&j, "not written: 84 bytes, which are only in the bucket\n");
	check_has(&j, "commits: none has begun\ncontent: not known: ");

	about.version = "d:x";
	memset(about.beneath_id, 1, sizeof(about.beneath_id));
	journal_add(&j, "", &about, "1", 0, id);
	assert_non_null(
		strstr(journal_text(&j, NULL), "; another version of hsmount has written "));
	about.layout = IMAGE_REVISION;
	journal_add(&j, "", &about, "1", mark(1, COMMIT_BEGUN), id);
	assert_non_null(strstr(journal_text(&j, NULL), "changed nothing or everything\n"));
	show(&j, id);
	check_has(&j, "changes: the domain home/run in place, of version x\n");
	check_has(&j, "commits: 1, the last one was interrupted when it had changed nothing or "
		      "everything\n");
	check_has(&j, "written ranges: 0 to 1\nlibrary: not known: ");

	about.kind = DRAFT_NEW;
	about.version = "";
	about.beneath = 0;
	journal_add(&j, "", &about, "\211HDF\r\n\032\nand more", 0, id);
	show(&j, id);
	check_has(&j, "replaces: nothing\n");
	check_has(&j, "content: an HDF5 file that is not complete: it is damaged: ");
	journal_damage(&j, id, "map", "");
	show(&j, id);
	check_has(&j, "state: unreadable: the map has no intact record\nfile: home/run.h5\n");
	check_has(&j, "/unreadable/");
	journal_end(&j);
}

/* Makes a draft whose bytes are sealed, and marks it. */
static void add_sealed(struct journal_dir *j, const struct draft_about *about, const void *bytes,
		       size_t n, uint64_t number, char id[JOURNAL_ID])
{
	struct journal *journal = journal_of(j, "");
	struct draft *d;
	struct draft_snapshot *s;
	assert_int_equal(draft_create(journal, about, NULL, &d, &j->err), 0);
	assert_int_equal(draft_write(d, 0, bytes, n, NULL), 0);
	assert_int_equal(draft_seal(d, &s, NULL), 0);
	draft_snapshot_close(s);
	if (number)
		assert_int_equal(draft_mark(d, number, NULL), 0);
	memcpy(id, draft_id(d), JOURNAL_ID);
	draft_close(d);
	journal_close(journal);
}

/* A program's data may be half written, unless the bucket has all of them. */
static void a_warning_is_given_until_all_is_stored(void **state)
{
	static const enum commit_state states[] = {COMMIT_ENDED, COMMIT_BEGUN};
	struct journal_dir j;
	char id[JOURNAL_ID];
	journal_begin(&j, *state);
	struct draft_about about = about_file("home/run.h5", 1);
	about.kind = DRAFT_CHANGE;
	about.version = "d:x";
	about.beneath = 100;
	about.layout = IMAGE_REVISION;
	memset(about.beneath_id, 1, sizeof(about.beneath_id));
	for (int i = 0; i < 2; i++)
		for (int is_all = 0; is_all < 2; is_all++) {
			const uint64_t m = mark(2, states[i]);
			if (is_all)
				add_sealed(&j, &about, "1", 1, m, id);
			else
				journal_add(&j, "", &about, "1", m, id);
			show(&j, id);
			check_has(&j, i ? "commits: 2, the last one was interrupted"
					: "commits: 2, the last one has ended\n");
			assert_int_equal(strstr(j.text, "\nwarning: ") != NULL, i || !is_all);
		}
	journal_end(&j);
}

/* Reads the file of the domain that the bucket of the fixture has. Returns its size. */
static size_t read_domain(struct journal_dir *j, uint8_t *out, size_t room)
{
	struct engine_file *f;
	struct engine_stat st;
	bucket_open(j->b, 1000, 0);
	assert_int_equal(engine_file_open(j->b->engine, "home/x.h5", &f, NULL), 0);
	engine_file_stat(f, &st);
	assert_in_range(st.size, 1, room);
	assert_int_equal(engine_pread(f, out, st.size, 0, NULL, NULL), st.size);
	engine_file_close(f);
	return st.size;
}

static void the_content_of_a_file_is_told(void **state)
{
	static const struct bucket_more none = {0};
	static uint8_t file[1 << 16];
	struct journal_dir j;
	char id[JOURNAL_ID];
	const struct draft_about a = about_file("a", 1);
	journal_begin(&j, *state);
	journal_add(&j, "", &a, "\211HDF\r\n\032\n\011 of a later version", 0, id);
	show(&j, id);
	check_has(&j, "content: an HDF5 file that cannot be read: superblock");

	bucket_datasets(j.b, "home/x.h5", 2, 1, &none);
	const size_t n = read_domain(&j, file, sizeof(file));
	add_sealed(&j, &a, file, n, 0, id);
	show(&j, id);
	check_has(&j, "content: an HDF5 file that was closed; its structures are sound\n");
	uint8_t *root = memmem(file, n, "OHDR", 4), *data = memmem(root + 4, n / 2, "OHDR", 4);
	data[20] ^= 1;
	add_sealed(&j, &a, file, n, 0, id);
	show(&j, id);
	check_has(&j, "content: an HDF5 file that was closed; parts of it cannot be read: /data");
	journal_end(&j);
}

static void a_directory_that_is_not_private_is_refused(void **state)
{
	struct journal_dir j;
	struct engine_drafts *drafts;
	char id[JOURNAL_ID], link[128];
	journal_begin(&j, *state);
	assert_int_equal(engine_drafts_open(j.path, &drafts, &j.err), -ENOENT);
	const struct draft_about a = about_file("a", 1);
	journal_add(&j, "", &a, "1", 0, id);
	snprintf(link, sizeof(link), "%s/link", j.b->dir);
	assert_int_equal(symlink(j.path, link), 0);
	assert_int_equal(engine_drafts_open(link, &drafts, &j.err), -EPERM);
	assert_int_equal(chmod(j.path, 0750), 0);
	assert_int_equal(engine_drafts_open(j.path, &drafts, &j.err), -EPERM);
	assert_int_equal(chmod(j.path, 0700), 0);
	snprintf(link, sizeof(link), "%s/2", j.path);
	assert_int_equal(chmod(link, 0750), 0);
	assert_int_equal(engine_drafts_open(j.path, &drafts, &j.err), -EPERM);
	snprintf(j.text, sizeof(j.text), "journal directory %s: 2 ", j.path);
	assert_non_null(strstr(j.err.msg, j.text));
	assert_int_equal(engine_drafts_open("/dev/null", &drafts, &j.err), -ENOTDIR);
	journal_end(&j);
}

/* No answer is given for the drafts of a bucket that cannot be looked at. */
static void a_folder_that_cannot_be_opened(void **state)
{
	struct journal_dir j;
	char id[JOURNAL_ID];
	char expected[256];
	glob_t found;
	journal_begin(&j, *state);
	const struct draft_about a = about_file("a", 1);
	journal_add(&j, "", &a, "1", 0, id);
	journal_drafts(&j);
	snprintf(j.text, sizeof(j.text), "%s/2/*", j.path);
	assert_int_equal(glob(j.text, 0, NULL, &found), 0);
	assert_int_equal(chmod(found.gl_pathv[0], 0755), 0);
	assert_int_equal(engine_drafts_list(j.drafts, NULL, journal_add_item, &j, &j.err), -EPERM);
	assert_int_equal(engine_drafts_show(j.drafts, id, journal_add_line, &j, &j.err), -EPERM);
	/* Those of a bucket that is named are listed. The name may be that of its folder. */
	journal_add(&j, "other", &a, "12", 0, id);
	snprintf(expected, sizeof(expected),
		 "%s waiting 2 other a: the program that wrote it had not closed it\n", id);
	assert_string_equal(journal_text(&j, "other"), expected);
	char *closed = strrchr(found.gl_pathv[0], '/') + 1;
	assert_int_equal(engine_drafts_list(j.drafts, closed, journal_add_item, &j, &j.err),
			 -EPERM);
	globfree(&found);
	journal_end(&j);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(drafts_are_listed),
		TEST(notes_are_told),
		TEST(states_are_told),
		TEST(ids_may_be_shortened),
		TEST(a_draft_is_described),
		TEST(a_warning_is_given_until_all_is_stored),
		TEST(the_content_of_a_file_is_told),
		TEST(a_directory_that_is_not_private_is_refused),
		TEST(a_folder_that_cannot_be_opened),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
