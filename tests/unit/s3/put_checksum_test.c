/* SPDX-License-Identifier: Apache-2.0 */
/* CRCs against their published check values, and the headers that carry them. */
#include "store_fixture.h"

#include "s3/put_checksum.h"

static const struct {
	enum s3_crc_kind kind;
	const char *name;
	uint64_t check; /* of "123456789" */
	const char *base64;
} kinds[] = {
	{S3_CRC32, "crc32", 0xcbf43926, "y/Q5Jg=="},
	{S3_CRC32C, "crc32c", 0xe3069283, "4waSgw=="},
	{S3_CRC64NVME, "crc64nvme", 0xae8b14860a799888, "rosUhgp5mIg="},
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static void test_check_values(void **state)
{
	static struct s3_crc_tables tables;
	s3_crc_tables_init(&tables);
	for (size_t i = 0; i < N_KINDS; i++) {
		assert_int_equal(s3_crc_of(&tables, kinds[i].kind, "123456789", 9), kinds[i].check);
		assert_int_equal(s3_crc_of(&tables, kinds[i].kind, "", 0), 0);
	}
}

/* 16 bytes at a time, and one by one at the end: a body of any length and alignment has the CRC
 * that the definition gives, bit by bit. */
static void test_all_lengths(void **state)
{
	static const uint64_t polynomials[] = {0xedb88320, 0x82f63b78, 0x9a6c9329ac4bc9b5};
	static const uint64_t ones[] = {UINT32_MAX, UINT32_MAX, UINT64_MAX};
	static struct s3_crc_tables tables;
	uint8_t body[72];
	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (uint8_t)(i * 37 + 11);
	s3_crc_tables_init(&tables);
	for (size_t i = 0; i < N_KINDS; i++)
		for (size_t begin = 0; begin < 8; begin++)
			for (size_t n = 0; begin + n <= sizeof(body); n++) {
				uint64_t crc = ones[i];
				for (size_t k = 0; k < 8 * n; k++) {
					crc ^= body[begin + k / 8] >> k % 8 & 1;
					crc = crc >> 1 ^ (crc & 1 ? polynomials[i] : 0);
				}
				assert_int_equal(s3_crc_of(&tables, kinds[i].kind, body + begin, n),
						 crc ^ ones[i]);
			}
}

static void test_headers(void **state)
{
	static const struct {
		const char *name, *value;
	} ignored[] = {
		{"crc32", "y/Q5Jg==-3"}, /* of a multipart upload: a checksum of checksums */
		{"crc64nvme", "rosUhgp5mIg=-2"},
		{"crc32", "rosUhgp5mIg="},
		{"crc64nvme", "y/Q5Jg=="},
		{"crc32", "y/Q5J*=="},
		{"crc32", "y/Q5Jg="},
		{"crc32", "y/Q5"},
		{"crc32", ""},
		{"sha256", "y/Q5Jg=="},
		{"type", "COMPOSITE"},
		{"", ""},
	};
	for (size_t i = 0; i < N_KINDS; i++) {
		struct s3_crc crc = {0};
		s3_crc_read(kinds[i].name, kinds[i].base64, &crc);
		assert_int_equal(crc.kind, kinds[i].kind);
		assert_int_equal(crc.value, kinds[i].check);
		for (size_t k = 0; k < sizeof(ignored) / sizeof(ignored[0]); k++)
			s3_crc_read(ignored[k].name, ignored[k].value, &crc);
		assert_int_equal(crc.kind, kinds[i].kind);
		assert_int_equal(crc.value, kinds[i].check);
	}
	struct s3_crc upper = {0};
	s3_crc_read("CRC32C", "4waSgw==", &upper);
	assert_int_equal(upper.kind, S3_CRC32C);
}

/* What is written is what is read. The pieces of a body make up one CRC. */
static void test_write(void **state)
{
	static const uint32_t crcs[] = {0, 1, 0x80000000, 0xe3069283, UINT32_MAX};
	const struct piece pieces[] = {{"1234", 4}, {"", 0}, {"56789", 5}};
	char value[S3_CRC32C_VALUE];
	for (size_t i = 0; i < sizeof(crcs) / sizeof(crcs[0]); i++) {
		struct s3_crc crc = {0};
		s3_crc32c_write(crcs[i], value);
		s3_crc_read("crc32c", value, &crc);
		assert_int_equal(crc.kind, S3_CRC32C);
		assert_int_equal(crc.value, crcs[i]);
	}
	assert_int_equal(s3_crc32c_of(pieces, 3), 0xe3069283);
	assert_int_equal(s3_crc32c_of(NULL, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check_values),
		cmocka_unit_test(test_all_lengths),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_write),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
