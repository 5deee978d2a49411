/* SPDX-License-Identifier: Apache-2.0 */
/* The set of ranges: against an array of booleans, at the borders of frames and of levels, and its
 * memory. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "overlay/frames.h"

enum { FRAME = 65536, MODEL = 5 * FRAME + 100 };

struct fixture {
	struct frames_memory memory;
	struct frames f;
	uint32_t random;
	bool model[MODEL];
};

static struct frames_memory memory_without_limit(void)
{
	return (struct frames_memory){.allowed = SIZE_MAX / 2};
}

static uint32_t next_random(struct fixture *x)
{
	x->random = x->random * 1664525 + 1013904223;
	return x->random >> 8;
}

static void compare(const struct fixture *x)
{
	uint64_t bytes = 0, end[2] = {FRAMES_NONE, FRAMES_NONE};
	for (uint32_t at = MODEL; at-- > 0;) {
		bytes += x->model[at];
		end[x->model[at]] = at;
		/* After the model, nothing is in the set. */
		const uint64_t outside = end[0] == FRAMES_NONE ? MODEL : end[0];
		if (at % 7 == 0 || at % FRAME < 2 || at % FRAME > FRAME - 3) {
			assert_int_equal(frames_find(&x->f, at, true), end[1]);
			assert_int_equal(frames_find(&x->f, at, false), outside);
		}
	}
	assert_int_equal(x->f.bytes, bytes);
	assert_int_equal(frames_count(&x->f, 0, MODEL), bytes);
}

static void change(struct fixture *x, uint32_t start, uint32_t end, bool add)
{
	uint64_t before = 0;
	for (uint32_t i = start; i < end; i++)
		before += x->model[i];
	assert_int_equal(frames_count(&x->f, start, end), before);
	assert_int_equal(frames_cover(&x->f, start, end), before == end - start);
	assert_int_equal(add ? frames_add(&x->f, start, end) : frames_remove(&x->f, start, end), 0);
	for (uint32_t i = start; i < end; i++)
		x->model[i] = add;
}

static void begin(struct fixture *x, uint32_t seed)
{
	memset(x, 0, sizeof(*x));
	x->memory = memory_without_limit();
	x->f.memory = &x->memory;
	x->random = seed;
}

static void end(struct fixture *x)
{
	frames_release(&x->f);
	assert_int_equal(x->memory.used, 0);
	assert_int_equal(x->f.bytes, 0);
}

static void any_changes_give_the_same_set_as_an_array(void **state)
{
	static struct fixture x;
	static const uint32_t lengths[] = {1, 4, 100, 5000, FRAME, 3 * FRAME};
	for (uint32_t seed = 1; seed <= 12; seed++) {
		begin(&x, seed);
		for (unsigned int i = 0; i < 4000; i++) {
			const uint32_t most = lengths[next_random(&x) % (seed % 6 + 1)];
			uint32_t start = next_random(&x) % MODEL;
			if (next_random(&x) % 8 == 0)
				start = start / FRAME * FRAME;
			uint32_t stop = start + 1 + next_random(&x) % most;
			if (next_random(&x) % 8 == 0)
				stop = stop / FRAME * FRAME;
			stop = stop > MODEL ? MODEL : stop < start ? start : stop;
			change(&x, start, stop, next_random(&x) % 3 != 0);
		}
		compare(&x);
		end(&x);
	}
}

static void more_than_1024_ranges_become_a_bitmap(void **state)
{
	static struct fixture x;
	begin(&x, 1);
	for (uint32_t i = 0; i < FRAME; i += 8)
		change(&x, i, i + 4, true);
	compare(&x);
	const size_t bitmap = x.memory.used;
	assert_in_range(bitmap, 8192, 8192 + 64);
	for (uint32_t i = 4; i < FRAME - 8; i += 8)
		change(&x, i, i + 4, true);
	compare(&x);
	assert_int_equal(x.memory.used, bitmap);
	change(&x, FRAME - 4, FRAME, true);
	assert_int_equal(x.memory.used, 0); /* a full frame takes no memory */
	for (uint32_t i = 0; i < FRAME; i += 8)
		change(&x, i, i + 4, false);
	compare(&x);
	for (uint32_t i = 4; i < FRAME; i += 8)
		change(&x, i, i + 4, false);
	assert_int_equal(x.memory.used, 0);
	end(&x);
}

