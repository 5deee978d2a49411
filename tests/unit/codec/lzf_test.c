/* SPDX-License-Identifier: Apache-2.0 */
/* LZF: chunks of h5py, every form of a run, damage. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "filter_support.h"
#include "libhdf5_chunks.h"

static void chunks_of_h5py(void **state)
{
	/* A shorter chunk may end with a whole run. */
	size_t found = 0;
	for (size_t i = 0; i < sizeof(libhdf5_chunks) / sizeof(libhdf5_chunks[0]); i++) {
		if (libhdf5_chunks[i].id != FILTER_LZF)
			continue;
		check_case(&libhdf5_chunks[i], SIZE_MAX / 2);
		found++;
	}
	assert_int_equal(found, 3);
}

static void runs(void **state)
{
	static const struct {
		const char *name;
		const char *stored, *plain;
	} cases[] = {
		{"nothing", "", ""},
		{"one literal", "0041", "41"},
		{"literals", "02414243", "414243"},
		{"copy that overlaps by 1", "00412000", "41414141"},
		{"copy that overlaps by 2", "0141422001", "4142414241"},
		{"copy of 8", "0041c000", "414141414141414141"},
		{"long copy of 9", "0041e00000", "41414141414141414141"},
		{"copies from 4 bytes before", "0341424344200300454003",
		 "414243444142434541424345"},
	};
	const struct pipeline p = one_filter(FILTER_LZF, 0, NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes stored = from_hex(cases[i].stored), plain = from_hex(cases[i].plain);
		expect_bytes(cases[i].name, &p, 1, &stored, plain.data, plain.len);
		bytes_release(&stored);
		bytes_release(&plain);
	}
}

/* Copies of every length and distance, against a byte-by-byte copy. */
static void every_copy(void **state)
{
	const struct pipeline p = one_filter(FILTER_LZF, 0, NULL);
	enum { FIRST = 32, MOST = 264 };
	for (size_t distance = 1; distance <= FIRST; distance++) {
		for (size_t len = 3; len <= MOST; len++) {
			uint8_t in[FIRST + 4] = {FIRST - 1}, want[FIRST + MOST];
			size_t n = 1 + FIRST;
			for (size_t i = 0; i < FIRST; i++)
				in[1 + i] = want[i] = (uint8_t)(i * 7 + 1);
			if (len - 2 < 7) {
				in[n++] = (uint8_t)((len - 2) << 5);
			} else {
				in[n++] = 7 << 5;
				in[n++] = (uint8_t)(len - 9);
			}
			in[n++] = (uint8_t)(distance - 1);
			for (size_t i = 0; i < len; i++)
				want[FIRST + i] = want[FIRST + i - distance];
			const struct bytes stored = {.data = in, .len = n};
			expect_bytes("copy", &p, 1, &stored, want, FIRST + len);
		}
	}
}

static void malformed(void **state)
{
	static const struct {
		const char *name;
		const char *stored;
		size_t max;
		const char *word;
	} cases[] = {
		{"literals truncated", "024142", 100, "beyond the end"},
		{"copy without its distance", "004120", 100, "beyond the end"},
		{"long copy without its length", "0041e0", 100, "beyond the end"},
		{"long copy without its distance", "0041e000", 100, "beyond the end"},
		{"copy from before the start", "00412001", 100,
		 "a copy from 2 bytes before byte 1"},
		{"copy at the start", "2000", 100, "a copy from 1 bytes before byte 0"},
		{"farthest copy", "00413fff", 100, "a copy from 8192 bytes"},
		{"literals over the limit", "02414243", 2, "more than 2"},
		{"copy over the limit", "00412000", 3, "more than 3"},
		{"bomb", "0041e0ff00e0ff00e0ff00e0ff00", 1000, "more than 1000"},
	};
	const struct pipeline p = one_filter(FILTER_LZF, 0, NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes stored = from_hex(cases[i].stored);
		expect_failure(cases[i].name, &p, 1, stored.data, stored.len, cases[i].max, -EIO,
			       cases[i].word);
		bytes_release(&stored);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_of_h5py),
		cmocka_unit_test(runs),
		cmocka_unit_test(every_copy),
		cmocka_unit_test(malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
