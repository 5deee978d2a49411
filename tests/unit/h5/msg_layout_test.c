/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include <h5/message.h>

#include "message_cases.h"

static void encode(struct emit *e, const void *l)
{
	h5_layout_encode(e, l);
}

static int decode(struct cursor *c, struct arena *a, void *out, struct err *err)
{
	return h5_layout_decode(&plain, c, out, err);
}

static const struct message_codec codec = {
	.size = sizeof(struct h5_layout),
	.decode = decode,
	.encode = encode,
};

/* All as HDF5 1.10.8 writes them. */
static const struct vector {
	const char *name;
	const char *hex;
	struct h5_layout l;
} vectors[] = {
	{"compact",
	 "03000c00000000000000000000000000",
	 {.cls = LAYOUT_COMPACT, .addr = H5_UNDEF, .size = 12}},
	{"contiguous",
	 "0301cc2a0000000000003000000000000000",
	 {.cls = LAYOUT_CONTIGUOUS, .addr = 0x2acc, .size = 48}},
	{"contiguous, not allocated",
	 "0301ffffffffffffffff0800000000000000",
	 {.cls = LAYOUT_CONTIGUOUS, .addr = H5_UNDEF, .size = 8}},
	{"chunked",
	 "030203ffffffffffffffff140000001900000002000000",
	 {.cls = LAYOUT_CHUNKED, .addr = H5_UNDEF, .rank = 2, .chunk = {20, 25}, .elem_size = 2}},
};

static void compare(const char *name, const void *got, const void *expected)
{
	const struct h5_layout *l = got, *e = expected;
	assert_int_equal(l->cls, e->cls);
	assert_int_equal(l->addr, e->addr);
	assert_int_equal(l->size, e->size);
	assert_int_equal(l->rank, e->rank);
	assert_memory_equal(l->chunk, e->chunk, sizeof(l->chunk));
	assert_int_equal(l->elem_size, e->elem_size);
}

static void test_library_vectors(void **state)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		assert_message(&codec, vectors[i].name, vectors[i].hex, vectors[i].hex, compare,
			       &vectors[i].l);
}

/* Compact and contiguous layouts of version 4 differ from version 3 only in the version. */
static void test_version4(void **state)
{
	static const char *const rows[] = {"04000c00000000000000000000000000",
					   "0401cc2a0000000000003000000000000000"};
	for (size_t i = 0; i < 2; i++)
		assert_message(&codec, rows[i], rows[i], vectors[i].hex, compare, &vectors[i].l);
}

static bool same(const struct h5_layout *a, const struct h5_layout *b)
{
	return a->cls == b->cls && a->raw == b->raw && a->addr == b->addr && a->size == b->size &&
	       a->rank == b->rank && !memcmp(a->chunk, b->chunk, sizeof(a->chunk)) &&
	       a->elem_size == b->elem_size && a->index == b->index &&
	       a->whole_edges == b->whole_edges && a->single_size == b->single_size &&
	       a->single_mask == b->single_mask && a->stored_len == b->stored_len;
}

