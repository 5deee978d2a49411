/* SPDX-License-Identifier: Apache-2.0 */
/* The chunks of an imported domain, as its reader decodes them: which are stored, and their
 * elements, with and without joining. */
#include "import_fixture.h"
#include <bucket/schemas.h>

struct reading {
	struct world w;
	struct domain *d;
};

static void open_import(struct reading *r, unsigned int workers, uint64_t min_chunk)
{
	struct err err = ERR_INIT;
	world_init(&r->w, workers);
	r->w.opt.min_chunk = min_chunk;
	world_must_import(&r->w, NULL);
	pool_stop_threads(r->w.env.pool);
	if (domain_open(&(struct domain_bucket){.env = &r->w.env,
						.store = r->w.store,
						.schemas = schema_all()},
			r->w.opt.path, NULL, &r->d, &err))
		fail_msg("%s", err.msg);
}

static void close_import(struct reading *r)
{
	domain_unref(r->d);
	world_release(&r->w);
}

/* The object at a path of names that are separated by "/". */
static uint32_t find(const struct reading *r, const char *path)
{
	const struct tree *t = domain_tree(r->d);
	uint32_t at = 0;
	while (*path) {
		const size_t n = strcspn(path, "/");
		const struct object *o = &tree_object(t, at)->o;
		uint32_t i = 0;
		while (i < o->group.nlinks &&
		       (strncmp(o->group.links[i].name, path, n) != 0 || o->group.links[i].name[n]))
			i++;
		if (i == o->group.nlinks)
			fail_msg("no link %s", path);
		at = o->group.links[i].target;
		path += n + (path[n] == '/');
	}
	return at;
}

static const struct dataset *dataset(const struct reading *r, const char *path)
{
	return &tree_object(domain_tree(r->d), find(r, path))->o.dataset;
}

static void keep_result(void *arg, struct chunk_result *chunk)
{
	*(struct chunk_result *)arg = *chunk;
}

/* Its elements belong to the caller. */
static struct chunk_result read_chunk(struct reading *r, const char *path, uint64_t number)
{
	const struct chunk_source source = domain_chunk_source(r->d);
	const struct chunk_request request = {.dataset = find(r, path), .number = number};
	struct chunk_result result = {.code = 1};
	source.get(source.ctx, &request, keep_result, &result);
	if (result.code)
		fail_msg("%s: %s", path, result.err.msg);
	return result;
}

static void assert_numbers(struct reading *r, const char *path, uint64_t number, size_t n,
			   const int32_t *want)
{
	struct chunk_result chunk = read_chunk(r, path, number);
	assert_false(chunk.absent);
	assert_int_equal(chunk.data.elems.fixed.len, n * sizeof(*want));
	assert_memory_equal(chunk.data.elems.fixed.data, want, n * sizeof(*want));
	elems_release(&chunk.data.elems);
}

static void assert_absent(struct reading *r, const char *path, uint64_t number)
{
	struct chunk_result chunk = read_chunk(r, path, number);
	assert_true(chunk.absent);
}

static void check_numbers(struct reading *r, const char *path, size_t n, uint64_t nchunks,
			  bool squares)
{
	int32_t want[500];
	const size_t part = n / nchunks;
	for (uint32_t i = 0; i < n; i++)
		want[i] = squares ? (int32_t)(i * i) : (int32_t)i;
	assert_int_equal(dataset(r, path)->grid.nchunks, nchunks);
	for (uint64_t i = 0; i < nchunks; i++)
		assert_numbers(r, path, i, part, want + i * part);
}

static void check_text(struct reading *r, uint64_t nchunks)
{
	static const char *const words[] = {"one", "two", "three", NULL, NULL, NULL};
	const struct dataset *ds = dataset(r, "group/below/text");
	assert_int_equal(ds->grid.nchunks, nchunks);
	for (uint64_t i = 0; i < 6; i++) {
		const uint64_t per = ds->grid.chunk_elems;
		struct chunk_result chunk = read_chunk(r, "group/below/text", i / per);
		if (chunk.absent) {
			assert_null(words[i]);
			continue;
		}
		const uint8_t *slot = chunk.data.elems.fixed.data + i % per * DTYPE_VLEN_SIZE;
		const struct elems_vlen v = elems_get_vlen(slot);
		assert_int_equal(v.count, words[i] ? strlen(words[i]) : 0);
		if (v.count)
			assert_memory_equal(chunk.data.elems.heap.data + v.offset, words[i],
					    v.count);
		elems_release(&chunk.data.elems);
	}
}

