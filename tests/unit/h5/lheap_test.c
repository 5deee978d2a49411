/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/symtab.h>

#include "old_file.h"

enum { HEAP = 680 };

static void test_strings(void **state)
{
	struct memory_file f;
	struct h5_lheap h;
	memory_open_old(&f);
	assert_int_equal(h5_lheap_read(&f.file, HEAP, f.a, &h, NULL), 0);
	assert_int_equal(h.n, 88);
	assert_string_equal(h5_lheap_string(&h, 0), "");
	assert_string_equal(h5_lheap_string(&h, 8), "beta");
	assert_string_equal(h5_lheap_string(&h, 10), "ta");
	assert_string_equal(h5_lheap_string(&h, 32), "/beta/gone");
	assert_null(h5_lheap_string(&h, 88));
	assert_null(h5_lheap_string(&h, UINT64_MAX));
	h.n = 10; /* no NUL after "beta" */
	assert_null(h5_lheap_string(&h, 8));
	memory_close(&f);
}

/* Sizes of 4 and 2 bytes, no free block. */
static void test_small_sizes(void **state)
{
	struct memory_file f;
	struct h5_lheap h;
	memory_open(&f, 128);
	f.file.len_size = 4;
	f.file.addr_size = 2;
	memory_put(&f, 32, "484541500000000008000000010000006000");
	memory_put(&f, 96, "0061620000000000");
	assert_int_equal(h5_lheap_read(&f.file, 32, f.a, &h, NULL), 0);
	assert_string_equal(h5_lheap_string(&h, 1), "ab");
	memory_put(&f, 44, "ffffffff"); /* the undefined offset: no free block, either */
	assert_int_equal(h5_lheap_read(&f.file, 32, f.a, &h, NULL), 0);
	memory_close(&f);
}

/* The free block is at 712 + 64: next 1, size 24. */
static const struct file_defect defects[] = {
	{"no heap", HEAP, "00", -EIO},
	{"version 1", HEAP + 4, "01", -EOPNOTSUPP},
	{"65 MiB", HEAP + 8, "0000100400000000", -EIO},
	{"data past the end of the file", HEAP + 24, "9013", -EIO},
	{"free block that crosses the end", HEAP + 16, "4900", -EIO},
	{"free block of 8 bytes", 776 + 8, "08", -EIO},
	{"free block that is too long", 776 + 8, "19", -EIO},
	{"free block that follows itself", 776, "40", -EIO},
	{"circle of free blocks", 776, "3800000000000000100000000000000040", -EIO},
};

static void test_defects(void **state)
{
	for (size_t i = 0; i < sizeof(defects) / sizeof(defects[0]); i++) {
		struct memory_file f;
		struct h5_lheap h;
		struct err err = ERR_INIT;
		memory_open_old(&f);
		memory_put(&f, defects[i].at, defects[i].hex);
		int rc = h5_lheap_read(&f.file, HEAP, f.a, &h, &err);
		if (rc != defects[i].rc || err.code != rc || h.n)
			fail_msg("%s: %d (%s)", defects[i].name, rc, err.msg);
		memory_close(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_small_sizes),
		cmocka_unit_test(test_defects),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
