/* SPDX-License-Identifier: Apache-2.0 */
/* The small messages and the shared message. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/message.h>

#include "hex.h"

static void encode_linfo(struct emit *e, const void *l)
{
	h5_linfo_encode(e, l);
}

static void encode_ainfo(struct emit *e, const void *a)
{
	h5_ainfo_encode(e, a);
}

static void encode_ginfo(struct emit *e, const void *g)
{
	h5_ginfo_encode(e, g);
}

/* Vectors are as HDF5 1.10.8 writes them. */
static void test_link_info(void **state)
{
	static const struct {
		const char *hex;
		struct h5_linfo l;
	} rows[] = {
		{"0000ffffffffffffffffffffffffffffffff",
		 {.heap = H5_UNDEF, .names = H5_UNDEF, .corders = H5_UNDEF}},
		{"00010000000000000000ffffffffffffffffffffffffffffffff",
		 {.tracked = true, .heap = H5_UNDEF, .names = H5_UNDEF, .corders = H5_UNDEF}},
		{"000314000000000000005e65000000000000f0650000000000001666000000000000",
		 {.tracked = true,
		  .indexed = true,
		  .max_corder = 20,
		  .heap = 0x655e,
		  .names = 0x65f0,
		  .corders = 0x6616}},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n;
		uint8_t *bytes = hex_bytes(rows[i].hex, &n);
		struct cursor c = cursor_of(bytes, n);
		struct h5_linfo l;
		assert_int_equal(h5_linfo_decode(&c, &l, NULL), 0);
		assert_int_equal(l.tracked, rows[i].l.tracked);
		assert_int_equal(l.indexed, rows[i].l.indexed);
		assert_int_equal(l.max_corder, rows[i].l.max_corder);
		assert_int_equal(l.heap, rows[i].l.heap);
		assert_int_equal(l.names, rows[i].l.names);
		assert_int_equal(l.corders, rows[i].l.corders);
		assert_encodes("link info", encode_linfo, &l, rows[i].hex);
		free(bytes);
	}
}

static void test_attribute_info(void **state)
{
	static const struct {
		const char *hex;
		struct h5_ainfo a;
	} rows[] = {
		{"0000ac09000000000000c203000000000000",
		 {.heap = 0x9ac, .names = 0x3c2, .corders = H5_UNDEF}},
		{"00030500ffffffffffffffffffffffffffffffffffffffffffffffff",
		 {.tracked = true,
		  .indexed = true,
		  .max_corder = 5,
		  .heap = H5_UNDEF,
		  .names = H5_UNDEF,
		  .corders = H5_UNDEF}},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n;
		uint8_t *bytes = hex_bytes(rows[i].hex, &n);
		struct cursor c = cursor_of(bytes, n);
		struct h5_ainfo a;
		assert_int_equal(h5_ainfo_decode(&c, &a, NULL), 0);
		assert_int_equal(a.tracked, rows[i].a.tracked);
		assert_int_equal(a.indexed, rows[i].a.indexed);
		assert_int_equal(a.max_corder, rows[i].a.max_corder);
		assert_int_equal(a.heap, rows[i].a.heap);
		assert_int_equal(a.names, rows[i].a.names);
		assert_int_equal(a.corders, rows[i].a.corders);
		assert_encodes("attribute info", encode_ainfo, &a, rows[i].hex);
		free(bytes);
	}
}

static void test_group_info(void **state)
{
	static const struct {
		const char *hex;
		struct h5_ginfo g;
	} rows[] = {
		{"0000", {.has_phase = false}},
		{"000340000a0009000c00", {true, 64, 10, true, 9, 12}},
		{"000140000a00", {true, 64, 10, false, 0, 0}},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n;
		uint8_t *bytes = hex_bytes(rows[i].hex, &n);
		struct cursor c = cursor_of(bytes, n);
		struct h5_ginfo g;
		assert_int_equal(h5_ginfo_decode(&c, &g, NULL), 0);
		assert_int_equal(g.has_phase, rows[i].g.has_phase);
		assert_int_equal(g.max_compact, rows[i].g.max_compact);
		assert_int_equal(g.min_dense, rows[i].g.min_dense);
		assert_int_equal(g.has_estimate, rows[i].g.has_estimate);
		assert_int_equal(g.est_links, rows[i].g.est_links);
		assert_int_equal(g.est_name_len, rows[i].g.est_name_len);
		assert_encodes("group info", encode_ginfo, &g, rows[i].hex);
		free(bytes);
	}
}

/* The rest in one shape: a number in, a number out. */
static int decode_linfo(struct cursor *c, uint64_t *v, struct err *err)
{
	struct h5_linfo l;
	return h5_linfo_decode(c, &l, err);
}

static int decode_ainfo(struct cursor *c, uint64_t *v, struct err *err)
{
	struct h5_ainfo a;
	return h5_ainfo_decode(c, &a, err);
}

