/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines: which filters are known, order, masks, parameters, limits between filters. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <zlib.h>

#include <base/checksum.h>

#include "filter_support.h"

static void known_filters(void **state)
{
	static const uint32_t known[] = {1,	2,     3,     4,     5,	    6,	   307,	 32000,
					 32001, 32004, 32008, 32015, 32020, 32022, 32023};
	static const uint32_t unknown[] = {0, 7, 305, 32011, 32026, UINT32_MAX};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_true(codec_filter_known(known[i]));
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_false(codec_filter_known(unknown[i]));
}

static void an_unknown_filter_has_a_name(void **state)
{
	struct pipeline p = one_filter(32011, 0, NULL);
	expect_failure("no name", &p, 1, "x", 1, 1, -EOPNOTSUPP, "filter 32011 is not built in");
	p.f[0].name = "";
	expect_failure("empty name", &p, 1, "x", 1, 1, -EOPNOTSUPP, "filter 32011 is not built in");
	p.f[0].name = "H5Z-ZFP\n";
	expect_failure("name", &p, 1, "x", 1, 1, -EOPNOTSUPP,
		       "filter 32011 (H5Z-ZFP\\x0a) is not built in");
	/* A chunk that was stored without it can be read. */
	struct bytes out = {0};
	assert_int_equal(codec_hdf5_decode(&p, 1, 1, (const uint8_t *)"x", 1, 1, &out, NULL), 0);
	assert_memory_equal(out.data, "x", 1);
	bytes_release(&out);
}

/* The file says for which element size a chunk was shuffled. Without that it is the type's. */
static void shuffle_of_the_file(void **state)
{
	static const uint32_t two[] = {2}, none[] = {0};
	const struct pipeline own = one_filter(FILTER_SHUFFLE, 1, two);
	const struct pipeline type = one_filter(FILTER_SHUFFLE, 0, NULL);
	const struct pipeline zero = one_filter(FILTER_SHUFFLE, 1, none);
	uint8_t in[] = {1, 2, 3, 4, 5, 6, 7, 8};
	const struct bytes stored = {.data = in, .len = sizeof(in)};
	expect_bytes("own size", &own, 4, &stored, "\1\5\2\6\3\7\4\10", 8);
	expect_bytes("size of the type", &type, 4, &stored, "\1\3\5\7\2\4\6\10", 8);
	expect_bytes("size 0", &zero, 4, &stored, in, 8);
}

/* Filters that round numbers when they are written. */
static void rounding(void **state)
{
	static const uint32_t ids[] = {FILTER_BITGROOM, FILTER_BITROUND};
	uint8_t in[] = "rounded";
	const struct bytes stored = {.data = in, .len = 8};
	for (size_t i = 0; i < 2; i++) {
		const uint32_t two[] = {2};
		const struct pipeline alone = one_filter(ids[i], 0, NULL);
		struct pipeline shuffled = one_filter(FILTER_SHUFFLE, 1, two);
		shuffled.f[1] = shuffled.f[0];
		shuffled.f[0] = alone.f[0];
		shuffled.n = 2;
		assert_true(codec_filter_known(ids[i]));
		expect_bytes("rounded", &alone, 4, &stored, in, 8);
		expect_failure("too long", &alone, 4, in, 8, 4, -EIO, "at most 4 are expected");
		expect_bytes("rounded, shuffled", &shuffled, 4, &stored, "rdoeudn", 8);
	}
}

