/* SPDX-License-Identifier: Apache-2.0 */
/* zfp: chunks of the registered plug-in, and damaged ones. If the decoder is not built in, the
 * filter is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "filter_support.h"
#include "libhdf5_chunks.h"

enum { VERSIONS = 0x10005110, MAGIC = 91252346 /* "zfp" and codec 5 */ };

static void chunks_of_the_plugin(void **state)
{
	size_t found = 0;
	for (size_t i = 0; i < sizeof(libhdf5_chunks) / sizeof(libhdf5_chunks[0]); i++) {
		const struct chunk_case *c = &libhdf5_chunks[i];
		if (c->id != FILTER_ZFP)
			continue;
		found++;
		if (codec_filter_known(FILTER_ZFP)) {
			/* Zeros that fill the last byte or block may be missing. */
			check_case(c, 16);
			continue;
		}
		const struct pipeline p = one_filter(c->id, c->nparams, c->params);
		expect_failure(c->name, &p, c->elem_size, "x", 1, 1, -EOPNOTSUPP, "filter 32013");
	}
	assert_int_equal(found, 8);
}

/* The chunk of a big-endian machine has the same stream, and its elements are big-endian. */
static void big_endian(void **state)
{
	enum { PARAMS_MAX = 8 };
	if (!codec_filter_known(FILTER_ZFP))
		skip();
	for (size_t i = 0; i < sizeof(libhdf5_chunks) / sizeof(libhdf5_chunks[0]); i++) {
		const struct chunk_case *c = &libhdf5_chunks[i];
		if (c->id != FILTER_ZFP)
			continue;
		struct bytes stored = from_hex(c->stored), plain = from_hex(c->plain);
		uint32_t params[PARAMS_MAX];
		for (uint32_t k = 0; k < c->nparams; k++)
			params[k] = __builtin_bswap32(c->params[k]);
		params[0] = c->params[0];
		for (size_t at = 0; at < plain.len; at += c->elem_size)
			for (size_t k = 0; k < c->elem_size / 2; k++) {
				uint8_t *low = &plain.data[at + k];
				uint8_t *high = &plain.data[at + c->elem_size - 1 - k];
				const uint8_t byte = *low;
				*low = *high;
				*high = byte;
			}
		const struct pipeline p = one_filter(FILTER_ZFP, c->nparams, params);
		expect_bytes(c->name, &p, c->elem_size, &stored, plain.data, plain.len);
		bytes_release(&stored);
		bytes_release(&plain);
	}
}

/* Headers: the type in 2 bits and the dimensions - 1 in 2 bits, then the shape in 48, then 12 or 64
 * bits with the limits. 944, 2281701376 is a lossless line of 60 int32. */
static void malformed(void **state)
{
	static const struct {
		const char *name;
		uint32_t n;
		uint32_t params[6];
		const char *stored;
		int code;
		const char *word;
	} cases[] = {
		{"no parameters", 0, {0}, "00", -EIO, "0 parameters"},
		{"no header", 3, {VERSIONS, MAGIC, 944}, "00", -EIO, "3 parameters"},
		{"no magic", 4, {VERSIONS, 0, 944, 2281701376}, "00", -EIO, "no header"},
		{"another codec",
		 4,
		 {VERSIONS, MAGIC + (1 << 24), 944, 2281701376},
		 "00",
		 -EOPNOTSUPP,
		 "version 6 of the codec"},
		{"more bits at least than at most",
		 6,
		 {VERSIONS, MAGIC, 944, 0xfff00000, 1, 0},
		 "00",
		 -EIO,
		 "is damaged"},
		{"elements of 8 bytes",
		 4,
		 {VERSIONS, MAGIC, 944 + 1, 2281701376},
		 "00",
		 -EIO,
		 "elements of 8 bytes, the dataset has elements of 4"},
		{"2^48 elements",
		 4,
		 {VERSIONS, MAGIC, 0xfffffff0, 2281701376 | 0xfffff},
		 "00",
		 -EIO,
		 "bytes, at most 240 are expected"},
		{"one element too many",
		 4,
		 {VERSIONS, MAGIC, 944 + 16, 2281701376},
		 "00",
		 -EIO,
		 "a chunk of 244 bytes"},
		{"no blocks", 4, {VERSIONS, MAGIC, 944, 2281701376}, "", -EIO, "0 bytes end"},
		{"one block of 15",
		 4,
		 {VERSIONS, MAGIC, 944, 2281701376},
		 "0000000000",
		 -EIO,
		 "5 bytes end within a block"},
	};
	if (!codec_filter_known(FILTER_ZFP))
		skip();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct pipeline p = one_filter(FILTER_ZFP, cases[i].n, cases[i].params);
		struct bytes stored = from_hex(cases[i].stored);
		expect_failure(cases[i].name, &p, 4, stored.data, stored.len, 240, cases[i].code,
			       cases[i].word);
		bytes_release(&stored);
	}
}

/* Every header with a flipped bit, and streams of ones, which make the longest blocks: no read
 * leaves the input, and no result is longer than the chunk. */
static void hostile_headers(void **state)
{
	enum { PARAMS_MAX = 8, MOST = 4096 };
	static uint8_t ones[3 * MOST];
	memset(ones, 0xff, sizeof(ones));
	for (size_t i = 0; i < sizeof(libhdf5_chunks) / sizeof(libhdf5_chunks[0]); i++) {
		const struct chunk_case *c = &libhdf5_chunks[i];
		if (c->id != FILTER_ZFP)
			continue;
		for (uint32_t bit = 0; bit < 32 * c->nparams; bit++) {
			uint32_t params[PARAMS_MAX];
			memcpy(params, c->params, sizeof(params));
			params[bit / 32] ^= 1u << bit % 32;
			const struct pipeline p = one_filter(FILTER_ZFP, c->nparams, params);
			struct bytes out = {0};
			codec_hdf5_decode(&p, 0, c->elem_size, ones, sizeof(ones), MOST, &out,
					  NULL);
			assert_true(out.len <= MOST);
			bytes_release(&out);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_of_the_plugin),
		cmocka_unit_test(big_endian),
		cmocka_unit_test(malformed),
		cmocka_unit_test(hostile_headers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
