/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets and pages: a chunk that cannot be read makes no other dataset unreadable, except if
 * there are so many datasets that small ones share pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include <unistd.h>

#include "image/image_plan.h"
#include "rendered.h"

static unsigned int tiny(unsigned int i)
{
	return 1 + i * 7 % 112;
}

/* Mostly small sizes, some that nearly fill a page, and some larger than a page. */
static unsigned int mixed(unsigned int i)
{
	return i % 50 == 9 ? 5000 : i % 50 == 20 ? 4090 : tiny(i);
}

static uint64_t page_of(uint64_t offset)
{
	return offset / IMAGE_PAGE;
}

static void up_to_4096_datasets_have_pages_of_their_own(void **state)
{
	struct rendered *r = *state;
	uint64_t last = 0;
	rendered_put_datasets(r, IMAGE_OWN_PAGES, tiny);
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	assert_int_equal(r->img->ndatasets, IMAGE_OWN_PAGES);
	for (uint32_t i = 0; i < r->img->ndatasets; i++) {
		const struct image_dataset *d = &r->img->datasets[i];
		assert_int_equal(d->raw_addr % IMAGE_PAGE, 0);
		assert_true(d->raw_addr >= r->img->meta_size);
		assert_true(i == 0 || page_of(d->raw_addr) > last);
		last = page_of(d->raw_addr + d->raw_bytes - 1);
	}
	/* The padding up to the next page is not allocated. */
	assert_true(image_allocated(r->img) < r->img->meta_size + 120 * IMAGE_OWN_PAGES);
}

static void small_datasets_share_pages_if_there_are_more(void **state)
{
	struct rendered *r = *state;
	uint64_t last = 0;
	uint32_t pages = 0, small = 0;
	bool last_small = true;
	rendered_put_datasets(r, IMAGE_OWN_PAGES + 1, mixed);
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	for (uint32_t i = 0; i < r->img->ndatasets; i++) {
		const struct image_dataset *d = &r->img->datasets[i];
		const uint64_t first = page_of(d->raw_addr);
		const bool is_small = d->raw_bytes < IMAGE_PAGE;
		assert_int_equal(d->raw_addr % 8, 0);
		if (is_small)
			assert_int_equal(page_of(d->raw_addr + d->raw_bytes - 1), first);
		else
			assert_int_equal(d->raw_addr % IMAGE_PAGE, 0);
		if (i > 0 && !(is_small && last_small))
			assert_true(first > last);
		pages += first != last;
		small += is_small;
		last = page_of(d->raw_addr + d->raw_bytes - 1);
		last_small = is_small;
	}
	assert_true(small > 3900 && pages < 400);
}

static void heaps_have_pages_of_their_own(void **state)
{
	struct rendered *r = *state;
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	unsigned int heaps = 0;
	for (uint32_t i = 0; i < r->img->nextents; i++) {
		const struct extent *x = &r->img->extents[i];
		if (!extent_has_slots(x->kind))
			continue;
		assert_int_equal(x->start % IMAGE_PAGE, 0);
		heaps += x->kind == EXTENT_HEAP;
	}
	assert_int_equal(heaps, 1);
}

static void a_damaged_dataset_fails_alone(void **state)
{
	enum { N = 10, BAD = 4 };
	struct rendered *r = *state;
	uint8_t page[IMAGE_PAGE];
	rendered_put_datasets(r, N, tiny);
	assert_int_equal(small_put(r->store, SMALL_PREFIX "/d/0004-000000-000004/0", "bad"), 0);
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	for (uint64_t at = 0; at < image_size(r->img); at += IMAGE_PAGE) {
		const uint64_t n = min_u64(IMAGE_PAGE, image_size(r->img) - at);
		const ssize_t got = image_read(r->img, NULL, page, n, at, NULL, NULL);
		assert_int_equal(got, at == r->img->datasets[BAD].raw_addr ? -EIO : (ssize_t)n);
	}
}

