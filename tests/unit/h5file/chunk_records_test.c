/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks of datasets without chunks, of a version 1 B-tree, of compact data; sizes that are wrong;
 * data that are too short; partial chunks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <h5/btree1.h>
#include <h5file/h5file.h>

#include "shape_arena.h"
#include "small_file.h"

/* A file with the dataset /d, whose header is at d. size: bytes that the source says it has; data
 * behind the real end are never read. 0: the real size. */
static struct h5file *open_sized(struct small_file *s, uint64_t d, uint64_t size)
{
	struct h5file *f = NULL;
	struct err err = ERR_INIT;
	small_object(s);
	small_group(s, false);
	small_link(s, "d", d);
	small_finish(s, small_end(s));
	if (size)
		s->src.source.size = size;
	if (h5file_open(&s->src.source, NULL, &f, &err))
		fail_msg("%s", err.msg);
	return f;
}

static struct h5file *open_with(struct small_file *s, uint64_t d)
{
	return open_sized(s, d, 0);
}

struct seen {
	struct h5file_chunk chunk[64];
	size_t n;
};

static int see(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct seen *s = ctx;
	assert_true(s->n < 64);
	s->chunk[s->n++] = *chunk;
	return 0;
}

static int decode(struct h5file *f, const struct h5file_chunk *c, struct elems *out,
		  struct err *err)
{
	struct bytes stored = {0};
	int rc = h5file_chunk_read(f, c, &stored, err);
	if (!rc)
		rc = h5file_chunk_decode(f, 1, c, &stored, out, err);
	bytes_release(&stored);
	return rc;
}

static void compact_data(void **state)
{
	static struct small_file s;
	const uint8_t v[] = {1, 2, 3, 4, 5, 6};
	const struct dspace space = small_vector(6);
	const struct h5_layout l = {.cls = LAYOUT_COMPACT, .data = v, .size = 6};
	struct seen seen = {.n = 0};
	struct elems out = {0};
	struct err err = ERR_INIT;
	small_begin(&s);
	small_object(&s);
	small_dataset(&s, dtype_integer(s.arena, 1, false, false, NULL), &space, &l, NULL);
	struct h5file *f = open_with(&s, small_end(&s));
	assert_int_equal(h5file_dataset(f, 1)->layout, LAYOUT_COMPACT);
	assert_int_equal(h5file_dataset(f, 1)->stored_bytes, 6);
	assert_int_equal(h5file_chunks(f, 1, 0, UINT64_MAX, see, &seen, &err), 0);
	assert_int_equal(seen.n, 1);
	assert_int_equal(decode(f, &seen.chunk[0], &out, &err), 0);
	assert_memory_equal(out.fixed.data, v, 6);
	elems_release(&out);
	assert_int_equal(h5file_chunks(f, 1, 1, UINT64_MAX, see, &seen, &err), 0);
	assert_int_equal(seen.n, 1);
	assert_int_equal(h5file_chunks(f, 0, 0, 1, see, &seen, &err), -EINVAL);
	assert_null(h5file_dataset(f, 0));
	assert_null(h5file_dataset(f, 99));
	h5file_close(f);
	small_release(&s);
}

static void a_contiguous_dataset_is_cut(void **state)
{
	static struct small_file s;
	const uint64_t dims[] = {9, 1 << 20};
	struct dspace space;
	struct seen seen = {.n = 0};
	struct err err = ERR_INIT;
	small_begin(&s);
	const uint64_t at = small_put(&s, "x", 1);
	const struct h5_layout l = {.cls = LAYOUT_CONTIGUOUS, .addr = at, .size = 9 << 20};
	dspace_simple(shape_arena(), &space, 2, dims, NULL, NULL);
	small_object(&s);
	small_dataset(&s, dtype_integer(s.arena, 1, false, false, NULL), &space, &l, NULL);
	const uint64_t d = small_end(&s);
	struct h5file *f = open_sized(&s, d, 10 << 20);
	assert_int_equal(h5file_chunks(f, 1, 0, UINT64_MAX, see, &seen, &err), 0);
	assert_int_equal(seen.n, 3);
	assert_int_equal(seen.chunk[1].addr, at + (4 << 20));
	assert_int_equal(seen.chunk[1].size, 4 << 20);
	assert_int_equal(seen.chunk[2].size, 1 << 20); /* the last run is shorter */
	h5file_close(f);
	/* Now the file ends within chunk 2. */
	seen.n = 0;
	f = open_sized(&s, d, 9 << 20);
	assert_int_equal(h5file_problems_of(f, H5FILE_DAMAGED), 1);
	assert_non_null(
		strstr(h5file_first_problem(f, H5FILE_DAMAGED)->text, "outside of the file"));
	assert_int_equal(h5file_chunks(f, 1, 0, UINT64_MAX, see, &seen, &err), -EIO);
	assert_int_equal(seen.n, 2);
	h5file_close(f);
	small_release(&s);
}

