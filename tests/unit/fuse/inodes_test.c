/* SPDX-License-Identifier: Apache-2.0 */
/* Inode numbers, versions and lookup counts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "fuse/inodes.h"

enum { ROOT = 1 };

static int setup(void **state)
{
	*state = inodes_new();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	inodes_free(*state);
	return 0;
}

static uint64_t look_up(struct inodes *t, const char *path, uint64_t version)
{
	const struct engine_stat st = {.kind = ENGINE_DOMAIN, .version = version, .size = version};
	return inodes_look_up(t, path, &st);
}

static bool adopt(struct inodes *t, uint64_t ino, uint64_t version)
{
	const struct engine_stat st = {.kind = ENGINE_DOMAIN, .version = version, .size = 7};
	return inodes_adopt(t, ino, &st) != INODES_OTHER;
}

static bool exists(struct inodes *t, uint64_t ino)
{
	auto_inode struct inode_view view = {0};
	int rc = inodes_get(t, ino, &view);
	assert_true(rc == 0 || rc == -ESTALE);
	return rc == 0;
}

static void the_root_is_never_forgotten(void **state)
{
	auto_inode struct inode_view view = {0};
	inodes_forget(*state, ROOT, UINT64_MAX);
	assert_int_equal(inodes_get(*state, ROOT, &view), 0);
	assert_string_equal(view.path, "");
	assert_int_equal(view.st.kind, ENGINE_DIR);
}

static void each_version_of_a_path_has_one_inode(void **state)
{
	auto_inode struct inode_view view = {0};
	uint64_t a = look_up(*state, "a", 1);
	assert_true(a > ROOT);
	assert_int_equal(look_up(*state, "a", 1), a);
	assert_int_not_equal(look_up(*state, "a", 2), a);
	assert_int_not_equal(look_up(*state, "ab", 1), a);
	assert_int_equal(inodes_get(*state, a, &view), 0);
	assert_string_equal(view.path, "a");
	assert_int_equal(view.st.version, 1);
}

static void an_inode_is_forgotten_after_as_many_lookups(void **state)
{
	uint64_t a = look_up(*state, "a", 1);
	look_up(*state, "a", 1);
	inodes_forget(*state, a, 1);
	assert_true(exists(*state, a));
	inodes_forget(*state, a, 1);
	assert_false(exists(*state, a));
	inodes_forget(*state, a, 1);
	assert_int_not_equal(look_up(*state, "a", 1), a); /* numbers are never reused */
}

static void a_lookup_count_does_not_become_negative(void **state)
{
	uint64_t a = look_up(*state, "a", 1);
	inodes_forget(*state, a, UINT64_MAX);
	assert_false(exists(*state, a));
}

static void an_unopened_file_adopts_its_first_version(void **state)
{
	auto_inode struct inode_view view = {0};
	uint64_t a = look_up(*state, "a", 0);
	assert_true(adopt(*state, a, 5));
	assert_true(adopt(*state, a, 5));
	assert_false(adopt(*state, a, 6));
	assert_int_equal(inodes_get(*state, a, &view), 0);
	assert_int_equal(view.st.size, 7);
	assert_int_equal(look_up(*state, "a", 5), a);
	assert_int_not_equal(look_up(*state, "a", 0), a);
	assert_false(adopt(*state, 12345, 5));
}

static void two_inodes_can_adopt_one_version(void **state)
{
	uint64_t first = look_up(*state, "a", 5), second = look_up(*state, "a", 0);
	assert_int_not_equal(first, second);
	assert_true(adopt(*state, second, 5));
	assert_int_equal(look_up(*state, "a", 5), first);
	/* Removing one inode must not remove the key of the other. */
	inodes_forget(*state, second, 1);
	assert_int_equal(look_up(*state, "a", 5), first);
	assert_true(exists(*state, first));
}

static void a_file_that_becomes_a_directory_is_another_inode(void **state)
{
	const struct engine_stat dir = {.kind = ENGINE_DIR};
	uint64_t a = look_up(*state, "a", 0);
	uint64_t d = inodes_look_up(*state, "a", &dir);
	assert_int_not_equal(a, d);
	assert_true(exists(*state, a));
	assert_int_equal(inodes_look_up(*state, "a", &dir), d);
	inodes_forget(*state, a, 1);
	assert_int_equal(inodes_look_up(*state, "a", &dir), d);
}

static void many_inodes_have_different_numbers(void **state)
{
	enum { MANY = 5000 };
	uint64_t inos[MANY];
	char path[16];
	for (int i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), "f%d", i);
		inos[i] = look_up(*state, path, 1);
	}
	for (int i = 0; i < MANY; i += 2)
		inodes_forget(*state, inos[i], 1);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(exists(*state, inos[i]), i % 2);
}

