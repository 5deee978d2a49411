/* SPDX-License-Identifier: Apache-2.0 */
/* The loader: which requests it makes, in how many rounds, and what it makes of the answers. */
#include "zarr_load.h"

/* ---- first loads ---- */

static void a_listing_shows_which_documents_exist(void **state)
{
	struct bucket b;
	put_group(&b);
	put(&b, "x/g/.zmetadata", "{}");
	entry_of(&b, "x/a/1")->mtime_ns = 300;
	entry_of(&b, "x/g/.zgroup")->mtime_ns = 200;
	struct load l = {0};
	check_load(&l, &b, GROUP_LISTED);
	check_tree(&l, GROUP_TREE);
	assert_false(l.loader->same);
	assert_false(l.loader->is_torn);
	assert_int_equal(l.nlisted, 1);
	assert_int_equal(l.nrefused, 0);
	assert_true(l.loader->space->listed_whole);
	assert_int_equal(l.loader->space->modified_ns, 300);
	assert_int_equal(l.listed.modified_ns, 300);
	assert_int_equal(l.listed.documents,
			 2 * strlen(GROUP2) + 2 * strlen(ARRAY2) + strlen("{\"t\":\"1\"}") + 2);
	unload(&l);
}

static void without_a_listing_groups_are_listed_level_by_level(void **state)
{
	static const int codes[] = {0, -E2BIG, -ELOOP, -EACCES, -ENOLINK};
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct bucket b;
		put_group(&b);
		put(&b, "x/h/k/.zarray", ARRAY2);
		entry_of(&b, "x/g/.zgroup")->mtime_ns = 200;
		b.list_code = codes[i];
		struct load l = {.limit = 3};
		check_load(&l, &b,
			   "GET x/.zgroup, LIST x/\n"
			   "GET x/.zarray, GET x/.zattrs\n"
			   "LIST x/\n"
			   "GET x/a/.zgroup, GET x/a/.zarray, GET x/a/.zattrs, GET x/g/.zgroup, "
			   "GET x/g/.zarray, GET x/g/.zattrs, GET x/h/.zgroup, GET x/h/.zarray, "
			   "GET x/h/.zattrs\n"
			   "LIST x/g/, LIST x/h/\n"
			   "GET x/g/b/.zgroup, GET x/g/b/.zarray, GET x/g/b/.zattrs, "
			   "GET x/h/k/.zgroup, GET x/h/k/.zarray, GET x/h/k/.zattrs\n");
		check_tree(&l, GROUP_TREE "group /h\nh/k (4) chunk(2) int32\n");
		assert_int_equal(l.nlisted, 0);
		assert_int_equal(l.nrefused, 1);
		assert_false(l.loader->space->listed_whole);
		assert_false(l.loader->is_torn);
		assert_int_equal(l.loader->space->modified_ns, 200);
		unload(&l);
	}
}

static void stores_of_v3_have_one_document_for_each_node(void **state)
{
	struct bucket b = {0};
	put(&b, "x/zarr.json", GROUP3);
	put(&b, "x/a/zarr.json", ARRAY3);
	put(&b, "x/a/c/0", "chunk");
	put(&b, "x/g/b/zarr.json", ARRAY3);
	static const char tree[] = "group /\n"
				   "_Anonymous_Dim_4 (4) dimension\n"
				   "a (4) chunk(2) int16 fill 0 keys c/\n"
				   "group /g\n"
				   "g/b (4) chunk(2) int16 fill 0 keys c/\n";
	struct load whole = {.root = "zarr.json"}, walk = {.root = "zarr.json", .limit = 1};
	check_load(&whole, &b,
		   "GET x/zarr.json, LIST x/\nGET x/a/zarr.json, GET x/g/b/zarr.json\n");
	check_tree(&whole, tree);
	check_load(&walk, &b,
		   "GET x/zarr.json, LIST x/\n"
		   "LIST x/\n"
		   "GET x/a/zarr.json, GET x/g/zarr.json\n"
		   "LIST x/g/\n"
		   "GET x/g/b/zarr.json\n");
	check_tree(&walk, tree);
	unload(&whole);
	unload(&walk);
}

