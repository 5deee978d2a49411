/* SPDX-License-Identifier: Apache-2.0 */
/* The chunks of a dataset in one state of the file: runs of slots, and records. */
#include "update_edits.h"

#include "update/update_internal.h"

static struct scan *scan_of(struct world *w)
{
	struct scan *s;
	struct err err = ERR_INIT;
	if (scan_open(&w->f.env, &w->source, false, NULL, &s, &err))
		fail_msg("%s", err.msg);
	return s;
}

static void records_are_sorted(void **state)
{
	struct world *w = world_begin();
	struct scan *s = scan_of(w);
	const uint32_t grid = find_object(s->tree, "grid"), line = find_object(s->tree, "line");
	const struct chunk_set *set = &s->chunks[grid];
	assert_int_equal(set->n, 0);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(chunk_set_read(s, grid, NULL, NULL, NULL), 0);
		assert_int_equal(set->n, 5);
		assert_int_equal(set->nruns, 0);
	}
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(set->v[i].number, i + 1);
	assert_null(chunk_set_find(set, 0));
	assert_null(chunk_set_find(set, 6));
	assert_int_equal(chunk_set_find(set, 3)->number, 3);
	assert_int_equal(chunk_set_read(s, line, NULL, NULL, NULL), 0);
	assert_int_equal(s->chunks[line].n, 4);
	assert_int_equal(chunk_set_read(s, find_object(s->tree, "null"), NULL, NULL, NULL), 0);
	assert_int_equal(chunk_set_read(s, find_object(s->tree, "nothing"), NULL, NULL, NULL), 0);
	scan_free(s);
	scan_free(NULL);
	world_end(w);
}

static void two_records_of_a_chunk_are_refused(void **state)
{
	struct chunk_record v[] = {{.number = 5}, {.number = 1}, {.number = 3}};
	assert_int_equal(chunk_records_sort(NULL, 0, NULL), 0);
	assert_int_equal(chunk_records_sort(v, 3, NULL), 0);
	assert_int_equal(v[0].number, 1);
	assert_int_equal(v[2].number, 5);
	v[0].number = 5;
	assert_int_equal(chunk_records_sort(v, 3, NULL), -EIO);
}

static void slots_are_found_in_runs(void **state)
{
	struct slot_run runs[] = {{2, 4}, {7, 8}, {10, 20}};
	const struct chunk_set set = {.runs = runs, .nruns = 3};
	for (uint64_t slot = 0; slot < 22; slot++) {
		const bool expected =
			(slot >= 2 && slot < 4) || slot == 7 || (slot >= 10 && slot < 20);
		assert_int_equal(chunk_set_has_slot(&set, slot), expected);
	}
	assert_false(chunk_set_has_slot(&(struct chunk_set){.n = 0}, 0));
}

/* ---- a file in which programs have written ---- */

struct reader {
	struct world *w;
	uint64_t start, end; /* what was written */
	uint8_t change;	     /* of its first byte */
};

static uint64_t next_replaced(void *ctx, uint64_t start, uint64_t end)
{
	const struct reader *r = ctx;
	if (start < r->end && end > r->start)
		return start > r->start ? start : r->start;
	return end;
}

static int read_file(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	const struct reader *r = ctx;
	const int rc = world_read_image(r->w, offset, buf, n, err);
	if (!rc && r->start >= offset && r->start - offset < n)
		((uint8_t *)buf)[r->start - offset] ^= r->change;
	return rc;
}

/* Reads the chunks of a dataset as an update does, with an image whose data begin and end so many
 * bytes earlier or later. */
static struct scan *read_moved(struct reader *r, const char *path, int start, int end,
			       uint32_t *number)
{
	struct slots slots;
	struct scan *s;
	struct err err = ERR_INIT;
	struct source *image = &r->w->source;
	struct source file = {.size = image->size, .read_at = read_file, .ctx = r};
	const struct since_image since = {
		.file = &file, .image = image, .next_replaced = next_replaced, .ctx = r};
	if (scan_open(&r->w->f.env, &r->w->source, true, NULL, &s, &err))
		fail_msg("%s", err.msg);
	*number = find_object(s->tree, path);
	assert_true(slots_of(r->w->base, find_object(domain_tree(r->w->domain), path),
			     &h5file_dataset(s->file, *number)->grid, &slots));
	slots.at.addr += (uint64_t)start;
	slots.at.bytes += (uint64_t)(end - start);
	if (chunk_set_read(s, *number, &slots, &since, &err) || h5file_claims_check(s->file, &err))
		fail_msg("%s", err.msg);
	return s;
}

static struct scan *read_since(struct reader *r, const char *path, uint32_t *number)
{
	return read_moved(r, path, 0, 0, number);
}

static void an_index_that_has_not_changed_is_not_read(void **state)
{
	struct world *w = world_begin();
	struct reader r = {.w = w};
	uint32_t number;
	struct scan *s = read_since(&r, "grid", &number);
	const struct chunk_set *set = &s->chunks[number];
	assert_int_equal(s->nodes, 0);
	assert_int_equal(set->n, 0);
	assert_int_equal(set->nruns, 1);
	assert_int_equal(set->runs[0].first, 0);
	assert_int_equal(set->runs[0].end, 5);
	scan_free(s);
	/* Its only node was written, first with the bytes that it has. */
	r.start = edit_data(w->draft, edit_path(w->draft, "grid"));
	r.end = r.start + 1;
	s = read_since(&r, "grid", &number);
	assert_int_equal(s->nodes, 0);
	assert_int_equal(s->chunks[number].nruns, 1);
	scan_free(s);
	r.change = 1;
	s = read_since(&r, "grid", &number);
	assert_int_equal(s->nodes, 1);
	assert_int_equal(s->chunks[number].n, 5);
	assert_int_equal(s->chunks[number].nruns, 0);
	scan_free(s);
	/* Contiguous data are a run, whatever was written. */
	s = read_since(&r, "a/plain", &number);
	assert_int_equal(s->nodes, 0);
	assert_int_equal(s->chunks[number].n, 0);
	assert_int_equal(s->chunks[number].nruns, 1);
	scan_free(s);
	world_end(w);
}

static void contiguous_data_with_one_other_end_are_read(void **state)
{
	static const int ends[][2] = {{0, 4}, {-4, 0}, {0, -4}, {4, 0}, {4, 4}};
	struct world *w = world_begin();
	struct reader r = {.w = w};
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		uint32_t number;
		struct scan *s = read_moved(&r, "a/plain", ends[i][0], ends[i][1], &number);
		assert_int_equal(s->chunks[number].n, 1);
		assert_int_equal(s->chunks[number].nruns, 0);
		scan_free(s);
	}
	world_end(w);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(records_are_sorted),
		TEST(two_records_of_a_chunk_are_refused),
		TEST(slots_are_found_in_runs),
		TEST(an_index_that_has_not_changed_is_not_read),
		TEST(contiguous_data_with_one_other_end_are_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
