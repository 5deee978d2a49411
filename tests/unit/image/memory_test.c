/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of an image and of its chunks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "image/image_plan.h"
#include "small_tree.h"

static uint64_t memory_with_unreachable_objects(struct small_tree *t, uint32_t n)
{
	uint32_t number;
	small_begin(t);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(tree_add(t->tree, &number, NULL), 0);
		*tree_edit(t->tree, number) = (struct object){.kind = OBJECT_GROUP, .id = "u"};
	}
	assert_int_equal(small_render(t, NULL), 0);
	return image_memory(t->img);
}

/* The tables of header addresses and of datasets have an entry for every object number. */
static void every_object_number_takes_memory(void **state)
{
	const uint64_t without = memory_with_unreachable_objects(*state, 0);
	assert_int_equal(memory_with_unreachable_objects(*state, 1000), without + (8 + 4) * 1000);
}

/* A plan is charged to the budget while it is made, so a plan that is too large is refused. */
static void the_charge_is_that_of_the_finished_image(void **state)
{
	struct small_tree *t = *state;
	struct budget_stats stats;
	for (uint32_t i = 0; i < 20; i++)
		small_add(t, OBJECT_GROUP);
	assert_int_equal(small_render(t, NULL), 0);
	budget_get_stats(t->env.budget, &stats);
	assert_int_equal(stats.used[BUDGET_PLANS], image_memory(t->img));
	assert_true(image_memory(t->img) > t->img->meta_size + 20 * sizeof(struct image_object));
}

/* A chunked dataset without chunks has an index, and neither raw data nor heaps. */
static void only_regions_that_exist_take_memory(void **state)
{
	struct small_tree *t = *state;
	const struct chunk_list none = {.listed = true};
	uint64_t memory[2];
	for (uint32_t datasets = 0; datasets < 2; datasets++) {
		small_begin(t);
		for (uint32_t i = 0; i < datasets; i++)
			small_dataset(t, dtype_opaque(t->a, 1, "", NULL), 5, 5, none);
		assert_int_equal(small_render(t, NULL), 0);
		memory[datasets] = image_memory(t->img) - t->img->meta_size;
	}
	assert_int_equal(t->img->nextents, 1);
	assert_int_equal(memory[1], memory[0] + sizeof(struct image_dataset) +
					    sizeof(struct image_object) + 8 + 4 +
					    sizeof(struct extent));
}

/* The image has an offset for each listed chunk with a heap, and for the end of the heaps. */
static void every_heap_of_a_chunk_takes_an_offset(void **state)
{
	static const uint64_t numbers[] = {0, 1, 2, 3, 4}, decoded[] = {100, 100, 100, 100, 100};
	uint64_t memory[2];
	for (int heaps = 0; heaps < 2; heaps++) {
		struct small_tree *t = *state;
		small_begin(t);
		small_dataset(t, dtype_vlen_string(t->a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL),
			      5, 1,
			      (struct chunk_list){.listed = true,
						  .n = heaps ? 5 : 0,
						  .numbers = numbers,
						  .decoded = decoded});
		assert_int_equal(small_render(t, NULL), 0);
		memory[heaps] = image_memory(t->img) - t->img->meta_size -
				t->img->nextents * sizeof(struct extent);
	}
	assert_int_equal(memory[1], memory[0] + 5 * sizeof(uint64_t));
}

/* Only a chunk whose stored bytes are those of the slot is loaded without a second copy. */
static void a_load_holds_stored_and_decoded_bytes(void **state)
{
	static const uint32_t six = 6;
	static const struct filter deflate = {.id = FILTER_DEFLATE, .nparams = 1, .params = &six};
	static const struct filter other = {.id = FILTER_ZSTD};
	enum { CHUNK = 1000 };
	struct small_tree *t = *state;
	const struct chunk_list unlisted = {.listed = false};
	const struct dtype *byte = dtype_opaque(t->a, 1, "", NULL);
	small_dataset(t, byte, 3, CHUNK, unlisted);
	struct dataset *ds = small_dataset(t, byte, 3, CHUNK, unlisted);
	ds->nfilters = 1;
	ds->filters = &deflate;
	ds = small_dataset(t, byte, 3, CHUNK, unlisted);
	ds->nfilters = 1;
	ds->filters = &other; /* not in the header, so the slot is not filtered */
	small_dataset(t, dtype_reference(t->a, DTYPE_REF_OBJECT, NULL), 3, CHUNK, unlisted);
	assert_int_equal(small_render(t, NULL), 0);
	const struct image_dataset *d = t->img->datasets;
	assert_int_equal(d[0].cost, CHUNK);
	assert_int_equal(d[0].load_cost, CHUNK);
	assert_true(d[1].filtered);
	assert_int_equal(d[1].cost, CHUNK + 11); /* a stored block of a zlib stream */
	assert_int_equal(d[1].load_cost, CHUNK + 11 + CHUNK);
	assert_false(d[2].filtered);
	assert_int_equal(d[2].cost, CHUNK);
	assert_int_equal(d[2].load_cost, 2 * CHUNK);
	assert_int_equal(d[3].load_cost, 2 * 8 * CHUNK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, small_setup, small_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_object_number_takes_memory),
		TEST(the_charge_is_that_of_the_finished_image),
		TEST(only_regions_that_exist_take_memory),
		TEST(every_heap_of_a_chunk_takes_an_offset),
		TEST(a_load_holds_stored_and_decoded_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
