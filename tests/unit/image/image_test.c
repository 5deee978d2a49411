/* SPDX-License-Identifier: Apache-2.0 */
/* The rendered file: its size and content, and that rendering is deterministic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include <prefetch/kernel.h>

#include "image/image_plan.h"

#include "rendered.h"

static uint8_t *whole(struct rendered *r, size_t *n)
{
	uint8_t *bytes = malloc(image_size(r->img));
	*n = image_size(r->img);
	assert_int_equal(image_read(r->img, NULL, bytes, *n, 0, NULL, NULL), *n);
	return bytes;
}

static void the_superblock_tells_the_file_size(void **state)
{
	struct rendered *r = *state;
	struct h5_superblock sb;
	uint8_t bytes[H5_SUPERBLOCK_SIZE];
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	assert_int_equal(h5_file_read(&r->file, 0, bytes, sizeof(bytes), NULL), 0);
	struct cursor c = cursor_of(bytes, sizeof(bytes));
	assert_int_equal(h5_superblock_decode(&c, &sb, NULL), 0);
	assert_int_equal(sb.eof, image_size(r->img));
	assert_int_equal(sb.version, 0);
	assert_int_equal(sb.status_flags, 0);
	assert_int_equal(image_read(r->img, NULL, bytes, 1, sb.eof, NULL, NULL), 0);
}

static void the_same_domain_gives_the_same_bytes(void **state)
{
	struct rendered *r = *state;
	size_t n1, n2;
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	uint8_t *first = whole(r, &n1);
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	uint8_t *second = whole(r, &n2);
	assert_int_equal(n1, n2);
	assert_memory_equal(first, second, n1);
	free(first);
	free(second);
}

static void any_window_equals_the_whole(void **state)
{
	struct rendered *r = *state;
	size_t n;
	uint8_t piece[977];
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	uint8_t *bytes = whole(r, &n);
	for (size_t at = 0; at < n; at += 613) {
		ssize_t got = image_read(r->img, NULL, piece, sizeof(piece), at, NULL, NULL);
		assert_int_equal(got, min_u64(sizeof(piece), n - at));
		assert_memory_equal(piece, bytes + at, got);
	}
	free(bytes);
}

static void references_point_to_object_headers(void **state)
{
	struct rendered *r = *state;
	struct h5_link ints;
	struct h5_attr ref;
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	uint64_t root = rendered_root(r);
	assert_true(rendered_link(r, root, "ints", &ints));
	const struct h5_msg *msg = rendered_message(r, root, H5_MSG_ATTRIBUTE, 0);
	assert_non_null(msg);
	struct cursor c = cursor_of(msg->body, msg->len);
	assert_int_equal(h5_attr_decode(&r->file, &c, r->arena, NULL, &ref, NULL), 0);
	assert_int_equal(ref.data_len, 8);
	c = cursor_of(ref.data, 8);
	assert_int_equal(cur_u64(&c), ints.addr);
}

static void committed_types_are_shared(void **state)
{
	struct rendered *r = *state;
	struct h5_link ints, sub, type;
	uint64_t shared;
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	assert_true(rendered_link(r, rendered_root(r), "ints", &ints));
	assert_true(rendered_link(r, rendered_root(r), "sub", &sub));
	assert_true(rendered_link(r, sub.addr, "type", &type));
	const struct h5_msg *msg = rendered_message(r, ints.addr, H5_MSG_DATATYPE, 0);
	assert_true(msg->flags & H5_MSG_SHARED);
	struct cursor c = cursor_of(msg->body, msg->len);
	assert_int_equal(h5_shared_decode(&r->file, &c, &shared, NULL), 0);
	assert_int_equal(shared, type.addr);
	assert_non_null(rendered_message(r, type.addr, H5_MSG_REFCOUNT, 0));
}

static void missing_chunks_are_not_in_the_index(void **state)
{
	struct rendered *r = *state;
	struct h5_layout layout;
	uint8_t node[24];
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	assert_true(rendered_layout(r, "ints", &layout));
	assert_int_equal(layout.cls, LAYOUT_CHUNKED);
	assert_int_equal(layout.chunk[0], 4);
	assert_int_equal(h5_file_read(&r->file, layout.addr, node, sizeof(node), NULL), 0);
	struct cursor c = cursor_of(node, sizeof(node));
	assert_memory_equal(cur_bytes(&c, 4), "TREE", 4);
	cur_skip(&c, 2);
	assert_int_equal(cur_u16(&c), 1);
}

/* The chunk dimensions determine the layout. Rows: dims, chunk, layout in the creation properties,
 * class of the file. */
