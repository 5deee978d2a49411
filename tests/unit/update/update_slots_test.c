/* SPDX-License-Identifier: Apache-2.0 */
/* The slots of the image, as an update sees them. */
#include "update_fixture.h"

#include "update/update_internal.h"
#include "shape_arena.h"

static bool slots_by_path(struct world *w, const char *path, struct slots *out)
{
	const uint32_t number = find_object(domain_tree(w->domain), path);
	return slots_of(w->base, number,
			&tree_object(domain_tree(w->domain), number)->o.dataset.grid, out);
}

static void slots_are_in_the_order_of_chunks(void **state)
{
	struct world *w = world_begin();
	struct slots s;
	uint64_t slot, start, end;
	assert_true(slots_by_path(w, "grid", &s));
	assert_int_equal(s.at.slots, 5); /* chunk 0 is not stored */
	assert_true(s.at.index != UINT64_MAX);
	assert_false(slots_find(&s, 0, &slot));
	assert_false(slots_find(&s, 6, &slot));
	for (uint64_t i = 0; i < 5; i++) {
		const struct chunk_record r = slots_record(&s, i);
		assert_int_equal(slots_chunk(&s, i), i + 1);
		assert_true(slots_find(&s, i + 1, &slot));
		assert_int_equal(slot, i);
		slots_range(&s, i, &start, &end);
		assert_int_equal(end - start, 16);
		assert_int_equal(slots_at(&s, start), i);
		assert_int_equal(slots_at(&s, end - 1), i);
		assert_int_equal(r.number, i + 1);
		assert_int_equal(r.addr, start);
		assert_int_equal(r.size, 16);
	}
	world_end(w);
}

static void contiguous_data_have_no_index(void **state)
{
	struct world *w = world_begin();
	struct slots s;
	assert_true(slots_by_path(w, "a/plain", &s));
	assert_true(s.at.index == UINT64_MAX);
	assert_int_equal(s.at.bytes, slots_record(&s, 0).size);
	world_end(w);
}

static void some_datasets_have_no_slots(void **state)
{
	struct world *w = world_begin();
	struct slots s;
	struct grid other;
	const uint64_t dims[] = {6, 4}, chunk[] = {3, 2};
	assert_false(slots_of(w->base, OBJECT_NONE, NULL, &s));
	/* Chunks of another shape. */
	assert_int_equal(grid_init(shape_arena(), &other, 2, dims, chunk, NULL), 0);
	assert_false(slots_of(w->base, find_object(domain_tree(w->domain), "grid"), &other, &s));
	assert_false(slots_by_path(w, "null", &s));
	assert_false(slots_by_path(w, "nothing", &s));
	world_end(w);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(slots_are_in_the_order_of_chunks),
		TEST(contiguous_data_have_no_index),
		TEST(some_datasets_have_no_slots),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