static void check_reference(struct reading *r)
{
	struct chunk_result chunk = read_chunk(r, "group/below/refs", 0);
	uint64_t refs[2];
	assert_int_equal(chunk.data.elems.fixed.len, sizeof(refs));
	memcpy(refs, chunk.data.elems.fixed.data, sizeof(refs));
	assert_int_equal(refs[0], find(r, "chunked") + 1);
	assert_int_equal(refs[1], 0);
	elems_release(&chunk.data.elems);
}

static void check_everything_else(struct reading *r, bool joined)
{
	struct chunk_result chunk = read_chunk(r, "scalar", 0);
	double value;
	assert_int_equal(chunk.data.elems.fixed.len, sizeof(value));
	memcpy(&value, chunk.data.elems.fixed.data, sizeof(value));
	assert_true(value == 1.5);
	elems_release(&chunk.data.elems);
	assert_absent(r, "zeros", 0);
	check_numbers(r, "contiguous", 24, 1, false);
	check_numbers(r, "gzip", 500, joined ? 1 : 2, true);
	check_numbers(r, "lzf", 24, joined ? 1 : 2, false);
	check_reference(r);
}

static void test_chunks(void **state)
{
	static const int32_t want[][4] = {
		{0}, {2, 3, 8, 9}, {4, 5, 10, 11}, {12, 13, 18, 19}, {14, 15, 20, 21}};
	struct reading r;
	open_import(&r, 0, 0);
	assert_int_equal(dataset(&r, "chunked")->grid.nchunks, 6);
	for (uint64_t i = 1; i <= 4; i++)
		assert_numbers(&r, "chunked", i, 4, want[i]);
	assert_absent(&r, "chunked", 0); /* the file stores it, but all of it is fill */
	assert_absent(&r, "chunked", 5);
	check_text(&r, 3);
	check_everything_else(&r, false);
	close_import(&r);
}

/* Chunks of 2 x 2 become 2 x 6, with the fill value where the file stores none. The others are
 * smaller than 48 bytes, too, or larger. */
static void test_joined_rows(void **state)
{
	static const int32_t want[][12] = {{7, 7, 2, 3, 4, 5, 7, 7, 8, 9, 10, 11},
					   {12, 13, 14, 15, 7, 7, 18, 19, 20, 21, 7, 7}};
	struct reading r;
	open_import(&r, 0, 48);
	const struct dataset *ds = dataset(&r, "chunked");
	assert_int_equal(ds->grid.nchunks, 2);
	assert_int_equal(ds->grid.chunk[0], 2);
	assert_int_equal(ds->grid.chunk[1], 6);
	assert_non_null(ds->requested_chunk);
	assert_int_equal(ds->requested_chunk[1], 2);
	assert_numbers(&r, "chunked", 0, 12, want[0]);
	assert_numbers(&r, "chunked", 1, 12, want[1]);
	check_text(&r, 2);
	close_import(&r);
}

/* All chunks of each dataset become one. */
static void test_joined_whole(void **state)
{
	static const int32_t want[] = {7,  7,  2,  3,  4, 5, 7,	 7,  8,	 9,  10, 11,
				       12, 13, 14, 15, 7, 7, 18, 19, 20, 21, 7,	 7};
	static const unsigned int workers[] = {0, 3};
	for (size_t i = 0; i < 2; i++) {
		struct reading r;
		open_import(&r, workers[i], 1 << 20);
		if (workers[i] == 0) {
			assert_numbers(&r, "chunked", 0, 24, want);
			check_text(&r, 1);
			check_everything_else(&r, true);
		}
		assert_int_equal(dataset(&r, "chunked")->grid.nchunks, 1);
		close_import(&r);
	}
}

/* Chunks of an extendible dataset that is empty, and one without any elements. */
static void test_empty(void **state)
{
	struct reading r;
	open_import(&r, 0, 1 << 20);
	assert_int_equal(dataset(&r, "nothing")->grid.nchunks, 0);
	assert_int_equal(dataset(&r, "nothing")->space.max[0], DSPACE_UNLIMITED);
	assert_int_equal(dataset(&r, "null")->space.cls, DSPACE_NULL);
	close_import(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_joined_rows),
		cmocka_unit_test(test_joined_whole),
		cmocka_unit_test(test_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
