/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of the chains of Zarr arrays: sizes, steps that do not fit, copies, and which bytes are
 * moved instead of copied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <base/checksum.h>

#include "array_support.h"
#include "decode_elems.h"

enum { N = 4000, ELEMS = N / 4 };

static const struct codec_array_step zlib_ = {.codec = CODEC_ZLIB}, blosc_ = {.codec = CODEC_BLOSC},
				     crc_ = {.codec = CODEC_CRC32C},
				     shuffle_ = {.codec = CODEC_SHUFFLE, .elem_size = 4};

static const uint8_t plain[N + 4];

static int setup(void **state)
{
	return array_support_setup();
}

static int teardown(void **state)
{
	array_support_teardown();
	return 0;
}

static struct bytes as_crc32c(const void *data, size_t n)
{
	const uint32_t crc = checksum_crc32c(data, n, 0);
	struct bytes b = {0};
	assert_int_equal(bytes_append(&b, data, n), 0);
	for (int i = 0; i < 4; i++) {
		const uint8_t byte = (uint8_t)(crc >> 8 * i);
		assert_int_equal(bytes_append(&b, &byte, 1), 0);
	}
	return b;
}

static void sizes(void **state)
{
	const uint64_t shape[] = {10, ELEMS / 10};
	const uint32_t order[] = {1, 0};
	const struct codec_array_step transposed = {.codec = CODEC_TRANSPOSE,
						    .elem_size = 2,
						    .rank = 2,
						    .shape = shape,
						    .order = order};
	const struct codec_array_step widen = {.codec = CODEC_WIDEN};
	const struct {
		uint32_t n;
		struct codec_array_step steps[4];
		uint32_t elem_size;
		bool is_filtered;
		uint64_t exact;
	} cases[] = {
		{0, {zlib_}, 4, false, N},
		{1, {widen}, 2, false, N / 2},
		{2, {transposed, widen}, 2, false, N / 2},
		{1, {crc_}, 4, true, N + 4},
		{3, {crc_, shuffle_, crc_}, 4, true, N + 8},
		{1, {shuffle_}, 4, true, N},
		{4, {crc_, crc_, transposed, widen}, 2, true, N / 2 + 8},
		{1, {blosc_}, 4, true, CODEC_UNKNOWN},
		{3, {crc_, zlib_, shuffle_}, 4, true, CODEC_UNKNOWN},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct codec_plan plan;
		uint64_t decoded = 0;
		assert_int_equal(codec_plan_array(&plan, array_type(4), cases[i].elem_size, ELEMS,
						  cases[i].steps, cases[i].n),
				 0);
		const struct codec_size size = codec_chunk_size(&plan.chain);
		const struct codec_chunk c = {.chain = &plan.chain, .max_bytes = 1};
		assert_int_equal(size.is_filtered, cases[i].is_filtered);
		assert_int_equal(size.exact, cases[i].exact);
		assert_int_equal(size.plain, (uint64_t)cases[i].elem_size * ELEMS);
		assert_in_range(size.most, size.plain, 2 * N + (64 << 10));
		assert_int_equal(codec_decoded_size(&c, plain, 0, 5, &decoded, NULL), 0);
		assert_int_equal(decoded, N);
	}
}

static void too_many_elements(void **state)
{
	struct codec_plan plan;
	uint64_t decoded;
	struct bytes stored = {0};
	struct elems out;
	const struct codec_chunk c = {.chain = &plan.chain};
	assert_int_equal(codec_plan_array(&plan, array_type(4), 4, UINT64_MAX / 5, &zlib_, 1), 0);
	assert_int_equal(codec_chunk_size(&plan.chain).plain, CODEC_UNKNOWN);
	assert_int_equal(decode_elems(&c, &stored, &out, NULL), -EIO);
	assert_int_equal(codec_decoded_size(&c, NULL, 0, 0, &decoded, NULL), -EIO);
}

