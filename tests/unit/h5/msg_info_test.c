/* SPDX-License-Identifier: Apache-2.0 */
/* Small messages and shared messages. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/message.h>

#include "message_cases.h"

/* The encoder and decoder h5_<name>. `passed`: the argument of the encoder; then the call of the
 * decoder. */
#define CODEC(name, type, passed, decoded)                                                         \
	static int decode_##name(struct cursor *c, struct arena *a, void *out, struct err *err)    \
	{                                                                                          \
		return decoded;                                                                    \
	}                                                                                          \
	static void encode_##name(struct emit *e, const void *what)                                \
	{                                                                                          \
		h5_##name##_encode(e, passed);                                                     \
	}                                                                                          \
	static const struct message_codec name = {                                                 \
		.size = sizeof(type),                                                              \
		.decode = decode_##name,                                                           \
		.encode = encode_##name,                                                           \
	}

CODEC(linfo, struct h5_linfo, what, h5_linfo_decode(&plain, c, out, err));
CODEC(ainfo, struct h5_ainfo, what, h5_ainfo_decode(&plain, c, out, err));
CODEC(refcount, uint32_t, *(const uint32_t *)what, h5_refcount_decode(c, out, err));
CODEC(shared, uint64_t, *(const uint64_t *)what, h5_shared_decode(&plain, c, out, err));

static int decode_mtime(struct cursor *c, struct arena *a, void *out, struct err *err)
{
	return h5_mtime_decode(c, out, err);
}
static const struct message_codec mtime = {.size = sizeof(uint32_t), .decode = decode_mtime};

static int decode_old_mtime(struct cursor *c, struct arena *a, void *out, struct err *err)
{
	return h5_mtime_old_decode(c, out, err);
}
static const struct message_codec old_mtime = {.size = sizeof(uint32_t),
					       .decode = decode_old_mtime};

/* Two structs with fields of the same names. */
#define COMPARE_INDEX(name)                                                                        \
	static void compare_##name(const char *what, const void *got, const void *expected)        \
	{                                                                                          \
		const struct h5_##name *g = got, *e = expected;                                    \
		assert_int_equal(g->tracked, e->tracked);                                          \
		assert_int_equal(g->indexed, e->indexed);                                          \
		assert_int_equal(g->max_corder, e->max_corder);                                    \
		assert_int_equal(g->heap, e->heap);                                                \
		assert_int_equal(g->names, e->names);                                              \
		assert_int_equal(g->corders, e->corders);                                          \
	}

COMPARE_INDEX(linfo)
COMPARE_INDEX(ainfo)

/* The bytes are those that HDF5 1.10.8 writes. */
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
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_message(&linfo, "link info", rows[i].hex, rows[i].hex, compare_linfo,
			       &rows[i].l);
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
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_message(&ainfo, "attribute info", rows[i].hex, rows[i].hex, compare_ainfo,
			       &rows[i].a);
}

static void encode_ginfo(struct emit *e, const void *what)
{
	h5_ginfo_encode(e, what);
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
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_encodes("group info", encode_ginfo, &rows[i].g, rows[i].hex);
}

static void compare_u32(const char *name, const void *got, const void *expected)
{
	assert_int_equal(*(const uint32_t *)got, *(const uint32_t *)expected);
}

static void compare_u64(const char *name, const void *got, const void *expected)
{
	assert_int_equal(*(const uint64_t *)got, *(const uint64_t *)expected);
}

static void test_numbers(void **state)
{
	const uint32_t count = 24, seconds = 0x6b016c1e;
	assert_message(&refcount, "reference count", "0018000000", "0018000000", compare_u32,
		       &count);
	assert_message(&mtime, "modification time", "010000001e6c016b", NULL, compare_u32,
		       &seconds);
}

static void test_shared(void **state)
{
	static const struct {
		const char *name;
		const char *hex;
	} rows[] = {
		{"version 1", "01000000000000000800000000000000c835000000000000"},
		{"version 2", "0202c835000000000000"},
		{"version 2 of 1.6", "0200c835000000000000"},
		{"version 3", "0302c835000000000000"},
	};
	const uint64_t addr = 0x35c8;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_message(&shared, rows[i].name, rows[i].hex, "0202c835000000000000",
			       compare_u64, &addr);
}

