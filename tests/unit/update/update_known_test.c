/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that are as in the image are not read, and every change is found nevertheless. */
#include "sampling.h"
#include "update_edits.h"

#include <h5/btree1.h>
#include <bucket/schemas.h>

#include "update/update_internal.h"

/* Whether the last update has read the dataset with a link in the root group. */
static bool was_read(struct world *w, const char *name)
{
	const uint32_t number = h5file_at(w->base->scan->file, edit_path(w->draft, name));
	assert_int_not_equal(number, OBJECT_NONE);
	return !scan_is_unread(w->base->scan, number);
}

static const char *const datasets[] = {"grid", "line",	 "gzip",    "text",
				       "null", "scalar", "nothing", "compact"};
enum { DATASETS = sizeof(datasets) / sizeof(datasets[0]) };

/* Updates, and checks which datasets were read. name: "" for none. */
static void check_read(struct world *w, const char *name, unsigned int puts, unsigned int deletes)
{
	world_must_update(w, puts, deletes);
	world_check_same(w);
	for (unsigned int i = 0; i < DATASETS; i++)
		if (was_read(w, datasets[i]) != (strcmp(datasets[i], name) == 0))
			fail_msg("%s", datasets[i]);
}

static void groups_are_changed_without_datasets(void **state)
{
	struct world *w = world_begin();
	edit_attribute(w->draft);
	check_read(w, "", 1, 0);
	edit_delete_link(w->draft);
	check_read(w, "", 1, 0);
	world_end(w);
}

static void only_what_was_written_is_read(void **state)
{
	static const struct {
		const char *name;
		void (*edit)(struct draft *d);
		unsigned int puts, deletes;
	} cases[] = {
		{"grid", edit_one_chunk, 1, 0},	 /* a chunk */
		{"line", edit_grow, 1, 0},	 /* the header */
		{"line", edit_lose_chunk, 1, 1}, /* the index */
	};
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world *w = world_begin();
		cases[i].edit(w->draft);
		check_read(w, cases[i].name, cases[i].puts, cases[i].deletes);
		world_end(w);
	}
}

static struct image_parts parts_in(struct world *w, const char *name)
{
	struct image_parts p;
	assert_true(image_parts_at(w->image, edit_path(w->draft, name), &p));
	return p;
}

static struct byte_range index_in(struct world *w, const char *name)
{
	struct image_layout at;
	assert_true(image_dataset_layout(w->image, parts_in(w, name).number, &at));
	return (struct byte_range){at.index, at.index_end};
}

/* The index of a dataset without chunks gets a first chunk. The header stays as it is. */
static void add_first_chunk(struct world *w, const char *name, const void *bytes, size_t n)
{
	uint8_t entry[2 * 24 + 8] = {0};
	const uint64_t dataset = edit_path(w->draft, name), index = edit_data(w->draft, dataset);
	edit_put(entry, 4, n);
	edit_put(entry + 24, 8, edit_append(w->draft, bytes, n));
	edit_put(entry + 24 + 8 + 8, 8, 5);
	edit_write(w->draft, index + 24, entry, sizeof(entry));
	edit_set_chunks(w->draft, dataset, 1);
}

static void the_first_chunk_is_found(void **state)
{
	static const int16_t values[5] = {10, 11, 12, 13, 14};
	struct world *w = world_begin();
	edit_set_chunks(w->draft, edit_path(w->draft, "line"), 0);
	assert_int_equal(world_update(w), 0);
	world_close(w);
	world_open(w);
	const struct byte_range index = index_in(w, "line");
	assert_int_equal(index.end - index.start, h5_bt1_size(1, 0));
	assert_int_equal(edit_chunks(w->draft, edit_path(w->draft, "line")), 0);
	check_read(w, "", 0, 0);
	add_first_chunk(w, "line", values, sizeof(values));
	check_read(w, "line", 2, 0);
	world_end(w);
}