static void a_removed_path_gets_another_inode(void **state)
{
	uint64_t a = look_up(*state, "a", 0), b = look_up(*state, "b", 0);
	inodes_remove(*state, "a");
	assert_true(exists(*state, a));
	uint64_t again = look_up(*state, "a", 0);
	assert_int_not_equal(again, a);
	assert_int_equal(look_up(*state, "a", 0), again);
	assert_int_equal(look_up(*state, "b", 0), b);
	inodes_forget(*state, a, 1);
	assert_int_equal(look_up(*state, "a", 0), again);
}

static void an_inode_follows_its_file(void **state)
{
	auto_inode struct inode_view view = {0};
	uint64_t unopened = look_up(*state, "a", 0), opened = look_up(*state, "a", 3);
	uint64_t old = look_up(*state, "b", 0);
	inodes_remove(*state, "b");
	inodes_rename(*state, "a", "b");
	assert_int_equal(inodes_get(*state, opened, &view), 0);
	assert_string_equal(view.path, "b");
	assert_int_equal(look_up(*state, "b", 0), unopened);
	assert_int_equal(look_up(*state, "b", 3), opened);
	assert_int_not_equal(look_up(*state, "a", 3), opened);
	inodes_forget(*state, old, 1);
	assert_int_equal(look_up(*state, "b", 0), unopened);
	inodes_forget(*state, unopened, 3);
	assert_false(exists(*state, unopened));
}

static void a_removed_inode_stays_removed(void **state)
{
	auto_inode struct inode_view view = {0};
	uint64_t old = look_up(*state, "a", 1);
	inodes_remove(*state, "a");
	uint64_t fresh = look_up(*state, "a", 1);
	inodes_rename(*state, "a", "b");
	assert_int_equal(look_up(*state, "b", 1), fresh);
	assert_int_equal(inodes_get(*state, old, &view), 0);
	assert_string_equal(view.path, "a");
	inodes_forget(*state, old, 1);
	assert_false(exists(*state, old));
	assert_int_equal(look_up(*state, "b", 1), fresh);
}

/* Another thread can look the new name up between inodes_remove() and inodes_rename(). */
static void a_rename_meets_a_look_up(void **state)
{
	auto_inode struct inode_view view = {0};
	uint64_t a = look_up(*state, "a", 1), newer = look_up(*state, "a", 2);
	uint64_t b = look_up(*state, "b", 1);
	inodes_rename(*state, "a", "b");
	assert_int_equal(look_up(*state, "b", 1), b);
	assert_int_equal(look_up(*state, "b", 2), newer);
	assert_int_equal(inodes_get(*state, a, &view), 0);
	assert_string_equal(view.path, "b");
	inodes_forget(*state, b, 2);
	assert_int_equal(look_up(*state, "b", 1), a);
	inodes_rename(*state, "b", "b");
	assert_int_equal(look_up(*state, "b", 1), a);
	inodes_rename(*state, "none", "b");
	assert_int_equal(look_up(*state, "b", 1), a);
}

static void a_renamed_file_keeps_its_inode_when_it_is_opened(void **state)
{
	const struct engine_stat old = {.kind = ENGINE_DOMAIN, .version = 5, .size = 7};
	const struct engine_stat now = {.kind = ENGINE_DOMAIN, .version = 6, .size = 7};
	const struct engine_stat longer = {.kind = ENGINE_DOMAIN, .version = 8, .size = 9};
	uint64_t a = inodes_look_up(*state, "a", &old);
	assert_int_equal(inodes_adopt(*state, a, &now), INODES_OTHER);
	assert_int_equal(inodes_adopt(*state, a, &old), INODES_SAME);
	inodes_rename(*state, "a", "b");
	/* A program reads the old version. */
	assert_int_equal(inodes_adopt(*state, a, &now), INODES_OTHER);
	inodes_close(*state, a);
	assert_int_equal(inodes_adopt(*state, a, &longer), INODES_OTHER);
	assert_int_equal(inodes_adopt(*state, a, &now), INODES_RENEWED);
	inodes_close(*state, a);
	assert_int_equal(inodes_look_up(*state, "b", &now), a);
	/* Only a rename permits this. */
	assert_int_equal(inodes_adopt(*state, a, &old), INODES_OTHER);
}

static void a_draft_has_its_own_inode(void **state)
{
	const uint64_t version = UINT64_C(1) << 63 | 7;
	const struct engine_stat draft = {.kind = ENGINE_PLAIN, .version = version, .draft = true};
	uint64_t unopened = look_up(*state, "a", 0);
	assert_false(inodes_adopt(*state, unopened, &draft));
	assert_int_equal(look_up(*state, "a", 0), unopened);
	uint64_t ino = inodes_look_up(*state, "a", &draft);
	assert_int_not_equal(ino, unopened);
	assert_int_equal(inodes_adopt(*state, ino, &draft), INODES_SAME);
	inodes_rename(*state, "a", "b");
	assert_int_equal(inodes_look_up(*state, "b", &draft), ino);
	assert_int_equal(look_up(*state, "b", 0), unopened);
}

