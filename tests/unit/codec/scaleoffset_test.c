/* SPDX-License-Identifier: Apache-2.0 */
/* Scale-offset: chunks of libhdf5, parameters and headers of hostile files. */
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
		if (libhdf5_chunks[i].id != FILTER_SCALEOFFSET)
			continue;
		check_case(&libhdf5_chunks[i], 1);
		found++;
	}
	assert_int_equal(found, 11);
}

enum { PARAMS = 20 };

static void bad_parameters(void **state)
{
	static const struct {
		const char *name;
		uint32_t n;
		uint32_t params[PARAMS];
	} cases[] = {
		{"no parameters", 0, {0}},
		{"19 parameters", 19, {2, 0, 4, 0, 4}},
		{"unknown class", PARAMS, {2, 0, 4, 2, 4}},
		{"integer of 3 bytes", PARAMS, {2, 0, 4, 0, 3}},
		{"integer of 0 bytes", PARAMS, {2, 0, 4, 0, 0}},
		{"integer of 16 bytes", PARAMS, {2, 0, 4, 0, 16}},
		{"integer with the method of floats", PARAMS, {0, 0, 4, 0, 4}},
		{"more bits than the integer has", PARAMS, {2, 33, 4, 0, 4}},
		{"float with the method of integers", PARAMS, {2, 0, 4, 1, 4}},
		{"E-scaling", PARAMS, {1, 0, 4, 1, 4}},
		{"float of 2 bytes", PARAMS, {0, 0, 4, 1, 2}},
	};
	static const uint8_t in[64];
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct pipeline p =
			one_filter(FILTER_SCALEOFFSET, cases[i].n, cases[i].params);
		expect_failure(cases[i].name, &p, 4, in, sizeof(in), 16, -EIO,
			       "scale-offset: invalid parameters");
	}
}

static void bad_headers(void **state)
{
	static const struct {
		const char *name;
		uint32_t elems;
		const char *stored;
		const char *word;
	} cases[] = {
		{"nothing", 4, "", "0 bytes have no valid header"},
		{"header without its end", 4, "0000000008000000000000000000000000000000",
		 "no valid"},
		{"33 bits", 4, "2100000008000000000000000000000000000000000000", "no valid"},
		{"2^32 - 1 bits", 4, "ffffffff08000000000000000000000000000000000000", "no valid"},
		{"numbers truncated", 4, "0500000008000000000000000000000000000000000000",
		 "23 bytes are too few for 4 numbers of 5 bits"},
		{"plain numbers truncated", 1, "2000000008000000000000000000000000000000000000",
		 "too few for 1 numbers of 32 bits"},
		{"more numbers than the chunk", 5, "0000000008000000000000000000000000000000000000",
		 "20 bytes, at most 16 are expected"},
		{"2^32 - 1 numbers", UINT32_MAX, "0000000008000000000000000000000000000000000000",
		 "at most 16 are expected"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint32_t params[PARAMS] = {2, 0, cases[i].elems, 0, 4};
		const struct pipeline p = one_filter(FILTER_SCALEOFFSET, PARAMS, params);
		struct bytes stored = from_hex(cases[i].stored);
		expect_failure(cases[i].name, &p, 4, stored.data, stored.len, 16, -EIO,
			       cases[i].word);
		bytes_release(&stored);
	}
}

/* Integers that the filter leaves alone have no header, but still a limit. */
static void unchanged(void **state)
{
	const uint32_t params[PARAMS] = {2, 32, 4, 0, 4};
	const struct pipeline p = one_filter(FILTER_SCALEOFFSET, PARAMS, params);
	uint8_t in[16] = {1, 2, 3};
	const struct bytes stored = {.data = in, .len = 16};
	expect_bytes("unchanged", &p, 4, &stored, in, 16);
}

/* The header says how many bytes of the least value count, at most 8. */
static void length_of_the_least_value(void **state)
{
	static const struct {
		uint8_t valid;
		uint64_t least;
	} cases[] = {
		{0, 0}, {1, 0x01}, {2, 0x0201}, {8, 0x0807060504030201}, {255, 0x0807060504030201}};
	const uint32_t params[PARAMS] = {2, 0, 1, 0, 8};
	const struct pipeline p = one_filter(FILTER_SCALEOFFSET, PARAMS, params);
	for (size_t i = 0; i < 5; i++) {
		uint8_t in[21] = {0, 0, 0, 0, cases[i].valid, 1, 2, 3, 4, 5, 6, 7, 8}, want[8];
		for (size_t k = 0; k < 8; k++)
			want[k] = (uint8_t)(cases[i].least >> 8 * k);
		const struct bytes stored = {.data = in, .len = sizeof(in)};
		expect_bytes("least value", &p, 8, &stored, want, 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_of_libhdf5),
		cmocka_unit_test(bad_parameters),
		cmocka_unit_test(bad_headers),
		cmocka_unit_test(unchanged),
		cmocka_unit_test(length_of_the_least_value),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
