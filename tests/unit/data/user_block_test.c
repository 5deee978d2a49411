/* SPDX-License-Identifier: Apache-2.0 */
/* User blocks: sizes, zeros at the end, ranges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include <base/mem.h>
#include <data/user_block.h>

static struct user_block *make(struct arena *a, uint64_t size, const char *text, size_t n)
{
	struct user_block *b = NULL;
	assert_int_equal(user_block_new(a, size, text, n, &b, NULL), 0);
	return b;
}

static void sizes(void **state)
{
	static const uint64_t no[] = {0, 1, 256, 511, 513, 1536, UINT64_MAX};
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		assert_false(user_block_is_size(no[i]));
	for (uint64_t size = 512; size; size *= 2)
		assert_true(user_block_is_size(size));
	struct arena *a = arena_new(1 << 20);
	struct user_block *b;
	struct err err = ERR_INIT;
	assert_int_equal(user_block_new(a, USER_BLOCK_MAX, "", 0, &b, NULL), 0);
	assert_int_equal(user_block_new(a, 2 * (uint64_t)USER_BLOCK_MAX, "", 0, &b, &err), -EFBIG);
	assert_string_equal(err.msg,
			    "a user block of 134217728 bytes; the limit is 67108864 bytes");
	arena_free(a);
}

static void zeros_at_the_end_are_not_kept(void **state)
{
	static const char text[USER_BLOCK_SMALL + 2] = "ab";
	struct arena *a = arena_new(1 << 20);
	const struct user_block *b = make(a, 8192, text, sizeof(text));
	char bytes[8] = "........";
	assert_int_equal(b->len, 2);
	assert_true(user_block_is_small(b));
	user_block_read(b, 1, bytes, 3);
	assert_memory_equal(bytes, "b\0\0....", 7);
	user_block_read(b, 8191, bytes, 1);
	user_block_read(b, 2, bytes + 4, 4);
	assert_memory_equal(bytes, "\0\0\0.\0\0\0\0", 8);
	assert_true(user_block_equal(b, make(a, 8192, "ab", 2)));
	assert_false(user_block_equal(b, make(a, 4096, "ab", 2)));
	assert_false(user_block_equal(b, make(a, 8192, "abc", 3)));
	assert_false(user_block_equal(b, make(a, 8192, "aB", 2)));
	assert_false(user_block_equal(b, NULL));
	assert_false(user_block_equal(NULL, b));
	assert_true(user_block_equal(NULL, NULL));
	assert_true(user_block_equal(make(a, 512, NULL, 0), make(a, 512, "\0", 1)));
	arena_free(a);
}

static void long_blocks_are_not_small(void **state)
{
	char text[USER_BLOCK_SMALL + 1];
	struct arena *a = arena_new(1 << 20);
	memset(text, 'x', sizeof(text));
	assert_true(user_block_is_small(make(a, 8192, text, USER_BLOCK_SMALL)));
	assert_false(user_block_is_small(make(a, 8192, text, USER_BLOCK_SMALL + 1)));
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(zeros_at_the_end_are_not_kept),
		cmocka_unit_test(long_blocks_are_not_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