static void ranges_join_at_the_borders_of_frames(void **state)
{
	struct frames_memory memory = memory_without_limit();
	struct frames f = {.memory = &memory};
	for (uint64_t border = FRAME; border < FRAMES_LIMIT; border *= 2) {
		assert_int_equal(frames_add(&f, border - 1, border), 0);
		assert_int_equal(frames_find(&f, 0, true), border - 1);
		assert_int_equal(frames_find(&f, border - 1, false), border);
		assert_int_equal(frames_add(&f, border, border + 1), 0);
		assert_int_equal(frames_find(&f, border - 1, false), border + 1);
		assert_int_equal(frames_find(&f, border + 1, true), FRAMES_NONE);
		assert_int_equal(frames_remove(&f, border - 1, border), 0);
		assert_int_equal(frames_find(&f, 0, true), border);
		assert_int_equal(frames_remove(&f, 0, FRAMES_LIMIT), 0);
		assert_int_equal(memory.used, 0);
	}
}

static void the_whole_file_takes_little_memory(void **state)
{
	struct frames_memory memory = memory_without_limit();
	struct frames f = {.memory = &memory};
	assert_int_equal(frames_add(&f, 1, FRAMES_LIMIT - 1), 0);
	assert_int_equal(f.bytes, FRAMES_LIMIT - 2);
	assert_true(memory.used < 4096);
	assert_true(frames_cover(&f, 1, FRAMES_LIMIT - 1));
	assert_int_equal(frames_find(&f, 1, false), FRAMES_LIMIT - 1);
	assert_int_equal(frames_remove(&f, 1 << 30, FRAMES_LIMIT), 0);
	assert_int_equal(f.bytes, (1 << 30) - 1);
	assert_int_equal(frames_add(&f, 0, FRAMES_LIMIT), 0);
	assert_int_equal(memory.used, 0);
	assert_int_equal(frames_find(&f, 5, false), FRAMES_LIMIT);
	frames_release(&f);
}

static void memory_does_not_grow_with_the_number_of_writes(void **state)
{
	static const struct {
		uint64_t stride;
		size_t most;
	} cases[] = {
		{4, 1024},		   /* in order */
		{8, 128 * (8192 + 64)},	   /* every second word: bitmaps of 123 frames */
		{4096, 62500 * (96 + 16)}, /* a word in each page: 16 ranges in each frame */
	};
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct frames_memory memory = memory_without_limit();
		struct frames f = {.memory = &memory};
		for (uint64_t i = 0; i < 1000000; i++) {
			/* Not in order, but each once: 611,953 is a prime. */
			const uint64_t k = cases[c].stride == 4 ? i : i * 611953 % 1000000;
			assert_int_equal(
				frames_add(&f, k * cases[c].stride, k * cases[c].stride + 4), 0);
			if (memory.used > cases[c].most)
				fail_msg("%zu bytes", memory.used);
		}
		assert_int_equal(f.bytes, 4000000);
		frames_release(&f);
	}
}

/* With an allowance that grows in small steps, nearly every allocation fails once. */
static void a_call_without_memory_may_be_repeated(void **state)
{
	static struct fixture x;
	begin(&x, 5);
	x.memory.allowed = 0;
	unsigned int refused = 0;
	for (unsigned int i = 0; i < 3000; i++) {
		const uint32_t start = next_random(&x) % (MODEL - 300);
		const uint32_t stop = start + 1 + next_random(&x) % 300;
		const bool add = i % 4 != 3;
		while ((add ? frames_add(&x.f, start, stop) : frames_remove(&x.f, start, stop)) ==
		       -EAGAIN) {
			refused++;
			x.memory.allowed += 8;
		}
		memset(x.model + start, add, stop - start);
	}
	assert_true(refused > 100);
	compare(&x);
	end(&x);
}

static void a_cut_without_memory_changes_nothing(void **state)
{
	struct frames_memory memory = memory_without_limit();
	struct frames f = {.memory = &memory};
	assert_int_equal(frames_add(&f, 0, 16 * FRAME), 0);
	assert_int_equal(frames_add(&f, 17 * FRAME, 18 * FRAME + 5), 0);
	memory.allowed = memory.used;
	assert_int_equal(frames_remove(&f, FRAME + 1, FRAMES_LIMIT), -EAGAIN);
	assert_int_equal(f.bytes, 17 * FRAME + 5);
	memory.allowed = SIZE_MAX / 2;
	assert_int_equal(frames_remove(&f, FRAME + 1, FRAMES_LIMIT), 0);
	assert_int_equal(f.bytes, FRAME + 1);
	frames_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_changes_give_the_same_set_as_an_array),
		cmocka_unit_test(more_than_1024_ranges_become_a_bitmap),
		cmocka_unit_test(ranges_join_at_the_borders_of_frames),
		cmocka_unit_test(the_whole_file_takes_little_memory),
		cmocka_unit_test(memory_does_not_grow_with_the_number_of_writes),
		cmocka_unit_test(a_call_without_memory_may_be_repeated),
		cmocka_unit_test(a_cut_without_memory_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
