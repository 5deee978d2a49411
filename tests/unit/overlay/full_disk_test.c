/* SPDX-License-Identifier: Apache-2.0 */
/* What a draft does after one call of a full disk has failed: nothing that was acknowledged is
 * lost, and nothing is acknowledged that is lost. */
#include "disk_calls.h"

#include <overlay/draft.h>

#include "overlay_fixture.h"

struct listed {
	unsigned int unreadable, left;
	char id[JOURNAL_ID];
};

static int note(void *ctx, const struct journal_item *item)
{
	struct listed *l = ctx;
	if (item->state == JOURNAL_UNREADABLE)
		l->unreadable++;
	else
		l->left++;
	memcpy(l->id, item->id, JOURNAL_ID);
	return 0;
}

/* As the next mount. */
static struct listed mount_again(struct overlay_fixture *f)
{
	struct listed l = {.left = 0};
	journal_close(f->j);
	fixture_open(f, 1 << 30);
	assert_int_equal(journal_list(f->j, note, &l, NULL), 0);
	return l;
}

static bool is_sync(const char *call)
{
	return call && (strcmp(call, "fsync") == 0 || strcmp(call, "fdatasync") == 0);
}

/* On a network file system a full disk may be an error of fsync(). The next one succeeds without
 * the pages that are lost. */
static void a_sync_that_fails_is_not_made_good_by_the_next(void **state)
{
	struct overlay_fixture f;
	unsigned int n_syncs = 0;
	bool reached = true;
	fixture_begin(&f, 1 << 30);
	for (unsigned int at = 1; reached; at++) {
		struct draft *d = make_draft(&f, &about_new);
		assert_int_equal(draft_write(d, 0, "abc", 3, NULL), 0);
		disk_fail(FAILS_ONCE, at, ENOSPC);
		const int rc = draft_sync(d, NULL);
		reached = disk.failed;
		assert_int_equal(rc, reached ? -ENOSPC : 0);
		n_syncs += is_sync(disk.failed);
		assert_int_equal(draft_sync(d, NULL), is_sync(disk.failed) ? -ENOSPC : 0);
		disk.how = WORKS;
		assert_int_equal(draft_drop(d, NULL), 0);
	}
	assert_true(n_syncs >= 3);
	fixture_end(&f);
}

/* The record of a write continues the one before, and replaces it in the map. */
static void a_half_record_in_the_map_is_written_again(void **state)
{
	struct overlay_fixture f;
	uint8_t bytes[1000], back[1000];
	unsigned int torn = 0;
	bool reached = true;
	fixture_begin(&f, 1 << 30);
	memset(bytes, 7, sizeof(bytes));
	for (unsigned int at = 1; reached; at++) {
		size_t got;
		struct draft *d = make_draft(&f, &about_new);
		assert_int_equal(draft_write(d, 0, bytes, sizeof(bytes), NULL), 0);
		disk_fail(FAILS_AFTER_HALF, at, ENOSPC);
		draft_write(d, sizeof(bytes), bytes, sizeof(bytes), NULL);
		reached = disk.failed;
		torn += reached && strcmp(disk_base_name(disk.failed_path), "map") == 0 &&
			strcmp(disk.failed, "pwrite") == 0;
		disk.how = WORKS;
		assert_int_equal(draft_write(d, 9000, bytes, sizeof(bytes), NULL), 0);
		draft_close(d);
		const struct listed l = mount_again(&f);
		assert_int_equal(l.unreadable, 0);
		assert_int_equal(l.left, 1);
		assert_int_equal(draft_open(f.j, l.id, NULL, &d, NULL), 0);
		assert_int_equal(draft_read(d, 0, back, sizeof(back), &got, NULL), 0);
		assert_memory_equal(back, bytes, sizeof(bytes));
		assert_int_equal(draft_drop(d, NULL), 0);
	}
	assert_int_equal(torn, 1);
	fixture_end(&f);
}

/* Otherwise the next mount would repeat its commit, also if the file was removed meanwhile. */
static void a_draft_is_deleted_without_room_for_another_name(void **state)
{
	struct overlay_fixture f;
	fixture_begin(&f, 1 << 30);
	struct draft *d = make_draft(&f, &about_new);
	assert_int_equal(draft_write(d, 0, "abc", 3, NULL), 0);
	disk_fail(FAILS_ONCE, 1, ENOSPC);
	assert_int_equal(draft_drop(d, NULL), 0);
	assert_string_equal(disk.failed, "renameat");
	disk.how = WORKS;
	const struct listed l = mount_again(&f);
	assert_int_equal(l.left + l.unreadable, 0);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sync_that_fails_is_not_made_good_by_the_next),
		cmocka_unit_test(a_half_record_in_the_map_is_written_again),
		cmocka_unit_test(a_draft_is_deleted_without_room_for_another_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