static int decode_ginfo(struct cursor *c, uint64_t *v, struct err *err)
{
	struct h5_ginfo g;
	return h5_ginfo_decode(c, &g, err);
}

static int decode_refcount(struct cursor *c, uint64_t *v, struct err *err)
{
	uint32_t count;
	int rc = h5_refcount_decode(c, &count, err);
	*v = count;
	return rc;
}

static int decode_mtime(struct cursor *c, uint64_t *v, struct err *err)
{
	uint32_t seconds;
	int rc = h5_mtime_decode(c, &seconds, err);
	*v = seconds;
	return rc;
}

static void encode_refcount(struct emit *e, const void *v)
{
	h5_refcount_encode(e, *(const uint32_t *)v);
}

static void encode_mtime(struct emit *e, const void *v)
{
	h5_mtime_encode(e, *(const uint32_t *)v);
}

static void encode_shared(struct emit *e, const void *v)
{
	h5_shared_encode(e, *(const uint64_t *)v);
}

static void test_numbers(void **state)
{
	const uint32_t count = 24, seconds = 0x6b016c1e;
	const uint64_t addr = 0x35c8;
	assert_encodes("reference count", encode_refcount, &count, "0018000000");
	assert_encodes("modification time", encode_mtime, &seconds, "010000001e6c016b");
	assert_encodes("shared message", encode_shared, &addr, "0202c835000000000000");
}

static const struct {
	const char *name;
	int (*decode)(struct cursor *c, uint64_t *v, struct err *err);
	const char *hex;
	int rc;
	uint64_t value;
} rows[] = {
	{"reference count", decode_refcount, "0018000000", 0, 24},
	{"reference count version 1", decode_refcount, "0118000000", -EOPNOTSUPP, 0},
	{"reference count cut off", decode_refcount, "00180000", -EIO, 0},
	{"modification time", decode_mtime, "010000001e6c016b", 0, 0x6b016c1e},
	{"modification time version 0", decode_mtime, "000000001e6c016b", -EOPNOTSUPP, 0},
	{"modification time cut off", decode_mtime, "010000001e6c01", -EIO, 0},
	{"shared, version 1", h5_shared_decode, "01000000000000000800000000000000c835000000000000",
	 0, 0x35c8},
	{"shared, version 2", h5_shared_decode, "0202c835000000000000", 0, 0x35c8},
	{"shared, version 2 of 1.6", h5_shared_decode, "0200c835000000000000", 0, 0x35c8},
	{"shared, version 3", h5_shared_decode, "0302c835000000000000", 0, 0x35c8},
	{"shared, version 0", h5_shared_decode, "0002c835000000000000", -EOPNOTSUPP, 0},
	{"shared, version 4", h5_shared_decode, "0402c835000000000000", -EOPNOTSUPP, 0},
	{"shared in the heap", h5_shared_decode, "0301c835000000000000", -EOPNOTSUPP, 0},
	{"shared, not at all", h5_shared_decode, "0300c835000000000000", -EIO, 0},
	{"shared, cut off", h5_shared_decode, "0202c8350000000000", -EIO, 0},
	{"shared, version 1 cut off", h5_shared_decode, "0100000000000000c835000000000000", -EIO,
	 0},
	{"link info version 1", decode_linfo, "0100ffffffffffffffffffffffffffffffff", -EOPNOTSUPP,
	 0},
	{"link info flags", decode_linfo, "0004ffffffffffffffffffffffffffffffff", -EIO, 0},
	{"link info cut off", decode_linfo, "0000ffffffffffffffffffffffffffffff", -EIO, 0},
	{"negative creation order", decode_linfo,
	 "0001ffffffffffffffffffffffffffffffffffffffffffffffff", -EIO, 0},
	{"attribute info version 1", decode_ainfo, "0100ffffffffffffffffffffffffffffffff",
	 -EOPNOTSUPP, 0},
	{"attribute info flags", decode_ainfo, "0080ffffffffffffffffffffffffffffffff", -EIO, 0},
	{"attribute info cut off", decode_ainfo, "00030500ffffffffffffffffffffffffffffffff", -EIO,
	 0},
	{"group info version 1", decode_ginfo, "0100", -EOPNOTSUPP, 0},
	{"group info flags", decode_ginfo, "0004", -EIO, 0},
	{"group info cut off", decode_ginfo, "000340000a0009000c", -EIO, 0},
	{"group info of nothing", decode_ginfo, "", -EIO, 0},
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n;
		uint8_t *bytes = hex_bytes(rows[i].hex, &n);
		struct cursor c = cursor_of(bytes, n);
		uint64_t v = 0;
		struct err err = ERR_INIT;
		int rc = rows[i].decode(&c, &v, &err);
		if (rc != rows[i].rc || err.code != rc || (!rc && v != rows[i].value))
			fail_msg("%s: %d (%s)", rows[i].name, rc, err.msg);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_link_info),  cmocka_unit_test(test_attribute_info),
		cmocka_unit_test(test_group_info), cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
