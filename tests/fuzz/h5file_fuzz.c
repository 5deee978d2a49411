/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole HDF5 files. Input: the bytes of a file. Properties:
 *
 *   the bytes that the walk reads are limited by the size of the file;
 *   values of attributes and fill values have valid slots, and references lead to objects;
 *   a source whose pages arrive later gives the same tree and the same problems;
 *   chunks that can be decoded have the size of the grid, and ranges of chunks add up to all
 * chunks.
 */
#include <stdlib.h>
#include <string.h>

#include <base/cursor.h>
#include <data/tree_diff.h>
#include <h5file/h5file.h>

#include "mem_src.h"
#include "require.h"

enum {
	TREE_LIMIT = 64 << 20,
	PAGE = 512,
	PAGED_MAX = 24 << 10, /* larger inputs are not read page by page */
	CHUNK_MAX = 1 << 20,  /* larger chunks are not decoded */
	CHUNKS_MAX = 1000,
	READ_FACTOR = 64,
	READ_MIN = 64 << 20,
};

static const struct h5file_options options = {.max_tree = TREE_LIMIT, .claim_chunks = true};

static int check_reference(void *ctx, const struct dtype *t, uint8_t *slot, struct err *err)
{
	const struct tree *tree = ctx;
	struct cursor c = cursor_of(slot, sizeof(uint64_t));
	if (t->reference.kind == DTYPE_REF_OBJECT)
		require(cur_u64(&c) <= tree_numbers(tree));
	return 0;
}

static void check_value(const struct tree *tree, const struct dtype *t, const struct elems *value,
			uint64_t n)
{
	const struct elems_visitor v = {.reference = check_reference,
					.ctx = (void *)(uintptr_t)tree};
	if (dtype_is_plain(t))
		return;
	require(value->fixed.len == n * t->size);
	require(elems_visit(t, value->fixed.data, n, value->heap.data, value->heap.len, &v, NULL) ==
		0);
}

static void check_object(const struct tree *tree, const struct object *o)
{
	for (uint32_t i = 0; i < o->nattrs; i++) {
		const struct attribute *a = &o->attrs[i];
		require(elems_end(&a->value) <= attribute_bytes(a));
		check_value(tree, a->type, &a->value, a->space.nelems);
	}
	if (o->kind == OBJECT_DATASET && o->dataset.fill_defined)
		check_value(tree, o->dataset.type, &o->dataset.fill, 1);
	for (uint32_t i = 0; o->kind == OBJECT_GROUP && i < o->group.nlinks; i++) {
		const struct link *l = &o->group.links[i];
		require(l->name[0] && !strchr(l->name, '/'));
		require(l->cls != LINK_HARD || l->target < tree_numbers(tree));
	}
}

struct chunks {
	struct h5file *f;
	uint32_t number;
	uint64_t first, end, n, left;
	bool decode;
};

static int check_chunk(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct chunks *c = ctx;
	const struct h5file_dataset *d = h5file_dataset(c->f, c->number);
	const struct dataset *ds = &tree_object(h5file_tree(c->f), c->number)->o.dataset;
	struct bytes stored = {0};
	struct elems out = {0};
	c->n++;
	require(chunk->number >= c->first && chunk->number < c->end);
	require(chunk->number < d->grid.nchunks);
	if (!c->decode || c->left-- == 0 || chunk->size > CHUNK_MAX ||
	    d->grid.chunk_elems * ds->type->size > CHUNK_MAX)
		return c->left ? 0 : -ECANCELED;
	int rc = h5file_chunk_read(c->f, chunk, &stored, err);
	if (!rc)
		rc = h5file_chunk_decode(c->f, c->number, chunk, &stored, &out, err);
	if (!rc) {
		require(out.fixed.len == d->grid.chunk_elems * ds->type->size);
		check_value(h5file_tree(c->f), ds->type, &out, d->grid.chunk_elems);
	}
	bytes_release(&stored);
	elems_release(&out);
	return 0;
}

static void check_dataset(struct h5file *f, uint32_t number)
{
	const struct h5file_dataset *d = h5file_dataset(f, number);
	struct chunks all = {
		.f = f, .number = number, .end = UINT64_MAX, .left = CHUNKS_MAX, .decode = true};
	if (!d || h5file_chunks(f, number, 0, UINT64_MAX, check_chunk, &all, NULL))
		return;
	const uint64_t middle = d->grid.nchunks / 2;
	struct chunks head = {.f = f, .number = number, .end = middle, .left = UINT64_MAX};
	struct chunks tail = {
		.f = f, .number = number, .first = middle, .end = UINT64_MAX, .left = UINT64_MAX};
	if (!h5file_chunks(f, number, 0, middle, check_chunk, &head, NULL) &&
	    !h5file_chunks(f, number, middle, UINT64_MAX, check_chunk, &tail, NULL))
		require(head.n + tail.n == all.n);
}

/* Opens the same bytes page by page. */
static void check_paged(const uint8_t *bytes, size_t n, struct h5file *whole)
{
	struct mem_src src;
	struct h5file *f = NULL;
	const struct tree_diff_sink sink = {0};
	uint64_t differences = 0;
	int rc;
	mem_src_init(&src, bytes, n);
	mem_src_hide(&src, PAGE);
	while ((rc = h5file_open(&src.source, &options, &f, NULL)) == -EAGAIN)
		mem_src_fetch(&src);
	require(!rc == (whole != NULL));
	if (!rc) {
		require(tree_numbers(h5file_tree(f)) == tree_numbers(h5file_tree(whole)));
		require(h5file_problems(f) == h5file_problems(whole));
		rc = tree_diff(h5file_tree(f), h5file_tree(whole),
			       TREE_DIFF_TIMES | TREE_DIFF_ORDER, &sink, NULL, &differences, NULL);
		require(rc || !differences);
	}
	h5file_close(f);
	mem_src_release(&src);
}

static void check_file(const uint8_t *bytes, size_t n)
{
	struct mem_src src;
	struct h5file *f = NULL;
	mem_src_init(&src, bytes, n);
	const int rc = h5file_open(&src.source, &options, &f, NULL);
	require(src.source.bytes / READ_FACTOR <= n + 2 * (READ_MIN / READ_FACTOR));
	if (n <= PAGED_MAX && rc != -ENOMEM)
		check_paged(bytes, n, f);
	if (rc)
		return;
	const struct tree *tree = h5file_tree(f);
	for (uint32_t i = 0; i < tree_numbers(tree); i++) {
		if (tree_object(tree, i)->broken)
			continue;
		check_object(tree, &tree_object(tree, i)->o);
		check_dataset(f, i);
	}
	h5file_close(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size ? size : 1);
	if (!bytes)
		return 0;
	if (size)
		memcpy(bytes, data, size);
	check_file(bytes, size);
	free(bytes);
	return 0;
}