/* The references of a dataset that lead to no object are reported once, with the first of them. */
static void references_in_chunks(void **state)
{
	static const struct {
		uint64_t refs[4];
		const char *problem;
	} cases[] = {{{0, 0, 0, 0}, NULL}, {{0, 12345, 6789, 0}, "12345"}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static struct small_file s;
		const struct dspace space = small_vector(4);
		struct seen seen = {.n = 0};
		struct err err = ERR_INIT;
		small_begin(&s);
		const struct h5_layout l = {.cls = LAYOUT_CONTIGUOUS,
					    .addr = small_put(&s, cases[i].refs, 32),
					    .size = 32};
		small_object(&s);
		small_dataset(&s, dtype_reference(s.arena, DTYPE_REF_OBJECT, NULL), &space, &l,
			      NULL);
		struct h5file *f = open_with(&s, small_end(&s));
		assert_int_equal(h5file_chunks(f, 1, 0, 1, see, &seen, &err), 0);
		for (int k = 0; k < 2; k++) {
			struct elems out = {0};
			assert_int_equal(decode(f, &seen.chunk[0], &out, &err), 0);
			elems_release(&out);
		}
		assert_int_equal(h5file_problems(f), cases[i].problem ? 1 : 0);
		if (cases[i].problem)
			assert_non_null(strstr(h5file_problem(f, 0)->text, cases[i].problem));
		h5file_close(f);
		small_release(&s);
	}
}

/* The elements of a cut that are beyond the extent are zeros. */
static void a_short_run_is_filled_up(void **state)
{
	static struct small_file s;
	struct seen seen = {.n = 0};
	struct elems out = {0};
	struct err err = ERR_INIT;
	const uint64_t dims[] = {3, 1 << 20};
	struct dspace space;
	dspace_simple(shape_arena(), &space, 2, dims, NULL, NULL);
	small_begin(&s);
	const struct h5_layout l = {
		.cls = LAYOUT_CONTIGUOUS, .addr = small_put(&s, "abc", 3), .size = 24 << 20};
	small_object(&s);
	small_dataset(&s, dtype_integer(s.arena, 8, false, false, NULL), &space, &l, NULL);
	struct h5file *f = open_sized(&s, small_end(&s), 64 << 20);
	const struct grid *g = &h5file_dataset(f, 1)->grid;
	assert_int_equal(h5file_chunks(f, 1, 0, UINT64_MAX, see, &seen, &err), 0);
	assert_int_equal(seen.n, g->nchunks);
	/* A chunk of one element, of which the caller has the bytes. */
	struct bytes stored = {0};
	seen.chunk[0].size = 8;
	assert_int_equal(bytes_append(&stored, "12345678", 8), 0);
	assert_int_equal(h5file_chunk_decode(f, 1, &seen.chunk[0], &stored, &out, &err), 0);
	assert_int_equal(out.fixed.len, g->chunk_elems * 8);
	assert_memory_equal(out.fixed.data, "12345678\0\0", 10);
	assert_int_equal(out.fixed.data[out.fixed.len - 1], 0);
	elems_release(&out);
	bytes_release(&stored);
	h5file_close(f);
	small_release(&s);
}

static void too_few_data(void **state)
{
	static struct small_file s;
	struct seen seen = {.n = 0};
	struct err err = ERR_INIT;
	const uint8_t v[8] = {0};
	const struct dspace space = small_vector(9);
	small_begin(&s);
	const struct h5_layout l = {
		.cls = LAYOUT_CONTIGUOUS, .addr = small_put(&s, v, 8), .size = 8};
	small_object(&s);
	small_dataset(&s, dtype_integer(s.arena, 1, false, false, NULL), &space, &l, NULL);
	struct h5file *f = open_with(&s, small_end(&s));
	assert_int_equal(h5file_problems(f), 1);
	assert_non_null(strstr(h5file_problem(f, 0)->text, "8 bytes of data are stored"));
	assert_int_equal(h5file_chunks(f, 1, 0, UINT64_MAX, see, &seen, &err), -EIO);
	h5file_close(f);
	small_release(&s);
}