static void consolidated_metadata_save_requests(void **state)
{
	struct bucket b;
	put_group(&b);
	put(&b, "x/.zmetadata",
	    VIEW("\".zgroup\":" GROUP2 ",\".zattrs\":{\"t\":\"1\"},\"a/.zarray\":" ARRAY2
		 ",\"g/.zgroup\":" GROUP2 ",\"gone/.zarray\":" ARRAY2));
	struct load whole = {.root = ".zmetadata"}, walk = {.root = ".zmetadata", .limit = 3};
	/* The listing shows what the view lacks, and what has gone since. */
	check_load(&whole, &b, "GET x/.zmetadata, LIST x/\nGET x/g/b/.zarray\n");
	check_tree(&whole, GROUP_TREE);
	assert_false(whole.loader->is_torn);
	check_load(&walk, &b, "GET x/.zmetadata, LIST x/\n");
	check_tree(&walk, "group /\n"
			  "  @t \"1\"\n"
			  "_Anonymous_Dim_4 (4) dimension\n"
			  "a (4) chunk(2) int32\n"
			  "group /g\n"
			  "gone (4) chunk(2) int32\n");
	unload(&whole);
	unload(&walk);
}

static void an_array_has_no_groups_to_list(void **state)
{
	struct bucket b = {0};
	put(&b, "x/.zarray", ARRAY2);
	put(&b, "x/0", "chunk");
	put(&b, "x/1", "chunk");
	struct load l = {.root = ".zarray", .limit = 1};
	check_load(&l, &b, "GET x/.zarray, LIST x/\nGET x/.zgroup, GET x/.zattrs\n");
	check_tree(&l, "group /\n_Anonymous_Dim_4 (4) dimension\ndata (4) chunk(2) int32\n");
	unload(&l);
}

static void the_bucket_may_be_the_store(void **state)
{
	struct bucket b = {0};
	put(&b, ".zgroup", GROUP2);
	put(&b, "a/.zarray", ARRAY2);
	struct load whole = {.store = ""}, walk = {.store = "", .limit = 1};
	static const char tree[] =
		"group /\n_Anonymous_Dim_4 (4) dimension\na (4) chunk(2) int32\n";
	check_load(&whole, &b, "GET .zgroup, LIST \nGET a/.zarray\n");
	check_tree(&whole, tree);
	check_load(&walk, &b,
		   "GET .zgroup, LIST \n"
		   "GET .zarray, GET .zattrs\n"
		   "LIST \n"
		   "GET a/.zgroup, GET a/.zarray, GET a/.zattrs\n");
	check_tree(&walk, tree);
	unload(&whole);
	unload(&walk);
}

static void a_group_may_have_many_children(void **state)
{
	struct bucket b = {0};
	put(&b, "x/.zgroup", GROUP2);
	for (int i = 0; i < 70; i++) {
		char key[32];
		snprintf(key, sizeof(key), "x/g%02d/.zgroup", i);
		put(&b, key, GROUP2);
	}
	struct load l = {0};
	load(&l, &b);
	assert_int_equal(l.rc, 0);
	assert_int_equal(tree_object(l.tree, 0)->o.group.nlinks, 70);
	unload(&l);
}

static void only_a_store_that_can_be_listed_is_loaded_if_the_caller_says_so(void **state)
{
	struct bucket b;
	put_group(&b);
	struct load l = {.whole_only = true}, too_long = {.whole_only = true, .limit = 3};
	check_load(&l, &b,
		   "LIST x/\n"
		   "GET x/.zgroup\n"
		   "GET x/.zattrs, GET x/a/.zarray, GET x/g/.zgroup, GET x/g/b/.zarray\n");
	check_tree(&l, GROUP_TREE);
	check_load(&too_long, &b, "LIST x/\n");
	check_tree(&too_long, "-7: not all keys of the store can be listed\n");
	unload(&l);
	unload(&too_long);
}

static void the_caller_may_end_the_load_after_the_listing(void **state)
{
	struct bucket b;
	put_group(&b);
	struct load whole = {.listed_rc = -ECANCELED}, none = {.listed_rc = -ECANCELED, .limit = 1};
	check_load(&whole, &b, "GET x/.zgroup, LIST x/\n");
	assert_int_equal(whole.rc, -ECANCELED);
	check_load(&none, &b, "GET x/.zgroup, LIST x/\n");
	assert_int_equal(none.rc, -ECANCELED);
	unload(&whole);
	unload(&none);
}

