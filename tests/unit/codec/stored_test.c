/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of HDF5: sizes, stored blocks, streams of libhdf5, damage. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "stored_encode.h"

enum { MOST = 200000 };

static struct pipeline pipeline_of(const uint32_t *ids, uint32_t n)
{
	struct pipeline p = {.n = n};
	for (uint32_t i = 0; i < n; i++)
		p.f[i].id = ids[i];
	return p;
}

static uint8_t *noise(size_t n)
{
	uint8_t *data = test_malloc(n ? n : 1);
	uint32_t x = 12345;
	for (size_t i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		data[i] = (uint8_t)(x >> 24);
	}
	return data;
}

static const uint32_t pipelines[][4] = {
	{0},
	{FILTER_SHUFFLE},
	{FILTER_DEFLATE},
	{FILTER_FLETCHER32},
	{FILTER_SHUFFLE, FILTER_DEFLATE},
	{FILTER_SHUFFLE, FILTER_DEFLATE, FILTER_FLETCHER32},
	{FILTER_FLETCHER32, FILTER_SHUFFLE, FILTER_DEFLATE},
	{FILTER_DEFLATE, FILTER_SHUFFLE, FILTER_DEFLATE},
	{FILTER_DEFLATE, FILTER_DEFLATE, FILTER_DEFLATE, FILTER_FLETCHER32},
};
enum { PIPELINES = sizeof(pipelines) / sizeof(pipelines[0]) };

static struct pipeline nth_pipeline(size_t i)
{
	uint32_t n = 0;
	while (n < 4 && pipelines[i][n])
		n++;
	return pipeline_of(pipelines[i], n);
}

static void decode_undoes_encode(void **state)
{
	static const size_t lengths[] = {1,	2,     7,     8,      31,     64,  100,
					 65535, 65536, 65537, 131070, 131071, MOST};
	static const uint32_t elem_sizes[] = {1, 2, 3, 4, 8, 12, 16, 1000};
	uint8_t *plain = noise(MOST);
	for (size_t i = 0; i < PIPELINES * 13 * 8; i++) {
		const struct pipeline p = nth_pipeline(i / (13 * 8));
		size_t n = lengths[i / 8 % 13];
		uint32_t elem_size = elem_sizes[i % 8];
		size_t size = (size_t)codec_stored_size(&p, n);
		uint8_t *encoded = test_malloc(size);
		assert_int_equal(stored_encode(&p, elem_size, plain, n, encoded), 0);
		struct bytes out = {0};
		struct err err = ERR_INIT;
		if (codec_hdf5_decode(&p, 0, elem_size, encoded, size, n, &out, &err))
			fail_msg("pipeline %zu, %zu bytes of %u: %s", i / (13 * 8), n, elem_size,
				 err.msg);
		assert_int_equal(out.len, n);
		assert_memory_equal(out.data, plain, n);
		bytes_release(&out);
		test_free(encoded);
	}
	test_free(plain);
}

static void sizes_follow_from_the_length(void **state)
{
	const uint32_t deflate[] = {FILTER_DEFLATE}, sum[] = {FILTER_FLETCHER32};
	const struct pipeline gz = pipeline_of(deflate, 1), fl = pipeline_of(sum, 1);
	assert_int_equal(codec_stored_size(&gz, 0), 11);
	assert_int_equal(codec_stored_size(&gz, 1), 12);
	assert_int_equal(codec_stored_size(&gz, 65535), 65535 + 11);
	assert_int_equal(codec_stored_size(&gz, 65536), 65536 + 16);
	assert_int_equal(codec_stored_size(&gz, 1 << 20), (1 << 20) + 17 * 5 + 6);
	assert_int_equal(codec_stored_size(&fl, 100), 104);
}

static void shuffle_moves_bytes_as_hdf5_does(void **state)
{
	const uint32_t ids[] = {FILTER_SHUFFLE};
	const struct pipeline p = pipeline_of(ids, 1);
	for (uint32_t size = 1; size <= 17; size++) {
		for (size_t n = 0; n < 600; n += 1 + n / 7) {
			uint8_t *plain = noise(n);
			uint8_t *out = test_calloc(1, n + 1);
			assert_int_equal(stored_encode(&p, size, plain, n, out), 0);
			size_t count = n / size;
			for (size_t i = 0; i < count * size; i++)
				assert_int_equal(out[i % size * count + i / size], plain[i]);
			assert_memory_equal(out + count * size, plain + count * size, n % size);
			test_free(out);
			test_free(plain);
		}
	}
}