/* Two rows of 4 elements of 2 bytes, and a last row that is not in a chunk of two rows. */
static void check_rows(struct h5file *f, bool compact)
{
	static const uint32_t rows[] = {2, 4};
	const uint8_t last[] = {8, 0, 9, 0, 10, 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	struct seen seen = {.n = 0};
	struct elems out = {0};
	struct err err = ERR_INIT;
	assert_int_equal(h5file_set_cut(f, 1, rows, &err), 0);
	assert_int_equal(h5file_dataset(f, 1)->grid.nchunks, 2);
	assert_int_equal(tree_object(h5file_tree(f), 1)->o.dataset.grid.chunk[0], 2);
	assert_int_equal(h5file_chunks(f, 1, 0, UINT64_MAX, see, &seen, &err), 0);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.chunk[0].size, 16);
	assert_int_equal(seen.chunk[1].size, 8);
	assert_int_equal(seen.chunk[1].data != NULL, compact);
	assert_int_equal(decode(f, &seen.chunk[1], &out, &err), 0);
	assert_int_equal(out.fixed.len, sizeof(last));
	assert_memory_equal(out.fixed.data, last, sizeof(last));
	elems_release(&out);
}

static void refuses_cuts(struct h5file *f)
{
	static const uint32_t refused[][2] = {{2, 3}, {2, 5}, {0, 4}, {2, 2}, {1, 3}};
	static const uint32_t elements[] = {1, 1}, whole[] = {7, 4};
	struct err err = ERR_INIT;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_int_equal(h5file_set_cut(f, 1, refused[i], &err), -EINVAL);
	assert_int_equal(h5file_dataset(f, 1)->grid.nchunks, 2); /* unchanged */
	assert_int_equal(h5file_set_cut(f, 0, whole, &err), -EINVAL);
	assert_int_equal(h5file_set_cut(f, 9, whole, &err), -EINVAL);
	assert_int_equal(h5file_set_cut(f, 1, elements, &err), 0);
	assert_int_equal(h5file_dataset(f, 1)->grid.nchunks, 12);
	assert_int_equal(h5file_set_cut(f, 1, whole, &err), 0);
	assert_int_equal(h5file_dataset(f, 1)->grid.nchunks, 1);
}

static void cuts_of_another_shape(void **state)
{
	static struct small_file s;
	const uint64_t dims[] = {3, 4};
	uint8_t v[24];
	struct dspace space;
	for (uint8_t i = 0; i < sizeof(v); i++)
		v[i] = i % 2 ? 0 : i / 2;
	dspace_simple(shape_arena(), &space, 2, dims, NULL, NULL);
	for (int compact = 0; compact < 2; compact++) {
		small_begin(&s);
		const struct h5_layout l = {.cls = compact ? LAYOUT_COMPACT : LAYOUT_CONTIGUOUS,
					    .addr = small_put(&s, v, sizeof(v)),
					    .data = v,
					    .size = sizeof(v)};
		small_object(&s);
		small_dataset(&s, dtype_integer(s.arena, 2, false, false, NULL), &space, &l, NULL);
		struct h5file *f = open_with(&s, small_end(&s));
		check_rows(f, compact);
		refuses_cuts(f);
		h5file_close(f);
		small_release(&s);
	}
}

/* A dataset without elements, of any shape, has nothing to cut; a scalar has one chunk. */
static void cuts_without_elements(void **state)
{
	static struct small_file s;
	static const uint32_t one = 1, four = 4;
	const uint32_t v = 7;
	for (int i = 0; i < 3; i++) {
		struct seen seen = {.n = 0};
		struct dspace space = small_vector(0);
		struct err err = ERR_INIT;
		small_begin(&s);
		if (i == 1)
			dspace_null(&space);
		else if (i == 2)
			dspace_scalar(&space);
		const struct h5_layout l = {.cls = LAYOUT_CONTIGUOUS,
					    .addr = i == 2 ? small_put(&s, &v, 4) : H5_UNDEF,
					    .size = i == 2 ? 4 : 0};
		small_object(&s);
		small_dataset(&s, dtype_integer(s.arena, 4, false, false, NULL), &space, &l, NULL);
		struct h5file *f = open_with(&s, small_end(&s));
		assert_int_equal(h5file_set_cut(f, 1, i == 2 ? &one : &four, &err), 0);
		assert_int_equal(h5file_chunks(f, 1, 0, UINT64_MAX, see, &seen, &err), 0);
		assert_int_equal(seen.n, i == 2);
		h5file_close(f);
		small_release(&s);
	}
}

