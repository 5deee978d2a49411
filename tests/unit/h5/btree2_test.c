/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>

#include <base/checksum.h>
#include <h5/btree2.h>
#include "mem_src.h"

#include "hex.h"

#include "sampling.h"

enum { ADDR = 1000, HEADER = 38, NODE = 512, PREFIX = 6 };

/* Record i of a tree: its number, then a pattern. */
static uint8_t *records_of(uint64_t n, uint16_t size)
{
	uint8_t *records = malloc((size_t)n * size + 1);
	assert_non_null(records);
	for (size_t i = 0; i < n; i++) {
		struct emit e = emit_to(records + i * size, size);
		emit_u32(&e, (uint32_t)i);
		while (e.pos < size)
			emit_u8(&e, (uint8_t)(i * 31 + e.pos));
	}
	return records;
}

static uint8_t *image_of(const struct h5_bt2 *t, size_t *size)
{
	size_t tree = (size_t)h5_bt2_size(t);
	*size = ADDR + tree;
	uint8_t *image = calloc(1, *size);
	assert_non_null(image);
	struct emit count = emit_count();
	h5_bt2_encode(&count, t, ADDR);
	assert_int_equal(count.pos, tree);
	struct emit e = emit_to(image + ADDR, tree);
	h5_bt2_encode(&e, t, ADDR);
	assert_false(e.bad);
	assert_int_equal(e.pos, tree);
	return image;
}

struct expect {
	const uint8_t *records;
	uint64_t n;
	uint16_t size;
};

static int expect_record(void *ctx, const uint8_t *record, uint16_t size, struct err *err)
{
	struct expect *e = ctx;
	assert_int_equal(size, e->size);
	assert_memory_equal(record, e->records + e->n++ * size, size);
	return 0;
}

static const struct {
	enum h5_bt2_type type;
	uint16_t size;
} kinds[] = {
	{H5_BT2_LINK_NAME, H5_BT2_LINK_NAME_SIZE}, {H5_BT2_LINK_CORDER, H5_BT2_LINK_CORDER_SIZE},
	{H5_BT2_ATTR_NAME, H5_BT2_ATTR_NAME_SIZE}, {H5_BT2_ATTR_CORDER, H5_BT2_ATTR_CORDER_SIZE},
	{H5_BT2_HUGE, H5_BT2_HUGE_SIZE},
};

static void test_walk_gives_what_was_encoded(void **state)
{
	/* Numbers near the capacities of one, two and three levels. */
	static const uint64_t counts[] = {0,	1,    2,    20,	   21,	  29,	 30,
					  33,	34,   45,   46,	   47,	  500,	 1149,
					  1150, 1151, 5000, 26449, 26450, 100000};
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			struct h5_bt2 t = {kinds[k].type, NODE, kinds[k].size, counts[i], NULL};
			uint8_t *records = records_of(t.n, t.record_size);
			t.records = records;
			struct expect e = {records, 0, t.record_size};
			size_t size;
			uint8_t *image = image_of(&t, &size);
			struct mem_src m;
			struct err err = ERR_INIT;
			mem_src_init(&m, image, size);
			if (h5_bt2_walk(&m.file, ADDR, t.type, expect_record, &e, &err))
				fail_msg("%llu records: %s", (unsigned long long)t.n, err.msg);
			assert_int_equal(e.n, t.n);
			assert_int_equal(m.reads, 1 + (size - ADDR - HEADER) / NODE);
			free(image);
			free(records);
		}
	}
}

/* For each level, the number of records in a node and the bytes of the record count of a sub-tree,
 * as computed by hand for nodes of 512 bytes and records of 11 bytes. */
static const struct {
	unsigned int max, cum_size;
} levels[] = {{45, 0}, {24, 2}, {22, 2}, {22, 3}};

