/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/message.h>

#include "message_cases.h"

static const struct h5_file narrow = {.addr_size = 4, .len_size = 4};

/* A compound in a file with addresses of 4 bytes, and an element of it, as HDF5 1.10.8 writes them:
 * integer, variable-length string, object reference, region reference, array of two variable-length
 * sequences, double. */
static const char type[] = "26060000420000006100000000000000000000001008000002000000000010007300000"
			   "00000000002000000190101"
			   "000c00000010000000010000000000080072000000000000000e0000001700000008000"
			   "00072720000000000001600"
			   "0000170100000c0000007600000000000000220000002a0000001800000001000000020"
			   "00000000000001900000"
			   "00c00000010080000020000000000100062000000000000003a00000011203f00080000"
			   "0000004000340b0034ff03"
			   "000000000000";
static const char element[] = "0700"
			      "050000002808000004000000"
			      "ec01000000000000"
			      "280800000100000000000000"
			      "030000002808000002000000"
			      "010000002808000003000000"
			      "000000000000f83f";
static const char widened[] = "0700"
			      "05000000280800000000000004000000"
			      "ec01000000000000"
			      "280800000000000001000000"
			      "03000000280800000000000002000000"
			      "01000000280800000000000003000000"
			      "000000000000f83f";

static const struct dtype *decode(const char *hex, struct arena *a)
{
	size_t n;
	uint8_t *bytes = hex_bytes(hex, &n);
	struct cursor c = cursor_of(bytes, n);
	const struct dtype *t;
	struct err err = ERR_INIT;
	if (h5_dtype_decode(&narrow, &c, a, &t, &err))
		fail_msg("%s", err.msg);
	free(bytes);
	return t;
}

/* Widens `count` copies of an element. */
static void assert_widens(const struct dtype *t, const char *from, const char *to, size_t count)
{
	size_t n, m;
	uint8_t *one = hex_bytes(from, &n), *expected = hex_bytes(to, &m);
	assert_int_equal(h5_dtype_file_size(&narrow, t), n);
	assert_int_equal(t->size, m);
	uint8_t *in = malloc(n * count), *out = malloc(m * count);
	assert_non_null(in);
	assert_non_null(out);
	for (size_t i = 0; i < count; i++)
		memcpy(in + i * n, one, n);
	assert_int_equal(h5_dtype_widen(&narrow, t, in, count, out, NULL), 0);
	for (size_t i = 0; i < count; i++)
		assert_memory_equal(out + i * m, expected, m);
	free(one);
	free(expected);
	free(in);
	free(out);
}

static void test_library_compound(void **state)
{
	static const uint32_t offsets[] = {0, 2, 18, 26, 38, 70};
	struct arena *a = arena_new(MESSAGE_ARENA_LIMIT);
	const struct dtype *t = decode(type, a);
	assert_int_equal(t->compound.n, 6);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(t->compound.members[i].offset, offsets[i]);
	assert_widens(t, element, widened, 1);
	assert_widens(t, element, widened, 3);
	assert_widens(t->compound.members[3].type, "280800000100000000000000",
		      "280800000000000001000000", 2);
	assert_widens(t->compound.members[2].type, "ec01000000000000", "ec01000000000000", 2);
	assert_widens(t->compound.members[0].type, "0700", "0700", 2);
	arena_free(a);
}

/* Members that are not in the order of their offsets, with padding before and between: version 3,
 * i at 14, string at 1, in 16 bytes. */
static const char unordered[] = "3602000010000000"
				"69000e"
				"100800000100000000000800"
				"730001"
				"190100000c000000"
				"100000000100000000000800";

static void test_unordered_members(void **state)
{
	struct arena *a = arena_new(MESSAGE_ARENA_LIMIT);
	const struct dtype *t = decode(unordered, a);
	assert_int_equal(t->compound.members[0].offset, 18);
	assert_int_equal(t->compound.members[1].offset, 1);
	assert_widens(t,
		      "ee"
		      "05000000ffffffff04000000"
		      "ee"
		      "77"
		      "ee",
		      "00"
		      "05000000ffffffffffffffff04000000"
		      "00"
		      "77"
		      "00",
		      2);
	arena_free(a);
}