/* A chunk is not needed for the bytes behind it: it may be damaged, or have another version. */
static void bytes_between_slots_need_no_chunk(void **state)
{
	struct rendered *r = *state;
	uint8_t bytes[16] = {1};
	rendered_put(r, SMALL_KEY_INTS,
		     "{" SMALL_HEAD(SMALL_INTS) ",'type':" SMALL_I32
						",'shape':{'class':'H5S_SIMPLE','dims':[9]},"
						"'attributes':{},'creationProperties':{'layout':"
						"{'class':'H5D_CHUNKED'}},'layout':{'class':"
						"'H5D_CHUNKED','dims':[3]}}");
	assert_int_equal(small_put(r->store, SMALL_PREFIX "/d/0002-000000-000001/1", "bad"), 0);
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	const struct image_dataset *d = NULL;
	for (uint32_t i = 0; i < r->img->ndatasets; i++)
		if (r->img->datasets[i].slot_bytes == 12)
			d = &r->img->datasets[i];
	assert_non_null(d);
	assert_int_equal(d->stride, 16);
	assert_int_equal(image_read(r->img, NULL, bytes, 16, d->raw_addr, NULL, NULL), -EIO);
	assert_int_equal(image_read(r->img, NULL, bytes, 4, d->raw_addr + 12, NULL, NULL), 4);
	assert_memory_equal(bytes, "\0\0\0", 4);
}

/* Addresses are relative to the user block, and pages are those of the file. */
static void pages_behind_a_user_block(void **state)
{
	static const unsigned int sizes[] = {512, 1024, 2048, 4096, 8192};
	struct rendered *r = *state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t whole[2 * 8192], part[100];
		rendered_put(r, SMALL_PREFIX "/.group.json",
			     "{" SMALL_HEAD(SMALL_ROOT) ",'links':{'n':" SMALL_HARD(
				     SMALL_INTS, "1") "},'attributes':{},'hsmount':{'userBlock':"
						      "{'size':%u,'value':'TUFUTEFC'}}}",
			     sizes[i]);
		assert_int_equal(rendered_make(r, NULL, NULL), 0);
		assert_int_equal(image_base(r->img), sizes[i]);
		assert_int_equal(r->file.base, sizes[i]);
		assert_int_equal(image_size(r->img), sizes[i] + r->img->size);
		for (uint32_t k = 0; k < r->img->ndatasets; k++)
			assert_int_equal((sizes[i] + r->img->datasets[k].raw_addr) % IMAGE_PAGE, 0);
		const size_t n = 2 * sizes[i];
		assert_int_equal(image_read(r->img, NULL, whole, n, 0, NULL, NULL), n);
		assert_memory_equal(whole, "MATLAB\0\0", 8);
		for (size_t at = 0; at + sizeof(part) < n; at += 13) {
			assert_int_equal(
				image_read(r->img, NULL, part, sizeof(part), at, NULL, NULL),
				sizeof(part));
			assert_memory_equal(part, whole + at, sizeof(part));
		}
		assert_int_equal(image_seek(r->img, 7, SEEK_DATA), 7);
		assert_int_equal(image_seek(r->img, sizes[i], SEEK_DATA), sizes[i]);
		assert_true(image_seek(r->img, 0, SEEK_HOLE) > sizes[i]);
		assert_int_equal(image_seek(r->img, image_size(r->img), SEEK_DATA), -ENXIO);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(up_to_4096_datasets_have_pages_of_their_own,
						rendered_setup, rendered_teardown),
		cmocka_unit_test_setup_teardown(small_datasets_share_pages_if_there_are_more,
						rendered_setup, rendered_teardown),
		cmocka_unit_test_setup_teardown(heaps_have_pages_of_their_own, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(a_damaged_dataset_fails_alone, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(bytes_between_slots_need_no_chunk, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(pages_behind_a_user_block, rendered_setup,
						rendered_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
