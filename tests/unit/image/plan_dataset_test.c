/* SPDX-License-Identifier: Apache-2.0 */
/* How datasets are stored in an image: layout, slots, and windows of fill values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#include "image/image_plan.h"
#include "small_tree.h"

static const struct chunk_list unlisted = {.listed = false};

static struct image_dataset *render(struct small_tree *t)
{
	struct err err = ERR_INIT;
	if (small_render(t, &err))
		fail_msg("%s", err.msg);
	return t->img->datasets;
}

static void scalars_are_contiguous(void **state)
{
	struct small_tree *t = *state;
	struct dataset *ds = small_dataset(t, dtype_opaque(t->a, 1, "", NULL), 1, 1, unlisted);
	dspace_scalar(&ds->space);
	ds->requested = LAYOUT_CHUNKED;
	assert_false(render(t)->chunked);
}

/* A dataset of variable-length strings in `chunks` chunks, of which one is stored. The fill value
 * has n bytes. */
static struct image_dataset *with_fill(struct small_tree *t, size_t n, uint64_t chunks,
				       uint64_t chunk)
{
	static const uint64_t number = 1, decoded = 100;
	uint8_t slot[DTYPE_VLEN_SIZE];
	uint64_t offset;
	auto_free char *text = calloc(1, n);
	small_begin(t);
	struct dataset *ds = small_dataset(
		t, dtype_vlen_string(t->a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL), chunks,
		chunk,
		(struct chunk_list){
			.listed = true, .n = 1, .numbers = &number, .decoded = &decoded});
	ds->fill_defined = true;
	assert_int_equal(elems_heap_add(&ds->fill, text, n, &offset), 0);
	elems_put_vlen(slot, (uint32_t)n, offset);
	assert_int_equal(bytes_append(&ds->fill.fixed, slot, sizeof(slot)), 0);
	return render(t);
}

/* Each element of a chunk that is not stored has a string of its own, up to 2^28 bytes in all. */
static void windows_of_fill_values_are_limited(void **state)
{
	enum { LEN = 1024, MOST = CHUNK_BYTES_MAX / LEN };
	const struct image_dataset *d = with_fill(*state, LEN, 3, MOST);
	assert_int_equal(d->fill_window,
			 align_u64(h5_gheap_bound(MOST, CHUNK_BYTES_MAX, H5_GHEAP_TARGET_DATA), 8));
	assert_int_equal(d->nslots, 3);
	assert_false(d->listed);
	d = with_fill(*state, LEN, 3, MOST + 1);
	assert_int_equal(d->fill_window, 0);
	assert_int_equal(d->nslots, 1);
	assert_true(d->listed);
}

/* Missing chunks have slots up to 2^50 bytes of slots and windows. */
static void slots_of_fill_values_are_limited(void **state)
{
	enum { LEN = 1024, CHUNK = CHUNK_BYTES_MAX / LEN };
	const uint64_t n = DATASET_DENSE_MAX / CHUNK_BYTES_MAX;
	const struct image_dataset *d = with_fill(*state, LEN, n / 2, CHUNK);
	assert_int_equal(d->nslots, n / 2);
	d = with_fill(*state, LEN, n, CHUNK);
	assert_int_equal(d->nslots, 1);
	assert_true(d->listed);
}

/* Filters need chunks, whatever layout is recorded. */
static void datasets_with_filters_are_chunked(void **state)
{
	static const struct filter shuffle = {.id = FILTER_SHUFFLE};
	struct small_tree *t = *state;
	for (uint32_t n = 0; n < 2; n++) {
		struct dataset *ds =
			small_dataset(t, dtype_opaque(t->a, 4, "", NULL), 2, 10, unlisted);
		ds->requested = LAYOUT_CONTIGUOUS;
		ds->nfilters = n;
		ds->filters = &shuffle;
	}
	const struct image_dataset *d = render(t);
	assert_false(d[0].chunked);
	assert_true(d[1].chunked);
}