static void zlib_takes_the_stored_form(void **state)
{
	const uint32_t ids[] = {FILTER_DEFLATE};
	const struct pipeline p = pipeline_of(ids, 1);
	uint8_t *plain = noise(MOST);
	size_t size = (size_t)codec_stored_size(&p, MOST);
	uint8_t *encoded = test_malloc(size), *back = test_malloc(MOST);
	assert_int_equal(stored_encode(&p, 1, plain, MOST, encoded), 0);
	assert_memory_equal(encoded, "\x78\x01\x00\xff\xff\x00\x00", 7);
	uLongf n = MOST;
	assert_int_equal(uncompress(back, &n, encoded, size), Z_OK);
	assert_int_equal(n, MOST);
	assert_memory_equal(back, plain, MOST);
	test_free(encoded);
	test_free(back);
	test_free(plain);
}

/* Chunks that libhdf5 1.10.8 wrote: 11 32-bit integers (i + 1) * 0x01030507, 7 bytes i * 37. */
static void chunks_of_libhdf5(void **state)
{
	static const uint8_t shuffle_sum[] = {
		0x07, 0x0e, 0x15, 0x1c, 0x23, 0x2a, 0x31, 0x38, 0x3f, 0x46, 0x4d, 0x05,
		0x0a, 0x0f, 0x14, 0x19, 0x1e, 0x23, 0x28, 0x2d, 0x32, 0x37, 0x03, 0x06,
		0x09, 0x0c, 0x0f, 0x12, 0x15, 0x18, 0x1b, 0x1e, 0x21, 0x01, 0x02, 0x03,
		0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x06, 0x1e, 0xc5, 0x9c};
	static const uint8_t odd_sum[] = {0x00, 0x25, 0x4a, 0x6f, 0x94, 0xb9,
					  0xde, 0x4e, 0xbd, 0x55, 0xe7};
	static const uint8_t shuffle_deflate_sum[] = {
		0x78, 0xda, 0x63, 0xe7, 0x13, 0x95, 0x51, 0xd6, 0x32, 0xb4, 0xb0, 0x77, 0xf3, 0x65,
		0xe5, 0xe2, 0x17, 0x91, 0x94, 0x53, 0xd6, 0xd0, 0x35, 0x32, 0x67, 0x66, 0xe3, 0xe4,
		0xe1, 0x17, 0x12, 0x95, 0x90, 0x96, 0x53, 0x64, 0x64, 0x62, 0x66, 0x61, 0x65, 0x63,
		0xe7, 0xe0, 0xe4, 0xe2, 0x06, 0x00, 0x72, 0x78, 0x04, 0x21, 0x01, 0x53, 0x1a, 0xbc};
	const uint32_t a[] = {FILTER_SHUFFLE, FILTER_FLETCHER32};
	const uint32_t c[] = {FILTER_SHUFFLE, FILTER_DEFLATE, FILTER_FLETCHER32};
	const struct pipeline pa = pipeline_of(a, 2), pb = pipeline_of(a + 1, 1);
	const struct pipeline pc = pipeline_of(c, 3);
	uint8_t ints[44], bytes[7], encoded[sizeof(shuffle_sum)];
	for (uint32_t i = 0; i < 11; i++)
		for (uint32_t k = 0; k < 4; k++)
			ints[4 * i + k] = (uint8_t)((i + 1) * 0x01030507 >> (8 * k));
	for (uint32_t i = 0; i < 7; i++)
		bytes[i] = (uint8_t)(i * 37);

	struct bytes out = {0};
	assert_int_equal(stored_encode(&pa, 4, ints, 44, encoded), 0);
	assert_memory_equal(encoded, shuffle_sum, 48);
	assert_int_equal(stored_encode(&pb, 1, bytes, 7, encoded), 0);
	assert_memory_equal(encoded, odd_sum, 11);
	assert_int_equal(codec_hdf5_decode(&pc, 0, 4, shuffle_deflate_sum,
					   sizeof(shuffle_deflate_sum), 44, &out, NULL),
			 0);
	assert_int_equal(out.len, 44);
	assert_memory_equal(out.data, ints, 44);
	bytes_release(&out);
}

static void masked_filters_are_skipped(void **state)
{
	const uint32_t ids[] = {FILTER_SHUFFLE, FILTER_DEFLATE, FILTER_FLETCHER32};
	const struct pipeline p = pipeline_of(ids, 3);
	struct bytes out = {0};
	const uint8_t plain[] = {1, 2, 3, 4, 5, 6, 7, 8};
	assert_int_equal(codec_hdf5_decode(&p, 7, 4, plain, 8, 8, &out, NULL), 0);
	assert_int_equal(out.len, 8);
	assert_memory_equal(out.data, plain, 8);
	bytes_release(&out);
	assert_int_equal(codec_hdf5_decode(&p, 6, 4, plain, 8, 8, &out, NULL), 0);
	assert_memory_equal(out.data, "\1\3\5\7\2\4\6\10", 8);
	bytes_release(&out);
}