static void steps_that_do_not_fit(void **state)
{
	const uint64_t shape[] = {10, ELEMS / 10}, other[] = {10, ELEMS / 10 + 1};
	/* 2^64 - 1 bytes, which is also the mark of an unknown size. */
	const uint64_t unknown[] = {3, UINT64_MAX / 15};
	const uint64_t huge[] = {UINT64_C(1) << 63, 4};
	const uint32_t order[] = {1, 0}, twice[] = {1, 1}, outside[] = {0, 2};
	const struct codec_array_step widen = {.codec = CODEC_WIDEN};
#define TRANSPOSE(size, s, o)                                                                      \
	{                                                                                          \
		.codec = CODEC_TRANSPOSE, .elem_size = (size), .rank = 2, .shape = (s),            \
		.order = (o)                                                                       \
	}
	const struct codec_array_step fits = TRANSPOSE(4, shape, order);
	const struct {
		const char *name;
		uint32_t n;
		struct codec_array_step steps[3];
		uint32_t elem_size;
	} cases[] = {
		{"another size of elements", 0, {zlib_}, 2},
		{"elements of 0 bytes", 0, {zlib_}, 0},
		{"an unknown codec", 1, {{.codec = (enum codec_array_codec)100}}, 4},
		{"shuffle of 0 bytes", 1, {{.codec = CODEC_SHUFFLE}}, 4},
		{"widened from another size", 1, {widen}, 4},
		{"widened from 1 byte", 1, {widen}, 1},
		{"widened twice", 2, {widen, widen}, 1},
		{"widened before zlib", 2, {widen, zlib_}, 2},
		{"widened before a checksum", 2, {widen, crc_}, 2},
		{"transposed before zlib", 2, {fits, zlib_}, 4},
		{"transposed before a checksum", 2, {fits, crc_}, 4},
		{"2^64 - 1 bytes before zlib", 2, {TRANSPOSE(5, unknown, order), zlib_}, 4},
		{"another shape", 1, {TRANSPOSE(4, other, order)}, 4},
		{"a shape of 2^65 elements", 1, {TRANSPOSE(4, huge, order)}, 4},
		{"another element", 1, {TRANSPOSE(8, shape, order)}, 4},
		{"an element of 0 bytes", 1, {TRANSPOSE(0, shape, order)}, 4},
		{"an axis twice", 1, {TRANSPOSE(4, shape, twice)}, 4},
		{"no such axis", 1, {TRANSPOSE(4, shape, outside)}, 4},
		{"too many axes", 1, {{.codec = CODEC_TRANSPOSE, .elem_size = 4, .rank = 33}}, 4},
	};
#undef TRANSPOSE
	struct codec_plan plan;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (codec_plan_array(&plan, array_type(cases[i].elem_size == 1 ? 2 : 4),
				     cases[i].elem_size, ELEMS, cases[i].steps,
				     cases[i].n) != -EINVAL)
			fail_msg("%s", cases[i].name);
	struct codec_array_step many[FILTER_MAX + 1];
	for (uint32_t i = 0; i <= FILTER_MAX; i++)
		many[i] = zlib_;
	assert_int_equal(codec_plan_array(&plan, array_type(4), 4, ELEMS, many, FILTER_MAX + 1),
			 -EINVAL);
}

static void copies(void **state)
{
	uint64_t shape[] = {2, 3};
	uint32_t order[] = {1, 0};
	uint64_t six[] = {6};
	uint32_t same[] = {0};
	const struct codec_array_step steps[] = {
		crc_,
		{.codec = CODEC_TRANSPOSE, .elem_size = 1, .rank = 1, .shape = six, .order = same},
		{.codec = CODEC_TRANSPOSE,
		 .elem_size = 1,
		 .rank = 2,
		 .shape = shape,
		 .order = order},
	};
	const uint8_t stored[] = {0, 3, 1, 4, 2, 5}, want[] = {0, 1, 2, 3, 4, 5};
	struct codec_plan plan;
	struct arena *arena = arena_new(1 << 20), *full = arena_new(sizeof(struct codec_step) * 4);
	assert_int_equal(codec_plan_array(&plan, array_type(1), 1, 6, steps, 3), 0);
	const struct codec_chain *copy = codec_chain_copy(&plan.chain, arena);
	assert_non_null(copy);
	assert_null(codec_chain_copy(&plan.chain, full));
	assert_null(codec_chain_served(copy));
	memset(shape, 0xff, sizeof(shape));
	memset(order, 0xff, sizeof(order));
	memset(six, 0xff, sizeof(six));
	memset(same, 0xff, sizeof(same));
	memset(&plan, 0xff, sizeof(plan));
	struct bytes b = as_crc32c(stored, 6);
	expect_chunk("copy", copy, &b, want, 6);
	bytes_release(&b);
	arena_free(full);
	arena_free(arena);
}

