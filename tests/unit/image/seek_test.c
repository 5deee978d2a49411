/* SPDX-License-Identifier: Apache-2.0 */
/* A hole is exactly where nothing is stored and a read returns zeros. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#include "rendered.h"

/* A contiguous dataset. Only its second chunk is stored. */
static uint64_t render_sized(struct rendered *r, unsigned int elements, unsigned int chunk,
			     const char *fill)
{
	char json[1024];
	struct h5_layout layout;
	snprintf(json, sizeof(json),
		 "{" SMALL_HEAD(
			 SMALL_INTS) ",'type':" SMALL_I32
				     ",'shape':{'class':'H5S_SIMPLE','dims':[%u]},'attributes':{},"
				     "'creationProperties':{%s'layout':{'class':'H5D_CONTIGUOUS'}},"
				     "'layout':{'class':'H5D_CHUNKED','dims':[%u]}}",
		 elements, fill, chunk);
	assert_int_equal(small_put(r->store, SMALL_KEY_INTS, json), 0);
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	assert_true(rendered_layout(r, "ints", &layout));
	assert_int_equal(layout.cls, LAYOUT_CONTIGUOUS);
	return layout.addr;
}

/* Ten elements in chunks of four. */
static uint64_t render_contiguous(struct rendered *r, const char *fill)
{
	return render_sized(r, 10, 4, fill);
}

static void chunks_that_are_not_stored_are_holes(void **state)
{
	static const struct {
		uint64_t from;
		int whence;
		uint64_t to;
	} cases[] = {
		{0, SEEK_HOLE, 0},   {0, SEEK_DATA, 16},  {15, SEEK_DATA, 16},
		{16, SEEK_DATA, 16}, {17, SEEK_DATA, 17}, {16, SEEK_HOLE, 32},
		{31, SEEK_HOLE, 32}, {32, SEEK_HOLE, 32}, {32, SEEK_DATA, 40},
	};
	struct rendered *r = *state;
	uint64_t raw = render_contiguous(r, "");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t to = image_seek(r->img, raw + cases[i].from, cases[i].whence);
		assert_int_equal(to, raw + cases[i].to);
	}
	assert_int_equal(image_seek(r->img, 0, SEEK_DATA), 0);
	assert_int_equal(image_seek(r->img, 0, SEEK_HOLE), raw);
	assert_int_equal(image_seek(r->img, raw + 40, SEEK_HOLE), image_size(r->img));
	assert_int_equal(image_seek(r->img, image_size(r->img), SEEK_DATA), -ENXIO);
	assert_int_equal(image_seek(r->img, 0, SEEK_SET), -EINVAL);
}

static void a_hole_reads_as_zeros(void **state)
{
	static const uint8_t zeros[16];
	struct rendered *r = *state;
	uint64_t raw = render_contiguous(r, "");
	uint8_t bytes[16];
	assert_int_equal(image_read(r->img, NULL, bytes, 16, raw, NULL, NULL), 16);
	assert_memory_equal(bytes, zeros, 16);
}

/* Read-ahead of the metadata by the kernel must not reach a chunk. */
static void much_raw_data_comes_after_a_gap(void **state)
{
	static uint8_t bytes[1 << 20];
	enum { GAP = 2 << 20, SMALL = 4 << 20 };
	struct rendered *r = *state;
	uint64_t raw = render_sized(r, SMALL, 1024, "");
	int64_t hole = image_seek(r->img, 0, SEEK_HOLE);
	assert_int_equal(hole, raw - GAP);
	assert_int_equal(image_seek(r->img, (uint64_t)hole, SEEK_DATA), raw + 4096);
	assert_int_equal(
		image_read(r->img, NULL, bytes, sizeof(bytes), raw - sizeof(bytes), NULL, NULL),
		sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], 0);
}

static void little_raw_data_has_no_gap(void **state)
{
	struct rendered *r = *state;
	uint64_t raw = render_sized(r, (4 << 20) - 1024, 1024, "");
	assert_int_equal(image_seek(r->img, 0, SEEK_HOLE), raw);
	assert_true(raw < 2 << 20);
}

static void fill_values_are_data(void **state)
{
	struct rendered *r = *state;
	uint64_t raw = render_contiguous(r, "'fillValue':7,");
	assert_int_equal(image_seek(r->img, raw, SEEK_DATA), raw);
	assert_int_equal(image_seek(r->img, raw, SEEK_HOLE), image_size(r->img));
}

static void only_what_is_stored_counts_as_allocated(void **state)
{
	struct rendered *r = *state;
	render_contiguous(r, "'fillValue':7,");
	uint64_t filled = image_allocated(r->img);
	render_contiguous(r, "'fillValue':0,");
	assert_int_equal(filled - image_allocated(r->img), 24);
}

/* ---- lists that the open has not made ---- */

/* A source that knows of no chunk of numbers whether it is stored, until it is asked. */
struct asked {
	const struct tree *tree;
	unsigned int calls;
	int code;
	uint64_t first, n; /* the chunks that are stored */
};

