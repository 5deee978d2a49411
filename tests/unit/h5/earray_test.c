/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged extensible arrays. index_test.c has the good ones. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>

#include "index_fixture.h"

enum {
	HEADER = 72,
	LAST = 44,	 /* in the header: elements up to the last one that was set */
	INDEX_ADDR = 60, /* in the header */
	IN_INDEX = 4,	 /* elements in the index block */
	DIRECT = 6,	 /* data blocks of the index block */
	SUPER = 29 - 4,	 /* super blocks */
	INDEX_BLOCK = 14 + 8 * (IN_INDEX + DIRECT + SUPER) + 4,
	OWNER = 6,
	OFFSET = 14, /* in super and data blocks */
	PREFIX = 18,
	DATA_BLOCK = PREFIX + 16 * 8 + 4, /* the first one */
	SUPER_BLOCK = PREFIX + 4 * 8 + 4, /* the first one */
};

static void test_small_blocks(void **state)
{
	struct bytes image = data_file("indexes.h5");
	struct mem_src m;
	mem_src_init(&m, image.data, image.len);
	assert_int_equal(h5_file_open(&m.file, &m.source, NULL), 0);
	const struct chunked d = open_chunked(&m.file, "extensible", "middle");
	const uint64_t at = d.layout.addr, index = u64_at(&m, at + INDEX_ADDR);
	const uint64_t pointers = index + 14 + 8 * IN_INDEX;
	const uint64_t data = u64_at(&m, pointers), super = u64_at(&m, pointers + 8 * DIRECT);
	const struct defect rows[] = {
		{"nothing", at, HEADER, 0, 1, 'E', false, 0, ""},
		{"version", at, HEADER, 4, 1, 1, false, -EOPNOTSUPP, "unsupported version 1"},
		{"entry", at, HEADER, 6, 1, 7, false, -EIO, "wrong size of an entry"},
		{"too many bits", at, HEADER, 7, 1, 63, false, -EIO, "impossible sizes"},
		{"too few bits", at, HEADER, 7, 1, 3, false, -EIO, "impossible sizes"},
		{"bits for no super block", at, HEADER, 7, 1, 6, false, -EIO, "impossible sizes"},
		{"elements of a data block", at, HEADER, 9, 1, 15, false, -EIO, "impossible sizes"},
		{"no elements", at, HEADER, 9, 1, 0, false, -EIO, "impossible sizes"},
		{"pointers", at, HEADER, 10, 1, 3, false, -EIO, "impossible sizes"},
		{"one pointer", at, HEADER, 10, 1, 1, false, -EIO, "impossible sizes"},
		{"pages of one block", at, HEADER, 11, 1, 5, false, -EIO, "impossible sizes"},
		{"pages of 2^33", at, HEADER, 11, 1, 33, false, -EIO, "impossible sizes"},
		{"checksum", at, HEADER, LAST, 1, 1, true, -EIO, "wrong checksum"},
		{"nothing set", at, HEADER, LAST, 8, 0, false, 0, ""},
		{"no index block", at, HEADER, INDEX_ADDR, 8, UINT64_MAX, false, 0, ""},
		{"index block outside", at, HEADER, INDEX_ADDR, 8, 1 << 30, false, -EIO, "outside"},
		{"header as index", at, HEADER, INDEX_ADDR, 8, at, false, -EIO, "wrong signature"},
		{"index owner", index, INDEX_BLOCK, OWNER, 8, 0, false, -EIO, "another array"},
		{"index checksum", index, INDEX_BLOCK, 14, 1, 1, true, -EIO, "wrong checksum"},
		{"data block absent", index, INDEX_BLOCK, 14 + 8 * IN_INDEX, 8, UINT64_MAX, false,
		 0, ""},
		{"data block twice", index, INDEX_BLOCK, 14 + 8 * (IN_INDEX + 2), 8,
		 u64_at(&m, pointers + 8), false, -EIO, "a data block twice"},
		{"super block as data block", index, INDEX_BLOCK, 14 + 8 * IN_INDEX, 8, super,
		 false, -EIO, "wrong signature"},
		{"data block as super block", index, INDEX_BLOCK, 14 + 8 * (IN_INDEX + DIRECT), 8,
		 data, false, -EIO, "wrong signature"},
		{"data owner", data, DATA_BLOCK, OWNER, 8, 0, false, -EIO, "another array"},
		{"data client", data, DATA_BLOCK, 5, 1, 1, false, -EIO, "wrong client"},
		{"data offset", data, DATA_BLOCK, OFFSET, 4, 16, false, -EIO, "wrong place"},
		{"data checksum", data, DATA_BLOCK, PREFIX, 1, 1, true, -EIO, "wrong checksum"},
		{"super owner", super, SUPER_BLOCK, OWNER, 8, at + 8, false, -EIO, "another array"},
		{"super offset", super, SUPER_BLOCK, OFFSET, 4, 0, false, -EIO, "wrong place"},
		{"super checksum", super, SUPER_BLOCK, PREFIX, 1, 1, true, -EIO, "wrong checksum"},
		{"super block's block", super, SUPER_BLOCK, PREFIX, 8, data, false, -EIO,
		 "wrong checksum"},
		{"chunk outside", index, INDEX_BLOCK, 14 + 8, 8, image.len - 1, false, -EIO,
		 "chunk 1 at"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_defect(&m, &d, &rows[i]);
	bytes_release(&image);
}

/* Super block 13, the first one whose data blocks have pages: 64 data blocks of 2 pages. */
static void test_pages(void **state)
{
	enum {
		BLOCKS = 64,
		SIZE = PREFIX + BLOCKS + BLOCKS * 8 + 4,
		DATA = PREFIX + 4,
		PAGE = 8196
	};
	struct bytes image = data_file("indexes.h5");
	struct mem_src m;
	mem_src_init(&m, image.data, image.len);
	assert_int_equal(h5_file_open(&m.file, &m.source, NULL), 0);
	const struct chunked d = open_chunked(&m.file, "extensible", "paged");
	const uint64_t index = u64_at(&m, d.layout.addr + INDEX_ADDR);
	const uint64_t super = u64_at(&m, index + 14 + 8 * (IN_INDEX + DIRECT + 13 - 4));
	const uint64_t data = u64_at(&m, super + PREFIX + BLOCKS);
	const struct defect rows[] = {
		{"bits", super, SIZE, PREFIX, 1, 0, false, 0, ""},
		{"super checksum", super, SIZE, PREFIX, 1, 0, true, -EIO, "wrong checksum"},
		{"data offset", data, DATA, OFFSET, 4, 0, false, -EIO, "wrong place"},
		{"data checksum", data, DATA, OFFSET, 4, 0, true, -EIO, "wrong checksum"},
		{"page checksum", data + DATA, PAGE, 0, 1, 1, true, -EIO, "wrong checksum"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_defect(&m, &d, &rows[i]);
	bytes_release(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_blocks),
		cmocka_unit_test(test_pages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
