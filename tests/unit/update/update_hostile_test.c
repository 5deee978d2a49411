/* SPDX-License-Identifier: Apache-2.0 */
/* What a broken or hostile program may leave in the file of a domain. Nothing of it is put. Other
 * defects are in update_scan_test.c (overlapping data) and update_match_test.c (another root). */
#include "update_edits.h"

#include <base/checksum.h>

enum { /* offsets in a superblock of version 0 */
       BASE_ADDRESS = 24,
       ROOT_HEADER = 64,
       SUPERBLOCK_2 = 48 /* bytes of a superblock of version 2 */
};

static void write_address(struct draft *d, uint64_t at, uint64_t value)
{
	uint8_t raw[8];
	edit_put(raw, sizeof(raw), value);
	edit_write(d, at, raw, sizeof(raw));
}

static void write_superblock_2(struct draft *d, uint64_t base)
{
	uint8_t raw[SUPERBLOCK_2] = "\211HDF\r\n\032\n\2\010\010";
	struct draft_stat stat;
	draft_get_stat(d, &stat);
	edit_put(raw + 12, 8, base);
	edit_put(raw + 20, 8, UINT64_MAX);
	edit_put(raw + 28, 8, stat.size);
	edit_put(raw + 36, 8, root_of(d));
	edit_put(raw + 44, 4, checksum_lookup3(raw, 44, 0));
	edit_write(d, 0, raw, sizeof(raw));
}

static uint64_t first_chunk_of_line(struct draft *d)
{
	return edit_chunk_at(d, edit_path(d, "line"), 1, 0);
}

/* ---- index nodes ---- */

static void the_index_of_another_dataset(struct draft *d)
{
	edit_set_data(d, edit_path(d, "grid"), edit_data(d, edit_path(d, "line")));
}

static void the_index_of_a_dataset_of_equal_rank(struct draft *d)
{
	edit_set_data(d, edit_path(d, "gzip"), edit_data(d, edit_path(d, "line")));
}

static void a_node_below_itself(struct draft *d)
{
	const uint64_t node = edit_data(d, edit_path(d, "line"));
	const uint8_t level = 1;
	edit_write(d, node + 5, &level, 1);
	write_address(d, first_chunk_of_line(d), node);
}

static void an_index_on_a_header(struct draft *d)
{
	edit_set_data(d, edit_path(d, "grid"), edit_path(d, "line"));
}

/* ---- addresses ---- */

static void a_chunk_past_the_end(struct draft *d)
{
	write_address(d, first_chunk_of_line(d), UINT64_C(1) << 40);
}

static void a_chunk_at_the_last_address(struct draft *d)
{
	write_address(d, first_chunk_of_line(d), UINT64_MAX - 1);
}

static void data_past_the_end(struct draft *d)
{
	edit_set_data(d, edit_path(d, "a/plain"), UINT64_C(1) << 50);
}

static void a_link_past_the_end(struct draft *d)
{
	edit_relink(d, root_of(d), "a", UINT64_C(1) << 33);
}

static void a_link_into_a_chunk(struct draft *d)
{
	edit_relink(d, root_of(d), "a", edit_chunk(d, edit_path(d, "line"), 1, 0));
}

static void data_on_a_header(struct draft *d)
{
	edit_set_data(d, edit_path(d, "a/plain"), edit_path(d, "b"));
}

/* ---- the superblock ---- */

static void a_root_past_the_end(struct draft *d)
{
	write_address(d, ROOT_HEADER, UINT64_C(1) << 30);
}

static void a_root_that_is_a_dataset(struct draft *d)
{
	write_address(d, ROOT_HEADER, edit_path(d, "line"));
}

static void a_superblock_of_an_unknown_version(struct draft *d)
{
	const uint8_t version = 9;
	edit_write(d, 8, &version, 1);
}

static void a_superblock_with_a_wrong_checksum(struct draft *d)
{
	write_superblock_2(d, 0);
	write_address(d, 44, 0);
}