static int decode_comment(struct cursor *c, struct arena *a, void *out, struct err *err)
{
	return h5_comment_decode(c, a, out, err);
}
static void encode_comment(struct emit *e, const void *what)
{
	h5_comment_encode(e, *(const char *const *)what);
}
static const struct message_codec comment = {
	.size = sizeof(const char *), .decode = decode_comment, .encode = encode_comment};

/* The first row is from a file of 2000; `date -u +%s` agrees with all. */
static void test_old_time(void **state)
{
	static const struct {
		const char *text;
		uint32_t seconds;
	} rows[] = {
		{"20000323162808", 953828888},	{"19700101000000", 0},
		{"20000229235959", 951868799},	{"20000301000000", 951868800},
		{"19991231235959", 946684799},	{"21000301000000", 4107542400},
		{"20240229120000", 1709208000}, {"99991231235959", UINT32_MAX},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t body[16] = {0};
		uint32_t seconds;
		memcpy(body, rows[i].text, 14);
		assert_int_equal(decode_message(&old_mtime, rows[i].text, body, 16, NULL, &seconds),
				 0);
		assert_int_equal(seconds, rows[i].seconds);
	}
}

static void test_comment(void **state)
{
	struct arena *a = arena_new(MESSAGE_ARENA_LIMIT);
	size_t n;
	uint8_t *bytes = hex_bytes("6120636f6d6d656e7400000000000000", &n);
	const char *text;
	assert_int_equal(decode_message(&comment, "comment", bytes, n, a, &text), 0);
	assert_string_equal(text, "a comment");
	assert_fails_truncated(&comment, "comment", bytes, 9);
	text = "caf\xe9";
	assert_encodes("comment", encode_comment, &text, "636166e900");
	free(bytes);
	arena_free(a);
}

static const struct {
	const struct message_codec *codec;
	struct malformed_message row;
} malformed[] = {
	{&refcount, {"reference count version 1", "0118000000", -EOPNOTSUPP}},
	{&refcount, {"reference count cut off", "00180000", -EIO}},
	{&mtime, {"modification time version 0", "000000001e6c016b", -EOPNOTSUPP}},
	{&mtime, {"modification time cut off", "010000001e6c01", -EIO}},
	{&shared, {"shared, version 0", "0002c835000000000000", -EOPNOTSUPP}},
	{&shared, {"shared, version 4", "0402c835000000000000", -EOPNOTSUPP}},
	{&shared, {"shared in the heap", "0301c835000000000000", -EOPNOTSUPP}},
	{&shared, {"shared in the heap, cut off", "0301c8350000000000", -EIO}},
	{&shared, {"shared, not at all", "0300c835000000000000", -EIO}},
	{&shared, {"shared, cut off", "0202c8350000000000", -EIO}},
	{&shared, {"shared, version 1 cut off", "0100000000000000c835000000000000", -EIO}},
	{&linfo, {"link info version 1", "0100ffffffffffffffffffffffffffffffff", -EOPNOTSUPP}},
	{&linfo, {"link info flags", "0004ffffffffffffffffffffffffffffffff", -EIO}},
	{&linfo, {"link info cut off", "0000ffffffffffffffffffffffffffffff", -EIO}},
	{&linfo,
	 {"negative creation order", "0001ffffffffffffffffffffffffffffffffffffffffffffffff", -EIO}},
	{&ainfo, {"attribute info version 1", "0100ffffffffffffffffffffffffffffffff", -EOPNOTSUPP}},
	{&ainfo, {"attribute info flags", "0080ffffffffffffffffffffffffffffffff", -EIO}},
	{&ainfo, {"attribute info cut off", "00030500ffffffffffffffffffffffffffffffff", -EIO}},
	{&old_mtime, {"old time cut off", "32303030303332333136323830", -EIO}},
	{&old_mtime, {"month 13", "32303030313332333136323830380000", -EIO}},
	{&old_mtime, {"day 0", "32303030303330303136323830380000", -EIO}},
	{&old_mtime, {"hour 24", "32303030303332333234323830380000", -EIO}},
	{&old_mtime, {"year 1969", "31393639303332333136323830380000", -EIO}},
	{&old_mtime, {"no digits", "32303030303332333136323830200000", -EIO}},
};

static void test_malformed(void **state)
{
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
		assert_malformed(malformed[i].codec, &malformed[i].row, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_link_info),  cmocka_unit_test(test_attribute_info),
		cmocka_unit_test(test_group_info), cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_shared),	   cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_old_time),   cmocka_unit_test(test_comment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
