/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/message.h>

#include "hex.h"

static void encode(struct emit *e, const void *l)
{
	h5_layout_encode(e, l);
}

static void assert_decodes(const char *hex, struct h5_layout *l)
{
	size_t n;
	uint8_t *bytes = hex_bytes(hex, &n);
	struct cursor c = cursor_of(bytes, n);
	struct err err = ERR_INIT;
	if (h5_layout_decode(&c, l, &err))
		fail_msg("%s: %s", hex, err.msg);
	assert_encodes(hex, encode, l, hex);
	free(bytes);
	l->data = NULL;
}

/* All as HDF5 1.10.8 writes them. */
static void test_compact(void **state)
{
	struct h5_layout l;
	assert_decodes("03000c00000000000000000000000000", &l);
	assert_int_equal(l.cls, LAYOUT_COMPACT);
	assert_int_equal(l.size, 12);
}

static void test_contiguous(void **state)
{
	struct h5_layout l;
	assert_decodes("0301cc2a0000000000003000000000000000", &l);
	assert_int_equal(l.cls, LAYOUT_CONTIGUOUS);
	assert_int_equal(l.addr, 0x2acc);
	assert_int_equal(l.size, 48);
	assert_decodes("0301ffffffffffffffff0800000000000000", &l);
	assert_int_equal(l.addr, H5_UNDEF);
}

static void test_chunked(void **state)
{
	struct h5_layout l;
	assert_decodes("030203ffffffffffffffff140000001900000002000000", &l);
	assert_int_equal(l.cls, LAYOUT_CHUNKED);
	assert_int_equal(l.addr, H5_UNDEF);
	assert_int_equal(l.rank, 2);
	assert_int_equal(l.chunk[0], 20);
	assert_int_equal(l.chunk[1], 25);
	assert_int_equal(l.elem_size, 2);
}

/* Version 4 of these two is the same but for its number. */
static void test_version4(void **state)
{
	static const char *const rows[] = {"03000c00000000000000000000000000",
					   "0301cc2a0000000000003000000000000000"};
	for (size_t i = 0; i < 2; i++) {
		size_t n;
		uint8_t *bytes = hex_bytes(rows[i], &n);
		bytes[0] = 4;
		struct cursor c = cursor_of(bytes, n);
		struct h5_layout l;
		assert_int_equal(h5_layout_decode(&c, &l, NULL), 0);
		assert_encodes("version 4", encode, &l, rows[i]);
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

static const struct {
	const char *name;
	const char *hex;
	int rc;
} malformed[] = {
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
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		size_t n;
		uint8_t *bytes = hex_bytes(malformed[i].hex, &n);
		struct cursor c = cursor_of(bytes, n);
		struct h5_layout l;
		struct err err = ERR_INIT;
		int rc = h5_layout_decode(&c, &l, &err);
		if (rc != malformed[i].rc || err.code != rc)
			fail_msg("%s: %d (%s)", malformed[i].name, rc, err.msg);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compact),
		cmocka_unit_test(test_contiguous),
		cmocka_unit_test(test_chunked),
		cmocka_unit_test(test_version4),
		cmocka_unit_test(test_compact_data_over_64k),
		cmocka_unit_test(test_malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
