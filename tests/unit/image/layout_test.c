/* SPDX-License-Identifier: Apache-2.0 */
/* The slots and items of datasets agree with each other, and with what the decoders find. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "image_scan.h"
#include "rendered.h"

static void scan(struct rendered *r, struct image_scan *s)
{
	struct err err = ERR_INIT;
	if (rendered_make(r, NULL, &err) ||
	    image_scan_open(s, r->img, domain_tree(r->domain), &err))
		fail_msg("%s", err.msg);
}

static void check_slots(const struct rendered *r, const struct image_layout *l)
{
	uint64_t slot;
	for (uint64_t i = 0; i < l->slots; i++) {
		assert_true(image_chunk_slot(r->img, l->number,
					     image_slot_chunk(r->img, l->number, i), &slot));
		assert_int_equal(slot, i);
	}
	assert_false(image_chunk_slot(r->img, l->number, UINT64_MAX, &slot));
	assert_true(l->bytes <= l->slots * l->stride);
	assert_int_equal(l->index != UINT64_MAX, l->chunked);
}

static void check_items(const struct rendered *r, const struct image_layout *l, unsigned int *found)
{
	uint64_t start, end;
	for (uint64_t i = 0; i < l->slots; i++) {
		const uint64_t chunk = image_slot_chunk(r->img, l->number, i);
		if (!image_items(r->img, l->number, chunk, &start, &end))
			continue;
		assert_true(l->heap <= start && end <= l->heap_end);
		assert_int_equal(image_item_slot(r->img, l->number, start), i);
		assert_int_equal(image_item_slot(r->img, l->number, end - 1), i);
		++*found;
	}
}

static void layouts_agree(void **state)
{
	struct rendered *r = *state;
	struct image_scan s;
	struct image_layout l, same;
	unsigned int datasets = 0, items = 0;
	scan(r, &s);
	while (image_layout(r->img, datasets, &l)) {
		assert_true(image_dataset_layout(r->img, l.number, &same));
		assert_memory_equal(&l, &same, sizeof(l));
		check_slots(r, &l);
		check_items(r, &l, &items);
		datasets++;
	}
	assert_int_equal(datasets, 2);
	assert_int_equal(items, 1);
	assert_false(image_dataset_layout(r->img, 0, &l)); /* a group */
	assert_false(image_dataset_layout(r->img, tree_numbers(s.tree), &l));
	assert_false(image_dataset_layout(r->img, OBJECT_NONE, &l));
	image_scan_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(layouts_agree, rendered_setup, rendered_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
