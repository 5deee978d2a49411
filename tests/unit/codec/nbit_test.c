/* SPDX-License-Identifier: Apache-2.0 */
/* N-bit: chunks of libhdf5, parameters of hostile files. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "filter_support.h"
#include "libhdf5_chunks.h"

static void chunks_of_libhdf5(void **state)
{
	/* libhdf5 writes one byte more than it may need. */
	size_t found = 0;
	for (size_t i = 0; i < sizeof(libhdf5_chunks) / sizeof(libhdf5_chunks[0]); i++) {
		if (libhdf5_chunks[i].id != FILTER_NBIT)
			continue;
		check_case(&libhdf5_chunks[i], 1);
		found++;
	}
	assert_int_equal(found, 10);
}

static void malformed(void **state)
{
	static const struct {
		const char *name;
		uint32_t n;
		uint32_t params[30];
		const char *word;
	} cases[] = {
		{"no parameters", 0, {0}, "invalid parameters"},
		{"other number of parameters", 8, {9, 0, 2, 1, 4, 0, 8, 0}, "invalid parameters"},
		{"no type", 3, {3, 0, 2}, "do not describe a type"},
		{"class 0", 5, {5, 0, 2, 0, 4}, "do not describe"},
		{"class 5", 5, {5, 0, 2, 5, 4}, "do not describe"},
		{"size 0", 8, {8, 0, 2, 1, 0, 0, 8, 0}, "do not describe"},
		{"byte order 2", 8, {8, 0, 2, 1, 4, 2, 8, 0}, "do not describe"},
		{"precision 0", 8, {8, 0, 2, 1, 4, 0, 0, 0}, "do not describe"},
		{"precision over the size", 8, {8, 0, 2, 1, 4, 0, 33, 0}, "do not describe"},
		{"offset over the size", 8, {8, 0, 2, 1, 4, 0, 8, 25}, "do not describe"},
		{"offset that overflows", 8, {8, 0, 2, 1, 4, 0, 8, UINT32_MAX}, "do not describe"},
		{"number without its offset", 7, {7, 0, 2, 1, 4, 0, 8}, "do not describe"},
		{"array of part of an item",
		 10,
		 {10, 0, 2, 2, 6, 1, 4, 0, 8, 0},
		 "do not describe"},
		{"array shorter than its item",
		 10,
		 {10, 0, 2, 2, 2, 1, 4, 0, 8, 0},
		 "do not describe"},
		{"array without items", 5, {5, 0, 2, 2, 4}, "do not describe"},
		{"member beyond the end",
		 12,
		 {12, 0, 2, 3, 4, 1, 2, 1, 4, 0, 8, 0},
		 "do not describe"},
		{"member that begins beyond the end",
		 12,
		 {12, 0, 2, 3, 4, 1, 5, 1, 4, 0, 8, 0},
		 "do not describe"},
		{"members of more bytes than the compound",
		 12,
		 {12, 0, 2, 3, 4, 2, 0, 4, 4, 0, 4, 4},
		 "do not describe"},
		{"more members than parameters",
		 9,
		 {9, 0, 2, 3, 4, UINT32_MAX, 0, 4, 1},
		 "do not describe"},
		{"more bytes than the chunk", 5, {5, 0, 5, 4, 4}, "the parameters state 20 bytes"},
		{"size that overflows",
		 5,
		 {5, 0, UINT32_MAX, 4, UINT32_MAX},
		 "at most 16 are expected"},
		{"fewer bytes than elements", 5, {5, 0, 4, 4, 4}, "8 bytes are too few"},
		{"more bytes than the chunk, not packed", 3, {3, 1, 0}, ""},
	};
	static const uint8_t in[17];
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct pipeline p = one_filter(FILTER_NBIT, cases[i].n, cases[i].params);
		expect_failure(cases[i].name, &p, 4, in,
			       i + 1 < sizeof(cases) / sizeof(cases[0]) ? 8 : 17, 16, -EIO,
			       cases[i].word);
	}
}

/* Arrays of arrays: as deep as a type may be, and one deeper. */
static void depth(void **state)
{
	enum { MOST = 32 };
	static const uint8_t in[16];
	for (uint32_t deep = MOST - 2; deep <= MOST; deep++) {
		uint32_t params[3 + 2 * MOST + 5] = {0, 0, 4}, n = 3;
		for (uint32_t i = 0; i < deep; i++) {
			params[n++] = 2;
			params[n++] = 4;
		}
		const uint32_t number[] = {1, 4, 0, 32, 0};
		for (size_t i = 0; i < 5; i++)
			params[n++] = number[i];
		params[0] = n;
		const struct pipeline p = one_filter(FILTER_NBIT, n, params);
		const struct bytes stored = {.data = exact(in, 16), .len = 16};
		if (deep < MOST)
			expect_bytes("deep", &p, 4, &stored, in, 16);
		else
			expect_failure("too deep", &p, 4, in, 16, 16, -EIO, "do not describe");
		test_free(stored.data);
	}
}

/* Every precision and offset of every size, against bits that are moved one by one. */
static void every_precision(void **state)
{
	static const uint32_t sizes[] = {1, 2, 3, 4, 8, 11, 16};
	enum { ELEMS = 3, MOST = 16 };
	uint8_t in[ELEMS * MOST];
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 37 + 11);
	for (size_t s = 0; s < 7 * 2; s++) {
		const uint32_t size = sizes[s / 2], order = s % 2;
		for (uint32_t precision = 1; precision <= 8 * size; precision++) {
			const uint32_t offset = (8 * size - precision) / (1 + precision % 3);
			uint8_t want[ELEMS * MOST] = {0};
			size_t bit = 0;
			for (uint32_t e = 0; e < ELEMS; e++) {
				for (uint32_t b = offset + precision; b-- > offset; bit++) {
					const uint32_t at = order ? size - 1 - b / 8 : b / 8;
					if (in[bit / 8] >> (7 - bit % 8) & 1)
						want[e * size + at] |= (uint8_t)(1 << b % 8);
				}
			}
			const uint32_t params[] = {8, 0, ELEMS, 1, size, order, precision, offset};
			const struct pipeline p = one_filter(FILTER_NBIT, 8, params);
			const struct bytes stored = {.data = in, .len = (bit + 7) / 8};
			expect_bytes("precision", &p, size, &stored, want, ELEMS * size);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_of_libhdf5),
		cmocka_unit_test(malformed),
		cmocka_unit_test(depth),
		cmocka_unit_test(every_precision),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
