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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(headers, rendered_setup, rendered_teardown),
		cmocka_unit_test_setup_teardown(headers_of_many_objects, rendered_setup,
						rendered_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
