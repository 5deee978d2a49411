/* SPDX-License-Identifier: Apache-2.0 */
/* The sample of chunks: its size, its ends, its spread, and that it is always the same. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "check/check.h"

static struct check_chunk chosen[CHECK_SAMPLE];

static void add(struct check_sample *s, uint32_t dataset, uint64_t number)
{
	const struct check_chunk chunk = {.dataset = dataset, .number = number, .size = number + 1};
	check_sample_add(s, &chunk);
}

static uint32_t take(struct check_sample *s)
{
	const uint32_t n = check_sample_take(s, chosen);
	for (uint32_t i = 1; i < n; i++)
		assert_true(chosen[i - 1].dataset < chosen[i].dataset ||
			    (chosen[i - 1].dataset == chosen[i].dataset &&
			     chosen[i - 1].number < chosen[i].number));
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(chosen[i].size, chosen[i].number + 1);
	return n;
}

static void few_chunks_are_all_chosen(void **state)
{
	struct check_sample *s = calloc(1, sizeof(*s));
	assert_int_equal(take(s), 0);
	for (uint64_t i = CHECK_SAMPLE_EACH; i-- > 0;)
		add(s, 3, i);
	assert_int_equal(take(s), CHECK_SAMPLE_EACH);
	for (uint64_t i = 0; i < CHECK_SAMPLE_EACH; i++)
		assert_int_equal(chosen[i].number, i);
	free(s);
}

/* Numbers in the order of a listing by text: the first and the last come anywhere. */
static void ends_are_always_chosen(void **state)
{
	static const uint64_t counts[] = {65, 100, 1000, 100000};
	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		struct check_sample *s = calloc(1, sizeof(*s));
		uint64_t parts[4] = {0};
		const uint64_t n = counts[c];
		for (uint64_t i = 0; i < n; i++)
			add(s, 7, 10 + (i * 7919 + 5) % n);
		assert_int_equal(take(s), CHECK_SAMPLE_EACH);
		assert_int_equal(chosen[0].number, 10);
		assert_int_equal(chosen[CHECK_SAMPLE_EACH - 1].number, 10 + n - 1);
		for (uint32_t i = 0; i < CHECK_SAMPLE_EACH; i++)
			parts[(chosen[i].number - 10) * 4 / n]++;
		for (int i = 0; i < 4; i++)
			assert_in_range(parts[i], 6, 30);
		free(s);
	}
}

static void the_sample_of_all_datasets_is_limited(void **state)
{
	enum { DATASETS = 400, CHUNKS = 200 };
	struct check_sample *s = calloc(1, sizeof(*s));
	struct check_chunk before[CHECK_SAMPLE];
	uint32_t ends = 0;
	for (int again = 0; again < 2; again++) {
		memset(s, 0, sizeof(*s));
		for (uint32_t d = 0; d < DATASETS; d++)
			for (uint64_t i = 0; i < CHUNKS; i++)
				add(s, d, i);
		assert_int_equal(take(s), CHECK_SAMPLE);
		for (uint32_t i = 0; again && i < CHECK_SAMPLE; i++) {
			assert_int_equal(chosen[i].dataset, before[i].dataset);
			assert_int_equal(chosen[i].number, before[i].number);
		}
		memcpy(before, chosen, sizeof(before));
	}
	for (uint32_t i = 0; i < CHECK_SAMPLE; i++)
		ends += chosen[i].number == 0 || chosen[i].number == CHUNKS - 1;
	assert_int_equal(ends, 2 * DATASETS);
	free(s);
}

static void a_single_chunk_of_many_datasets(void **state)
{
	struct check_sample *s = calloc(1, sizeof(*s));
	for (uint32_t d = 0; d < 10000; d++)
		add(s, d, 0);
	assert_int_equal(take(s), CHECK_SAMPLE);
	assert_true(chosen[CHECK_SAMPLE - 1].dataset > 9000);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_chunks_are_all_chosen),
		cmocka_unit_test(ends_are_always_chosen),
		cmocka_unit_test(the_sample_of_all_datasets_is_limited),
		cmocka_unit_test(a_single_chunk_of_many_datasets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