static void contiguous_only_where_it_is_exact(void **state)
{
	static const struct {
		const char *shape, *chunk, *recorded;
		enum layout_class cls;
	} cases[] = {
		{"[10]", "[10]", "CONTIGUOUS", LAYOUT_CONTIGUOUS},
		{"[10]", "[4]", "CONTIGUOUS", LAYOUT_CONTIGUOUS},
		{"[10]", "[4]", "COMPACT", LAYOUT_CONTIGUOUS},
		{"[10]", "[10]", "CHUNKED", LAYOUT_CHUNKED},
		{"[10,6]", "[3,6]", "CONTIGUOUS", LAYOUT_CONTIGUOUS},
		{"[10,6]", "[10,3]", "CONTIGUOUS", LAYOUT_CHUNKED},
		{"[4,6]", "[1,3]", "CONTIGUOUS", LAYOUT_CONTIGUOUS},
		{"[4,6]", "[1,4]", "CONTIGUOUS", LAYOUT_CHUNKED},
		{"[1,6]", "[1,4]", "CONTIGUOUS", LAYOUT_CONTIGUOUS},
		{"[2,3,6]", "[1,1,6]", "CONTIGUOUS", LAYOUT_CONTIGUOUS},
		{"[2,3,6]", "[1,2,6]", "CONTIGUOUS", LAYOUT_CHUNKED},
	};
	struct rendered *r = *state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char json[1024];
		struct h5_layout layout;
		snprintf(json, sizeof(json),
			 "{" SMALL_HEAD(SMALL_INTS) ",'type':" SMALL_I32
						    ",'shape':{'class':'H5S_SIMPLE','dims':%s},"
						    "'attributes':{},"
						    "'creationProperties':{'layout':{'class':'H5D_%"
						    "s'}},"
						    "'layout':{'class':'H5D_CHUNKED','dims':%s}}",
			 cases[i].shape, cases[i].recorded, cases[i].chunk);
		assert_int_equal(small_put(r->store, SMALL_KEY_INTS, json), 0);
		assert_int_equal(rendered_make(r, NULL, NULL), 0);
		assert_true(rendered_layout(r, "ints", &layout));
		if (layout.cls != cases[i].cls)
			fail_msg("%s in %s is stored as class %d", cases[i].shape, cases[i].chunk,
				 layout.cls);
	}
}

static void a_damaged_chunk_fails_alone(void **state)
{
	struct rendered *r = *state;
	struct h5_layout layout;
	struct err err = ERR_INIT;
	uint8_t byte;
	assert_int_equal(small_put(r->store, SMALL_PREFIX "/d/0002-000000-000001/1", "bad"), 0);
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	assert_true(rendered_layout(r, "ints", &layout));
	/* raw data begins on the page after the indexes */
	uint64_t raw = align_u64(layout.addr + 1, 4096);
	assert_int_equal(image_read(r->img, NULL, &byte, 1, raw, NULL, &err), -EIO);
	assert_non_null(strstr(err.msg, SMALL_PREFIX "/d/0002-000000-000001/1"));
	assert_int_equal(image_read(r->img, NULL, &byte, 1, 0, NULL, NULL), 1);
}

static unsigned int one_is_large(unsigned int i)
{
	return i == 1 ? 48 << 10 : 100;
}

/* Four of the largest chunks, at least KERNEL_READ_AHEAD_MIN. */
static void few_chunks_of_a_distant_store_are_read_ahead(void **state)
{
	static const struct image_options distant = {.domain_dir = "", .flags = IMAGE_DISTANT};
	struct rendered *r = *state;
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	assert_int_equal(image_read_ahead(r->img), KERNEL_READ_AHEAD);
	assert_int_equal(rendered_make(r, &distant, NULL), 0);
	assert_int_equal(image_read_ahead(r->img), KERNEL_READ_AHEAD_MIN);
	rendered_put_datasets(r, 3, one_is_large);
	assert_int_equal(rendered_make(r, &distant, NULL), 0);
	assert_int_equal(image_read_ahead(r->img), 256 << 10);
	assert_int_equal(kernel_read_ahead(1 << 18), 1 << 20);
	assert_int_equal(kernel_read_ahead((1 << 18) + 1), 2 << 20);
	assert_int_equal(kernel_read_ahead(UINT64_MAX), KERNEL_READ_AHEAD);
}

/* Prefetching uses the read-ahead that is in effect; the next open asks for the same as before. */
static void the_kernel_may_read_ahead_less(void **state)
{
	static const struct {
		uint64_t in_effect, used;
	} cases[] = {{128 << 10, 128 << 10}, {0, 0}, {8 << 20, KERNEL_READ_AHEAD}};
	struct rendered *r = *state;
	struct cache_dataset d;
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	const struct cache_source source = image_source(r->img);
	source.describe(r->img, 0, &d);
	assert_int_equal(d.read_ahead, KERNEL_READ_AHEAD);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		image_set_read_ahead(r->img, cases[i].in_effect);
		source.describe(r->img, 0, &d);
		assert_int_equal(d.read_ahead, cases[i].used);
		assert_int_equal(image_read_ahead(r->img), KERNEL_READ_AHEAD);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_superblock_tells_the_file_size, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(the_same_domain_gives_the_same_bytes,
						rendered_setup, rendered_teardown),
		cmocka_unit_test_setup_teardown(any_window_equals_the_whole, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(references_point_to_object_headers, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(committed_types_are_shared, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(missing_chunks_are_not_in_the_index, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(contiguous_only_where_it_is_exact, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(a_damaged_chunk_fails_alone, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(the_kernel_may_read_ahead_less, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(few_chunks_of_a_distant_store_are_read_ahead,
						rendered_setup, rendered_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