static const struct chunk_list *list_nothing(void *ctx, uint32_t dataset)
{
	static const struct chunk_list unknown, none = {.listed = true};
	const struct asked *a = ctx;
	return tree_object(a->tree, dataset)->o.dataset.type->has_vlen ? &none : &unknown;
}

static int find_some(void *ctx, uint32_t dataset, struct chunk_list *out, struct err *err)
{
	struct asked *a = ctx;
	uint64_t *numbers = calloc(a->n + 1, sizeof(*numbers));
	a->calls++;
	if (a->code) {
		free(numbers);
		return err_set(err, a->code, "no answer");
	}
	for (uint64_t i = 0; i < a->n; i++)
		numbers[i] = a->first + i;
	*out = (struct chunk_list){.listed = true, .n = a->n, .numbers = numbers};
	return 0;
}

/* Renders n chunks of 16 bytes whose presence is not known. Returns the offset of the first. */
static uint64_t render_unknown(struct rendered *r, struct asked *a, unsigned int n,
			       const char *fill)
{
	const uint64_t raw = render_sized(r, 4 * n, 4, fill);
	const struct chunk_source chunks = {.list = list_nothing, .find = find_some, .ctx = a};
	a->tree = domain_tree(r->domain);
	image_unref(r->img);
	assert_int_equal(image_new(&r->env, r->cache, domain_tree(r->domain), &chunks,
				   &(struct image_options){.domain_dir = ""}, &r->img, NULL),
			 0);
	return raw;
}

static void the_source_is_asked_once(void **state)
{
	struct rendered *r = *state;
	struct asked a = {.first = 3, .n = 2};
	const uint64_t raw = render_unknown(r, &a, 32, ""), size = image_size(r->img);
	const uint64_t all = image_allocated(r->img), memory = image_memory(r->img);
	assert_int_equal(image_certain(r->img), all - 512);
	assert_int_equal(image_seek(r->img, 0, SEEK_HOLE), size);
	assert_int_equal(a.calls, 0);
	assert_int_equal(image_find(r->img, 0, SEEK_DATA), 0);
	assert_int_equal(a.calls, 0); /* the dataset was not reached */
	assert_int_equal(image_find(r->img, 0, SEEK_HOLE), raw);
	assert_int_equal(image_find(r->img, raw, SEEK_DATA), raw + 48);
	assert_int_equal(image_find(r->img, raw + 50, SEEK_HOLE), raw + 80);
	assert_int_equal(image_find(r->img, raw + 80, SEEK_DATA), raw + 512);
	assert_int_equal(a.calls, 1);
	assert_int_equal(image_seek(r->img, raw, SEEK_DATA), raw + 48);
	assert_int_equal(image_allocated(r->img), all - 512 + 32);
	assert_int_equal(image_certain(r->img), all - 512 + 32);
	assert_int_equal(image_memory(r->img), memory);
	/* With the chunks, what is known of them is dropped. */
	image_forget_chunks(r->img);
	assert_int_equal(image_allocated(r->img), all);
	assert_int_equal(image_seek(r->img, 0, SEEK_HOLE), size);
	assert_int_equal(image_find(r->img, 0, SEEK_HOLE), raw);
	assert_int_equal(a.calls, 2);
}

static void a_source_that_cannot_tell_is_asked_once(void **state)
{
	struct rendered *r = *state;
	struct asked a = {.code = -E2BIG};
	const uint64_t raw = render_unknown(r, &a, 32, ""), all = image_allocated(r->img);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(image_find(r->img, 0, SEEK_HOLE), image_size(r->img));
		assert_int_equal(image_find(r->img, raw, SEEK_DATA), raw);
	}
	assert_int_equal(a.calls, 1);
	assert_int_equal(image_allocated(r->img), all);
	assert_int_equal(image_certain(r->img), all - 512);
}

/* Few chunks are read as quickly, and fill values are data. */
static void datasets_for_which_no_source_is_asked(void **state)
{
	struct rendered *r = *state;
	struct asked a = {.n = 0};
	render_unknown(r, &a, IMAGE_ASK_FROM - 1, "");
	assert_int_equal(image_find(r->img, 0, SEEK_HOLE), image_size(r->img));
	render_unknown(r, &a, 32, "'fillValue':7,");
	assert_int_equal(image_find(r->img, 0, SEEK_HOLE), image_size(r->img));
	assert_int_equal(image_certain(r->img), image_allocated(r->img));
	assert_int_equal(a.calls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(chunks_that_are_not_stored_are_holes,
						rendered_setup, rendered_teardown),
		cmocka_unit_test_setup_teardown(a_hole_reads_as_zeros, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(much_raw_data_comes_after_a_gap, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(little_raw_data_has_no_gap, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(fill_values_are_data, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(only_what_is_stored_counts_as_allocated,
						rendered_setup, rendered_teardown),
		cmocka_unit_test_setup_teardown(the_source_is_asked_once, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(a_source_that_cannot_tell_is_asked_once,
						rendered_setup, rendered_teardown),
		cmocka_unit_test_setup_teardown(datasets_for_which_no_source_is_asked,
						rendered_setup, rendered_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