/* An empty index occupies its place nevertheless. */
static void nothing_lies_over_an_empty_index(void **state)
{
	uint8_t addr[8];
	struct world *w = world_begin();
	const uint64_t line = edit_path(w->draft, "line");
	edit_set_chunks(w->draft, line, 0);
	assert_int_equal(world_update(w), 0);
	world_close(w);
	world_open(w);
	edit_put(addr, 8, index_in(w, "line").start + 8);
	edit_write(w->draft, edit_chunk_at(w->draft, edit_path(w->draft, "gzip"), 1, 0), addr, 8);
	world_must_fail(w, -EIO, true);
	world_end(w);
}

/* ---- metadata that is written without a change ---- */

/* Writes the bytes that the file has. */
static void rewrite(struct world *w, struct byte_range r)
{
	const size_t n = (size_t)(r.end - r.start);
	uint8_t *bytes = malloc(n);
	assert_true(bytes && n > 0);
	edit_read(w->draft, r.start, bytes, n);
	edit_write(w->draft, r.start, bytes, n);
	free(bytes);
}

static void equal_metadata_is_not_read(void **state)
{
	struct world *w = world_begin();
	check_read(w, "", 0, 0);
	const uint64_t others = w->result.objects; /* groups and a datatype */
	for (unsigned int i = 0; i < DATASETS; i++)
		rewrite(w, parts_in(w, datasets[i]).header);
	rewrite(w, index_in(w, "line"));
	rewrite(w, index_in(w, "grid"));
	check_read(w, "", 0, 0);
	assert_int_equal(w->result.objects, others);
	assert_int_equal(w->result.nodes, 0);
	/* The index is still that of the image, so its node is not read. */
	edit_grow(w->draft);
	check_read(w, "line", 1, 0);
	assert_int_equal(w->result.objects, others + 1);
	assert_int_equal(w->result.nodes, 0);
	edit_lose_chunk(w->draft);
	check_read(w, "line", 1, 1);
	assert_int_equal(w->result.objects, others + 1);
	assert_int_equal(w->result.nodes, 1);
	world_end(w);
}

static void equal_attributes_are_not_read(void **state)
{
	struct world *w = world_begin_with("items.h5");
	const struct byte_range dense = parts_in(w, "dense").dense;
	uint8_t byte;
	rewrite(w, dense);
	world_must_update(w, 0, 0);
	assert_false(was_read(w, "dense"));
	edit_read(w->draft, dense.start, &byte, 1);
	byte ^= 1;
	edit_write(w->draft, dense.start, &byte, 1);
	world_must_fail(w, -EIO, true);
	world_end(w);
}

/* The items of a value may have changed behind a reference that is written with equal bytes. */
static void equal_items_are_read(void **state)
{
	struct world *w = world_begin_with("items.h5");
	rewrite(w, parts_in(w, "text").items);
	world_must_update(w, 0, 0);
	assert_true(was_read(w, "text"));
	world_end(w);
}

/* An update has put the change, so the bytes of the image are not those of the bucket. */
static void what_is_as_in_the_image_again_is_put(void **state)
{
	uint8_t bytes[1024];
	struct world *w = world_begin();
	const struct byte_range header = parts_in(w, "line").header;
	const size_t n = (size_t)(header.end - header.start);
	assert_true(n <= sizeof(bytes));
	edit_read(w->draft, header.start, bytes, n);
	edit_grow(w->draft);
	check_read(w, "line", 1, 0);
	edit_write(w->draft, header.start, bytes, n);
	check_read(w, "line", 1, 0);
	world_end(w);
}

static int read_nothing(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	return err_set(err, -EIO, "a fault");
}

/* What cannot be compared is no change, and no damage of the file. */
static void the_image_cannot_be_read(void **state)
{
	struct world *w = world_begin();
	world_must_update(w, 0, 0);
	rewrite(w, parts_in(w, "line").header);
	const struct source image = w->base->bytes;
	w->base->bytes.read_at = read_nothing;
	world_must_fail(w, -EIO, false);
	w->base->bytes = image;
	world_must_update(w, 0, 0);
	world_end(w);
}

