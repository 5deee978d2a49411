/* SPDX-License-Identifier: Apache-2.0 */
/* Which chunks of a file have changed: their place, their bytes, and what they refer to. */
#include "update_edits.h"

#include "update/update_internal.h"
#include "shape_arena.h"

static void chunks_have_other_numbers_in_another_shape(void **state)
{
	static const struct {
		uint64_t number, expected; /* UINT64_MAX: outside */
	} cases[] = {{0, 0}, {1, 1}, {2, UINT64_MAX}, {3, 2}, {4, 3}, {5, UINT64_MAX}, {6, 4}};
	const uint64_t from_dims[] = {8, 6}, to_dims[] = {100, 4}, chunk[] = {2, 2};
	struct grid from, to;
	uint64_t found;
	assert_int_equal(grid_init(shape_arena(), &from, 2, from_dims, chunk, NULL), 0);
	assert_int_equal(grid_init(shape_arena(), &to, 2, to_dims, chunk, NULL), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const bool is_inside = update_renumber(&from, &to, cases[i].number, &found);
		assert_int_equal(is_inside, cases[i].expected != UINT64_MAX);
		if (is_inside)
			assert_int_equal(found, cases[i].expected);
	}
}

/* ---- variable length ---- */

static uint64_t items_of(struct world *w, uint64_t chunk)
{
	uint64_t start, end;
	const uint32_t number = find_object(domain_tree(w->domain), "text");
	assert_true(image_items(w->image, number, chunk, &start, &end));
	return start;
}

/* Replaces the first occurrence of a text in the items of a chunk. */
static void replace_item(struct world *w, uint64_t chunk, const char *old, const char *new)
{
	uint8_t bytes[4096];
	const uint64_t start = items_of(w, chunk);
	edit_read(w->draft, start, bytes, sizeof(bytes));
	uint8_t *at = memmem(bytes, sizeof(bytes), old, strlen(old));
	assert_non_null(at);
	edit_write(w->draft, start + (uint64_t)(at - bytes), new, strlen(new));
}

static void a_written_item_changes_its_chunk(void **state)
{
	struct world *w = world_begin();
	replace_item(w, 0, "two", "TWO");
	world_must_update(w, 1, 0);
	world_check_same(w);
	/* From now on, the file itself tells where the items are. */
	replace_item(w, 0, "TWO", "2 2");
	world_must_update(w, 1, 0);
	world_check_same(w);
	replace_item(w, 1, "three", "THREE");
	world_must_update(w, 1, 0);
	world_check_same(w);
	world_must_update(w, 0, 0);
	world_end(w);
}

/* ---- forms of data ---- */

static void write_zeros(struct world *w, const char *path, size_t n)
{
	uint8_t zeros[512] = {0};
	assert_true(n <= sizeof(zeros));
	edit_write(w->draft, edit_data(w->draft, edit_path(w->draft, path)), zeros, n);
}

static void scalar_and_null_spaces(void **state)
{
	struct world *w = world_begin();
	const double value = 2.5;
	edit_write(w->draft, edit_data(w->draft, edit_path(w->draft, "scalar")), &value, 8);
	world_must_update(w, 1, 0);
	world_check_same(w);
	/* Zeros need not be stored. */
	write_zeros(w, "scalar", 8);
	world_must_update(w, 1, 1);
	world_check_same(w);
	write_zeros(w, "scalar", 8);
	assert_int_equal(world_update(w), 0);
	assert_int_equal(w->result.puts, 1); /* the summary */
	world_end(w);
}

/* Filters that the file does not show are applied to what is stored. */
static void chunks_keep_their_filters(void **state)
{
	char key[SCHEMA_KEY_MAX + 1], document[SCHEMA_KEY_MAX + 1];
	uint8_t bytes[48];
	struct world *w = world_begin_with("import.h5");
	world_chunk_key(w, "lzf", 0, key);
	world_key(w, "lzf", document);
	auto_free char *before = world_text(w, document);
	const uint64_t at = edit_chunk(w->draft, edit_path(w->draft, "lzf"), 1, 0);
	edit_read(w->draft, at, bytes, sizeof(bytes));
	bytes[4] ^= 0x40;
	edit_write(w->draft, at + 4, bytes + 4, 1);
	world_must_update(w, 1, 0);
	world_check_same(w);
	auto_free char *after = world_text(w, document);
	assert_string_equal(before, after);
	world_end(w);
}

/* ---- data in other files ---- */

/* The dataset "grid" has its data in a file that no test needs. */
static struct world *begin_linked(void)
{
	static const char own[] = "{\"class\": \"H5D_CHUNKED\", \"dims\": [2, 2]}";
	static const char reference[] =
		"{\"class\": \"H5D_CHUNKED_REF\", \"file_uri\": \"b/data\", \"dims\": [2, 2], "
		"\"chunks\": {\"0_0\": [4096, 16], \"0_1\": [4112, 16]}}";
	char key[SCHEMA_KEY_MAX + 1], text[4096];
	struct world *w = world_begin();
	world_key(w, "grid", key);
	world_close(w);
	auto_free char *before = world_text(w, key);
	const char *at = strstr(before, own);
	assert_non_null(at);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - before), before, reference,
		 at + strlen(own));
	gate_put(w->gate, key, text, strlen(text));
	world_open(w);
	return w;
}

static void data_in_other_files_are_not_changed(void **state)
{
	struct world *w = begin_linked();
	edit_one_chunk(w->draft);
	world_must_fail(w, -EOPNOTSUPP, true);
	assert_non_null(strstr(w->err.msg, "grid"));
	world_end(w);
	/* Metadata can be changed. */
	w = begin_linked();
	edit_attribute(w->draft);
	edit_rename_link(w->draft);
	world_must_update(w, 2, 0);
	fill_chunk(w->draft, 1, 5);
	world_must_fail(w, -EOPNOTSUPP, true);
	world_end(w);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(chunks_have_other_numbers_in_another_shape),
		TEST(a_written_item_changes_its_chunk),
		TEST(scalar_and_null_spaces),
		TEST(chunks_keep_their_filters),
		TEST(data_in_other_files_are_not_changed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
