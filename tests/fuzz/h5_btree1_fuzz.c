/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version 1 B-trees of chunks. Input: rank, u32 address of the root, a file. Property: a tree that
 * is rendered from the chunks of a walk, in pieces of any size, has the same chunks.
 */
#include <stdbool.h>
#include <stdlib.h>

#include <h5/btree1.h>
#include "mem_src.h"

#include "require.h"

enum { PREFIX = 5 };

struct chunks {
	uint32_t rank;
	struct bytes list; /* of struct h5_bt1_chunk */
};

static struct h5_bt1_chunk *at(const struct chunks *c, uint64_t i)
{
	return (struct h5_bt1_chunk *)(void *)c->list.data + i;
}

static uint64_t count(const struct chunks *c)
{
	return c->list.len / sizeof(struct h5_bt1_chunk);
}

static int keep(void *ctx, const struct h5_bt1_chunk *chunk, struct err *err)
{
	struct chunks *c = ctx;
	struct h5_bt1_chunk copy = {
		.size = chunk->size, .filter_mask = chunk->filter_mask, .addr = chunk->addr};
	memcpy(copy.offset, chunk->offset, c->rank * sizeof(copy.offset[0]));
	return bytes_append(&c->list, &copy, sizeof(copy));
}

static void give(void *ctx, uint64_t i, struct h5_bt1_chunk *out)
{
	require(i < count(ctx));
	*out = *at(ctx, i);
}

static void end(void *ctx, struct h5_bt1_chunk *out)
{
	memset(out, 0xff, sizeof(*out));
}

/* window: bytes that are rendered at a time. */
static void check(struct chunks *first, size_t window)
{
	struct h5_bt1 tree = {.rank = first->rank,
			      .elem_size = 1,
			      .n = count(first),
			      .chunk = give,
			      .end = end,
			      .ctx = first};
	struct chunks second = {.rank = first->rank};
	size_t size = (size_t)h5_bt1_size(tree.rank, tree.n);
	auto_free uint8_t *image = malloc(size);
	require(image != NULL);
	for (size_t offset = 0; offset < size; offset += window)
		h5_bt1_read(&tree, offset, image + offset,
			    window < size - offset ? window : size - offset);
	struct mem_src m;
	mem_src_init(&m, image, size);
	require(!h5_bt1_walk_range(&m.file, 0, tree.rank, NULL, keep, &second, NULL));
	require(second.list.len == first->list.len &&
		(!second.list.len || !memcmp(second.list.data, first->list.data, second.list.len)));
	bytes_release(&second.list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_of(data, size);
	uint8_t rank = cur_u8(&c);
	uint32_t addr = cur_u32(&c);
	if (!cur_ok(&c) || rank == 0 || rank > DSPACE_MAX_RANK)
		return 0;
	struct chunks first = {.rank = rank};
	struct mem_src m;
	mem_src_init(&m, data + PREFIX, size - PREFIX);
	if (!h5_bt1_walk_range(&m.file, addr, rank, NULL, keep, &first, NULL))
		check(&first, 1 + size % 3000);
	bytes_release(&first.list);
	return 0;
}