/* ---- failures ---- */

static void a_failed_request_ends_the_load(void **state)
{
	struct bucket b;
	put_group(&b);
	entry_of(&b, "x/a/.zarray")->code = -EACCES;
	check(&b, GROUP_LISTED, "-13: a/.zarray: the bucket refuses\n");
	put_group(&b);
	entry_of(&b, "x/.zgroup")->code = -EIO;
	check(&b, "GET x/.zgroup, LIST x/\n", "-5: .zgroup: the bucket refuses\n");
	/* No other request shows which documents there are. */
	put_group(&b);
	b.list_code = -EACCES;
	entry_of(&b, "x/.zattrs")->code = -EACCES;
	check(&b, "GET x/.zgroup, LIST x/\nGET x/.zarray, GET x/.zattrs\n",
	      "-13: the store has no consolidated metadata: listing x/: the bucket refuses\n");
	put_group(&b);
	b.list_code = -EIO;
	check(&b, "GET x/.zgroup, LIST x/\n", "-5: listing x/: the bucket refuses\n");
	put_group(&b);
	b.list_code = -E2BIG;
	b.group_code = -EIO;
	check(&b, "GET x/.zgroup, LIST x/\nGET x/.zarray, GET x/.zattrs\nLIST x/\n",
	      "-5: listing the groups of x: the bucket refuses\n");
}

static void a_document_that_is_too_large_costs_one_node(void **state)
{
	struct bucket b;
	put_group(&b);
	entry_of(&b, "x/a/.zarray")->code = -EFBIG;
	check(&b, GROUP_LISTED,
	      "group /\n"
	      "  @t \"1\"\n"
	      "_Anonymous_Dim_4 (4) dimension\n"
	      "group /g\n"
	      "g/b (4) chunk(2) int32\n"
	      "note: a/.zarray: left out: the bucket refuses\n");
}

static void a_store_that_is_gone_does_not_exist(void **state)
{
	struct bucket b;
	put_group(&b);
	delete (&b, "x/.zgroup");
	check(&b, "GET x/.zgroup, LIST x/\n", "-2: .zgroup does not exist any more\n");
}

/* The store has changed between the listing and the documents. */
static void a_load_of_two_moments_is_torn(void **state)
{
	struct bucket b;
	put_group(&b);
	entry_of(&b, "x/a/.zarray")->hides = true;
	struct load gone = {0};
	check_load(&gone, &b, GROUP_LISTED);
	assert_int_equal(gone.rc, 0);
	assert_true(gone.loader->is_torn);

	put_group(&b);
	entry_of(&b, "x/a/.zarray")->etag = "2";
	struct load newer = {0};
	check_load(&newer, &b, GROUP_LISTED);
	assert_true(newer.loader->is_torn);

	/* A version that is not known proves nothing. */
	entry_of(&b, "x/a/.zarray")->etag = "";
	entry_of(&b, "x/g/.zgroup")->listed = "";
	struct load unknown = {0};
	check_load(&unknown, &b, GROUP_LISTED);
	assert_false(unknown.loader->is_torn);

	/* Some services write versions differently in listings. */
	entry_of(&b, "x/a/.zarray")->etag = "2";
	struct load again = {.previous = &newer, .reload = true};
	check_load(&again, &b,
		   "LIST x/\n"
		   "GET x/.zgroup\n"
		   "GET x/.zattrs, GET x/a/.zarray, GET x/g/.zgroup, GET x/g/b/.zarray\n");
	assert_int_equal(again.rc, 0);
	assert_false(again.loader->is_torn);

	entry_of(&b, "x/a/.zarray")->etag = "3";
	struct load third = {.previous = &newer, .reload = true};
	load(&third, &b);
	assert_true(third.loader->is_torn);
	unload(&gone);
	unload(&newer);
	unload(&unknown);
	unload(&again);
	unload(&third);
}