static void sizes_that_the_kernel_has(void **state)
{
	const uint64_t a = look_up(*state, "a", 0);
	assert_true(inodes_has_size(*state, a, 0));
	assert_true(adopt(*state, a, 7)); /* the kernel does not get the size of an open file */
	assert_false(inodes_has_size(*state, a, 7));
	inodes_told(*state, a, 7);
	assert_true(inodes_has_size(*state, a, 7));
	assert_int_equal(look_up(*state, "a", 7), a);
	assert_true(inodes_has_size(*state, a, 7));
	inodes_told(*state, a + 1, 7);
	assert_false(inodes_has_size(*state, a + 1, 7));
}

static void a_directory_is_found_by_its_path(void **state)
{
	const struct engine_stat dir = {.kind = ENGINE_DIR, .mode = 0555};
	struct engine_stat st;
	look_up(*state, "a", 0);
	assert_false(inodes_get_dir(*state, "a", &st));
	assert_false(inodes_get_dir(*state, "d", &st));
	inodes_look_up(*state, "d", &dir);
	assert_true(inodes_get_dir(*state, "d", &st));
	assert_int_equal(st.mode, 0555);
	inodes_remove(*state, "d");
	assert_false(inodes_get_dir(*state, "d", &st));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static uint64_t look_up_plain(struct inodes *t, const char *path, uint64_t version, bool draft)
{
	const struct engine_stat st = {.kind = ENGINE_PLAIN, .version = version, .draft = draft};
	return inodes_look_up(t, path, &st);
}

static void versions_of_a_plain_object_show_one_number(void **state)
{
	const uint64_t old = look_up_plain(*state, "a", 1, false);
	const uint64_t draft = look_up_plain(*state, "a", 2, true);
	assert_int_not_equal(old, draft);
	assert_int_equal(inodes_shown(*state, old), old);
	assert_int_equal(inodes_shown(*state, draft), old);
	inodes_forget(*state, old, 1);
	assert_int_equal(inodes_shown(*state, look_up_plain(*state, "a", 3, false)), old);
	/* Also if the kernel forgets it for a moment. */
	inodes_forget(*state, draft, 1);
	inodes_forget(*state, draft + 1, 1);
	assert_int_equal(inodes_shown(*state, look_up_plain(*state, "a", 4, true)), old);
	/* The number goes with the file, and another file has another one. */
	inodes_rename(*state, "a", "b");
	assert_int_equal(inodes_shown(*state, look_up_plain(*state, "b", 3, false)), old);
	const uint64_t other = look_up_plain(*state, "a", 4, false);
	assert_int_equal(inodes_shown(*state, other), other);
	inodes_remove(*state, "b");
	assert_int_not_equal(inodes_shown(*state, look_up_plain(*state, "b", 5, false)), old);
	assert_int_equal(inodes_shown(*state, 12345), 12345);
}

static void old_numbers_are_forgotten(void **state)
{
	enum { MANY = 2000 };
	uint64_t first[MANY];
	char path[16];
	for (int again = 0; again < 2; again++) {
		for (int i = 0; i < MANY; i++) {
			snprintf(path, sizeof(path), "f%d", i);
			const uint64_t ino = look_up_plain(*state, path, 1, false);
			if (again)
				assert_int_not_equal(inodes_shown(*state, ino), first[i]);
			first[i] = ino;
			inodes_forget(*state, ino, 1);
			if (i % 3 == 0)
				inodes_remove(*state, path);
			else if (i % 3 == 1)
				inodes_rename(*state, path, "renamed");
		}
	}
}

static void a_domain_shows_other_numbers(void **state)
{
	const uint64_t plain = look_up_plain(*state, "a", 1, false);
	const uint64_t domain = look_up(*state, "a", 2);
	assert_int_equal(inodes_shown(*state, domain), domain);
	const uint64_t draft = look_up_plain(*state, "a", 3, true);
	assert_int_equal(inodes_shown(*state, draft), draft);
	assert_int_equal(inodes_shown(*state, plain), plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_root_is_never_forgotten),
		TEST(each_version_of_a_path_has_one_inode),
		TEST(an_inode_is_forgotten_after_as_many_lookups),
		TEST(a_lookup_count_does_not_become_negative),
		TEST(an_unopened_file_adopts_its_first_version),
		TEST(two_inodes_can_adopt_one_version),
		TEST(a_file_that_becomes_a_directory_is_another_inode),
		TEST(many_inodes_have_different_numbers),
		TEST(a_removed_path_gets_another_inode),
		TEST(an_inode_follows_its_file),
		TEST(a_removed_inode_stays_removed),
		TEST(a_rename_meets_a_look_up),
		TEST(a_renamed_file_keeps_its_inode_when_it_is_opened),
		TEST(a_draft_has_its_own_inode),
		TEST(versions_of_a_plain_object_show_one_number),
		TEST(old_numbers_are_forgotten),
		TEST(a_domain_shows_other_numbers),
		TEST(sizes_that_the_kernel_has),
		TEST(a_directory_is_found_by_its_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
