/* SPDX-License-Identifier: Apache-2.0 */
/* The loader with an earlier load: how it finds out whether the store has changed since. */
#include "zarr_load.h"

static void check_again(const struct load *first, struct bucket *b, const char *log, bool same)
{
	struct load l = {.previous = first};
	check_load(&l, b, log);
	assert_int_equal(l.rc, 0);
	assert_int_equal(l.loader->same, same);
	unload(&l);
}

#define COMPARED                                                                                   \
	"LIST x/\n"                                                                                \
	"GET x/.zgroup\n"                                                                          \
	"GET x/.zattrs, GET x/a/.zarray, GET x/g/.zgroup, GET x/g/b/.zarray\n"

static void a_listing_is_compared(void **state)
{
	struct bucket b;
	struct load first = {0};
	put_group(&b);
	load(&first, &b);
	check_again(&first, &b, "LIST x/\n", true);
	entry_of(&b, "x/a/0")->listed = "2";
	check_again(&first, &b, COMPARED, false);
	put_group(&b);
	entry_of(&b, "x/a/0")->size++;
	check_again(&first, &b, COMPARED, false);
	put_group(&b);
	entry_of(&b, "x/a/0")->mtime_ns++;
	check_again(&first, &b, COMPARED, false);
	put_group(&b);
	delete (&b, "x/a/1");
	check_again(&first, &b, COMPARED, false);
	put_group(&b);
	b.list_code = -EACCES;
	struct load refused = {.previous = &first};
	load(&refused, &b);
	check_tree(&refused, GROUP_TREE);
	assert_false(refused.loader->same);
	assert_memory_equal(str_text(&refused.log), "LIST x/\nGET x/.zgroup, LIST x/\n", 31);
	unload(&refused);
	unload(&first);
}

static void an_unchanged_store_is_loaded_if_the_caller_says_so(void **state)
{
	struct bucket b;
	put_group(&b);
	struct load first = {0}, again = {.previous = &first, .reload = true};
	load(&first, &b);
	check_load(&again, &b, COMPARED);
	check_tree(&again, GROUP_TREE);
	assert_false(again.loader->same);
	assert_true(again.loader->space->listed_whole);
	unload(&again);
	unload(&first);
}

#define HEADS                                                                                      \
	"HEAD x/.zgroup, HEAD x/.zarray, HEAD x/.zattrs, HEAD x/a/.zgroup, HEAD x/a/.zarray, "     \
	"HEAD x/a/.zattrs, HEAD x/g/.zgroup, HEAD x/g/.zarray, HEAD x/g/.zattrs, "                 \
	"HEAD x/g/b/.zgroup, HEAD x/g/b/.zarray, HEAD x/g/b/.zattrs, LIST x/, LIST x/g/\n"
#define WALKED                                                                                     \
	"GET x/.zgroup, LIST x/\n"                                                                 \
	"GET x/.zarray, GET x/.zattrs\n"                                                           \
	"LIST x/\n"

static void check_heads(const struct load *first, struct bucket *b, bool same)
{
	struct load l = {.previous = first, .limit = 3};
	load(&l, b);
	assert_int_equal(l.rc, 0);
	assert_memory_equal(str_text(&l.log), HEADS, strlen(HEADS));
	if (!same)
		assert_memory_equal(str_text(&l.log) + strlen(HEADS), WALKED, strlen(WALKED));
	assert_int_equal(l.loader->same, same);
	unload(&l);
}

/* What was read, and what did not exist, is asked for. */
static void documents_are_compared_one_by_one(void **state)
{
	struct bucket b;
	struct load first = {.limit = 3};
	put_group(&b);
	load(&first, &b);
	check_heads(&first, &b, true);
	entry_of(&b, "x/a/.zarray")->etag = "2";
	check_heads(&first, &b, false);
	put_group(&b);
	delete (&b, "x/.zattrs");
	check_heads(&first, &b, false);
	put_group(&b);
	put(&b, "x/g/b/.zattrs", "{}");
	check_heads(&first, &b, false);
	put_group(&b);
	put(&b, "x/g/new/.zarray", ARRAY2);
	check_heads(&first, &b, false);
	put_group(&b);
	struct load reload = {.previous = &first, .reload = true, .limit = 3};
	load(&reload, &b);
	assert_false(reload.loader->same);
	check_tree(&reload, GROUP_TREE);
	unload(&reload);
	unload(&first);
}

/* A new group comes where a prefix without documents was. */
static void listings_of_groups_are_compared_by_name(void **state)
{
	struct bucket b;
	struct load first = {.limit = 3}, again = {.limit = 3, .previous = &first};
	put_group(&b);
	put(&b, "x/h/readme", "");
	load(&first, &b);
	delete (&b, "x/h/readme");
	put(&b, "x/i/.zarray", ARRAY2);
	load(&again, &b);
	assert_false(again.loader->same);
	check_tree(&again, GROUP_TREE "i (4) chunk(2) int32\n");
	unload(&first);
	unload(&again);
}

static void a_version_that_is_not_known_may_have_changed(void **state)
{
	struct bucket b;
	struct load first = {.limit = 3};
	put_group(&b);
	entry_of(&b, "x/g/b/.zarray")->etag = "";
	load(&first, &b);
	check_heads(&first, &b, false);
	unload(&first);
}

static void a_comparison_may_fail(void **state)
{
	struct bucket b;
	struct load first = {.limit = 3};
	put_group(&b);
	load(&first, &b);
	entry_of(&b, "x/a/.zarray")->code = -EACCES;
	struct load l = {.previous = &first, .limit = 3};
	check_load(&l, &b, HEADS);
	check_tree(&l, "-13: a/.zarray: the bucket refuses\n");
	unload(&l);
	put_group(&b);
	b.group_code = -EIO;
	l = (struct load){.previous = &first, .limit = 3};
	check_load(&l, &b, HEADS);
	check_tree(&l, "-5: listing the groups of x: the bucket refuses\n");
	unload(&l);
	unload(&first);
}

/* The version of the one document, which the caller has, shows whether the store has changed. */
static void consolidated_metadata_need_no_comparison(void **state)
{
	struct bucket b;
	put_group(&b);
	put(&b, "x/.zmetadata", VIEW("\".zgroup\":" GROUP2 ",\"a/.zarray\":" ARRAY2));
	struct load first = {.root = ".zmetadata", .limit = 3};
	struct load same = {.root = ".zmetadata", .limit = 3, .previous = &first};
	struct load other = {.root = ".zmetadata", .limit = 3, .previous = &first, .reload = true};
	load(&first, &b);
	check_load(&same, &b, "");
	assert_true(same.loader->same);
	check_load(&other, &b, "GET x/.zmetadata, LIST x/\n");
	assert_false(other.loader->same);
	check_tree(&other, "group /\n_Anonymous_Dim_4 (4) dimension\na (4) chunk(2) int32\n");
	unload(&first);
	unload(&same);
	unload(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listing_is_compared),
		cmocka_unit_test(an_unchanged_store_is_loaded_if_the_caller_says_so),
		cmocka_unit_test(documents_are_compared_one_by_one),
		cmocka_unit_test(listings_of_groups_are_compared_by_name),
		cmocka_unit_test(a_version_that_is_not_known_may_have_changed),
		cmocka_unit_test(a_comparison_may_fail),
		cmocka_unit_test(consolidated_metadata_need_no_comparison),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