static void a_key_that_is_too_long_needs_no_request(void **state)
{
	static char store[SCHEMA_KEY_MAX + 1];
	struct bucket b = {0};
	struct load l = {.store = store};
	memset(store, 's', SCHEMA_KEY_MAX - 3);
	load(&l, &b);
	assert_string_equal(str_text(&l.log) + strlen("no request, LIST ") + SCHEMA_KEY_MAX - 3,
			    "/\n");
	assert_int_equal(l.rc, -EIO);
	assert_int_equal(tree_problems(l.tree), 1);
	unload(&l);
	memset(store, 's', SCHEMA_KEY_MAX);
	l = (struct load){.store = store};
	check_load(&l, &b, "no request, no request\nno request, no request\nno request\n");
	unload(&l);
}

/* ---- what a listing shows of arrays ---- */

#define MATRIX "{\"shape\":[4,4],\"chunks\":[2,2],\"dtype\":\"|u1\"}"

static void keys_show_the_separator_of_an_array(void **state)
{
	struct bucket b = {0};
	put(&b, "x/.zgroup", GROUP2);
	put(&b, "x/a/.zarray", MATRIX);
	put(&b, "x/ab/.zarray", MATRIX);
	put(&b, "x/ab/0/1", "chunk");
	put(&b, "x/b/.zarray", MATRIX);
	put(&b, "x/b/10/0", "chunk");
	put(&b, "x/c/.zarray", MATRIX);
	put(&b, "x/c/0.1", "chunk");
	put(&b, "x/d/.zarray", MATRIX);
	put(&b, "x/d/0/0", "chunk");
	put(&b, "x/d/00", "no chunk");
	struct load l = {0}, root = {.root = ".zarray"};
	load(&l, &b);
	check_tree(&l, "group /\n"
		       "_Anonymous_Dim_4 (4) dimension\n"
		       "a (4,4) chunk(2,2) uint8\n"
		       "ab (4,4) chunk(2,2) uint8 keys /\n"
		       "b (4,4) chunk(2,2) uint8 keys /\n"
		       "c (4,4) chunk(2,2) uint8\n"
		       "d (4,4) chunk(2,2) uint8 keys /\n");
	unload(&l);
	b = (struct bucket){0};
	put(&b, "x/.zarray", MATRIX);
	put(&b, "x/1/0", "chunk");
	load(&root, &b);
	check_tree(&root, "group /\n_Anonymous_Dim_4 (4) dimension\n"
			  "data (4,4) chunk(2,2) uint8 keys /\n");
	unload(&root);
}

static void an_array_whose_chunks_are_beside_it_is_left_out(void **state)
{
	struct bucket b = {0};
	put(&b, "x/.zgroup", GROUP2);
	put(&b, "x/a/.zarray", ARRAY2);
	put(&b, "x/a/.nczarray", "{}");
	put(&b, "x/b/.zarray", ARRAY2);
	check(&b, "GET x/.zgroup, LIST x/\nGET x/b/.zarray\n",
	      "group /\n"
	      "_Anonymous_Dim_4 (4) dimension\n"
	      "b (4) chunk(2) int32\n"
	      "note: a/.zarray: its chunks are beside it, as netCDF-C has stored them in 2021\n");
	/* The listing of a group shows which program has written it. */
	put(&b, "x/.nczgroup", "{}");
	put(&b, "x/g/c/.zarray", ARRAY2);
	put(&b, "x/g/c/.nczarray", "{}");
	struct load walk = {.limit = 3};
	check_load(&walk, &b,
		   "GET x/.zgroup, LIST x/\n"
		   "GET x/.zarray, GET x/.zattrs\n"
		   "LIST x/\n"
		   "GET x/a/.nczarray, GET x/b/.nczarray, GET x/g/.nczarray, GET x/a/.zgroup, "
		   "GET x/a/.zarray, GET x/a/.zattrs, GET x/b/.zgroup, GET x/b/.zarray, "
		   "GET x/b/.zattrs, GET x/g/.zgroup, GET x/g/.zarray, GET x/g/.zattrs\n"
		   "LIST x/g/\n"
		   "GET x/g/c/.zgroup, GET x/g/c/.zarray, GET x/g/c/.zattrs\n");
	check_tree(
		&walk,
		"group /\n"
		"_Anonymous_Dim_4 (4) dimension\n"
		"b (4) chunk(2) int32\n"
		"group /g\n"
		"g/c (4) chunk(2) int32\n"
		"note: a/.zarray: its chunks are beside it, as netCDF-C has stored them in 2021\n");
	unload(&walk);
	/* Without an answer, the store is not shown. */
	entry_of(&b, "x/a/.nczarray")->code = -EACCES;
	struct load refused = {.limit = 3};
	load(&refused, &b);
	assert_int_equal(refused.rc, -EACCES);
	unload(&refused);
}

