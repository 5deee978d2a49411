/* SPDX-License-Identifier: Apache-2.0 */
/* szip: chunks of libhdf5, parameters of hostile files. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "filter_support.h"
#include "libhdf5_chunks.h"

static void chunks_of_libhdf5(void **state)
{
	size_t found = 0;
	for (size_t i = 0; i < sizeof(libhdf5_chunks) / sizeof(libhdf5_chunks[0]); i++) {
		if (libhdf5_chunks[i].id != FILTER_SZIP)
			continue;
		check_case(&libhdf5_chunks[i], 0);
		found++;
	}
	assert_int_equal(found, 8);
}

static void malformed(void **state)
{
	static const struct {
		const char *name;
		uint32_t n;
		uint32_t params[4];
		const char *stored;
		const char *word;
	} cases[] = {
		{"no parameters", 0, {0}, "1000000000", "invalid parameters"},
		{"3 parameters", 3, {141, 8, 8}, "1000000000", "invalid parameters"},
		{"blocks of 0", 4, {141, 0, 8, 16}, "1000000000", "invalid parameters"},
		{"odd blocks", 4, {141, 7, 8, 16}, "1000000000", "invalid parameters"},
		{"blocks of 34", 4, {141, 34, 8, 64}, "1000000000", "invalid parameters"},
		{"negative blocks", 4, {141, 0x80000008, 8, 16}, "1000000000", "invalid"},
		{"0 bits", 4, {141, 8, 0, 16}, "1000000000", "invalid parameters"},
		{"25 bits", 4, {141, 8, 25, 16}, "1000000000", "invalid parameters"},
		{"65 bits", 4, {141, 8, 65, 16}, "1000000000", "invalid parameters"},
		{"scanline of 0", 4, {141, 8, 8, 0}, "1000000000", "invalid parameters"},
		{"scanline shorter than a block", 4, {141, 8, 8, 7}, "1000000000", "invalid"},
		{"scanline of 4097", 4, {141, 8, 8, 4097}, "1000000000", "invalid parameters"},
		{"no size", 4, {141, 8, 8, 16}, "100000", "3 bytes state"},
		{"more bytes than the chunk",
		 4,
		 {141, 8, 8, 16},
		 "1100000000",
		 "state 17, at most 16"},
		{"2^32 - 1 bytes", 4, {141, 8, 8, 16}, "ffffffff00", "state 4294967295"},
		{"part of a pixel", 4, {141, 8, 32, 16}, "0e00000000", "state 14"},
		{"no stream", 4, {141, 8, 8, 16}, "10000000", "damaged stream"},
		{"stream truncated", 4, {141, 8, 8, 16}, "1000000055", "damaged stream"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct pipeline p = one_filter(FILTER_SZIP, cases[i].n, cases[i].params);
		struct bytes stored = from_hex(cases[i].stored);
		expect_failure(cases[i].name, &p, 1, stored.data, stored.len, 16, -EIO,
			       cases[i].word);
		bytes_release(&stored);
	}
}

static void nothing(void **state)
{
	static const uint32_t params[] = {141, 8, 8, 16};
	static uint8_t in[4];
	const struct pipeline p = one_filter(FILTER_SZIP, 4, params);
	const struct bytes stored = {.data = in, .len = 4};
	expect_bytes("nothing", &p, 1, &stored, in, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_of_libhdf5),
		cmocka_unit_test(malformed),
		cmocka_unit_test(nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
