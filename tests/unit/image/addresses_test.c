/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where image/ says that something is, h5file/ finds it. tests/integration/test_addresses.py does
 * the same with the sample domains.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "image_scan.h"
#include "rendered.h"

static void scan(struct rendered *r, struct image_scan *s)
{
	struct err err = ERR_INIT;
	if (rendered_make(r, NULL, &err) ||
	    image_scan_open(s, r->img, domain_tree(r->domain), &err))
		fail_msg("%s", err.msg);
}

static void check_headers(struct rendered *r, uint32_t expected)
{
	struct image_scan s;
	struct err err = ERR_INIT;
	uint32_t n;
	scan(r, &s);
	if (image_scan_headers(&s, &n, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(n, expected);
	assert_int_equal(image_header(r->img, tree_numbers(s.tree)), UINT64_MAX);
	assert_int_equal(image_header(r->img, OBJECT_NONE), UINT64_MAX);
	image_scan_close(&s);
}

/* Two groups, two datasets and a committed type; the orphan is not in the file. */
static void headers(void **state)
{
	check_headers(*state, 5);
}

static unsigned int size(unsigned int i)
{
	return 1 + i;
}

/* The links of the root group are in dense storage. */
static void headers_of_many_objects(void **state)
{
	rendered_put_datasets(*state, 200, size);
	check_headers(*state, 201);
}

static void items(void **state)
{
	struct rendered *r = *state;
	struct image_items_found found;
	struct image_scan s;
	struct err err = ERR_INIT;
	uint64_t start, end;
	scan(r, &s);
	if (image_scan_items(&s, &found, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(found.chunks, 1);
	assert_int_equal(found.collections, 1);
	assert_int_equal(found.n, 1);
	for (uint32_t i = 0; i < tree_numbers(s.tree); i++) {
		assert_false(image_items(r->img, i, 1, &start, &end)); /* only chunk 0 is stored */
		assert_false(image_items(r->img, i, UINT64_MAX, &start, &end));
	}
	assert_false(image_items(r->img, 0, 0, &start, &end)); /* a group */
	assert_false(image_items(r->img, tree_numbers(s.tree), 0, &start, &end));
	free(found.ranges);
	image_scan_close(&s);
}

/* Four chunks, of which the first is stored. The elements of each of the others have copies of the
 * fill value. */
static void items_of_fill_values(void **state)
{
	struct rendered *r = *state;
	struct image_items_found found;
	struct image_scan s;
	struct err err = ERR_INIT;
	rendered_put(r, SMALL_KEY_STRINGS,
		     "{" SMALL_HEAD(SMALL_STRINGS) ",'type':{'class':'H5T_STRING','charSet':"
						   "'H5T_CSET_UTF8','strPad':'H5T_STR_NULLTERM',"
						   "'length':'H5T_VARIABLE'},'shape':{'class':"
						   "'H5S_SIMPLE','dims':[7]},'attributes':{},"
						   "'creationProperties':{'fillValue':'x'},"
						   "'layout':{'class':'H5D_CHUNKED','dims':[2]}}");
	scan(r, &s);
	if (image_scan_items(&s, &found, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(found.chunks, 4);
	assert_int_equal(found.collections, 4);
	assert_int_equal(found.n, 4);
	free(found.ranges);
	image_scan_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(headers, rendered_setup, rendered_teardown),
		cmocka_unit_test_setup_teardown(headers_of_many_objects, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(items, rendered_setup, rendered_teardown),
		cmocka_unit_test_setup_teardown(items_of_fill_values, rendered_setup,
						rendered_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
