/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged fixed arrays. index_test.c has the good ones. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>

#include "index_fixture.h"

enum {
	HEADER = 28,
	BLOCK_ADDR = 16, /* in the header */
	SMALL = 30,	 /* elements */
	SMALL_BLOCK = 14 + SMALL * 8 + 4,
	PAGED = 3300,
	PAGED_PREFIX = 14 + 1 + 4,
	PAGE = 1024 * 8 + 4,
};

static void test_small(void **state)
{
	struct bytes image = data_file("indexes.h5");
	struct mem_src m;
	mem_src_init(&m, image.data, image.len);
	assert_int_equal(h5_file_open(&m.file, &m.source, NULL), 0);
	const struct chunked d = open_chunked(&m.file, "fixed", "small");
	const uint64_t at = d.layout.addr, block = u64_at(&m, at + BLOCK_ADDR);
	const struct defect rows[] = {
		{"nothing", at, HEADER, 0, 1, 'F', false, 0, ""},
		{"signature", at, HEADER, 0, 1, 'X', false, -EIO, "wrong signature"},
		{"version", at, HEADER, 4, 1, 1, false, -EOPNOTSUPP, "unsupported version 1"},
		{"client", at, HEADER, 5, 1, 1, false, -EIO, "wrong client"},
		{"entry", at, HEADER, 6, 1, 9, false, -EIO, "wrong size of an entry"},
		{"page bits", at, HEADER, 7, 1, 33, false, -EIO, "impossible size of a page"},
		{"fewer elements", at, HEADER, 8, 8, SMALL - 1, false, -EIO, "fewer elements"},
		{"too many", at, HEADER, 8, 8, UINT64_MAX / 2, false, -EIO, "has room for"},
		{"checksum", at, HEADER, 8, 8, SMALL + 1, true, -EIO, "wrong checksum"},
		{"no block", at, HEADER, BLOCK_ADDR, 8, UINT64_MAX, false, 0, ""},
		{"block outside", at, HEADER, BLOCK_ADDR, 8, 1 << 30, false, -EIO, "outside"},
		{"header as block", at, HEADER, BLOCK_ADDR, 8, at, false, -EIO, "wrong signature"},
		{"block signature", block, SMALL_BLOCK, 3, 1, 'C', false, -EIO, "wrong signature"},
		{"owner", block, SMALL_BLOCK, 6, 8, 0, false, -EIO, "another array"},
		{"block checksum", block, SMALL_BLOCK, 14, 1, 1, true, -EIO, "wrong checksum"},
		{"chunk outside", block, SMALL_BLOCK, 14, 8, image.len - 1, false, -EIO,
		 "chunk 0 at"},
		{"chunk absent", block, SMALL_BLOCK, 14, 8, UINT64_MAX, false, 0, ""},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_defect(&m, &d, &rows[i]);
	bytes_release(&image);
}

static void test_pages(void **state)
{
	struct bytes image = data_file("indexes.h5");
	struct mem_src m;
	mem_src_init(&m, image.data, image.len);
	assert_int_equal(h5_file_open(&m.file, &m.source, NULL), 0);
	const struct chunked d = open_chunked(&m.file, "fixed", "paged");
	const uint64_t at = d.layout.addr, block = u64_at(&m, at + BLOCK_ADDR);
	const uint64_t page = block + PAGED_PREFIX;
	const struct defect rows[] = {
		/* Without a use bit, the entries are not read. */
		{"bit of page 0", block, PAGED_PREFIX, 14, 1, 0x30, false, 0, ""},
		{"prefix checksum", block, PAGED_PREFIX, 14, 1, 0x30, true, -EIO, "wrong checksum"},
		{"page checksum", page, PAGE, 8, 1, 1, true, -EIO, "wrong checksum"},
		{"other page size", at, HEADER, 7, 1, 11, false, -EIO, "wrong checksum"},
	};
	assert_int_equal(u64_at(&m, at + 8), PAGED);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_defect(&m, &d, &rows[i]);
	bytes_release(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_pages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