static void check_fill(const uint8_t *image, uint64_t addr, unsigned int u, unsigned int nrec,
		       bool root)
{
	const uint8_t *node = image + addr;
	assert_memory_equal(node, u ? "BTIN" : "BTLF", 4);
	assert_true(nrec <= levels[u].max);
	assert_true(root || nrec >= levels[u].max * 40 / 100);
	for (unsigned int i = 0; u && i <= nrec; i++) {
		size_t width = 9 + levels[u - 1].cum_size;
		struct cursor c = cursor_of(node + PREFIX + nrec * 11 + i * width, width);
		uint64_t child = cur_u64(&c);
		check_fill(image, child, u - 1, cur_u8(&c), false);
	}
}

/* libhdf5 merges nodes that are less than 40 % full, so its trees have none. */
static void test_nodes_are_full_enough(void **state)
{
	for (uint64_t n = 1; n < 40000; n += n < 3000 ? sampling_step(7) : 997) {
		uint8_t *records = records_of(n, 11);
		struct h5_bt2 t = {H5_BT2_LINK_NAME, NODE, 11, n, records};
		size_t size;
		uint8_t *image = image_of(&t, &size);
		struct cursor c = cursor_of(image + ADDR + 12, 26);
		unsigned int depth = cur_u16(&c);
		cur_skip(&c, 2);
		uint64_t root = cur_u64(&c);
		check_fill(image, root, depth, cur_u16(&c), true);
		free(image);
		free(records);
	}
}

/* Header and leaf that HDF5 1.10.8 writes for the names of ten links. */
static const char native_header[] =
	"425448440005000200000b00000064281f030000000000000a000a00000000000000bb253e17";
static const char native_leaf[] =
	"42544c460005a322774d004100000016004041b74f00db0000001600810acb5600af0000001600fb4d8c6500"
	"1500000016005d18346f0083000000160082fe0389002b00000016000130308b005700000016000e25fab400"
	"6d0000001600e7b987d9009900000016006e03e9fe00c50000001600e8160948";

static void test_bytes_of_libhdf5(void **state)
{
	size_t header_n, leaf_n;
	uint8_t *header = hex_bytes(native_header, &header_n);
	uint8_t *leaf = hex_bytes(native_leaf, &leaf_n);
	struct h5_bt2 t = {H5_BT2_LINK_NAME, NODE, 11, 10, leaf + PREFIX};
	uint64_t addr = 0x31f - HEADER; /* so that the leaf has the same address as in the file */
	uint8_t out[HEADER + NODE];
	struct emit e = emit_to(out, sizeof(out));
	h5_bt2_encode(&e, &t, addr);
	assert_int_equal(header_n, HEADER);
	assert_memory_equal(out, header, header_n);
	assert_memory_equal(out + HEADER, leaf, leaf_n);
	free(header);
	free(leaf);
}

static int stop_at_three(void *ctx, const uint8_t *record, uint16_t size, struct err *err)
{
	return ++*(int *)ctx == 3 ? -ECANCELED : 0;
}

static int ignore(void *ctx, const uint8_t *record, uint16_t size, struct err *err)
{
	return 0;
}

/* Three nodes: the root with one record at 38, then leaves with 30 and 29 records. */
enum {
	ROOT = HEADER,
	ROOT_USED = PREFIX + 11 + 2 * 9,
	POINTER_0 = ROOT + PREFIX + 11,
	POINTER_1 = POINTER_0 + 9,
	LEAF_0 = ROOT + NODE,
	LEAF_1 = LEAF_0 + NODE,
};

#define IMPOSSIBLE "impossible number of records"

