/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

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

static void test_compact_data_over_64k(void **state)
{
	const struct h5_layout l = {.cls = LAYOUT_COMPACT, .size = 65536};
	struct emit e = emit_count();
	h5_layout_encode(&e, &l);
	assert_true(e.bad);
}

static const struct malformed_message malformed[] = {
	{"nothing", "", -EIO},
	{"version 1", "0101010000000000", -EOPNOTSUPP},
	{"version 2", "0201010000000000", -EOPNOTSUPP},
	{"chunked in version 4", "0402000301141902030affffffffffffffff", -EOPNOTSUPP},
	{"virtual", "040300000000000000000000000000", -EOPNOTSUPP},
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
		cmocka_unit_test(test_compact_data_over_64k),
		cmocka_unit_test(test_malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