/* The checksum as written by libhdf5 since 1.6.3, before that, and with single bits flipped. */
static void checksums(void **state)
{
	const struct pipeline p = one_filter(FILTER_FLETCHER32, 0, NULL);
	uint8_t in[11] = "checked";
	const struct bytes stored = {.data = in, .len = sizeof(in)};
	const uint32_t sum = checksum_fletcher32(in, 7);
	const uint8_t sums[2][4] = {
		{(uint8_t)sum, (uint8_t)(sum >> 8), (uint8_t)(sum >> 16), (uint8_t)(sum >> 24)},
		{(uint8_t)(sum >> 8), (uint8_t)sum, (uint8_t)(sum >> 24), (uint8_t)(sum >> 16)},
	};
	for (size_t i = 0; i < 2; i++) {
		memcpy(in + 7, sums[i], 4);
		expect_bytes("checksum", &p, 1, &stored, "checked", 7);
	}
	for (size_t bit = 0; bit < 8 * sizeof(in); bit++) {
		in[bit / 8] ^= (uint8_t)(1 << bit % 8);
		expect_failure("flipped bit", &p, 1, in, sizeof(in), 7, -EIO,
			       "fletcher32: the checksum is");
		in[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (size_t n = 0; n < 4; n++)
		expect_failure("too short", &p, 1, in, n, 7, -EIO, "too few for a checksum");
	expect_bytes("no data", &p, 1, &(struct bytes){.data = (uint8_t[4]){0}, .len = 4}, "", 0);
}

static struct bytes deflated(const void *data, size_t n)
{
	struct bytes b = {0};
	uLongf len = compressBound(n);
	assert_int_equal(bytes_reserve(&b, len), 0);
	assert_int_equal(compress2(b.data, &len, data, n, 9), Z_OK);
	b.len = len;
	return b;
}

/* The result of the filter that was applied second is as long as the first one may have made it,
 * and not longer. */
static void no_bomb_between_filters(void **state)
{
	enum { N = 4096, BOMB = 1 << 24 };
	uint8_t *zeros = test_calloc(1, BOMB);
	struct pipeline twice = {.n = 2};
	twice.f[0].id = twice.f[1].id = FILTER_DEFLATE;
	struct bytes once = deflated(zeros, N), good = deflated(once.data, once.len);
	expect_bytes("twice", &twice, 1, &good, zeros, N);
	struct bytes bomb = deflated(zeros, BOMB);
	expect_failure("bomb", &twice, 1, bomb.data, bomb.len, N, -EIO,
		       "inflates to more than 5632");
	struct pipeline mixed = twice;
	mixed.f[0].id = FILTER_LZ4;
	expect_failure("bomb", &mixed, 1, bomb.data, bomb.len, N, -EIO,
		       "inflates to more than 21504");
	mixed.f[0].id = FILTER_SHUFFLE;
	expect_failure("bomb", &mixed, 1, bomb.data, bomb.len, N, -EIO,
		       "inflates to more than 4096");
	bytes_release(&once);
	bytes_release(&good);
	bytes_release(&bomb);
	test_free(zeros);
}

/* The worst case of the slack: a block of LZ4 for each byte. */
static void short_blocks_between_filters(void **state)
{
	enum { N = 500 };
	uint8_t plain[N];
	struct bytes lz4 = {0};
	struct pipeline p = {.n = 2};
	p.f[0].id = FILTER_LZ4;
	p.f[1].id = FILTER_DEFLATE;
	assert_int_equal(bytes_append(&lz4, "\0\0\0\0\0\0\1\xf4\0\0\0\1", 12), 0);
	for (size_t i = 0; i < N; i++) {
		plain[i] = (uint8_t)i;
		assert_int_equal(bytes_append(&lz4, "\0\0\0\1", 4), 0);
		assert_int_equal(bytes_append(&lz4, &plain[i], 1), 0);
	}
	struct bytes stored = deflated(lz4.data, lz4.len);
	expect_bytes("short blocks", &p, 1, &stored, plain, N);
	bytes_release(&stored);
	bytes_release(&lz4);
}

/* The slack of a long pipeline is limited, too. */
static void no_bomb_in_a_long_pipeline(void **state)
{
	enum { N = 4096, BOMB = 1 << 24 };
	uint8_t *zeros = test_calloc(1, BOMB);
	struct bytes bomb = deflated(zeros, BOMB);
	struct pipeline p = {.n = FILTER_MAX};
	for (uint32_t i = 0; i < FILTER_MAX; i++)
		p.f[i].id = FILTER_LZ4;
	p.f[FILTER_MAX - 1].id = FILTER_DEFLATE;
	expect_failure("bomb", &p, 1, bomb.data, bomb.len, N, -EIO, "inflates to more than 98304");
	bytes_release(&bomb);
	test_free(zeros);
}

static void pipelines_that_are_too_long(void **state)
{
	struct pipeline p = {.n = FILTER_MAX + 1};
	expect_failure("33 filters", &p, 1, "x", 1, 1, -EIO, "pipeline of 33 filters");
	for (uint32_t i = 0; i < FILTER_MAX; i++)
		p.f[i].id = FILTER_SHUFFLE;
	p.n = FILTER_MAX;
	uint8_t in[] = "x";
	expect_bytes("32 filters", &p, 1, &(struct bytes){.data = in, .len = 1}, "x", 1);
}

static void nothing(void **state)
{
	static const uint32_t ids[] = {FILTER_SHUFFLE, FILTER_LZF};
	struct pipeline p = {0};
	expect_bytes("no filter", &p, 4, &(struct bytes){0}, "", 0);
	for (size_t i = 0; i < 2; i++) {
		p = one_filter(ids[i], 0, NULL);
		expect_bytes("nothing", &p, 4, &(struct bytes){0}, "", 0);
	}
	p = one_filter(FILTER_DEFLATE, 0, NULL);
	expect_failure("deflate", &p, 1, "", 0, 10, -EIO, "truncated");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_filters),
		cmocka_unit_test(an_unknown_filter_has_a_name),
		cmocka_unit_test(shuffle_of_the_file),
		cmocka_unit_test(rounding),
		cmocka_unit_test(checksums),
		cmocka_unit_test(no_bomb_between_filters),
		cmocka_unit_test(short_blocks_between_filters),
		cmocka_unit_test(no_bomb_in_a_long_pipeline),
		cmocka_unit_test(pipelines_that_are_too_long),
		cmocka_unit_test(nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