/* A compound of a byte, a revised reference of 18 bytes and a byte. */
static const char with_revised[] = "3603000014000000"
				   "610000"
				   "100800000100000000000800"
				   "720001"
				   "4712000012000000"
				   "620013"
				   "100800000100000000000800";

static int widen_revised(const struct dtype *t, const char *reference, uint8_t out[10],
			 struct err *err)
{
	size_t n;
	uint8_t in[20] = {0xaa}, *bytes = hex_bytes(reference, &n);
	in[19] = 0xbb;
	memcpy(in + 1, bytes, n);
	free(bytes);
	return h5_dtype_widen(&plain, t, in, 1, out, err);
}

static void test_revised_references(void **state)
{
	static const struct {
		const char *reference, *word;
		uint8_t addr; /* that it becomes */
		int rc;
	} rows[] = {
		{"0200083600000000000000", "", 0x36, 0},
		{"02000236000000", "", 0x36, 0},
		{"000000000000", "", 0, 0},
		{"0201083600000000000000", "to another file", 0, -EOPNOTSUPP},
		{"0300080000000000000000", "to a dataset region", 0, -EOPNOTSUPP},
		{"0400080000000000000000", "to an attribute", 0, -EOPNOTSUPP},
		{"0200093600000000000000", "of kind 2 is not valid", 0, -EIO},
		{"0200ff3600000000000000", "of kind 2 is not valid", 0, -EIO},
		{"0500083600000000000000", "of kind 5 is not valid", 0, -EIO},
	};
	struct arena *a = arena_new(MESSAGE_ARENA_LIMIT);
	size_t n;
	auto_free uint8_t *bytes = hex_bytes(with_revised, &n);
	struct cursor c = cursor_of(bytes, n);
	const struct dtype *t;
	assert_int_equal(h5_dtype_decode(&plain, &c, a, &t, NULL), 0);
	assert_int_equal(h5_dtype_file_size(&plain, t), 20);
	assert_int_equal(t->size, 10);
	assert_int_equal(t->compound.members[2].offset, 9);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = ERR_INIT;
		uint8_t out[10] = {0};
		assert_int_equal(widen_revised(t, rows[i].reference, out, &err), rows[i].rc);
		if (rows[i].rc) {
			assert_non_null(strstr(err.msg, rows[i].word));
			continue;
		}
		const uint8_t expected[10] = {0xaa, rows[i].addr, [9] = 0xbb};
		assert_memory_equal(out, expected, 10);
	}
	arena_free(a);
}

/* With addresses of 8 bytes, all sizes are those of the file. */
static void test_wide(void **state)
{
	struct arena *a = arena_new(MESSAGE_ARENA_LIMIT);
	const struct dtype *t = dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_ASCII, NULL);
	uint8_t in[32], out[32];
	memset(in, 0x5a, sizeof(in));
	assert_int_equal(h5_dtype_file_size(&plain, t), 16);
	assert_int_equal(h5_dtype_widen(&plain, t, in, 2, out, NULL), 0);
	assert_memory_equal(in, out, sizeof(in));
	arena_free(a);
}

static int decode_narrow(struct cursor *c, struct arena *a, void *out, struct err *err)
{
	return h5_dtype_decode(&narrow, c, a, out, err);
}

static const struct message_codec codec = {
	.size = sizeof(const struct dtype *),
	.decode = decode_narrow,
};

static const struct malformed_message malformed[] = {
	{"variable length of 16 bytes", "1901000010000000100000000100000000000800", -EIO},
	{"members that overlap",
	 "36020000100000006900081008000001000000000008007300011901000"
	 "00c000000100000000100000000000800",
	 -EIO},
	{"compound of 4 GiB",
	 "16010000ffffffff7300000000000000000000000000000000000000000000000000000000000000000000001"
	 "9"
	 "0100000c000000100000000100000000000800",
	 -EOPNOTSUPP},
};

static void test_malformed(void **state)
{
	assert_malformed(&codec, malformed, sizeof(malformed) / sizeof(malformed[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_library_compound),
		cmocka_unit_test(test_unordered_members),
		cmocka_unit_test(test_wide),
		cmocka_unit_test(test_revised_references),
		cmocka_unit_test(test_malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