static void equal_chains(void **state)
{
	const uint64_t shape[] = {2, 3}, other_shape[] = {3, 2};
	const uint32_t order[] = {1, 0}, identity[] = {0, 1};
	const struct codec_array_step transpose = {.codec = CODEC_TRANSPOSE,
						   .elem_size = 1,
						   .rank = 2,
						   .shape = shape,
						   .order = order};
	struct codec_array_step reshaped = transpose, reordered = transpose;
	reshaped.shape = other_shape;
	reordered.order = identity;
	const struct codec_array_step last[] = {transpose, reshaped, reordered, shuffle_};
	const struct dtype *t = array_type(1);
	struct codec_plan plans[4], other;
	for (int i = 0; i < 4; i++) {
		const struct codec_array_step steps[] = {crc_, last[i]};
		assert_int_equal(codec_plan_array(&plans[i], t, 1, 6, steps, 2), 0);
	}
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 4; k++)
			assert_int_equal(codec_chain_equal(&plans[i].chain, &plans[k].chain),
					 i == k);
	const struct codec_array_step steps[] = {crc_, shuffle_};
	struct arena *arena = arena_new(1 << 20);
	assert_true(codec_chain_equal(&plans[0].chain, codec_chain_copy(&plans[0].chain, arena)));
	assert_int_equal(codec_plan_array(&other, t, 1, 6, steps, 1), 0);
	assert_false(codec_chain_equal(&plans[3].chain, &other.chain));
	assert_int_equal(codec_plan_array(&other, t, 1, 7, steps, 2), 0);
	assert_false(codec_chain_equal(&plans[3].chain, &other.chain));
	arena_free(arena);
}

/* Bytes that no step changes are moved, not copied. */
static void bytes_are_taken_over(void **state)
{
	const uint64_t shape[] = {1, ELEMS, 1};
	const uint32_t order[] = {2, 1, 0};
	const struct codec_array_step steps[] = {
		crc_,
		{.codec = CODEC_SHUFFLE, .elem_size = 1},
		{.codec = CODEC_TRANSPOSE,
		 .elem_size = 4,
		 .rank = 3,
		 .shape = shape,
		 .order = order},
	};
	for (uint32_t n = 0; n <= 3; n++) {
		struct codec_plan plan;
		assert_int_equal(codec_plan_array(&plan, array_type(4), 4, ELEMS, steps, n), 0);
		const struct codec_chunk c = {.chain = &plan.chain};
		struct bytes stored = as_crc32c(plain, N);
		struct elems out;
		const uint8_t *at = stored.data;
		stored.len = n ? N + 4 : N;
		assert_int_equal(decode_elems(&c, &stored, &out, NULL), 0);
		assert_ptr_equal(out.fixed.data, at);
		assert_int_equal(out.fixed.len, N);
		assert_null(stored.data);
		elems_release(&out);
	}
}

/* The limit of a chunk whose size times eight is no number of 64 bits is the size that its codecs
 * may need. */
static void limits_of_large_chunks(void **state)
{
	const struct codec_array_step steps[] = {zlib_, shuffle_};
	struct codec_plan plan;
	assert_int_equal(codec_plan_array(&plan, array_type(4), 4, UINT64_C(1) << 60, steps, 2), 0);
	assert_true(plan.steps[0].largest == UINT64_C(1) << 62);
	assert_true(plan.steps[1].largest == UINT64_C(1) << 62);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(too_many_elements),
		cmocka_unit_test(steps_that_do_not_fit),
		cmocka_unit_test(copies),
		cmocka_unit_test(equal_chains),
		cmocka_unit_test(bytes_are_taken_over),
		cmocka_unit_test(limits_of_large_chunks),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