/* In a stored chunk a slot of an inner type takes at least 4 bytes; in the heap it takes 16. */
static void windows_of_nested_types(void **state)
{
	static const uint64_t number = 0, decoded = 4 + 1000;
	struct small_tree *t = *state;
	const struct chunk_list known = {
		.listed = true, .n = 1, .numbers = &number, .decoded = &decoded};
	const struct dtype *text =
		dtype_vlen_string(t->a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	small_dataset(t, dtype_vlen(t->a, text, NULL), 1, 1, known);
	small_dataset(t, text, 1, 1, known);
	const struct image_dataset *d = render(t);
	assert_int_equal(dataset_heap_bytes(&d[0]),
			 align_u64(h5_gheap_bound(1 + 250, 4000, H5_GHEAP_TARGET_DATA), 8));
	assert_int_equal(dataset_heap_bytes(&d[1]),
			 align_u64(h5_gheap_bound(1, 1000, H5_GHEAP_TARGET_DATA), 8));
}

/* The fill value is not in the header. */
static void fill_values_may_be_larger_than_a_message(void **state)
{
	enum { SIZE = IMAGE_FILL_MAX + 1 };
	struct small_tree *t = *state;
	uint8_t byte = 0;
	struct dataset *ds = small_dataset(t, dtype_opaque(t->a, SIZE, "", NULL), 2, 1,
					   (struct chunk_list){.listed = true});
	ds->fill_defined = true;
	assert_int_equal(bytes_append_zero(&ds->fill.fixed, SIZE), 0);
	ds->fill.fixed.data[SIZE - 1] = 7;
	const struct image_dataset *d = render(t);
	assert_int_equal(d->nslots, 2);
	assert_int_equal(
		image_read(t->img, NULL, &byte, 1, d->raw_addr + d->stride + SIZE - 1, NULL, NULL),
		1);
	assert_int_equal(byte, 7);
}

/* Readers such as jsfive and pyfive require an index. */
static void datasets_without_chunks_have_an_empty_index(void **state)
{
	static const char leaf[] = "TREE\1\0\0\0\377\377\377\377\377\377\377\377"
				   "\377\377\377\377\377\377\377\377";
	const struct chunk_list none = {.listed = true};
	struct small_tree *t = *state;
	const struct dtype *plain = dtype_opaque(t->a, 4, "", NULL);
	const struct dtype *text =
		dtype_vlen_string(t->a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	uint8_t node[24];
	small_dataset(t, plain, 3, 10, none);
	small_dataset(t, text, 3, 10, none);
	small_dataset(t, plain, 3, 10, none)->requested = LAYOUT_CONTIGUOUS;
	const struct image_dataset *d = render(t);
	assert_int_equal(d[0].nslots, 0);
	assert_int_equal(d[0].raw_addr, H5_UNDEF);
	assert_int_equal(image_read(t->img, NULL, node, sizeof(node), d[0].index_addr, NULL, NULL),
			 sizeof(node));
	assert_memory_equal(node, leaf, sizeof(node));
	assert_true(d[1].chunked && d[1].nslots == 0 && d[1].index_addr == H5_UNDEF);
	assert_true(!d[2].chunked && d[2].index_addr == H5_UNDEF);
}

static void errors_of_the_source_are_returned(void **state)
{
	static const uint64_t number = 0, decoded = 100;
	struct small_tree *t = *state;
	uint8_t byte;
	small_dataset(t, dtype_vlen_string(t->a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL), 1, 1,
		      (struct chunk_list){
			      .listed = true, .n = 1, .numbers = &number, .decoded = &decoded});
	const struct image_dataset *d = render(t);
	t->code = -EIO;
	assert_int_equal(image_read(t->img, NULL, &byte, 1, d->heap_addr, NULL, NULL), -EIO);
	assert_int_equal(image_read(t->img, NULL, &byte, 1, d->raw_addr, NULL, NULL), -EIO);
}

/* Any range of a chunk that is not stored, and of the padding after it. */
static void absent_chunks_read_as_fill_values(void **state)
{
	enum { SIZE = 3, CHUNK = 5, STRIDE = 16 };
	struct small_tree *t = *state;
	struct dataset *ds =
		small_dataset(t, dtype_opaque(t->a, SIZE, "", NULL), 2, CHUNK, unlisted);
	uint8_t expected[2 * STRIDE] = {0}, got[2 * STRIDE];
	for (size_t i = 0; i < sizeof(expected); i++)
		if (i % STRIDE < SIZE * CHUNK)
			expected[i] = (uint8_t)("abc"[i % STRIDE % SIZE]);
	ds->fill_defined = true;
	assert_int_equal(bytes_append(&ds->fill.fixed, "abc", SIZE), 0);
	const struct image_dataset *d = render(t);
	assert_int_equal(d->stride, STRIDE);
	for (size_t at = 0; at < sizeof(got); at++)
		for (size_t n = 1; at + n <= sizeof(got); n++) {
			assert_int_equal(
				image_read(t->img, NULL, got, n, d->raw_addr + at, NULL, NULL), n);
			assert_memory_equal(got, expected + at, n);
		}
}

/* Filters as libhdf5 would record them for the dataset. */
static void filters_of_the_header(void **state)
{
	static const struct filter recorded[] = {
		{.id = FILTER_SHUFFLE}, {.id = FILTER_DEFLATE}, {.id = FILTER_FLETCHER32}};
	struct small_tree *t = *state;
	const struct dtype *types[] = {
		dtype_integer(t->a, 4, true, false, NULL),
		dtype_vlen_string(t->a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL)};
	for (int i = 0; i < 2; i++) {
		struct dataset *ds =
			small_dataset(t, types[i], 2, 10, (struct chunk_list){.listed = true});
		ds->nfilters = 3;
		ds->filters = recorded;
	}
	const struct image_dataset *d = render(t);
	for (int i = 0; i < 2; i++) {
		struct pipeline p;
		dataset_filters(&d[i], &p);
		assert_int_equal(p.n, i == 0 ? 3 : 2); /* no checksum of variable-length elements */
		assert_int_equal(p.f[0].id, FILTER_SHUFFLE);
		assert_int_equal(p.f[0].nparams, 1);
		assert_int_equal(p.f[0].params[0], types[i]->size);
		assert_int_equal(p.f[1].id, FILTER_DEFLATE);
		assert_int_equal(p.f[1].nparams, 1);
		assert_int_equal(p.f[1].params[0], 6);
		if (i == 0)
			assert_int_equal(p.f[2].id, FILTER_FLETCHER32);
	}
}

/* Returns the bytes between the metadata and the raw data. */
static uint64_t gap_of(struct small_tree *t, bool apart, uint64_t chunks)
{
	small_begin(t);
	struct dataset *ds =
		small_dataset(t, dtype_opaque(t->a, 4, "", NULL), chunks, 10, unlisted);
	ds->keep_apart = apart;
	const struct image_dataset *d = render(t);
	return d->raw_addr - align_u64(d->index_addr + h5_bt1_size(1, d->nslots), IMAGE_PAGE);
}

/* Read-ahead of the metadata must not reach many chunks, even if these are small. */
static void many_chunks_that_are_to_be_apart_come_after_a_gap(void **state)
{
	struct small_tree *t = *state;
	assert_int_equal(gap_of(t, false, 1000), 0);
	assert_int_equal(gap_of(t, true, IMAGE_GAP_CHUNKS), 0);
	const uint64_t gap = gap_of(t, true, IMAGE_GAP_CHUNKS + 1);
	const struct image_dataset *d = t->img->datasets;
	assert_int_equal(gap, IMAGE_GAP_TIMES * (d->raw_addr - gap));
	assert_int_equal(image_seek(t->img, 0, SEEK_HOLE), d->raw_addr - gap);
	assert_int_equal(gap_of(t, true, 100 * 1000), IMAGE_GAP_APART);
	assert_int_equal(gap_of(t, true, 1 << 20), IMAGE_GAP_APART);
	assert_int_equal(gap_of(t, false, 1 << 20), IMAGE_GAP); /* much raw data */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, small_setup, small_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(scalars_are_contiguous),
		TEST(windows_of_fill_values_are_limited),
		TEST(slots_of_fill_values_are_limited),
		TEST(absent_chunks_read_as_fill_values),
		TEST(filters_of_the_header),
		TEST(datasets_with_filters_are_chunked),
		TEST(windows_of_nested_types),
		TEST(fill_values_may_be_larger_than_a_message),
		TEST(datasets_without_chunks_have_an_empty_index),
		TEST(errors_of_the_source_are_returned),
		TEST(many_chunks_that_are_to_be_apart_come_after_a_gap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
