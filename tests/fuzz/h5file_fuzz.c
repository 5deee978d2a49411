/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole HDF5 files (h5file/). Input: the bytes of a file. Either the open fails with a message, or:
 *
 *   - all problems have a message and a severity, and an object that exists;
 *   - chunks have numbers in the grid, and lie within the file, or within the raw data of a dataset
 *     in external files, all of which have the same few bytes; the first ones of each dataset can
 *     be read and decoded, or fail with a message;
 *   - a dataset that is found by its path, and a chunk that is found by its number, are those of
 *     the complete walk, if the file has no problem; in any file the search ends;
 *   - a second open gives the same tree and the same problems;
 *   - a file whose pages arrive one by one, after -EAGAIN, gives the same tree and problems.
 *
 * In all cases the reads and their bytes are limited by the size of the file, and all charges of
 * the budget are returned.
 *
 * libFuzzer calls LLVMFuzzerCustomMutator() (h5file_mutate.c) to make new inputs.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <data/tree_diff.h>
#include <h5file/h5file.h>
#include <h5file/one.h>
#include "mem_src.h"

#include "require.h"

enum {
	BUDGET = 64 << 20,
	PAGE_MIN = 512,
	PAGES = 12,		 /* of a larger file; each may restart the open */
	CHUNKS_READ = 4,	 /* of each dataset */
	CHUNK_BYTES = 256 << 10, /* larger chunks are not decoded */
	ONE_CHUNKS = 8,		 /* of each dataset are found by their numbers */
	DATASETS = 64,		 /* chunks are read of so many */
	READS_MIN = 4096,	 /* of a small file */
	BYTES_MIN = 1 << 20,
	READS_EACH = 64, /* bytes of a file for which the budget of reads has one read... */
	BYTES_FACTOR = 64,
	/* A dataset in external files misses at most 1 GiB, in chunks of more than 2 MiB, or pairs
	 * of chunks of more than 4 MiB. */
	EXTERNAL_CHUNKS = 1024,
};
static const char external_bytes[] = "the bytes of every external file";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct opened {
	struct mem_src m, external;
	struct budget *budget;
	struct h5file *f; /* NULL: the open failed */
	struct err err;
};

static void check_error(int rc, const struct err *err)
{
	require(rc == -EIO || rc == -EOPNOTSUPP || rc == -ENOMEM);
	require(err->code == rc && err->msg[0] != '\0');
}

static void check_work(const struct opened *o, uint64_t reads, uint64_t bytes, const char *what)
{
	const uint64_t size = o->m.source.size;
	const uint64_t r = o->m.source.reads - reads, b = o->m.source.bytes - bytes;
	if (r > READS_MIN + size || b > BYTES_MIN + BYTES_FACTOR * size)
		fprintf(stderr, "%s: %llu reads of %llu bytes, the file has %llu\n", what,
			(unsigned long long)r, (unsigned long long)b, (unsigned long long)size);
	require(r <= READS_MIN + size && b <= BYTES_MIN + BYTES_FACTOR * size);
}

static void init(struct opened *o, const uint8_t *data, size_t size, bool paged)
{
	*o = (struct opened){.err = ERR_INIT};
	mem_src_init(&o->m, data, size);
	mem_src_init(&o->external, external_bytes, sizeof(external_bytes));
	if (paged)
		mem_src_hide(&o->m, size / PAGES > PAGE_MIN ? size / PAGES : PAGE_MIN);
	o->budget = budget_new(&(struct budget_limits){
		.bytes = BUDGET, .metadata_min = BUDGET / 2, .option = "limit"});
	require(o->budget);
}

static int open_external(void *ctx, const char *name, struct source **out, struct err *err)
{
	struct opened *o = ctx;
	if (strchr(name, '!'))
		return err_set(err, -EOPNOTSUPP, "%s: no such file", name);
	*out = &o->external.source;
	return 0;
}

/* Opens the file again after each -EAGAIN. */
static void open_file(struct opened *o)
{
	const struct h5file_external external = {.open = open_external, .ctx = o};
	const struct h5file_options opt = {
		.budget = o->budget, .claim_chunks = true, .external = &external};
	const size_t pages = o->m.page ? (size_t)o->m.source.size / o->m.page + 2 : 1;
	for (size_t i = 0; i < pages; i++) {
		const uint64_t reads = o->m.source.reads, bytes = o->m.source.bytes;
		err_clear(&o->err);
		int rc = h5file_open(&o->m.source, &opt, &o->f, &o->err);
		check_work(o, reads, bytes, "open");
		require((rc == 0) == (o->f != NULL));
		if (rc && rc != -EAGAIN)
			check_error(rc, &o->err);
		if (rc != -EAGAIN)
			return;
		require(o->m.page);
		mem_src_fetch(&o->m);
	}
	require(!"the open ends");
}

static void release(struct opened *o)
{
	struct budget_stats stats;
	h5file_close(o->f);
	budget_get_stats(o->budget, &stats);
	for (size_t i = 0; i < BUDGET_USES; i++)
		require(stats.used[i] == 0);
	budget_free(o->budget);
	mem_src_release(&o->m);
}

/* ---- one file ---- */

struct walk {
	struct opened *o;
	struct h5file_one *one; /* NULL: the search for the dataset failed */
	const struct h5file_dataset *d;
	uint32_t number;
	uint64_t elem_size;
	uint64_t seen, limit;
};

