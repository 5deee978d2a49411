/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of a chunk in every form in which its bytes can be given. */
#include <data/chunk_data.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <data/shuffle.h>

enum { LENGTH = 997, PIECES = 200, LARGEST = 17 };

static size_t any_below(size_t n)
{
	static uint32_t r = 1;
	r = r * 1664525 + 1013904223;
	return (size_t)((uint64_t)r * n >> 32);
}

static void fill(uint8_t *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = (uint8_t)any_below(256);
}

/* Reads the chunk in pieces that begin and end anywhere. `want` are its LENGTH bytes. */
static void expect(const struct chunk_data *d, const uint8_t *want)
{
	uint8_t got[LENGTH];
	for (size_t i = 0; i < PIECES; i++) {
		const size_t at = any_below(LENGTH), n = any_below(LENGTH - at + 1);
		memset(got, 0x5a, LENGTH);
		chunk_data_read(d, at, got, n);
		assert_memory_equal(got, want + at, n);
		assert_true(n == LENGTH || got[n] == 0x5a);
	}
}

/* Elements of every size, with bytes behind the last whole element. */
static void shuffled_elements(void **state)
{
	(void)state;
	for (uint32_t size = 0; size <= LARGEST; size++) {
		uint8_t plain[LENGTH], x[LENGTH];
		fill(plain, LENGTH);
		shuffle_bytes(x, plain, LENGTH, size);
		expect(&(struct chunk_data){.elems.fixed = {.data = x, .len = LENGTH},
					    .shuffled = size},
		       plain);
	}
}

/* An element may itself be given as a few bytes, their repetitions, and zeros. */
static void equal_elements(void **state)
{
	(void)state;
	for (uint32_t size = 1; size <= LARGEST; size++) {
		uint8_t bytes[LARGEST], want[LENGTH];
		const uint32_t stored = 1 + (uint32_t)any_below(size);
		const uint32_t period = 1 + (uint32_t)any_below(stored);
		const struct elems element = {.fixed = {.data = bytes, .len = stored},
					      .period = period,
					      .repeated = any_below(size - stored + 1)};
		fill(bytes, sizeof(bytes));
		for (size_t i = 0; i < LENGTH; i++)
			elems_read(&element, i % size, &want[i], 1);
		struct chunk_data run = chunk_data_run(&element, size);
		expect(&run, want);
		assert_int_equal(chunk_data_memory(&run), 0);
		chunk_data_release(&run); /* the bytes are borrowed */
	}
	uint8_t zeros[LENGTH] = {0};
	const struct chunk_data run = chunk_data_run(NULL, 4);
	expect(&run, zeros);
}

static void bytes_as_they_are(void **state)
{
	struct chunk_data d = {0};
	uint8_t want[LENGTH] = {0}, got[4];
	(void)state;
	fill(want, LENGTH / 2);
	assert_int_equal(bytes_append(&d.elems.fixed, want, LENGTH / 2), 0);
	assert_int_equal(bytes_append(&d.elems.heap, "abc", 3), 0);
	expect(&d, want); /* zeros follow */
	chunk_data_read_heap(&d, 1, got, sizeof(got));
	assert_memory_equal(got, "bc\0\0", sizeof(got));
	assert_int_equal(chunk_data_memory(&d), d.elems.fixed.cap + d.elems.heap.cap);
	chunk_data_release(&d);
	assert_null(d.elems.fixed.data);
	assert_int_equal(chunk_data_memory(&d), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shuffled_elements),
		cmocka_unit_test(equal_elements),
		cmocka_unit_test(bytes_as_they_are),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
