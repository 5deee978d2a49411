/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees that are too large for a file: the tests reach and exceed each limit of the plan. The error
 * names the object, and no memory remains charged. The tests allocate no raw data: a plan only
 * computes sizes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "image/image_plan.h"
#include "shape_arena.h"
#include "small_tree.h"

#define DATASET_TOO_LARGE "object o-1: the dataset is too large for a file"
#define DOMAIN_TOO_LARGE  "the domain is too large for a file"

static const struct dtype *bytes_of(struct small_tree *t, uint32_t size)
{
	return dtype_opaque(t->a, size, "", NULL);
}

static const struct dtype *text(struct small_tree *t)
{
	return dtype_vlen_string(t->a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
}

static void fails(struct small_tree *t, int code, const char *message)
{
	struct err err = ERR_INIT;
	struct budget_stats stats;
	assert_int_equal(small_render(t, &err), code);
	if (!strstr(err.msg, message))
		fail_msg("%s", err.msg);
	assert_null(t->img);
	budget_get_stats(t->env.budget, &stats);
	assert_int_equal(stats.used[BUDGET_PLANS], 0);
	small_begin(t);
}

static void succeeds(struct small_tree *t)
{
	struct err err = ERR_INIT;
	if (small_render(t, &err))
		fail_msg("%s", err.msg);
	small_begin(t);
}

static const struct chunk_list unlisted = {.listed = false};

static void a_chunk_has_at_most_32_bits_of_bytes(void **state)
{
	struct small_tree *t = *state;
	small_dataset(t, bytes_of(t, 1), 2, UINT32_MAX, unlisted);
	succeeds(t);
	small_dataset(t, bytes_of(t, 2), 2, UINT64_C(1) << 31, unlisted);
	fails(t, -EFBIG, "object o-1: a chunk of 4294967296 bytes is too large for HDF5");
}

static void a_dataset_has_at_most_2_to_the_62_bytes(void **state)
{
	struct small_tree *t = *state;
	const uint64_t n = UINT64_C(1) << 39, chunk = 1 << 20;
	small_dataset(t, bytes_of(t, 8), n / 2, chunk, unlisted);
	succeeds(t);
	small_dataset(t, bytes_of(t, 8), n, chunk, unlisted);
	fails(t, -EFBIG, DOMAIN_TOO_LARGE); /* with the metadata before it */
	small_dataset(t, bytes_of(t, 8), n + 1, chunk, unlisted);
	fails(t, -EFBIG, DATASET_TOO_LARGE);
	/* 2^40 chunks of 2^24 bytes: the product does not fit 64 bits. */
	small_dataset(t, bytes_of(t, 256), UINT64_C(1) << 40, 1 << 16, unlisted);
	fails(t, -EFBIG, DATASET_TOO_LARGE);
}

/* About 33 bytes of index for each chunk of 8 bytes. */
static void an_index_has_at_most_2_to_the_62_bytes(void **state)
{
	struct small_tree *t = *state;
	small_dataset(t, bytes_of(t, 8), UINT64_C(1) << 56, 1, unlisted);
	succeeds(t);
	small_dataset(t, bytes_of(t, 8), UINT64_C(1) << 57, 1, unlisted);
	fails(t, -EFBIG, DATASET_TOO_LARGE);
	small_dataset(t, bytes_of(t, 8), UINT64_C(1) << 56, 1, unlisted);
	small_dataset(t, bytes_of(t, 8), UINT64_C(1) << 56, 1, unlisted);
	fails(t, -EFBIG, DOMAIN_TOO_LARGE);
}

/* Each size is within its limit, but the sum exceeds 64 bits. */
static void many_datasets_are_together_too_large(void **state)
{
	enum { EACH = 16 };
	struct small_tree *t = *state;
	for (int i = 0; i < EACH; i++)
		small_dataset(t, bytes_of(t, 8), UINT64_C(1) << 38, 1 << 19, unlisted);
	fails(t, -EFBIG, DOMAIN_TOO_LARGE);
	for (int i = 0; i < EACH; i++)
		small_dataset(t, bytes_of(t, 8), UINT64_C(1) << 56, 1, unlisted);
	fails(t, -EFBIG, DOMAIN_TOO_LARGE);
}

static struct chunk_list strings_of(const uint64_t *decoded, uint64_t n)
{
	static const uint64_t numbers[] = {0, 1, 2, 3};
	return (struct chunk_list){.listed = true, .n = n, .numbers = numbers, .decoded = decoded};
}

static void heaps_have_at_most_2_to_the_62_bytes(void **state)
{
	static const uint64_t decoded[] = {UINT64_C(1) << 60, UINT64_C(1) << 60, UINT64_C(1) << 60,
					   UINT64_C(1) << 60};
	static const uint64_t most[] = {UINT64_MAX - 1};
	struct small_tree *t = *state;
	small_dataset(t, text(t), 4, 1, strings_of(decoded, 3));
	succeeds(t);
	small_dataset(t, text(t), 4, 1, strings_of(decoded, 4));
	fails(t, -EFBIG, "object o-1: the heaps are too large for a file");
	small_dataset(t, text(t), 1, 1, strings_of(most, 1));
	fails(t, -EFBIG, "object o-1: the heaps are too large for a file");
	small_dataset(t, text(t), 4, 1, strings_of(decoded, 3));
	small_dataset(t, text(t), 4, 1, strings_of(decoded, 3));
	fails(t, -EFBIG, DOMAIN_TOO_LARGE);
}

/* Strings of one element take at least 4 bytes. */
static void chunks_that_are_too_short_have_no_window(void **state)
{
	static const uint64_t decoded[] = {3, UINT64_MAX, 4, 100, 3};
	static const uint64_t numbers[] = {0, 1, 2, 3, 4};
	struct small_tree *t = *state;
	small_dataset(t, text(t), 5, 1,
		      (struct chunk_list){
			      .listed = true, .n = 5, .numbers = numbers, .decoded = decoded});
	assert_int_equal(small_render(t, NULL), 0);
	const struct image_dataset *d = &t->img->datasets[0];
	assert_int_equal(dataset_window(d, 2), 0);
	for (uint64_t i = 2; i < 4; i++)
		assert_in_range(dataset_window(d, i + 1) - dataset_window(d, i), 4096, 8192);
	assert_int_equal(dataset_window(d, 4), dataset_window(d, 5));
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(dataset_window(d, i) % 8, 0);
}

static void attributes_are_too_large(void **state)
{
	struct small_tree *t = *state;
	for (uint64_t n = UINT64_C(1) << 61; n <= UINT64_C(1) << 62; n *= 2) {
		struct object *root = tree_edit(t->tree, 0);
		struct attribute *a = small_attr(t, root, bytes_of(t, 1));
		assert_int_equal(dspace_simple(shape_arena(), &a->space, 1, &n, NULL, NULL), 0);
		if (n == UINT64_C(1) << 61)
			succeeds(t);
		else
			fails(t, -EFBIG, DOMAIN_TOO_LARGE);
	}
}

/* A compound of n members with names of 60 bytes. */
static const struct dtype *wide(struct small_tree *t, uint32_t n)
{
	struct dtype_member *members = arena_array(t->a, n, sizeof(*members));
	for (uint32_t i = 0; i < n; i++) {
		char *name = arena_alloc(t->a, 61);
		snprintf(name, 61, "%060u", i);
		members[i] = (struct dtype_member){.name = name, .type = bytes_of(t, 1)};
	}
	return dtype_compound(t->a, n, members, 0, NULL);
}

static void a_message_has_at_most_65535_bytes(void **state)
{
	struct small_tree *t = *state;
	small_add(t, OBJECT_DATATYPE)->datatype = wide(t, 800);
	succeeds(t);
	small_add(t, OBJECT_DATATYPE)->datatype = wide(t, 1000);
	fails(t, -E2BIG, "object o-1: a header message is larger than 65535 bytes");
}

/* A soft link to a path of n bytes. */
static void add_link(struct small_tree *t, size_t n)
{
	struct object *o = small_add(t, OBJECT_GROUP);
	char *path = arena_alloc(t->a, n + 1);
	memset(path, 'p', n);
	o->group.nlinks = 1;
	o->group.links = arena_array(t->a, 1, sizeof(struct link));
	o->group.links[0] = (struct link){.name = "l", .cls = LINK_SOFT, .path = path};
}

static void a_path_has_at_most_65535_bytes(void **state)
{
	struct small_tree *t = *state;
	add_link(t, 65535);
	succeeds(t);
	add_link(t, 65536);
	fails(t, -EIO, "object o-1: a length in a message is larger than its field");
}

/* A string whose bytes are outside of the value's heap. */
static void put_damaged_string(struct elems *e)
{
	uint8_t slot[DTYPE_VLEN_SIZE];
	elems_put_vlen(slot, 100, 8);
	assert_int_equal(bytes_append(&e->fixed, slot, sizeof(slot)), 0);
}

static void damaged_values_are_named(void **state)
{
	struct small_tree *t = *state;
	put_damaged_string(&small_attr(t, tree_edit(t->tree, 0), text(t))->value);
	fails(t, -EIO, "object g-root: attribute \"a\": items of a variable-length element");
	struct dataset *ds = small_dataset(t, dtype_array(t->a, text(t), 1, (uint32_t[]){1}, NULL),
					   2, 1, (struct chunk_list){.listed = true});
	ds->fill_defined = true;
	put_damaged_string(&ds->fill);
	fails(t, -EIO, "object o-1: items of a variable-length element");
}

static void chunks_that_are_not_known_are_not_read(void **state)
{
	struct small_tree *t = *state;
	struct err err = ERR_INIT;
	uint8_t byte;
	small_dataset(t, bytes_of(t, 1), 2, 100, (struct chunk_list){.unknown = true});
	assert_int_equal(small_render(t, &err), 0);
	const uint64_t at = t->img->datasets[0].raw_addr;
	assert_int_equal(image_read(t->img, NULL, &byte, 1, at, NULL, &err), -EIO);
	assert_string_equal(err.msg, "object o-1: its chunks are not known");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, small_setup, small_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_chunk_has_at_most_32_bits_of_bytes),
		TEST(a_dataset_has_at_most_2_to_the_62_bytes),
		TEST(an_index_has_at_most_2_to_the_62_bytes),
		TEST(many_datasets_are_together_too_large),
		TEST(heaps_have_at_most_2_to_the_62_bytes),
		TEST(chunks_that_are_too_short_have_no_window),
		TEST(attributes_are_too_large),
		TEST(a_message_has_at_most_65535_bytes),
		TEST(a_path_has_at_most_65535_bytes),
		TEST(damaged_values_are_named),
		TEST(chunks_that_are_not_known_are_not_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