static void read_chunk(struct walk *w, const struct h5file_chunk *chunk)
{
	struct bytes stored = {0};
	struct elems elems = {0};
	struct err err = ERR_INIT;
	int rc = h5file_chunk_read(w->o->f, chunk, &stored, &err);
	if (!rc) {
		require(stored.len == chunk->size);
		rc = h5file_chunk_decode(w->o->f, w->number, chunk, &stored, &elems, &err);
	}
	if (rc)
		check_error(rc, &err);
	bytes_release(&stored);
	elems_release(&elems);
}

/* A key of a damaged B-tree may hide a chunk from the search. */
static void find_chunk(const struct walk *w, const struct h5file_chunk *chunk)
{
	struct h5file_chunk found;
	struct err err = ERR_INIT;
	bool stored = false;
	int rc = h5file_one_chunk(w->one, chunk->number, &stored, &found, &err);
	if (rc)
		check_error(rc, &err);
	else if (stored && !h5file_problems(w->o->f))
		require(found.addr == chunk->addr && found.size == chunk->size &&
			found.filter_mask == chunk->filter_mask &&
			found.is_filtered == chunk->is_filtered);
}

static struct h5file_one *find_dataset(struct opened *o, const struct object *object,
				       const struct h5file_dataset *d)
{
	struct h5file_one *one = NULL;
	struct err err = ERR_INIT;
	int rc = h5file_one_open(&o->m.source, object->id, &one, &err);
	require((rc == 0) == (one != NULL));
	if (rc)
		require(err.code == rc && err.msg[0]);
	else if (!h5file_problems(o->f))
		require(h5file_one_dataset(one)->header == d->header);
	return one;
}

static int visit(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct walk *w = ctx;
	const uint64_t size = w->o->m.source.size;
	require(chunk->number < w->d->grid.nchunks);
	const uint64_t room = chunk->pieces ? w->d->stored_bytes : size;
	require(chunk->data || (chunk->addr <= room && chunk->size <= room - chunk->addr));
	require(w->seen <= size + (chunk->pieces ? EXTERNAL_CHUNKS : 0));
	if (w->one && !chunk->pieces && w->seen < ONE_CHUNKS)
		find_chunk(w, chunk);
	if (w->seen++ < w->limit)
		read_chunk(w, chunk);
	return 0;
}

static void read_dataset(struct opened *o, uint32_t number, const struct object *object)
{
	const uint64_t reads = o->m.source.reads, bytes = o->m.source.bytes;
	struct walk w = {.o = o, .number = number, .d = h5file_dataset(o->f, number)};
	struct err err = ERR_INIT;
	uint64_t n;
	if (!w.d)
		return;
	if (mul_u64(w.d->grid.chunk_elems, object->dataset.type->size, &n) && n <= CHUNK_BYTES)
		w.limit = CHUNKS_READ;
	w.one = find_dataset(o, object, w.d);
	int rc = h5file_chunks(o->f, number, 0, UINT64_MAX, visit, &w, &err);
	if (rc)
		check_error(rc, &err);
	h5file_one_close(w.one);
	check_work(o, reads, bytes, "chunks");
}

static void check_problems(const struct opened *o)
{
	for (uint64_t i = 0; i < h5file_problems(o->f); i++) {
		const struct h5file_problem *p = h5file_problem(o->f, i);
		if (!p)
			return;
		require(p->severity <= H5FILE_NOTE && p->path && p->text && p->text[0]);
	}
}

static void check_alone(struct opened *o)
{
	const struct tree *t = h5file_tree(o->f);
	uint32_t datasets = 0;
	check_problems(o);
	for (uint32_t i = 0; i < tree_count(t) && datasets < DATASETS; i++) {
		const struct object *object = &tree_object(t, tree_nth(t, i))->o;
		if (object->kind != OBJECT_DATASET || !object->dataset.type)
			continue;
		read_dataset(o, tree_nth(t, i), object);
		datasets++;
	}
}

/* ---- two readings of a file ---- */

static int report(void *ctx, const char *path, const char *text)
{
	fprintf(stderr, "%s differs: %s\n", path, text);
	return 0;
}

static void check_same(const struct opened *a, const struct opened *b)
{
	const struct tree_diff_sink sink = {.difference = report};
	uint64_t n = 0;
	require((a->f != NULL) == (b->f != NULL));
	if (!a->f) {
		require(a->err.code == b->err.code && strcmp(a->err.msg, b->err.msg) == 0);
		return;
	}
	require(tree_diff(h5file_tree(a->f), h5file_tree(b->f),
			  TREE_DIFF_TIMES | TREE_DIFF_FILTERS | TREE_DIFF_GRIDS | TREE_DIFF_ORDER,
			  &sink, NULL, &n, NULL) == 0);
	require(n == 0);
	require(h5file_problems(a->f) == h5file_problems(b->f));
	for (uint64_t i = 0; h5file_problem(a->f, i); i++) {
		const struct h5file_problem *p = h5file_problem(a->f, i);
		const struct h5file_problem *q = h5file_problem(b->f, i);
		require(q && p->severity == q->severity && strcmp(p->path, q->path) == 0 &&
			strcmp(p->text, q->text) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct opened first, second, paged;
	init(&first, data, size, false);
	init(&second, data, size, false);
	init(&paged, data, size, true);
	open_file(&first);
	open_file(&second);
	open_file(&paged);
	check_same(&first, &second);
	check_same(&first, &paged);
	if (first.f)
		check_alone(&first);
	release(&first);
	release(&second);
	release(&paged);
	return 0;
}
