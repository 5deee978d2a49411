/* SPDX-License-Identifier: Apache-2.0 */
/* The chunks of an imported domain, as its reader decodes them: which are stored, and their
 * elements, with and without joining. */
#include <import/chunk_body.h>
#include <bucket/schemas.h>

#include "damaged_file.h"

enum { USER_BLOCK = 8192 /* of rare.h5 */ };

struct reading {
	struct world w;
	struct domain *d;
};

/* Imports, and opens the domain. */
static void read_import(struct reading *r, uint64_t min_chunk)
{
	struct err err = ERR_INIT;
	r->w.opt.min_chunk = min_chunk;
	world_must_import(&r->w, NULL);
	pool_stop_threads(r->w.env.pool);
	if (domain_open(&(struct domain_bucket){.env = &r->w.env,
						.store = r->w.store,
						.schemas = schema_all()},
			r->w.opt.path, NULL, &r->d, &err))
		fail_msg("%s", err.msg);
}

static void open_import(struct reading *r, unsigned int workers, uint64_t min_chunk)
{
	world_init(&r->w, workers);
	read_import(r, min_chunk);
}

/* Of tests/data/rare.h5. */
static void open_rare_import(struct reading *r, uint64_t min_chunk)
{
	world_init(&r->w, 0);
	r->w.opt.file.open = world_open_rare;
	read_import(r, min_chunk);
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

static void test_joined_cube(void **state)
{
	int32_t want[64];
	struct reading r;
	for (int32_t i = 0; i < 64; i++)
		want[i] = i;
	open_rare_import(&r, 1 << 20);
	assert_numbers(&r, "cube", 0, 64, want);
	close_import(&r);
}

/* A compressed chunk of which all elements are the fill value has no object. */
static void test_compressed_fill(void **state)
{
	int32_t want[1000];
	struct reading r;
	for (int32_t i = 0; i < 1000; i++)
		want[i] = 1000 + i;
	open_rare_import(&r, 0);
	assert_absent(&r, "gzip", 0);
	assert_numbers(&r, "gzip", 1, 1000, want);
	close_import(&r);
}

/* It is an object of its own. */
static void test_user_block(void **state)
{
	struct reading r;
	open_rare_import(&r, 0);
	const struct user_block *b = tree_user_block(domain_tree(r.d));
	assert_non_null(b);
	assert_int_equal(b->size, USER_BLOCK);
	assert_false(b->is_unknown);
	assert_int_equal(b->len, 5000);
	assert_int_equal(b->data[4999], 'x');
	close_import(&r);
}

/* The references of a file may name each of its objects. */
static void test_references(void **state)
{
	static const char *const paths[] = {"", "cube", "gzip", "contiguous", "zeros", "refs"};
	struct reading r;
	open_rare_import(&r, 0);
	struct chunk_result chunk = read_chunk(&r, "refs", 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		uint64_t ref;
		memcpy(&ref, chunk.data.elems.fixed.data + i * sizeof(ref), sizeof(ref));
		assert_int_equal(ref, find(&r, paths[i]) + 1);
	}
	elems_release(&chunk.data.elems);
	close_import(&r);
}

/* Also one of several chunks that become one. */
static void test_damaged(void **state)
{
	static const uint64_t min_chunk[] = {0, 1 << 20};
	for (size_t i = 0; i < 2; i++) {
		struct world w;
		struct damage d;
		struct import_result result;
		struct err err;
		world_init(&w, 0);
		damage_file(&w, &d);
		w.opt.min_chunk = min_chunk[i];
		assert_int_equal(world_import(&w, &result, &err), -EIO);
		assert_non_null(strstr(err.msg, "dataset /x: chunk (0): "));
		assert_non_null(strstr(err.msg, "fails again as long as the file is like this"));
		assert_true(result.refused);
		assert_int_equal(world_objects(&w, w.opt.path), 0);
		world_release(&w);
	}
}

/* ---- one chunk ---- */

struct one {
	struct world w;
	struct source source; /* the file, which is on a disk */
	struct h5file *f;
	atomic_bool is_damaged;
	struct chunk_context *context;
	struct chunk_parts *parts;
};

static int prepare(void *ctx, uint64_t offset, uint64_t n, struct source_part *part,
		   struct err *err)
{
	*part = (struct source_part){.source = source_file_source(ctx), .offset = offset, .n = n};
	return 0;
}

static int take_chunk(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct one *o = ctx;
	return chunk_add_part(&o->parts, o->context, chunk->number, chunk);
}

/* The first chunk of a dataset of rare.h5. */
static void open_one(struct one *o, const char *path)
{
	struct source *source;
	uint32_t number = 0;
	*o = (struct one){0};
	world_init(&o->w, 0);
	assert_int_equal(world_open_rare(&o->w, &source, NULL), 0);
	o->source = *source;
	o->source.prepare = prepare;
	assert_int_equal(h5file_open(&o->source, NULL, &o->f, NULL), 0);
	const struct tree *t = h5file_tree(o->f);
	while (strcmp(tree_object(t, number)->o.id, path) != 0)
		number++;
	const struct chunk_origin from = {
		.file = o->f, .tree = t, .schema = o->w.opt.schema, .is_damaged = &o->is_damaged};
	o->context = chunk_context_new(&from, number);
	assert_non_null(o->context);
	assert_int_equal(h5file_chunks(o->f, number, 0, 1, take_chunk, o, NULL), 0);
	assert_non_null(o->parts);
}

static void close_one(struct one *o)
{
	chunk_free(o->parts);
	chunk_context_unref(o->context);
	h5file_close(o->f);
	world_release(&o->w);
}

/* What waits in the queue of an import has to fit into the memory. What may be decoded needs room
 * for its elements, and for what they become. */
static void memory_of_a_chunk(void **state)
{
	struct one o;
	open_one(&o, "/contiguous");
	assert_int_equal(chunk_memory(o.parts), 4000);
	close_one(&o);
	open_one(&o, "/gzip");
	assert_int_equal(chunk_memory(o.parts), o.parts->parts[0].size + 2 * 4000);
	close_one(&o);
}

/* A large chunk need not be in memory, because the file has its bytes as the object gets them. This
 * is not true of a chunk whose elements may all be the fill value, of compressed data, and of a
 * chunk that the file stores in part. */
static void a_chunk_is_put_from_the_file(void **state)
{
	struct source_part part;
	struct one o;
	open_one(&o, "/contiguous");
	assert_true(chunk_find(o.parts, 4000, &part));
	assert_int_equal(part.offset, USER_BLOCK + o.parts->parts[0].addr);
	assert_false(chunk_find(o.parts, 4001, &part));
	o.parts->parts[0].size -= 4;
	assert_false(chunk_find(o.parts, 0, &part));
	close_one(&o);
	open_one(&o, "/zeros");
	assert_false(chunk_find(o.parts, 0, &part));
	close_one(&o);
	open_one(&o, "/gzip");
	assert_false(chunk_find(o.parts, 0, &part));
	close_one(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_joined_rows),
		cmocka_unit_test(test_joined_whole),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_joined_cube),
		cmocka_unit_test(test_compressed_fill),
		cmocka_unit_test(test_user_block),
		cmocka_unit_test(test_references),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(memory_of_a_chunk),
		cmocka_unit_test(a_chunk_is_put_from_the_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
