/* SPDX-License-Identifier: Apache-2.0 */
/* The filters of new chunk objects. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>

#include <data/filter.h>

enum { LEVEL = 4, ELEM_SIZE = 8, NBIT = FILTER_NBIT, UNKNOWN = 32011 };

static const struct {
	const char *name;
	uint32_t n;
	uint32_t ids[4];
	uint32_t nout;
	uint32_t out[2];
	uint32_t level;
} rows[] = {
	{"none", 0, {0}, 0, {0}, 0},
	{"deflate", 1, {FILTER_DEFLATE}, 1, {FILTER_DEFLATE}, LEVEL},
	{"shuffle, deflate, checksum",
	 3,
	 {FILTER_SHUFFLE, FILTER_DEFLATE, FILTER_FLETCHER32},
	 2,
	 {FILTER_SHUFFLE, FILTER_DEFLATE},
	 LEVEL},
	{"checksum, shuffle, deflate",
	 3,
	 {FILTER_FLETCHER32, FILTER_SHUFFLE, FILTER_DEFLATE},
	 2,
	 {FILTER_SHUFFLE, FILTER_DEFLATE},
	 LEVEL},
	{"shuffle after deflate", 2, {FILTER_DEFLATE, FILTER_SHUFFLE}, 1, {FILTER_DEFLATE}, LEVEL},
	{"shuffle alone", 1, {FILTER_SHUFFLE}, 0, {0}, 0},
	{"checksum alone", 1, {FILTER_FLETCHER32}, 0, {0}, 0},
	{"shuffle, lzf", 2, {FILTER_SHUFFLE, FILTER_LZF}, 2, {FILTER_SHUFFLE, FILTER_DEFLATE}, 6},
	{"szip", 1, {FILTER_SZIP}, 1, {FILTER_DEFLATE}, 6},
	{"bzip2", 1, {FILTER_BZIP2}, 1, {FILTER_DEFLATE}, 6},
	{"blosc", 1, {FILTER_BLOSC}, 1, {FILTER_DEFLATE}, 6},
	{"lz4", 1, {FILTER_LZ4}, 1, {FILTER_DEFLATE}, 6},
	{"bitshuffle", 1, {FILTER_BITSHUFFLE}, 1, {FILTER_DEFLATE}, 6},
	{"zstd", 1, {FILTER_ZSTD}, 1, {FILTER_DEFLATE}, 6},
	{"zfp", 1, {FILTER_ZFP}, 1, {FILTER_DEFLATE}, 6},
	{"vbz", 1, {FILTER_VBZ}, 1, {FILTER_DEFLATE}, 6},
	{"packing alone", 2, {NBIT, FILTER_SCALEOFFSET}, 0, {0}, 0},
	{"shuffle, packing, deflate",
	 3,
	 {FILTER_SHUFFLE, NBIT, FILTER_DEFLATE},
	 2,
	 {FILTER_SHUFFLE, FILTER_DEFLATE},
	 LEVEL},
	{"unknown", 1, {UNKNOWN}, 0, {0}, 0},
	{"lzf, shuffle, deflate",
	 3,
	 {FILTER_LZF, FILTER_SHUFFLE, FILTER_DEFLATE},
	 1,
	 {FILTER_DEFLATE},
	 6},
};

/* Every filter is recorded with the parameters LEVEL and ELEM_SIZE. */
static const uint32_t level = LEVEL, elem_size = ELEM_SIZE;

static void filters_of_new_objects(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pipeline p = {.n = rows[i].n}, out;
		for (uint32_t k = 0; k < p.n; k++) {
			p.f[k] = (struct filter){rows[i].ids[k], "recorded", 1, &level};
			if (rows[i].ids[k] == FILTER_SHUFFLE)
				p.f[k].params = &elem_size;
		}
		pipeline_of_object(&p, &out);
		pipeline_of_object(&p, &p); /* in place */
		if (out.n != rows[i].nout || p.n != out.n)
			fail_msg("%s: %u filters", rows[i].name, out.n);
		for (uint32_t k = 0; k < out.n; k++) {
			const struct filter *f = &out.f[k];
			if (f->id != rows[i].out[k] || p.f[k].id != f->id || f->nparams != 1)
				fail_msg("%s: filter %u is %u", rows[i].name, k, f->id);
			bool deflate = f->id == FILTER_DEFLATE;
			assert_string_equal(f->name, deflate ? "deflate" : "shuffle");
			assert_int_equal(f->params[0], deflate ? rows[i].level : ELEM_SIZE);
		}
	}
}

/* A level that zlib does not know, or none, is replaced by the default. */
static void impossible_levels(void **state)
{
	static const uint32_t ten = 10, zero = 0;
	struct pipeline p = {.n = 1, .f = {{FILTER_DEFLATE, NULL, 1, &ten}}}, out;
	pipeline_of_object(&p, &out);
	assert_int_equal(out.f[0].params[0], 6);
	p.f[0].nparams = 0;
	pipeline_of_object(&p, &out);
	assert_int_equal(out.f[0].params[0], 6);
	p.f[0] = (struct filter){FILTER_DEFLATE, NULL, 1, &zero};
	pipeline_of_object(&p, &out);
	assert_int_equal(out.f[0].params[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filters_of_new_objects),
		cmocka_unit_test(impossible_levels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