/* A later update compares with the image what the earlier ones have not read. */
static void what_is_written_later_is_read_later(void **state)
{
	struct world *w = world_begin();
	edit_grow(w->draft);
	check_read(w, "line", 1, 0);
	edit_one_chunk(w->draft);
	world_must_update(w, 1, 0);
	world_check_same(w);
	assert_true(was_read(w, "grid") && was_read(w, "line"));
	assert_false(was_read(w, "gzip"));
	edit_shrink(w->draft);
	world_must_update(w, 2, 3);
	world_check_same(w);
	world_end(w);
}

static void an_unread_dataset_is_removed(void **state)
{
	uint64_t deleted;
	struct world *w = world_begin();
	const struct domain_bucket bucket = {
		.env = &w->f.env, .store = &w->gate->base, .schemas = schema_all()};
	edit_unlink(w->draft, root_of(w->draft), "gzip");
	world_must_update(w, 2, 0);
	assert_int_not_equal(w->result.removed, GC_NONE);
	auto_gc_kept struct gc_kept kept = {.event.path = NULL};
	assert_int_equal(gc_log_get(w->log, w->result.removed, &kept, NULL), 0);
	assert_int_equal(update_collect(&bucket, &kept.event, NULL, &deleted, &w->err), 0);
	assert_int_equal(deleted, 3); /* the document and two chunks */
	world_check_same(w);
	world_end(w);
}

static void an_unread_dataset_gets_another_name(void **state)
{
	char before[64], now[64];
	struct world *w = world_begin();
	world_id(w, "gzip", before);
	const uint64_t header = edit_path(w->draft, "gzip");
	edit_unlink(w->draft, root_of(w->draft), "gzip");
	edit_add_link(w->draft, edit_path(w->draft, "d"), "gzip", 50, header);
	world_must_update(w, 2, 0);
	world_id(w, "d/gzip", now);
	assert_string_equal(before, now);
	world_check_same(w);
	world_end(w);
}

/* The domain has no such object any more, so it gets a new id and new chunks. */
static void a_removed_dataset_is_linked_again(void **state)
{
	struct world *w = world_begin();
	const uint64_t header = edit_path(w->draft, "gzip");
	edit_unlink(w->draft, root_of(w->draft), "gzip");
	world_must_update(w, 2, 0);
	edit_add_link(w->draft, root_of(w->draft), "gzip", 50, header);
	world_must_update(w, 5, 0);
	world_check_same(w);
	assert_true(was_read(w, "gzip"));
	world_end(w);
}

/* What is not read occupies its place nevertheless. */
static void nothing_lies_over_an_unread_dataset(void **state)
{
	uint8_t addr[8];
	for (unsigned int i = 0; i < 3; i++) {
		struct world *w = world_begin();
		struct draft *d = w->draft;
		const uint64_t gzip = edit_path(d, "gzip"), line = edit_path(d, "line");
		const uint64_t places[] = {gzip, edit_chunk(d, gzip, 1, 1),
					   edit_chunk_at(d, gzip, 1, 0) & ~UINT64_C(7)};
		edit_put(addr, 8, places[i]);
		edit_write(d, edit_chunk_at(d, line, 1, 0), addr, 8);
		world_must_fail(w, -EIO, true);
		world_end(w);
	}
}

/* ---- values of attributes, in every place ---- */

/* With each byte changed in turn, the update finds what an update finds that reads everything
 * (update_judge.c), or the file is damaged. */