/* ---- a version 1 B-tree ---- */

enum { CHUNKS = 3, CHUNK = 4 /* elements of 2 bytes */ };

struct table {
	uint64_t data;
	uint32_t size[CHUNKS], mask[CHUNKS];
	uint64_t index; /* address of the root */
};

static void nth(void *ctx, uint64_t i, struct h5_bt1_chunk *out)
{
	const struct table *t = ctx;
	*out = (struct h5_bt1_chunk){.size = t->size[i],
				     .filter_mask = t->mask[i],
				     .offset = {i * CHUNK},
				     .addr = t->data + 2 * CHUNK * i};
}

static void end(void *ctx, struct h5_bt1_chunk *out)
{
	*out = (struct h5_bt1_chunk){.offset = {CHUNKS * CHUNK}};
}

/* 10 elements in chunks of 4. filters: NULL or a pipeline. */
static struct h5file *open_chunked(struct small_file *s, struct table *t,
				   const struct pipeline *filters)
{
	uint16_t v[CHUNKS * CHUNK];
	for (uint16_t i = 0; i < CHUNKS * CHUNK; i++)
		v[i] = i;
	small_begin(s);
	t->data = small_put(s, v, sizeof(v));
	struct h5_bt1 tree = {.rank = 1,
			      .elem_size = 2,
			      .n = CHUNKS,
			      .addr = (s->n + 7) & ~(size_t)7,
			      .chunk = nth,
			      .end = end,
			      .ctx = t};
	const size_t n = (size_t)h5_bt1_size(1, CHUNKS);
	uint8_t *nodes = malloc(n);
	h5_bt1_read(&tree, 0, nodes, n);
	assert_int_equal(small_put(s, nodes, n), tree.addr);
	free(nodes);
	const struct dspace space = small_vector(10);
	const struct h5_layout l = {.cls = LAYOUT_CHUNKED,
				    .rank = 1,
				    .chunk = {CHUNK},
				    .elem_size = 2,
				    .addr = tree.addr};
	small_object(s);
	small_dataset(s, dtype_integer(s->arena, 2, false, false, NULL), &space, &l, NULL);
	if (filters) {
		struct emit e = small_body(s);
		h5_pipeline_encode(&e, filters);
		small_message(s, H5_MSG_PIPELINE, &e);
	}
	t->index = tree.addr;
	return open_with(s, small_end(s));
}

static void chunks_of_an_index(void **state)
{
	static struct small_file s;
	struct table t = {.size = {8, 8, 8}};
	struct seen seen = {.n = 0};
	struct elems out = {0};
	struct err err = ERR_INIT;
	struct h5file *f = open_chunked(&s, &t, NULL);
	static const uint32_t chunk = CHUNK;
	assert_int_equal(h5file_set_cut(f, 1, &chunk, &err), -EINVAL);
	assert_int_equal(h5file_chunks(f, 1, 1, 3, see, &seen, &err), 0);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.chunk[0].number, 1);
	assert_false(seen.chunk[0].is_filtered);
	assert_int_equal(decode(f, &seen.chunk[1], &out, &err), 0);
	assert_int_equal(out.fixed.len, 8); /* the whole chunk, beyond the extent, too */
	assert_int_equal(out.fixed.data[0], 8);
	assert_int_equal(out.fixed.data[6], 11);
	elems_release(&out);
	h5file_close(f);
	small_release(&s);
}

/* ---- an index that is known ---- */

struct known {
	struct table *t;
	struct seen seen;
	bool is_changed;
	uint64_t first, end;
};

static int is_changed(void *ctx, uint64_t start, uint64_t end, struct err *err)
{
	const struct known *k = ctx;
	assert_int_equal(start, k->t->index);
	assert_int_equal(end, start + h5_bt1_node_size(1));
	return k->is_changed;
}

static void find_offset(void *ctx, uint64_t i, uint64_t *offset)
{
	*offset = i * CHUNK;
}

static int take_run(void *ctx, uint64_t first, uint64_t end, struct err *err)
{
	struct known *k = ctx;
	k->first = first;
	k->end = end;
	return 0;
}

static int see_known(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	return see(&((struct known *)ctx)->seen, chunk, err);
}

/* Opens the same file again, and keeps its claims. */
static struct h5file *open_claimed(struct small_file *s)
{
	const struct h5file_options opt = {.keep_claims = true};
	struct h5file *f;
	assert_int_equal(h5file_open(&s->src.source, &opt, &f, NULL), 0);
	return f;
}