static void objects_know_their_documents(void **state)
{
	struct bucket b;
	struct load l = {0};
	char key[SCHEMA_KEY_MAX + 1];
	const char *etag;
	put_group(&b);
	entry_of(&b, "x/a/.zarray")->etag = "7";
	load(&l, &b);
	const struct schema_space *s = l.loader->space;
	for (uint32_t i = 0; i < tree_numbers(l.tree); i++) {
		const char *id = tree_object(l.tree, i)->o.id;
		const int n = zarr2_ops.object_key(s, i, key, sizeof(key), &etag);
		if (strcmp(id, "a") == 0) {
			assert_int_equal(n, strlen("x/a/.zarray"));
			assert_string_equal(key, "x/a/.zarray");
			assert_string_equal(etag, "7");
		}
		if (strcmp(id, "_Anonymous_Dim_4") == 0) {
			assert_int_equal(n, 0);
			assert_null(etag);
		}
		assert_int_equal(tree_object(l.tree, i)->o.modified_ns, 100);
	}
	assert_int_equal(zarr2_ops.object_key(s, 0, key, 5, &etag), -ENAMETOOLONG);
	unload(&l);
}

/* With a tree of any size, the result is the tree or -ENOMEM. */
static void memory_may_be_short(void **state)
{
	for (uint32_t limit = 1; limit <= 100; limit += 99) {
		struct bucket b;
		int rc = -ENOMEM;
		put_group(&b);
		for (size_t memory = 16; rc && memory < 64 << 10; memory += 16) {
			struct load l = {.memory = memory, .limit = limit};
			load(&l, &b);
			rc = l.rc;
			assert_true(rc == 0 || rc == -ENOMEM);
			if (!rc)
				check_tree(&l, GROUP_TREE);
			unload(&l);
		}
		assert_int_equal(rc, 0);
	}
}

/* What is below a node that is left out is not listed. */
static void a_damaged_node_is_no_group_to_list(void **state)
{
	struct bucket b = {0};
	put(&b, "x/zarr.json", GROUP3);
	put(&b, "x/a/zarr.json", "{");
	put(&b, "x/a/b/zarr.json", ARRAY3);
	struct load l = {.root = "zarr.json", .limit = 1};
	check_load(&l, &b, "GET x/zarr.json, LIST x/\nLIST x/\nGET x/a/zarr.json\n");
	assert_int_equal(l.rc, 0);
	assert_int_equal(tree_problems(l.tree), 1);
	unload(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listing_shows_which_documents_exist),
		cmocka_unit_test(without_a_listing_groups_are_listed_level_by_level),
		cmocka_unit_test(stores_of_v3_have_one_document_for_each_node),
		cmocka_unit_test(consolidated_metadata_save_requests),
		cmocka_unit_test(an_array_has_no_groups_to_list),
		cmocka_unit_test(the_bucket_may_be_the_store),
		cmocka_unit_test(a_group_may_have_many_children),
		cmocka_unit_test(only_a_store_that_can_be_listed_is_loaded_if_the_caller_says_so),
		cmocka_unit_test(the_caller_may_end_the_load_after_the_listing),
		cmocka_unit_test(a_failed_request_ends_the_load),
		cmocka_unit_test(a_document_that_is_too_large_costs_one_node),
		cmocka_unit_test(a_store_that_is_gone_does_not_exist),
		cmocka_unit_test(a_load_of_two_moments_is_torn),
		cmocka_unit_test(a_key_that_is_too_long_needs_no_request),
		cmocka_unit_test(keys_show_the_separator_of_an_array),
		cmocka_unit_test(an_array_whose_chunks_are_beside_it_is_left_out),
		cmocka_unit_test(objects_know_their_documents),
		cmocka_unit_test(memory_may_be_short),
		cmocka_unit_test(a_damaged_node_is_no_group_to_list),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
