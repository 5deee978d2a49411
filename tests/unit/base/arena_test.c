/* SPDX-License-Identifier: Apache-2.0 */
/* The arena: allocations are zeroed, aligned, do not overlap, and are limited. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <base/mem.h>

static bool is_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != 0)
			return false;
	return true;
}

/* Sizes around each boundary: of the alignment, of a block, of the largest block. */
static size_t size_of_round(size_t i)
{
	static const size_t sizes[] = {1,    15,   16,	 17,	 0,	    100,   1024,
				       4079, 4096, 5000, 100000, 256 << 10, 300000};
	return sizes[i * 7 % (sizeof(sizes) / sizeof(sizes[0]))];
}

static void allocations_are_zeroed_aligned_and_apart(void **state)
{
	enum { ROUNDS = 200 };
	struct arena *a = arena_new(64 << 20);
	uint8_t *p[ROUNDS];
	for (size_t i = 0; i < ROUNDS; i++) {
		p[i] = arena_alloc(a, size_of_round(i));
		assert_non_null(p[i]);
		assert_int_equal((uintptr_t)p[i] % 16, 0);
		assert_true(is_zero(p[i], size_of_round(i)));
		memset(p[i], (int)(i % 255) + 1, size_of_round(i));
	}
	for (size_t i = 0; i < ROUNDS; i++) {
		size_t n = size_of_round(i);
		for (size_t j = 0; j < n; j++)
			assert_int_equal(p[i][j], i % 255 + 1);
		for (size_t j = 0; j < i; j++)
			assert_ptr_not_equal(p[i], p[j]);
	}
	arena_free(a);
}

static void the_limit_holds(void **state)
{
	struct arena *a = arena_new(1000);
	assert_null(arena_alloc(a, 1001));
	assert_int_equal(arena_used(a), 0);
	assert_non_null(arena_alloc(a, 500)); /* rounded to 512 */
	assert_int_equal(arena_used(a), 512);
	assert_null(arena_alloc(a, 489)); /* rounded to 496 */
	assert_non_null(arena_alloc(a, 480));
	assert_int_equal(arena_used(a), 992);
	assert_null(arena_alloc(a, 1));
	assert_null(arena_alloc(a, 0));
	arena_free(a);
}

static void overflow_is_no_memory(void **state)
{
	struct arena *a = arena_new(SIZE_MAX);
	assert_null(arena_alloc(a, SIZE_MAX));
	assert_null(arena_alloc(a, SIZE_MAX - 15));
	assert_null(arena_array(a, SIZE_MAX / 2, 3));
	assert_null(arena_array(a, SIZE_MAX, SIZE_MAX));
	assert_null(arena_strndup(a, "x", SIZE_MAX));
	assert_int_equal(arena_used(a), 0);
	arena_free(a);
}

static void strings(void **state)
{
	struct arena *a = arena_new(1000);
	assert_string_equal(arena_strndup(a, "abcdef", 3), "abc");
	assert_string_equal(arena_strndup(a, "sixteen bytes...", 16), "sixteen bytes...");
	assert_string_equal(arena_strndup(a, NULL, 0), "");
	arena_free(a);
}

static void what_was_given_back_is_used_again(void **state)
{
	struct arena *a = arena_new(1 << 20);
	char *first = arena_strndup(a, "first", 5);
	const struct arena_mark mark = arena_mark(a);
	const size_t used = arena_used(a);
	uint8_t *p = arena_alloc(a, 100);
	assert_non_null(arena_alloc(a, 10));
	memset(p, 0xff, 100);
	arena_rewind(a, &mark);
	assert_int_equal(arena_used(a), used);
	uint8_t *again = arena_alloc(a, 50);
	assert_ptr_equal(again, p);
	for (int i = 0; i < 50; i++)
		assert_int_equal(again[i], 0);
	assert_string_equal(first, "first");
	/* Not at the end of one block: it stays. */
	const struct arena_mark late = arena_mark(a);
	memset(arena_alloc(a, 200000), 0xff, 200000);
	const size_t more = arena_used(a);
	arena_rewind(a, &late);
	assert_int_equal(arena_used(a), more);
	arena_free(a);
}

static void free_of_nothing(void **state)
{
	arena_free(NULL);
	arena_free(arena_new(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocations_are_zeroed_aligned_and_apart),
		cmocka_unit_test(the_limit_holds),
		cmocka_unit_test(overflow_is_no_memory),
		cmocka_unit_test(strings),
		cmocka_unit_test(what_was_given_back_is_used_again),
		cmocka_unit_test(free_of_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
