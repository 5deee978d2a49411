/* SPDX-License-Identifier: Apache-2.0 */
/* The codecs that rearrange elements: transposed axes against a naive loop, and each number of half
 * precision against its definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "array_support.h"

enum { MOST_BYTES = 64 << 10 };

static uint32_t seed = 1;

static uint32_t draw(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static int setup(void **state)
{
	return array_support_setup();
}

static int teardown(void **state)
{
	array_support_teardown();
	return 0;
}

struct layout {
	uint32_t elem_size, rank;
	uint64_t shape[DTYPE_MAX_RANK];
	uint32_t order[DTYPE_MAX_RANK];
	uint64_t nelems;
};

static void shuffle_axes(struct layout *x)
{
	for (uint32_t i = 0; i < x->rank; i++) {
		const uint32_t k = draw(i + 1);
		x->order[i] = x->order[k];
		x->order[k] = i;
	}
}

/* Where the element at an index of the decoded array is stored. */
static size_t stored_at(const struct layout *x, const uint64_t *index)
{
	size_t at = 0;
	for (uint32_t i = 0; i < x->rank; i++)
		at = at * (size_t)x->shape[x->order[i]] + (size_t)index[x->order[i]];
	return at;
}

static void check_layout(const struct layout *x)
{
	const struct codec_array_step step = {.codec = CODEC_TRANSPOSE,
					      .elem_size = x->elem_size,
					      .rank = x->rank,
					      .shape = x->shape,
					      .order = x->order};
	const size_t n = (size_t)x->nelems * x->elem_size;
	uint8_t *stored = test_malloc(n), *want = test_malloc(n);
	uint64_t index[DTYPE_MAX_RANK] = {0};
	struct codec_plan plan;
	char name[512];
	int len = snprintf(name, sizeof(name), "elements of %u bytes:", x->elem_size);
	for (uint32_t i = 0; i < x->rank; i++)
		len += snprintf(name + len, sizeof(name) - (size_t)len, " %d(%u)", (int)x->shape[i],
				x->order[i]);
	for (size_t i = 0; i < n; i++)
		stored[i] = (uint8_t)draw(256);
	for (size_t e = 0; e < x->nelems; e++) {
		memcpy(want + e * x->elem_size, stored + stored_at(x, index) * x->elem_size,
		       x->elem_size);
		for (uint32_t i = x->rank; i-- > 0 && ++index[i] == x->shape[i];)
			index[i] = 0;
	}
	const struct bytes b = {.data = stored, .len = n};
	assert_int_equal(codec_plan_array(&plan, array_type(x->elem_size), x->elem_size, x->nelems,
					  &step, 1),
			 0);
	expect_chunk(name, &plan.chain, &b, want, n);
	test_free(stored);
	test_free(want);
}

static void random_layouts(void **state)
{
	for (unsigned int round = 0; round < 3000; round++) {
		static const uint32_t sizes[] = {17, 24, 64, 100, 1000};
		const uint32_t size = draw(10) ? 1 + draw(16) : sizes[draw(5)];
		struct layout x = {.elem_size = size, .rank = draw(7), .nelems = 1};
		for (uint32_t i = 0; i < x.rank; i++) {
			const uint64_t room = MOST_BYTES / (x.nelems * size);
			const uint32_t most = draw(3) ? 9 : draw(2) ? 200 : 3;
			x.shape[i] = 1 + draw((uint32_t)min_u64(most, room ? room : 1));
			x.nelems *= x.shape[i];
		}
		shuffle_axes(&x);
		check_layout(&x);
	}
}

/* As many axes as there may be, most of them of one index. */
static void many_axes(void **state)
{
	for (unsigned int round = 0; round < 200; round++) {
		struct layout x = {.elem_size = 1 + draw(8), .rank = DTYPE_MAX_RANK, .nelems = 1};
		for (uint32_t i = 0; i < x.rank; i++) {
			x.shape[i] = draw(4) == 0 && x.nelems < 4096 ? 2 + draw(2) : 1;
			x.nelems *= x.shape[i];
		}
		shuffle_axes(&x);
		check_layout(&x);
	}
}

static void no_elements(void **state)
{
	const uint64_t shape[] = {3, 0, UINT64_MAX};
	const uint32_t order[] = {2, 1, 0};
	const struct codec_array_step step = {.codec = CODEC_TRANSPOSE,
					      .elem_size = 4,
					      .rank = 3,
					      .shape = shape,
					      .order = order};
	struct codec_plan plan;
	assert_int_equal(codec_plan_array(&plan, array_type(4), 4, 0, &step, 1), 0);
	expect_chunk("no elements", &plan.chain, &(struct bytes){0}, "", 0);
}

/* The definition: IEEE 754, 3.4. */
static double half_value(uint32_t half)
{
	const double sign = half & 0x8000 ? -1 : 1;
	const int exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
	return exponent ? sign * ldexp(1024 + mantissa, exponent - 25)
			: sign * ldexp(mantissa, -24);
}

static void check_single(uint32_t half, uint32_t single)
{
	float value;
	memcpy(&value, &single, sizeof(value));
	if ((half >> 10 & 0x1f) == 0x1f)
		assert_int_equal(single,
				 (half & 0x8000) << 16 | 0x7f800000u | (half & 0x3ff) << 13);
	else if (half == 0x8000)
		assert_int_equal(single, 0x80000000u);
	else
		assert_true(value == half_value(half));
}

static void every_half(void **state)
{
	enum { HALVES = 65536 };
	uint8_t *stored = test_malloc(2 * (size_t)HALVES);
	for (int big = 0; big < 2; big++) {
		const struct codec_array_step step = {.codec = CODEC_WIDEN, .big_endian = big};
		const struct bytes b = {.data = stored, .len = 2 * (size_t)HALVES};
		struct codec_plan plan;
		struct elems out;
		for (uint32_t i = 0; i < HALVES; i++) {
			stored[2 * i + (uint32_t)big] = (uint8_t)i;
			stored[2 * i + (uint32_t)!big] = (uint8_t)(i >> 8);
		}
		assert_int_equal(codec_plan_array(&plan, array_type(4), 2, HALVES, &step, 1), 0);
		assert_int_equal(decode_array(&plan.chain, &b, &out, NULL), 0);
		for (uint32_t i = 0; i < HALVES; i++) {
			const uint8_t *at = out.fixed.data + 4 * (size_t)i;
			uint32_t single = 0;
			for (int k = 0; k < 4; k++)
				single |= (uint32_t)at[k] << 8 * (big ? 3 - k : k);
			check_single(i, single);
		}
		elems_release(&out);
	}
	test_free(stored);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_layouts),
		cmocka_unit_test(many_axes),
		cmocka_unit_test(no_elements),
		cmocka_unit_test(every_half),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