static void chunks_are_claimed(void **state)
{
	static struct small_file s;
	struct table t = {.size = {8, 8, 8}};
	struct err err = ERR_INIT;
	h5file_close(open_chunked(&s, &t, NULL));
	for (int changed = 0; changed < 2; changed++) {
		struct known k = {.t = &t, .is_changed = changed};
		const struct h5file_index known = {.addr = t.index,
						   .n = CHUNKS,
						   .is_changed = is_changed,
						   .offset = find_offset,
						   .run = take_run,
						   .ctx = &k};
		struct h5file *f = open_claimed(&s);
		assert_int_equal(h5file_claim_chunks(f, 1, &known, see_known, &k, &err), 0);
		assert_int_equal(h5file_claims_check(f, &err), 0);
		assert_int_equal(k.seen.n, changed ? CHUNKS : 0);
		assert_int_equal(k.end - k.first, changed ? 0 : CHUNKS);
		/* The index is claimed in any case, the chunks if they have records. */
		struct h5file_chunk c = {.addr = t.data + 4, .size = 1};
		assert_int_equal(h5file_claim(f, &c, &err), 0);
		assert_int_equal(h5file_claims_check(f, NULL), changed ? -EIO : 0);
		c.addr = t.index + h5_bt1_node_size(1) - 1;
		assert_int_equal(h5file_claim(f, &c, &err), 0);
		assert_int_equal(h5file_claims_check(f, NULL), -EIO);
		h5file_close(f);
	}
	struct known all = {.t = &t};
	struct h5file *f = open_claimed(&s);
	assert_int_equal(h5file_claim_chunks(f, 1, NULL, see_known, &all, &err), 0);
	assert_int_equal(all.seen.n, CHUNKS);
	assert_int_equal(h5file_claim_chunks(f, 0, NULL, see_known, &all, &err), -EINVAL);
	h5file_close(f);
	small_release(&s);
}

static void sizes_that_are_wrong(void **state)
{
	static struct small_file s;
	struct table t = {.size = {8, 6, 10}};
	struct seen seen = {.n = 0};
	struct err err = ERR_INIT;
	struct h5file *f = open_chunked(&s, &t, NULL);
	if (!h5file_chunks(f, 1, 0, UINT64_MAX, see, &seen, &err))
		for (size_t i = 1; i < seen.n; i++) {
			struct elems out = {0};
			assert_int_equal(decode(f, &seen.chunk[i], &out, &err), -EIO);
		}
	h5file_close(f);
	small_release(&s);
}

/* Shuffle was applied to chunk 0 only: the mask of the others says so. */
static void filter_masks(void **state)
{
	static struct small_file s;
	static const uint32_t two[] = {2};
	const struct pipeline p = {
		.n = 1,
		.f = {{.id = FILTER_SHUFFLE, .name = "shuffle", .nparams = 1, .params = two}}};
	struct table t = {.size = {8, 8, 8}, .mask = {0, 1, 1}};
	struct seen seen = {.n = 0};
	struct elems out = {0};
	struct err err = ERR_INIT;
	struct h5file *f = open_chunked(&s, &t, &p);
	assert_int_equal(h5file_chunks(f, 1, 0, UINT64_MAX, see, &seen, &err), 0);
	assert_int_equal(seen.n, 3);
	assert_true(seen.chunk[0].is_filtered);
	assert_int_equal(decode(f, &seen.chunk[0], &out, &err), 0);
	/* Stored: 0 0 1 0 2 0 3 0. The first half holds the low bytes. */
	assert_memory_equal(out.fixed.data, "\0\2\0\0\1\3\0\0", 8);
	elems_release(&out);
	assert_int_equal(decode(f, &seen.chunk[1], &out, &err), 0);
	assert_memory_equal(out.fixed.data, "\4\0\5\0\6\0\7\0", 8);
	elems_release(&out);
	h5file_close(f);
	small_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compact_data),
		cmocka_unit_test(a_contiguous_dataset_is_cut),
		cmocka_unit_test(references_in_chunks),
		cmocka_unit_test(a_short_run_is_filled_up),
		cmocka_unit_test(too_few_data),
		cmocka_unit_test(cuts_of_another_shape),
		cmocka_unit_test(cuts_without_elements),
		cmocka_unit_test(chunks_of_an_index),
		cmocka_unit_test(chunks_are_claimed),
		cmocka_unit_test(sizes_that_are_wrong),
		cmocka_unit_test(filter_masks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
