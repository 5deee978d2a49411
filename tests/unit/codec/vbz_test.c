/* SPDX-License-Identifier: Apache-2.0 */
/* VBZ: chunks packed by the library of Stream VByte, a chunk that the project publishes, and
 * damaged ones. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "filter_support.h"
#include "libhdf5_chunks.h"

static void packed_chunks(void **state)
{
	size_t found = 0;
	for (size_t i = 0; i < sizeof(libhdf5_chunks) / sizeof(libhdf5_chunks[0]); i++) {
		if (libhdf5_chunks[i].id != FILTER_VBZ)
			continue;
		check_case(&libhdf5_chunks[i], 0);
		found++;
	}
	assert_int_equal(found, 11);
}

/* From the tests of nanoporetech/vbz_compression ("vbz sized compression"). */
static void published_chunk(void **state)
{
	static const struct chunk_case published = {
		.name = "5, 4, 3, 2, 1",
		.id = 32020,
		.elem_size = 4,
		.nparams = 4,
		.params = {1, 4, 1, 0},
		.stored = "1400000000000a01010101",
		.plain = "0500000004000000030000000200000001000000",
	};
	check_case(&published, 0);
}

/* A frame alone: integers of 0 bytes, and neither of the two steps. */
static void without_integers(void **state)
{
	static const struct chunk_case copied = {
		.name = "copied",
		.id = 32020,
		.elem_size = 1,
		.nparams = 4,
		.params = {7, 0, 0, 0},
		.stored = "03000000010203",
		.plain = "010203",
	};
	const struct pipeline p = one_filter(FILTER_VBZ, 4, copied.params);
	expect_failure("the version does not matter", &p, 1, "\2\0\0\0abc", 7, 9, -EOPNOTSUPP,
		       "version 7");
	struct chunk_case c = copied;
	c.params[0] = 0;
	check_case(&c, 0);
}

static void malformed(void **state)
{
	static const struct {
		const char *name;
		uint32_t n;
		uint32_t params[4];
		const char *stored;
		int code;
		const char *word;
	} cases[] = {
		{"no parameters", 0, {0}, "0400000000", -EIO, "0 parameters"},
		{"2 parameters", 2, {0, 4}, "0400000000", -EIO, "2 parameters"},
		{"version 2", 4, {2, 4, 1, 0}, "0400000000", -EOPNOTSUPP, "version 2"},
		{"integers of 3 bytes", 4, {0, 3, 1, 0}, "0300000000", -EIO, "of 3 bytes"},
		{"integers of 8 bytes", 4, {0, 8, 1, 0}, "0800000000", -EIO, "of 8 bytes"},
		{"no size", 4, {0, 4, 1, 0}, "040000", -EIO, "3 bytes state"},
		{"more than the chunk", 4, {0, 4, 1, 0}, "14000000", -EIO, "at most 16"},
		{"part of an integer", 4, {0, 4, 1, 0}, "07000000", -EIO, "state 7 bytes"},
		{"no keys", 4, {0, 1, 1, 0}, "0500000000", -EIO, "too few for 5"},
		{"data missing", 4, {0, 4, 1, 0}, "0400000003ffffff", -EIO, "state 4 bytes"},
		{"bytes behind the data", 4, {0, 4, 1, 0}, "04000000000101", -EIO, "state 1"},
		{"half a byte missing", 4, {1, 1, 1, 0}, "0300000015ff", -EIO, "state 2 bytes"},
		{"other size", 4, {0, 0, 0, 0}, "0300000001", -EIO, "1 bytes instead of 3"},
		{"no frame", 3, {0, 4, 1}, "0400000000", -EIO, "VBZ: zstd"},
		/* A frame that states 4 GiB. */
		{"bomb", 3, {0, 4, 1}, "0400000028b52ffda0ffffffff010000", -EIO, "VBZ: zstd"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct pipeline p = one_filter(FILTER_VBZ, cases[i].n, cases[i].params);
		struct bytes stored = from_hex(cases[i].stored);
		expect_failure(cases[i].name, &p, 1, stored.data, stored.len, 16, cases[i].code,
			       cases[i].word);
		bytes_release(&stored);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packed_chunks),
		cmocka_unit_test(published_chunk),
		cmocka_unit_test(without_integers),
		cmocka_unit_test(malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