static void check_bytes(const struct byte_range *r, uint64_t step)
{
	uint8_t byte;
	assert_true(r->start < r->end);
	for (uint64_t at = r->start; at < r->end; at += step * sampling_step(7)) {
		struct world *w = world_begin_with("items.h5");
		edit_read(w->draft, at, &byte, 1);
		byte ^= 1;
		edit_write(w->draft, at, &byte, 1);
		const int rc = world_update(w);
		if (rc && rc != -EIO && rc != -EOPNOTSUPP)
			fail_msg("byte %llu: %d, %s", (unsigned long long)at, rc, w->err.msg);
		world_end(w);
	}
}

static struct image_parts parts_of(const char *name)
{
	struct image_parts p;
	struct world *w = world_begin_with("items.h5");
	assert_false(image_parts_at(w->image, edit_path(w->draft, name) + 8, &p));
	assert_true(image_parts_at(w->image, edit_path(w->draft, name), &p));
	world_end(w);
	return p;
}

static void every_byte_counts(void **state)
{
	const struct image_parts text = parts_of("text"), refs = parts_of("refs");
	const struct image_parts dense = parts_of("dense"), last = parts_of("last");
	check_bytes(&text.header, 3);
	check_bytes(&refs.header, 3);
	check_bytes(&dense.dense, 29);
	check_bytes(&dense.large, 499);
	check_bytes(&text.items, 1 + (text.items.end - text.items.start) / 400);
	assert_int_equal(dense.items.end, 0);
	assert_int_equal(text.dense.start, text.dense.end);
	assert_true(refs.items.start < refs.items.end && last.items.start < last.items.end);
}

/* The reference to a value stays as it is, and the value changes. */
static void a_text_is_overwritten(void **state)
{
	static const char *const words[] = {"three", "four"};
	uint8_t bytes[4096];
	for (unsigned int i = 0; i < 2; i++) {
		const struct image_parts p = parts_of("text");
		struct world *w = world_begin_with("items.h5");
		const size_t n = (size_t)(p.items.end - p.items.start);
		assert_true(n <= sizeof(bytes));
		edit_read(w->draft, p.items.start, bytes, n);
		const uint8_t *found = memmem(bytes, n, words[i], strlen(words[i]));
		assert_non_null(found);
		edit_write(w->draft, p.items.start + (uint64_t)(found - bytes), "F", 1);
		world_must_update(w, 1, 0);
		world_check_same(w);
		assert_true(was_read(w, "text") && was_read(w, "refs") && was_read(w, "last"));
		assert_false(was_read(w, "plain"));
		world_end(w);
	}
}

/* It keeps the datatype in the domain. */
static void a_dataset_with_a_committed_type_is_read(void **state)
{
	struct world *w = world_begin_with("items.h5");
	edit_unlink(w->draft, root_of(w->draft), "type");
	world_must_update(w, 1, 0);
	assert_true(was_read(w, "typed"));
	assert_false(was_read(w, "plain"));
	assert_int_equal(w->result.removed, GC_NONE);
	world_end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_changed_without_datasets),
		cmocka_unit_test(only_what_was_written_is_read),
		cmocka_unit_test(the_first_chunk_is_found),
		cmocka_unit_test(nothing_lies_over_an_empty_index),
		cmocka_unit_test(equal_metadata_is_not_read),
		cmocka_unit_test(equal_attributes_are_not_read),
		cmocka_unit_test(equal_items_are_read),
		cmocka_unit_test(what_is_as_in_the_image_again_is_put),
		cmocka_unit_test(the_image_cannot_be_read),
		cmocka_unit_test(what_is_written_later_is_read_later),
		cmocka_unit_test(an_unread_dataset_is_removed),
		cmocka_unit_test(an_unread_dataset_gets_another_name),
		cmocka_unit_test(a_removed_dataset_is_linked_again),
		cmocka_unit_test(nothing_lies_over_an_unread_dataset),
		cmocka_unit_test(every_byte_counts),
		cmocka_unit_test(a_text_is_overwritten),
		cmocka_unit_test(a_dataset_with_a_committed_type_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
