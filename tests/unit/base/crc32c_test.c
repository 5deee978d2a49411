/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C, with the instructions of the processor and without. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <base/checksum.h>

/* Test vectors of RFC 3720, section B.4. */
static void published(void **state)
{
	uint8_t bytes[32] = {0};
	assert_int_equal(checksum_crc32c("", 0, 0), 0);
	assert_int_equal(checksum_crc32c(bytes, sizeof(bytes), 0), 0x8a9136aa);
	for (unsigned int i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	assert_int_equal(checksum_crc32c(bytes, sizeof(bytes), 0), 0x46dd794e);
	assert_int_equal(
		checksum_crc32c(bytes + 9, sizeof(bytes) - 9, checksum_crc32c(bytes, 9, 0)),
		0x46dd794e);
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(checksum_crc32c(bytes, sizeof(bytes), 0), 0x62a8ab43);
}

/* Lengths around those of the blocks, and addresses that are not aligned. */
static void both_are_equal(void **state)
{
	enum { SIZE = 70000 };
	static const size_t around[] = {0, 8, 1360, 4080, 5456, 16368, 32736, 65536};
	uint8_t *bytes = malloc(SIZE);
	for (uint32_t i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 24);
	for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++)
		for (size_t n = around[i] > 20 ? around[i] - 20 : 0; n < around[i] + 20; n++) {
			const size_t at = n % 9;
			assert_int_equal(
				checksum_crc32c(bytes + at, n, 12345 * (uint32_t)n),
				checksum_crc32c_portable(bytes + at, n, 12345 * (uint32_t)n));
		}
	free(bytes);
}

/* Zeros that follow, and a difference that other bytes follow. */
static void without_the_bytes(void **state)
{
	enum { SIZE = 65536 };
	uint8_t *bytes = calloc(1, SIZE);
	for (size_t n = 0; n <= SIZE; n = 2 * n + n % 3 + 1) {
		const uint32_t crc = 2654435761u * (uint32_t)n;
		assert_int_equal(checksum_crc32c_zeros(n, crc), checksum_crc32c(bytes, n, crc));
		assert_int_equal(checksum_crc32c_shift(crc, n),
				 checksum_crc32c_shift_portable(crc, n));
	}
	assert_int_equal(checksum_crc32c_zeros(UINT32_MAX, 5),
			 checksum_crc32c_zeros(1, checksum_crc32c_zeros(UINT32_MAX - 1, 5)));
	for (size_t n = 10; n < SIZE; n = 2 * n + n % 3) {
		for (size_t i = 0; i < n; i++)
			bytes[i] = (uint8_t)(i * i);
		const uint32_t first = checksum_crc32c(bytes + 3, 5, 0);
		const uint32_t whole = checksum_crc32c(bytes, n, 0);
		memcpy(bytes + 3, "other", 5);
		const uint32_t change = first ^ checksum_crc32c(bytes + 3, 5, 0);
		assert_int_equal(whole ^ checksum_crc32c_shift(change, n - 8),
				 checksum_crc32c(bytes, n, 0));
	}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published),
		cmocka_unit_test(both_are_equal),
		cmocka_unit_test(without_the_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
