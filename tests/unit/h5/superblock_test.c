/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/superblock.h>

#include "hex.h"

/* A file of HDF5 1.10.8 whose root group tracks creation order. */
static const char version0[] = "894844460d0a1a0a000000000008080004001000000000000000000000000000"
			       "ffffffffffffffff8cb1000000000000ffffffffffffffff0000000000000000"
			       "6000000000000000000000000000000000000000000000000000000000000000";
/* The same with the version bounds 1.8 and latest. */
static const char version2[] = "894844460d0a1a0a020808000000000000000000ffffffffffffffff"
			       "49a60000000000003000000000000000281c7fcf";
static const char version3[] = "894844460d0a1a0a030808000000000000000000ffffffffffffffff"
			       "49a60000000000003000000000000000442603ef";

static void encode(struct emit *e, const void *sb)
{
	h5_superblock_encode(e, sb);
}

static int decode(const char *hex, struct h5_superblock *sb, struct err *err)
{
	size_t n;
	uint8_t *bytes = hex_bytes(hex, &n);
	struct cursor c = cursor_of(bytes, n);
	int rc = h5_superblock_decode(&c, sb, err);
	free(bytes);
	return rc;
}

static void test_version0(void **state)
{
	struct h5_superblock sb;
	assert_int_equal(decode(version0, &sb, NULL), 0);
	assert_int_equal(sb.version, 0);
	assert_int_equal(sb.status_flags, 0);
	assert_int_equal(sb.leaf_k, 4);
	assert_int_equal(sb.internal_k, 16);
	assert_int_equal(sb.chunk_k, 32);
	assert_int_equal(sb.base, 0);
	assert_int_equal(sb.eof, 0xb18c);
	assert_int_equal(sb.root, 96);
	assert_encodes("version 0", encode, &sb, version0);
}

static void test_status_flag_is_byte_20(void **state)
{
	struct h5_superblock sb;
	assert_int_equal(decode(version0, &sb, NULL), 0);
	sb.status_flags = 1;
	uint8_t buf[H5_SUPERBLOCK_SIZE];
	struct emit e = emit_to(buf, sizeof(buf));
	h5_superblock_encode(&e, &sb);
	assert_int_equal(buf[20], 1);
	struct cursor c = cursor_of(buf, sizeof(buf));
	assert_int_equal(h5_superblock_decode(&c, &sb, NULL), 0);
	assert_int_equal(sb.status_flags, 1);
}

static void test_version1(void **state)
{
	struct h5_superblock sb;
	assert_int_equal(decode("894844460d0a1a0a010000000008080005001100000000002100000000000000"
				"00000000ffffffffffffffff8cb1000000000000ffffffffffffffff00000000"
				"00000000600000000000000001000000000000008800000000000000a8020000"
				"00000000",
				&sb, NULL),
			 0);
	assert_int_equal(sb.version, 1);
	assert_int_equal(sb.leaf_k, 5);
	assert_int_equal(sb.internal_k, 17);
	assert_int_equal(sb.chunk_k, 33);
	assert_int_equal(sb.eof, 0xb18c);
	assert_int_equal(sb.root, 96);
}

static void test_checksummed_versions(void **state)
{
	struct h5_superblock sb;
	assert_int_equal(decode(version2, &sb, NULL), 0);
	assert_int_equal(sb.version, 2);
	assert_int_equal(sb.eof, 0xa649);
	assert_int_equal(sb.root, 48);
	assert_int_equal(sb.leaf_k, 4);
	assert_int_equal(decode(version3, &sb, NULL), 0);
	assert_int_equal(sb.version, 3);
	assert_int_equal(sb.eof, 0xa649);
}

/* A valid superblock with one changed byte. */
static const struct {
	const char *name;
	const char *hex;
	size_t at;
	uint8_t value;
	int rc;
} defects[] = {
	{"no signature", version0, 1, 'h', -EIO},
	{"version 4", version0, 8, 4, -EOPNOTSUPP},
	{"free space version 1", version0, 9, 1, -EOPNOTSUPP},
	{"symbol table version 1", version0, 10, 1, -EOPNOTSUPP},
	{"shared header version 1", version0, 12, 1, -EOPNOTSUPP},
	{"offsets of 16 bytes", version0, 13, 16, -EOPNOTSUPP},
	{"lengths of 3 bytes", version0, 14, 3, -EOPNOTSUPP},
	{"leaf K of zero", version0, 16, 0, -EIO},
	{"internal K of zero", version0, 18, 0, -EIO},
	{"wrong checksum", version2, 36, 0x31, -EIO},
	{"version 3 with the checksum of version 2", version2, 8, 3, -EIO},
	{"offsets of 0 bytes", version3, 9, 0, -EOPNOTSUPP},
	{"offsets of 2 bytes under the checksum of 8", version3, 9, 2, -EIO},
};

static void test_defects(void **state)
{
	for (size_t i = 0; i < sizeof(defects) / sizeof(defects[0]); i++) {
		size_t n;
		uint8_t *bytes = hex_bytes(defects[i].hex, &n);
		bytes[defects[i].at] = defects[i].value;
		struct cursor c = cursor_of(bytes, n);
		struct h5_superblock sb;
		struct err err = ERR_INIT;
		int rc = h5_superblock_decode(&c, &sb, &err);
		if (rc != defects[i].rc || err.code != rc)
			fail_msg("%s: %d (%s)", defects[i].name, rc, err.msg);
		free(bytes);
	}
}

static void test_every_truncation(void **state)
{
	const char *const all[] = {version0, version2, version3};
	for (size_t v = 0; v < 3; v++) {
		size_t n;
		uint8_t *bytes = hex_bytes(all[v], &n);
		for (size_t len = 0; len < n; len++) {
			struct cursor c = cursor_of(bytes, len);
			struct h5_superblock sb;
			assert_int_equal(h5_superblock_decode(&c, &sb, NULL), -EIO);
		}
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version0), cmocka_unit_test(test_status_flag_is_byte_20),
		cmocka_unit_test(test_version1), cmocka_unit_test(test_checksummed_versions),
		cmocka_unit_test(test_defects),	 cmocka_unit_test(test_every_truncation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
