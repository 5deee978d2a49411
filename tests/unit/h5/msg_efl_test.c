/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/message.h>

#include "message_cases.h"

static int decode(struct cursor *c, struct arena *a, void *out, struct err *err)
{
	return h5_efl_decode(&plain, c, a, out, err);
}

static bool is_empty(const void *out)
{
	return ((const struct h5_efl *)out)->n == 0;
}

static const struct message_codec codec = {
	.size = sizeof(struct h5_efl),
	.decode = decode,
	.is_empty = is_empty,
};

/* As HDF5 1.10.8 writes it: two files, the second of unlimited size. */
static const char library[] = "01000000020002003004000000000000080000000000000010000000000000001800"
			      "0000000000001000000000000"
			      "0000000000000000000ffffffffffffffff";

static void test_library_message(void **state)
{
	struct arena *a = arena_new(MESSAGE_ARENA_LIMIT);
	struct h5_efl efl;
	size_t n;
	uint8_t *bytes = hex_bytes(library, &n);
	assert_int_equal(decode_message(&codec, "library", bytes, n, a, &efl), 0);
	assert_int_equal(efl.heap, 1072);
	assert_int_equal(efl.n, 2);
	assert_int_equal(efl.slots[0].name, 8);
	assert_int_equal(efl.slots[0].offset, 16);
	assert_int_equal(efl.slots[0].size, 24);
	assert_int_equal(efl.slots[1].name, 16);
	assert_int_equal(efl.slots[1].offset, 0);
	assert_true(efl.slots[1].size == UINT64_MAX);
	assert_fails_truncated(&codec, "library", bytes, n);
	free(bytes);
	arena_free(a);
}

static const struct malformed_message malformed[] = {
	{"version 0", "00000000020000003004000000000000", -EOPNOTSUPP},
	{"no file", "01000000020000003004000000000000", -EIO},
	{"more used than allocated slots",
	 "0100000000000100300400000000000008000000000000001000000000000000180000000000"
	 "0000",
	 -EIO},
	{"no heap",
	 "0100000001000100ffffffffffffffff08000000000000001000000000000000180000000000"
	 "0000",
	 -EIO},
};

static void test_malformed(void **state)
{
	assert_malformed(&codec, malformed, sizeof(malformed) / sizeof(malformed[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_library_message),
		cmocka_unit_test(test_malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
