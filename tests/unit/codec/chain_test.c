/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of chains: the sizes of steps and of stored chunks, and copies. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <codec/chunk.h>
#include <data/chunk_source.h>

enum { N = 1000, BYTES = 4 * N, MORE = 64 << 10 };

static struct arena *arena;
static const struct dtype *i32, *text, *ref;

static int setup(void **state)
{
	arena = arena_new(1 << 20);
	i32 = dtype_integer(arena, 4, true, false, NULL);
	text = dtype_vlen_string(arena, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	ref = dtype_reference(arena, DTYPE_REF_OBJECT, NULL);
	return i32 && text && ref ? 0 : -1;
}

static int teardown(void **state)
{
	arena_free(arena);
	return 0;
}

static void expect_size(const struct codec_chain *c, uint64_t exact, uint64_t plain, uint64_t most)
{
	const struct codec_size size = codec_chunk_size(c);
	assert_int_equal(size.exact, exact);
	assert_int_equal(size.plain, plain);
	assert_int_equal(size.most, most);
}

static void sizes_of_chunk_objects(void **state)
{
	const struct pipeline none = {0}, gz = {1, {{.id = FILTER_DEFLATE}}};
	const struct {
		const struct dtype *type;
		uint64_t nelems;
		const struct pipeline *p;
		uint64_t exact, plain;
	} cases[] = {
		{i32, N, &none, BYTES, BYTES},
		{i32, N, &gz, CODEC_UNKNOWN, BYTES},
		{ref, N, &none, UINT64_C(48) * N, UINT64_C(48) * N},
		{text, N, &none, CODEC_UNKNOWN, CHUNK_BYTES_MAX},
		{i32, 0, &none, 0, 0},
		{i32, UINT64_MAX / 2, &none, CODEC_UNKNOWN, CODEC_UNKNOWN},
		{i32, UINT64_MAX / 5, &gz, CODEC_UNKNOWN, CODEC_UNKNOWN},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint64_t plain = cases[i].plain;
		struct codec_plan plan;
		codec_plan_object(&plan, cases[i].type, cases[i].nelems, cases[i].p,
				  OBJECT_SHUFFLED, NULL);
		expect_size(&plan.chain, cases[i].exact, plain,
			    plain == CODEC_UNKNOWN ? plain : plain + plain / 8 + MORE);
		assert_int_equal(codec_chunk_size(&plan.chain).is_filtered, cases[i].p == &gz);
	}
}

/* The filters are undone from the last to the first. */
static void steps_of_a_file(void **state)
{
	const struct filter filters[] = {
		{.id = FILTER_SHUFFLE}, {.id = FILTER_FLETCHER32}, {.id = FILTER_DEFLATE}};
	const uint64_t exact[] = {BYTES + 4, BYTES, BYTES};
	struct codec_plan plan;
	codec_plan_file(&plan, i32, N, filters, 3, false);
	assert_int_equal(plan.chain.n, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct codec_step *step = &plan.steps[i];
		assert_ptr_equal(step->filter, &filters[2 - i]);
		assert_int_equal(step->bit, 2 - i);
		assert_int_equal(step->exact, exact[i]);
		assert_int_equal(step->largest, exact[i]);
	}
	codec_plan_file(&plan, i32, N, filters, 3, true);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(plan.steps[i].exact, CODEC_UNKNOWN);
		assert_int_equal(plan.steps[i].largest, codec_hdf5_limit(BYTES) + (i == 0 ? 4 : 0));
	}
}

static void copies(void **state)
{
	const struct pipeline none = {0};
	char name[] = "lzf";
	const struct service_filters served = {.refused = name};
	struct codec_plan plan;
	codec_plan_object(&plan, i32, N, &none, OBJECT_SHUFFLED, &served);
	const struct codec_chain *copy = codec_chain_copy(&plan.chain, arena);
	plan.steps[0].exact = 1;
	name[0] = 'x';
	assert_non_null(copy);
	assert_int_equal(copy->steps[0].exact, BYTES);
	assert_string_equal(codec_chain_served(copy)->refused, "lzf");
	codec_plan_object(&plan, i32, N, &none, OBJECT_SHUFFLED, NULL);
	assert_null(codec_chain_served(&plan.chain));
	assert_null(codec_chain_served(NULL));
	struct arena *full = arena_new(64);
	assert_null(codec_chain_copy(copy, full));
	arena_free(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_of_chunk_objects),
		cmocka_unit_test(steps_of_a_file),
		cmocka_unit_test(copies),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
