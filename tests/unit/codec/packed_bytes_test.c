/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that are compressed in memory: every range reads as before, and repetitive bytes take less
 * memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <codec/packed_bytes.h>

enum { B = PACKED_BLOCK };

static uint32_t next(uint32_t *state)
{
	return *state = *state * 1664525 + 1013904223;
}

/* Every other block can be compressed. */
static uint8_t *mixed(size_t n)
{
	uint8_t *bytes = malloc(n);
	uint32_t state = 1;
	assert_non_null(bytes);
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(i / B % 2 ? next(&state) >> 24 : i % 100);
	return bytes;
}

static void check_range(const struct packed_bytes *p, const uint8_t *expected, size_t at, size_t n)
{
	/* Exactly n bytes, so that the address sanitizer sees an overrun. */
	uint8_t *got = malloc(n ? n : 1);
	assert_int_equal(packed_bytes_read(p, at, got, n, NULL), 0);
	if (n)
		assert_memory_equal(got, expected + at, n);
	free(got);
}

static void all_ranges_read_as_before(void **state)
{
	static const size_t sizes[] = {1, B - 1, B, B + 1, 2 * B, 5 * B + 7};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const size_t size = sizes[i];
		uint8_t *bytes = mixed(size), *copy = malloc(size);
		struct packed_bytes *p;
		uint32_t seed = 7;
		memcpy(copy, bytes, size);
		assert_int_equal(packed_bytes_new(bytes, size, &p), 0);
		check_range(p, copy, 0, size);
		check_range(p, copy, size, 0);
		for (unsigned int k = 0; k < 50; k++) {
			const size_t at = next(&seed) % size, n = next(&seed) % (size - at + 1);
			check_range(p, copy, at, n);
			check_range(p, copy, at, n ? 1 : 0);
		}
		for (size_t at = 0; at + B <= size; at += B)
			check_range(p, copy, at, B);
		packed_bytes_free(p);
		free(copy);
	}
}

static void repetitive_bytes_take_less_memory(void **state)
{
	const size_t n = 20 * B;
	struct packed_bytes *p;
	uint8_t *bytes = malloc(n);
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(i % 500 * 7);
	assert_int_equal(packed_bytes_new(bytes, n, &p), 0);
	assert_in_range(packed_bytes_memory(p), 1, n / 20);
	packed_bytes_free(p);
	/* Bytes that cannot be compressed take hardly more than before. */
	uint32_t seed = 3;
	bytes = malloc(n);
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(next(&seed) >> 24);
	assert_int_equal(packed_bytes_new(bytes, n, &p), 0);
	assert_in_range(packed_bytes_memory(p), n, n + 1000);
	packed_bytes_free(p);
	packed_bytes_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ranges_read_as_before),
		cmocka_unit_test(repetitive_bytes_take_less_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