/* What is only decoded. Those of version 4 are as HDF5 1.10.8 writes them. */
static void test_other_versions(void **state)
{
	const struct h5_layout chunks = {.cls = LAYOUT_CHUNKED,
					 .addr = 0x7b0,
					 .rank = 2,
					 .chunk = {1, 1},
					 .elem_size = 2,
					 .stored_len = 2};
	struct h5_layout l[16];
	for (size_t i = 0; i < sizeof(l) / sizeof(l[0]); i++)
		l[i] = chunks;
	l[0].index = H5_INDEX_SINGLE;
	l[1].index = H5_INDEX_SINGLE;
	l[1].single_size = 0x102;
	l[1].single_mask = 3;
	l[2].index = H5_INDEX_IMPLICIT;
	l[3].index = H5_INDEX_FIXED_ARRAY;
	l[4].index = H5_INDEX_EXTENSIBLE_ARRAY;
	l[5].index = H5_INDEX_BTREE2;
	l[6] = l[3];
	l[6].whole_edges = true;
	l[7] = l[3]; /* version 5 */
	l[7].stored_len = 8;
	l[8] = l[3];
	l[8].chunk[0] = 0x10000; /* 131,072 bytes */
	l[8].stored_len = 4;
	l[9] = l[3];
	l[9].chunk[0] = l[9].chunk[1] = l[9].elem_size = UINT32_MAX;
	l[9].stored_len = 8;
	l[10] = (struct h5_layout){.cls = LAYOUT_CHUNKED, .raw = RAW_VIRTUAL, .addr = H5_UNDEF};
	l[11] = (struct h5_layout){.cls = LAYOUT_CHUNKED, .raw = RAW_STRUCTURED, .addr = H5_UNDEF};
	l[12] = chunks; /* version 1 */
	l[12].stored_len = 0;
	l[13] = (struct h5_layout){.cls = LAYOUT_CONTIGUOUS, .addr = 0x7b0, .size = UINT64_MAX};
	l[14] = (struct h5_layout){.cls = LAYOUT_COMPACT, .addr = H5_UNDEF, .size = 3};
	static const char *const hex[] = {
		"040200030101010201b007000000000000",
		"040202030101010201020100000000000003000000b007000000000000",
		"040200030101010202b007000000000000",
		"0402000301010102030ab007000000000000",
		"040200030101010204200404100ab007000000000000",
		"040200030101010205000800006428b007000000000000",
		"0402010301010102030ab007000000000000",
		"0502000301010102030ab007000000000000",
		"0402000304000001000100000002000000030ab007000000000000",
		"0402000304ffffffffffffffffffffffff030ab007000000000000",
		"0403b00700000000000001000000",
		"0504",
		"0103020000000000b007000000000000010000000100000002000000",
		"0203010000000000b007000000000000050000000400000002000000",
		"0202000000000000050000000400000003000000010203",
	};
	for (size_t i = 0; i < sizeof(hex) / sizeof(hex[0]); i++) {
		size_t n;
		uint8_t *bytes = hex_bytes(hex[i], &n);
		struct h5_layout got;
		struct arena *a = arena_new(MESSAGE_ARENA_LIMIT);
		if (decode_message(&codec, hex[i], bytes, n, a, &got) || !same(&got, &l[i]))
			fail_msg("row %zu", i);
		if (got.raw == RAW_STORED)
			assert_fails_truncated(&codec, hex[i], bytes, n);
		arena_free(a);
		free(bytes);
	}
}

static void test_compact_data_over_64k(void **state)
{
	const struct h5_layout l = {.cls = LAYOUT_COMPACT, .size = 65536};
	struct emit e = emit_count();
	h5_layout_encode(&e, &l);
	assert_true(e.bad);
}

static const struct malformed_message malformed[] = {
	{"nothing", "", -EIO},
	{"version 0", "0001010000000000", -EOPNOTSUPP},
	{"version 6", "0601010000000000", -EOPNOTSUPP},
	{"class 3 in version 1", "01020300000000000000000000000000", -EIO},
	{"contiguous dimensionality 34", "02220100000000000000000000000000", -EIO},
	{"class 4 in version 4", "0404000000000000", -EIO},
	{"class 5", "0505000000000000", -EIO},
	{"flags 4", "0402040301010102030ab007000000000000", -EIO},
	{"dimensions of 0 bytes", "0402000300010102030ab007000000000000", -EIO},
	{"dimensions of 9 bytes", "0402000309010102030ab007000000000000", -EIO},
	{"dimension of 2^32", "04020002050000000001020000000003b007000000000000000a", -EOPNOTSUPP},
	{"dimensionality 1 in version 4", "0402000101010102030ab007000000000000", -EIO},
	{"index type 0", "0402000301010102000ab007000000000000", -EIO},
	{"index type 6", "0402000301010102060ab007000000000000", -EIO},
	{"page bits 0", "04020003010101020300b007000000000000", -EIO},
	{"least elements 0", "040200030101010204200404000ab007000000000000", -EIO},
	{"node size 0", "040200030101010205000000006428b007000000000000", -EIO},
	{"class 3", "0303000000000000", -EIO},
	{"compact data cut off", "03000c000000000000000000000000", -EIO},
	{"contiguous size cut off", "0301ffffffffffffffff08000000000000", -EIO},
	{"dimensionality 1", "030201ffffffffffffffff14000000", -EIO},
	{"dimensionality 34", "030222ffffffffffffffff14000000", -EIO},
	{"chunk dimensions cut off", "030203ffffffffffffffff1400000019000000020000", -EIO},
	{"chunk dimension 0", "030203ffffffffffffffff000000001900000002000000", -EIO},
	{"element size 0", "030203ffffffffffffffff140000001900000000000000", -EIO},
};

static void test_malformed(void **state)
{
	assert_malformed(&codec, malformed, sizeof(malformed) / sizeof(malformed[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_library_vectors),
		cmocka_unit_test(test_version4),
		cmocka_unit_test(test_other_versions),
		cmocka_unit_test(test_compact_data_over_64k),
		cmocka_unit_test(test_malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