static void damage(void **state)
{
	const uint32_t ids[] = {FILTER_SHUFFLE, FILTER_DEFLATE, FILTER_FLETCHER32};
	const struct pipeline all = pipeline_of(ids, 3), gz = pipeline_of(ids + 1, 1);
	const uint32_t other[] = {32011};
	const struct pipeline unknown = pipeline_of(other, 1);
	uint8_t plain[100] = {1, 2, 3}, encoded[200], big[5000] = {0}, packed[200];
	size_t size = (size_t)codec_stored_size(&all, 100);
	uLongf packed_n = sizeof(packed);
	struct bytes out = {0};
	assert_int_equal(stored_encode(&all, 4, plain, 100, encoded), 0);
	for (size_t i = 0; i < size; i++) {
		encoded[i] ^= 0x10;
		assert_int_equal(codec_hdf5_decode(&all, 0, 4, encoded, size, 100, &out, NULL),
				 -EIO);
		encoded[i] ^= 0x10;
		assert_int_equal(codec_hdf5_decode(&all, 0, 4, encoded, i, 100, &out, NULL), -EIO);
	}
	assert_int_equal(codec_hdf5_decode(&all, 0, 4, encoded, size, 99, &out, NULL), -EIO);
	assert_int_equal(codec_hdf5_decode(&all, 7, 4, plain, 100, 99, &out, NULL), -EIO);
	assert_int_equal(compress(packed, &packed_n, big, sizeof(big)), Z_OK);
	assert_int_equal(codec_hdf5_decode(&gz, 0, 1, packed, packed_n, 4999, &out, NULL), -EIO);
	assert_int_equal(codec_hdf5_decode(&gz, 0, 1, packed, packed_n, 5000, &out, NULL), 0);
	assert_int_equal(codec_hdf5_decode(&unknown, 0, 1, plain, 8, 8, &out, NULL), -EOPNOTSUPP);
	assert_int_equal(stored_encode(&unknown, 1, plain, 8, encoded), -EOPNOTSUPP);
	bytes_release(&out);
}

/* Filters are undone from the last to the first. No filter that is undone later hides the error. */
static void the_first_error_is_reported(void **state)
{
	const uint32_t ids[] = {FILTER_SHUFFLE, FILTER_FLETCHER32};
	const struct pipeline p = pipeline_of(ids, 2);
	uint8_t plain[8] = {1, 2, 3}, encoded[12];
	struct bytes out = {0};
	struct err err = ERR_INIT;
	assert_int_equal(stored_encode(&p, 4, plain, 8, encoded), 0);
	encoded[0] ^= 1;
	assert_int_equal(codec_hdf5_decode(&p, 0, 4, encoded, 12, 8, &out, &err), -EIO);
	assert_non_null(strstr(err.msg, "fletcher32"));
	assert_null(out.data);
}

static void pipeline_keeps_what_every_library_has(void **state)
{
	const uint32_t ids[] = {FILTER_BITSHUFFLE, FILTER_SHUFFLE, FILTER_BLOSC,     FILTER_DEFLATE,
				FILTER_NBIT,	   FILTER_SZIP,	   FILTER_FLETCHER32};
	struct pipeline p = pipeline_of(ids, 7);
	p.f[3].nparams = 1;
	p.f[3].params = (const uint32_t[]){9};
	codec_stored_pipeline(&p, &p);
	assert_int_equal(p.n, 3);
	assert_int_equal(p.f[0].id, FILTER_SHUFFLE);
	assert_int_equal(p.f[1].id, FILTER_DEFLATE);
	assert_int_equal(p.f[1].params[0], 9);
	assert_int_equal(p.f[2].id, FILTER_FLETCHER32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decode_undoes_encode),
		cmocka_unit_test(sizes_follow_from_the_length),
		cmocka_unit_test(shuffle_moves_bytes_as_hdf5_does),
		cmocka_unit_test(zlib_takes_the_stored_form),
		cmocka_unit_test(chunks_of_libhdf5),
		cmocka_unit_test(masked_filters_are_skipped),
		cmocka_unit_test(damage),
		cmocka_unit_test(the_first_error_is_reported),
		cmocka_unit_test(pipeline_keeps_what_every_library_has),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
