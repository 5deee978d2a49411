/* SPDX-License-Identifier: Apache-2.0 */
/* Dataspaces: element counts, limits, growth. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <data/dspace.h>

#include "shape_arena.h"

#define U DSPACE_UNLIMITED

static void scalar_and_null(void **state)
{
	struct dspace s;
	dspace_scalar(&s);
	assert_int_equal(s.cls, DSPACE_SCALAR);
	assert_int_equal(s.rank, 0);
	assert_int_equal(s.nelems, 1);
	assert_false(dspace_extendible(&s));
	dspace_null(&s);
	assert_int_equal(s.cls, DSPACE_NULL);
	assert_int_equal(s.rank, 0);
	assert_int_equal(s.nelems, 0);
	assert_false(dspace_extendible(&s));
}

static void simple(void **state)
{
	static const uint64_t two63 = UINT64_C(1) << 63, two62 = UINT64_C(1) << 62;
	const struct {
		const char *name;
		uint32_t rank;
		uint64_t dims[3], max[3];
		int result;
		uint64_t nelems;
		bool extendible;
	} rows[] = {
		{"fixed", 2, {3, 4}, {3, 4}, 0, 12, false},
		{"can grow", 2, {3, 4}, {3, 5}, 0, 12, true},
		{"unlimited", 2, {3, 4}, {U, 4}, 0, 12, true},
		{"empty", 2, {0, 4}, {0, 4}, 0, 0, false},
		{"empty, unlimited", 1, {0}, {U}, 0, 0, true},
		{"2^63", 1, {two63}, {two63}, 0, two63, false},
		{"2^63 in two", 2, {two62, 2}, {two62, 2}, 0, two63, false},
		{"huge but empty", 3, {two63, 0, two63}, {two63, 0, two63}, 0, 0, false},
		{"more than 2^63", 2, {two62, 3}, {two62, 3}, -E2BIG, 0, false},
		{"more than 2^64", 3, {two62, 2, 2}, {two62, 2, 2}, -E2BIG, 0, false},
		{"wraps to a small product", 2, {two63, 2}, {two63, 2}, -E2BIG, 0, false},
		{"unlimited extent", 1, {U}, {U}, -E2BIG, 0, false},
		{"unlimited extent, empty", 2, {U, 0}, {U, 0}, -E2BIG, 0, false},
		{"larger than its maximum", 2, {3, 4}, {3, 3}, -EINVAL, 0, false},
		{"no dimensions", 0, {0}, {0}, -EINVAL, 0, false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = ERR_INIT;
		struct dspace s;
		int r = dspace_simple(shape_arena(), &s, rows[i].rank, rows[i].dims, rows[i].max,
				      &err);
		if (r != rows[i].result)
			fail_msg("%s: %d (%s)", rows[i].name, r, err.msg);
		assert_int_equal(err.code, r);
		if (r < 0)
			continue;
		assert_int_equal(s.cls, DSPACE_SIMPLE);
		assert_true(s.nelems == rows[i].nelems);
		assert_int_equal(dspace_extendible(&s), rows[i].extendible);
		for (uint32_t d = 0; d < s.rank; d++) {
			assert_true(s.dims[d] == rows[i].dims[d]);
			assert_true(s.max[d] == rows[i].max[d]);
		}
	}
}

static void without_maximum_it_is_fixed(void **state)
{
	uint64_t dims[DSPACE_MAX_RANK + 1];
	struct dspace s;
	for (int i = 0; i <= DSPACE_MAX_RANK; i++)
		dims[i] = 2;
	assert_int_equal(dspace_simple(shape_arena(), &s, DSPACE_MAX_RANK, dims, NULL, NULL), 0);
	assert_true(s.nelems == UINT64_C(1) << 32);
	assert_true(s.max[DSPACE_MAX_RANK - 1] == 2);
	assert_false(dspace_extendible(&s));
	assert_int_equal(dspace_simple(shape_arena(), &s, DSPACE_MAX_RANK + 1, dims, NULL, NULL),
			 -E2BIG);
}

static void spaces_are_compared(void **state)
{
	static const uint64_t dims[] = {2, 3}, other[] = {2, 4}, max[] = {2, 8};
	enum { N = 6 };
	struct dspace s[N];
	dspace_scalar(&s[0]);
	dspace_null(&s[1]);
	assert_int_equal(dspace_simple(shape_arena(), &s[2], 2, dims, NULL, NULL), 0);
	assert_int_equal(dspace_simple(shape_arena(), &s[3], 2, dims, max, NULL), 0);
	assert_int_equal(dspace_simple(shape_arena(), &s[4], 2, other, max, NULL), 0);
	assert_int_equal(dspace_simple(shape_arena(), &s[5], 1, dims, NULL, NULL), 0);
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++) {
			const bool dims_only = (i == 2 && k == 3) || (i == 3 && k == 2) ||
					       (i + k == 1); /* both have none */
			const bool limits_only = (i == 3 && k == 4) || (i == 4 && k == 3);
			assert_int_equal(dspace_equal(&s[i], &s[k]), i == k);
			assert_int_equal(dspace_same_dims(&s[i], &s[k]), i == k || dims_only);
			assert_int_equal(dspace_same_limits(&s[i], &s[k]), i == k || limits_only);
		}
}

/* The dimensions are a copy, and nothing is allocated for maxima that are not given. */
static void dimensions_are_copied(void **state)
{
	uint64_t dims[] = {2, 3};
	struct dspace s;
	struct arena *a = arena_new(1 << 16);
	assert_int_equal(dspace_simple(a, &s, 2, dims, NULL, NULL), 0);
	dims[0] = 7;
	assert_int_equal(s.dims[0], 2);
	assert_ptr_equal(s.max, s.dims);
	arena_free(a);
	a = arena_new(8);
	struct err err = ERR_INIT;
	assert_int_equal(dspace_simple(a, &s, 2, dims, NULL, &err), -ENOMEM);
	assert_int_equal(err.code, -ENOMEM);
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spaces_are_compared),
		cmocka_unit_test(dimensions_are_copied),
		cmocka_unit_test(scalar_and_null),
		cmocka_unit_test(simple),
		cmocka_unit_test(without_maximum_it_is_fixed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
