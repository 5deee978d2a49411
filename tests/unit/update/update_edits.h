/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the file of tests/data/update.h5, as a domain shows it, and what they cost. */
#ifndef TESTS_DOMAIN_UPDATE_EDITS_H
#define TESTS_DOMAIN_UPDATE_EDITS_H

#include "update_fixture.h"

static inline uint64_t root_of(struct draft *d)
{
	return edit_path(d, "");
}

static inline void edit_nothing(struct draft *d)
{
}

/* All metadata is written, with the bytes that it has. */
static inline void edit_same_bytes(struct draft *d)
{
	uint8_t bytes[4096];
	edit_read(d, 0, bytes, sizeof(bytes));
	edit_write(d, 0, bytes, sizeof(bytes));
}

static inline void edit_attribute(struct draft *d)
{
	struct edit_message m;
	assert_true(edit_find_attribute(d, root_of(d), "count", &m));
	m.body[m.len - 4] ^= 0x20;
	edit_replace(d, &m);
}

static inline void edit_remove_attribute(struct draft *d)
{
	struct edit_message m;
	assert_true(edit_find_attribute(d, edit_path(d, "c"), "number", &m));
	edit_remove(d, &m);
}

/* Writes all bytes of a stored chunk of the dataset "grid". */
static inline void fill_chunk(struct draft *d, unsigned int i, int32_t value)
{
	const int32_t values[] = {value, value, value, value};
	edit_write(d, edit_chunk(d, edit_path(d, "grid"), 2, i), values, sizeof(values));
}

static inline void edit_one_chunk(struct draft *d)
{
	fill_chunk(d, 0, 1000);
}

static inline void edit_fill_chunk(struct draft *d)
{
	fill_chunk(d, 0, 7);
}

/* The index does not name the last chunk any more. */
static inline void edit_lose_chunk(struct draft *d)
{
	const uint64_t line = edit_path(d, "line");
	edit_set_chunks(d, line, edit_chunks(d, line) - 1);
}

static inline void edit_contiguous(struct draft *d)
{
	const int32_t value = -1;
	edit_write(d, edit_data(d, edit_path(d, "a/plain")) + 40, &value, sizeof(value));
}

static inline void edit_shrink(struct draft *d)
{
	edit_resize(d, edit_path(d, "grid"), 0, 2);
}

static inline void edit_grow(struct draft *d)
{
	edit_resize(d, edit_path(d, "line"), 0, 30);
}

static inline void edit_shrink_and_write(struct draft *d)
{
	edit_one_chunk(d);
	edit_resize(d, edit_path(d, "grid"), 1, 3);
	edit_resize(d, edit_path(d, "grid"), 0, 9);
}

static inline void edit_delete_group(struct draft *d)
{
	edit_unlink(d, root_of(d), "b");
}

static inline void edit_delete_link(struct draft *d)
{
	edit_unlink(d, edit_path(d, "d"), "again");
}

static inline void edit_rename_link(struct draft *d)
{
	edit_rename(d, edit_path(d, "a"), "plain", "plane");
}

static inline void edit_swap_links(struct draft *d)
{
	const uint64_t a = edit_path(d, "a"), b = edit_path(d, "b");
	edit_relink(d, root_of(d), "a", b);
	edit_relink(d, root_of(d), "b", a);
}

static inline void move_link(struct draft *d, const char *from, const char *to, const char *name)
{
	const uint64_t a = edit_path(d, from), b = edit_path(d, to);
	const uint64_t target = edit_target(d, a, name);
	edit_add_link(d, b, name, 50, target);
	edit_unlink(d, a, name);
}

static inline void edit_move(struct draft *d)
{
	move_link(d, "c", "a", "type");
}

/* Two groups get an object of each other. */
static inline void edit_circle(struct draft *d)
{
	move_link(d, "a", "b", "empty");
	move_link(d, "b", "a", "inner");
}

static inline uint64_t new_group(struct draft *d)
{
	return edit_copy(d, edit_path(d, "a/empty"));
}

static inline void edit_new_group(struct draft *d)
{
	edit_add_link(d, root_of(d), "new", 50, new_group(d));
}

/* A new group gets an object of another group. */
static inline void edit_move_to_new(struct draft *d)
{
	const uint64_t group = new_group(d), c = edit_path(d, "c");
	edit_add_link(d, group, "type", 0, edit_target(d, c, "type"));
	edit_unlink(d, c, "type");
	edit_add_link(d, root_of(d), "new", 50, group);
}

static inline void edit_new_dataset(struct draft *d)
{
	const int32_t values[24] = {1, 2, 3};
	const uint64_t dataset = edit_copy(d, edit_path(d, "a/plain"));
	edit_set_data(d, dataset, edit_append(d, values, sizeof(values)));
	edit_add_link(d, edit_path(d, "c"), "new", 50, dataset);
}

/* Another dataset of the same kind gets the name and the chunks of a removed one. */
static inline void edit_replace_dataset(struct draft *d)
{
	edit_relink(d, root_of(d), "line", edit_copy(d, edit_path(d, "line")));
}

static inline void edit_much(struct draft *d)
{
	edit_circle(d);
	edit_new_dataset(d);
	edit_replace_dataset(d);
	edit_shrink_and_write(d);
	edit_attribute(d);
	edit_delete_link(d);
}

static const struct edit {
	const char *name;
	void (*make)(struct draft *d);
	/* The summary is put, too, if there are more or fewer objects or chunks. */
	unsigned int puts, deletes;
} edits[] = {
	{"nothing", edit_nothing, 0, 0},
	{"the same bytes", edit_same_bytes, 0, 0},
	{"an attribute", edit_attribute, 1, 0},
	{"an attribute is removed", edit_remove_attribute, 1, 0},
	{"a chunk", edit_one_chunk, 1, 0},
	{"a chunk becomes fill values", edit_fill_chunk, 1, 1},
	{"a chunk is lost", edit_lose_chunk, 1, 1},
	{"contiguous data", edit_contiguous, 1, 0},
	{"a dataset shrinks", edit_shrink, 2, 3},
	{"a dataset grows", edit_grow, 1, 0},
	{"a dataset shrinks and grows", edit_shrink_and_write, 4, 2},
	{"a group is removed", edit_delete_group, 2, 0},
	{"a link is removed", edit_delete_link, 1, 0},
	{"a link is renamed", edit_rename_link, 1, 0},
	{"two links are swapped", edit_swap_links, 1, 0},
	{"an object moves", edit_move, 2, 0},
	{"two objects move in a circle", edit_circle, 3, 0},
	{"a new group", edit_new_group, 3, 0},
	{"an object moves to a new group", edit_move_to_new, 4, 0},
	{"a new dataset", edit_new_dataset, 4, 0},
	{"a dataset is replaced", edit_replace_dataset, 7, 0},
	{"much", edit_much, 17, 2},
};
enum { EDITS = sizeof(edits) / sizeof(edits[0]) };

#endif