static const struct {
	const char *defect;
	size_t at, n;
	uint64_t value;
	bool mend; /* the test corrects the checksums of header and root */
	int rc;
	const char *says;
} defects[] = {
	{"header signature", 0, 1, 'X', true, -EIO, "wrong signature"},
	{"header version", 4, 1, 1, true, -EOPNOTSUPP, "unsupported version 1"},
	{"header checksum", 26, 1, 61, false, -EIO, "wrong checksum"},
	{"type", 5, 1, 6, true, -EIO, "type 6 instead of 5"},
	{"node without room", 6, 4, 20, true, -EIO, "impossible sizes"},
	{"node size of 4 GiB", 6, 4, 0xffffffff, true, -EIO, "impossible sizes"},
	{"record size 0", 10, 2, 0, true, -EIO, "impossible sizes"},
	{"record larger than node", 10, 2, 511, true, -EIO, "impossible sizes"},
	{"depth 65535", 12, 2, 65535, true, -EIO, "impossible sizes"},
	{"depth too small", 12, 2, 0, true, -EIO, "wrong signature"},
	{"root outside of the file", 16, 8, 1 << 20, true, -EIO, "outside of the file"},
	{"records without a root", 16, 8, H5_UNDEF, true, -EIO, "records without a root"},
	{"too many records in the root", 24, 2, 46, true, -EIO, IMPOSSIBLE},
	{"no records in the root", 24, 2, 0, true, -EIO, IMPOSSIBLE},
	{"too few records in all", 26, 8, 59, true, -EIO, "wrong number of records"},
	{"too many records in all", 26, 8, 61, true, -EIO, "wrong number of records"},
	{"node signature", LEAF_0, 1, 'X', false, -EIO, "wrong signature"},
	{"node version", ROOT + 4, 1, 1, true, -EOPNOTSUPP, "unsupported version 1"},
	{"node type", ROOT + 5, 1, 6, true, -EIO, "wrong type"},
	{"node checksum", LEAF_1 + PREFIX, 1, 0xff, false, -EIO, "wrong checksum"},
	{"child is the root", POINTER_0, 8, ADDR + ROOT, true, -EIO, "in the tree twice"},
	{"child met twice", POINTER_1, 8, ADDR + LEAF_0, true, -EIO, "in the tree twice"},
	{"child without records", POINTER_0 + 8, 1, 0, true, -EIO, IMPOSSIBLE},
	{"child with too many records", POINTER_0 + 8, 1, 46, true, -EIO, IMPOSSIBLE},
};

static void mend(uint8_t *tree)
{
	struct emit e = emit_to(tree + 34, 4);
	emit_u32(&e, checksum_lookup3(tree, 34, 0));
	e = emit_to(tree + ROOT + ROOT_USED, 4);
	emit_u32(&e, checksum_lookup3(tree + ROOT, ROOT_USED, 0));
}

static void test_malformed(void **state)
{
	uint8_t *records = records_of(60, 11);
	struct h5_bt2 t = {H5_BT2_LINK_NAME, NODE, 11, 60, records};
	size_t size;
	uint8_t *image = image_of(&t, &size), *bad = malloc(size);
	assert_non_null(bad);
	for (size_t i = 0; i < sizeof(defects) / sizeof(defects[0]); i++) {
		struct mem_src m;
		struct err err = ERR_INIT;
		memcpy(bad, image, size);
		struct emit e = emit_to(bad + ADDR + defects[i].at, 8);
		emit_uint(&e, defects[i].value, (unsigned int)defects[i].n);
		if (defects[i].mend)
			mend(bad + ADDR);
		mem_src_init(&m, bad, size);
		int rc = h5_bt2_walk(&m.file, ADDR, t.type, ignore, NULL, &err);
		if (rc != defects[i].rc || !strstr(err.msg, defects[i].says))
			fail_msg("%s: %d %s", defects[i].defect, rc, err.msg);
	}
	struct mem_src m;
	int seen = 0;
	mem_src_init(&m, image, size);
	assert_int_equal(h5_bt2_walk(&m.file, ADDR, t.type, stop_at_three, &seen, NULL),
			 -ECANCELED);
	assert_int_equal(h5_bt2_walk(&m.file, size, t.type, ignore, NULL, NULL), -EIO);
	free(bad);
	free(image);
	free(records);
}

static void test_no_room(void **state)
{
	uint8_t *records = records_of(60, 11), out[1000];
	struct h5_bt2 t = {H5_BT2_LINK_NAME, NODE, 11, 60, records};
	struct emit e = emit_to(out, sizeof(out));
	h5_bt2_encode(&e, &t, 0);
	assert_true(e.bad);
	free(records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk_gives_what_was_encoded),
		cmocka_unit_test(test_nodes_are_full_enough),
		cmocka_unit_test(test_bytes_of_libhdf5),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_no_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
