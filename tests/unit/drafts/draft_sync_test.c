/* SPDX-License-Identifier: Apache-2.0 */
/* fsync of files that are written: what the bucket does not get is durable in the journal. */
#include "disk_calls.h"

#include <glob.h>
#include <unistd.h>

#include "bucket.h"
#include "drafts_fixture.h"

static const char *const exempt[] = {"sums.", "why", "done", NULL};

static const char part[] = "\x89HDF\r\n\x1a\n and no more";

/* How often the bytes of the only draft were synced. */
static unsigned int count_syncs(const char *journal)
{
	char pattern[160];
	glob_t found;
	snprintf(pattern, sizeof(pattern), "%s/2/*/*/spool.0", journal);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	const unsigned int n = disk_look(found.gl_pathv[0]).syncs;
	globfree(&found);
	return n;
}

/* A file that is not complete is not committed before its last close. */
static void an_incomplete_file_is_durable(void **state)
{
	struct world w;
	char journal[96];
	struct err err = ERR_INIT;
	table_begin(&w, false, 0);
	snprintf(journal, sizeof(journal), "%s/journal", w.f.path);
	disk_watch(exempt);
	struct engine_file *f = open_write(&w, "part.h5", NEW);
	for (unsigned int i = 0; i < 3; i++) {
		put_text(f, 0, part);
		if (i == 1) /* which finds that the file waits */
			flush_ok(f);
		assert_int_equal(count_syncs(journal), i);
		assert_non_null(disk_dirty());
		/* The second one finds that nothing has changed. */
		for (unsigned int k = 0; k < 2; k++) {
			if (engine_sync(f, &err))
				fail_msg("%s", err.msg);
			disk_assert_durable("engine_sync()");
			assert_int_equal(count_syncs(journal), i + 1);
		}
	}
	assert_false(in_bucket(&w, "part.h5"));
	disk_unwatch();
	engine_file_close(f);
	table_end(&w);
}

/* The bucket has the file. */
static void a_complete_file_is_not_synced(void **state)
{
	struct world w;
	char journal[96];
	table_begin(&w, false, 0);
	snprintf(journal, sizeof(journal), "%s/journal", w.f.path);
	disk_watch(exempt);
	struct engine_file *f = open_write(&w, "a.txt", NEW);
	put_text(f, 0, "text");
	assert_int_equal(engine_sync(f, NULL), 0);
	check_bucket(&w, "a.txt", "text");
	assert_int_equal(count_syncs(journal), 0);
	disk_unwatch();
	engine_file_close(f);
	table_end(&w);
}

/* The library marks the file of a domain while it is open for writing. */
static void a_domain_that_is_being_changed_is_durable(void **state)
{
	static const struct bucket_more none = {0};
	enum { STATUS = 20 /* offset of the status flags in the superblock */ };
	struct test_bucket *b = *state;
	struct engine_file *f;
	struct err err = ERR_INIT;
	const uint8_t open_flag = 1;
	bucket_folder(b, "home");
	bucket_datasets(b, "home/x.h5", 1, 1, &none);
	disk_watch(exempt);
	bucket_open_rw(b, 3600, NULL);
	if (engine_open_write(b->engine, "home/x.h5", 0, &f, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(engine_pwrite(f, &open_flag, 1, STATUS, NULL), 1);
	if (engine_sync(f, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(count_syncs(b->journal), 1);
	disk_assert_durable("engine_sync()");
	disk_unwatch();
	engine_file_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_incomplete_file_is_durable),
		cmocka_unit_test(a_complete_file_is_not_synced),
		cmocka_unit_test_setup_teardown(a_domain_that_is_being_changed_is_durable,
						bucket_setup, bucket_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
