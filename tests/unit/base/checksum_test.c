/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums: against bytes that libhdf5 1.10.8 wrote, and against lookup3's published values. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <base/checksum.h>

static void lookup3_published(void **state)
{
	static const char gettysburg[] = "Four score and seven years ago";
	assert_int_equal(checksum_lookup3("", 0, 0), 0xdeadbeef);
	assert_int_equal(checksum_lookup3("", 0, 0xdeadbeef), 0xbd5b7dde);
	assert_int_equal(checksum_lookup3(gettysburg, 30, 0), 0x17770551);
	assert_int_equal(checksum_lookup3(gettysburg, 30, 1), 0xcd628161);
}

static void lookup3_of_a_superblock(void **state)
{
	static const uint8_t superblock[48] = {
		0x89, 0x48, 0x44, 0x46, 0x0d, 0x0a, 0x1a, 0x0a, 0x03, 0x08, 0x08, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0x9b, 0xf5, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xdd, 0x29, 0x5c, 0x83,
	};
	assert_int_equal(checksum_lookup3(superblock, 44, 0), 0x835c29dd);
}

/* A length that is a multiple of 12: the last block must not be mixed like the others. */
static void lookup3_of_a_btree_leaf(void **state)
{
	static const uint8_t leaf[] = {
		0x42, 0x54, 0x4c, 0x46, 0x00, 0x05, 0x35, 0x30, 0x12, 0x17, 0x00, 0x47,
		0x00, 0x00, 0x00, 0x0a, 0x00, 0x20, 0xe8, 0xa4, 0x3c, 0x00, 0x5b, 0x00,
		0x00, 0x00, 0x0a, 0x00, 0xae, 0x7f, 0xa6, 0x5e, 0x00, 0x65, 0x00, 0x00,
		0x00, 0x0a, 0x00, 0xeb, 0xf3, 0xb9, 0xc5, 0x00, 0x3d, 0x00, 0x00, 0x00,
		0x0a, 0x00, 0x19, 0x8a, 0xa8, 0xda, 0x00, 0x33, 0x00, 0x00, 0x00, 0x0a,
		0x00, 0x05, 0x54, 0xb9, 0xdd, 0x00, 0x51, 0x00, 0x00, 0x00, 0x0a, 0x00,
	};
	assert_int_equal(sizeof(leaf) % 12, 0);
	assert_int_equal(checksum_lookup3(leaf, sizeof(leaf), 0), 0x7d08af91);
}

static void lookup3_reads_no_further(void **state)
{
	uint8_t a[40], b[40];
	/* Bytes before and after the n bytes do not matter. */
	for (size_t n = 0; n < 30; n++) {
		memset(a, 0x00, sizeof(a));
		memset(b, 0xff, sizeof(b));
		for (size_t i = 0; i < n; i++)
			a[1 + i] = b[3 + i] = (uint8_t)(i * 37 + 1);
		assert_int_equal(checksum_lookup3(a + 1, n, 0), checksum_lookup3(b + 3, n, 0));
		if (n > 0) {
			b[3 + n - 1] ^= 0x80;
			assert_int_not_equal(checksum_lookup3(a + 1, n, 0),
					     checksum_lookup3(b + 3, n, 0));
		}
	}
}

static void fletcher32_of_short_chunks(void **state)
{
	static const struct {
		size_t n;
		const char *bytes;
		uint32_t sum;
	} rows[] = {
		{0, "", 0},
		{1, "\xff", 0xff00ff00},
		{2, "\xf3\xbd", 0xf3bdf3bd},
		{3, "\x66\xa8\x52", 0x1f51b8a8},
		{4, "\xbb\x96\x51\xf3", 0xc9200d8a},
		{5, "\xcd\x18\xec\x08\xf6", 0x355daf22},
		/* A sum that is a multiple of 65535 becomes 65535; only zeros give 0. */
		{4, "\xff\xff\xff\xff", 0xffffffff},
		{5, "\0\0\0\0\0", 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(checksum_fletcher32(rows[i].bytes, rows[i].n), rows[i].sum);
}

static void fletcher32_of_long_chunks(void **state)
{
	uint8_t bytes[1441];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	assert_int_equal(checksum_fletcher32(bytes, 720), 0x5a3182e9);
	assert_int_equal(checksum_fletcher32(bytes, 722), 0xadec53bb);
	assert_int_equal(checksum_fletcher32(bytes, 1024), 0x151600ff);
	assert_int_equal(checksum_fletcher32(bytes, 1441), 0xb1d52a58);
	/* The largest possible sums. */
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(checksum_fletcher32(bytes, 720), 0xffffffff);
	assert_int_equal(checksum_fletcher32(bytes, 1441), 0xff00ff00);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lookup3_published),
		cmocka_unit_test(lookup3_of_a_superblock),
		cmocka_unit_test(lookup3_of_a_btree_leaf),
		cmocka_unit_test(lookup3_reads_no_further),
		cmocka_unit_test(fletcher32_of_short_chunks),
		cmocka_unit_test(fletcher32_of_long_chunks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