/* The file is shifted, and the signature is at 512. */
static void a_superblock_behind_a_user_block(struct draft *d)
{
	static const uint8_t zeros[512];
	uint8_t head[512];
	edit_read(d, 0, head, sizeof(head));
	edit_put(head + BASE_ADDRESS, 8, sizeof(head));
	edit_write(d, sizeof(head), head, sizeof(head));
	edit_write(d, 0, zeros, sizeof(zeros));
}

static const struct row {
	const char *name;
	void (*make)(struct draft *d);
	int code;
} rows[] = {
#define ROW(f)                                                                                     \
	{                                                                                          \
#f, f, -EIO                                                                        \
	}
	ROW(the_index_of_another_dataset),
	ROW(the_index_of_a_dataset_of_equal_rank),
	ROW(a_node_below_itself),
	ROW(an_index_on_a_header),
	ROW(a_chunk_past_the_end),
	ROW(a_chunk_at_the_last_address),
	ROW(data_past_the_end),
	ROW(a_link_past_the_end),
	ROW(a_link_into_a_chunk),
	ROW(data_on_a_header),
	ROW(a_root_past_the_end),
	ROW(a_root_that_is_a_dataset),
	{"a_superblock_of_an_unknown_version", a_superblock_of_an_unknown_version, -EOPNOTSUPP},
	ROW(a_superblock_with_a_wrong_checksum),
	ROW(a_superblock_behind_a_user_block),
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static void is_refused(void **state)
{
	const struct row *row = *state;
	struct world *w = world_begin();
	row->make(w->draft);
	world_must_fail(w, row->code, true);
	world_end(w);
}

/* ---- what has no meaning for the content ---- */

/* The file says that the superblock is elsewhere. Readers trust the place where they find it. */
static void a_base_address_says_nothing(void **state)
{
	struct world *w = world_begin();
	write_address(w->draft, BASE_ADDRESS, 512);
	world_must_update(w, 0, 0);
	world_check_same(w);
	world_end(w);
}

static void another_version_of_the_superblock_says_the_same(void **state)
{
	struct world *w = world_begin();
	write_superblock_2(w->draft, 0);
	world_must_update(w, 0, 0);
	edit_attribute(w->draft);
	world_must_update(w, 1, 0);
	world_check_same(w);
	world_end(w);
}

/* Objects are found by their links. */
static void a_reference_count_that_lies(void **state)
{
	static const uint32_t counts[] = {0, 1, 77, UINT32_MAX};
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct world *w = world_begin();
		struct edit_message m =
			edit_typed(w->draft, edit_path(w->draft, "a/plain"), H5_MSG_REFCOUNT);
		edit_put(m.body + 1, 4, counts[i]);
		edit_replace(w->draft, &m);
		world_must_update(w, 0, 0);
		edit_unlink(w->draft, edit_path(w->draft, "d"), "again");
		world_must_update(w, 1, 0);
		world_check_same(w);
		world_end(w);
	}
}

/* The links between the nodes of one level serve no search. */
static void a_neighbour_of_another_dataset(void **state)
{
	struct world *w = world_begin();
	write_address(w->draft, edit_data(w->draft, edit_path(w->draft, "line")) + 16,
		      edit_data(w->draft, edit_path(w->draft, "grid")));
	world_must_update(w, 0, 0);
	world_check_same(w);
	world_end(w);
}

int main(void)
{
	struct CMUnitTest tests[ROWS + 4] = {
		cmocka_unit_test(a_base_address_says_nothing),
		cmocka_unit_test(another_version_of_the_superblock_says_the_same),
		cmocka_unit_test(a_reference_count_that_lies),
		cmocka_unit_test(a_neighbour_of_another_dataset),
	};
	for (size_t i = 0; i < ROWS; i++)
		tests[4 + i] = (struct CMUnitTest){.name = rows[i].name,
						   .test_func = is_refused,
						   .initial_state = (void *)(uintptr_t)&rows[i]};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
