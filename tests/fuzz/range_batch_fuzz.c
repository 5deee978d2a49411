/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: reads that begin at the same time, of two objects of 2,000 and 70,000 bytes.
 *
 *   for each: u8 flags: bit 0 which object, bit 1 counted from the end, bit 2 it may end early
 *             u16 offset, in units of 2 bytes; u16 length - 1
 *
 * Each read gets the bytes of the object, or fails if it reaches past its end, whatever it is
 * joined with. There are no more requests than reads.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/cursor.h>
#include <base/env.h>
#include <ranges/ranges.h>

#include "mem_store.h"
#include "require.h"

enum { READS = 40 };
static const size_t sizes[2] = {2000, 70000};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
	struct env env;
	struct store *store;
	struct ranges ranges;
	struct range_object objects[2];
	struct range_read reads[READS];
	uint64_t first[READS], wanted[READS]; /* a naive answer */
	bool fails[READS];
	unsigned int n, done;
};

static uint8_t byte_of(size_t object, uint64_t i)
{
	return (uint8_t)((i + 7 * object) * 2654435761u >> 11);
}

static void put(struct world *w, size_t object)
{
	uint8_t *bytes = malloc(sizes[object]);
	require(bytes != NULL);
	for (size_t i = 0; i < sizes[object]; i++)
		bytes[i] = byte_of(object, i);
	const struct piece piece = {bytes, sizes[object]};
	struct store_request *req = store_request_new(w->store, STORE_PUT);
	require(req != NULL);
	store_request_key(req, object ? "b" : "a");
	req->pieces = &piece;
	req->n_pieces = 1;
	store_run(w->store, req);
	require(req->answer.state == STORE_PRESENT);
	store_request_free(req);
	free(bytes);
}

static void arrived(struct range_read *r, int code, struct bytes *body, const struct err *err)
{
	struct world *w = r->arg;
	const size_t i = (size_t)(r - w->reads), object = (size_t)(r->object - w->objects);
	w->done++;
	require(code == err->code && code == (w->fails[i] ? -EIO : 0));
	if (code)
		return;
	require(body->len == w->wanted[i]);
	for (uint64_t k = 0; k < body->len; k++)
		require(body->data[k] == byte_of(object, w->first[i] + k));
}

static void add(struct world *w, struct cursor *c, struct range_batch *batch)
{
	const uint8_t flags = cur_u8(c);
	const uint64_t offset = 2 * cur_u16(c), length = cur_u16(c) + 1u;
	if (!cur_ok(c))
		return;
	const uint64_t size = sizes[flags & 1];
	const bool from_end = flags & 2, short_ok = from_end || flags & 4;
	const uint64_t first = from_end ? size - min_u64(size, length) : min_u64(offset, size);
	w->first[w->n] = first;
	w->wanted[w->n] = min_u64(length, size - first);
	w->fails[w->n] = !short_ok && offset + length > size;
	w->reads[w->n] = (struct range_read){.object = &w->objects[flags & 1],
					     .offset = from_end ? 0 : offset,
					     .length = length,
					     .from_end = from_end,
					     .short_ok = short_ok,
					     .batch = batch,
					     .done = arrived,
					     .arg = w};
	range_read(&w->reads[w->n++]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_of(data, size);
	struct world *w = calloc(1, sizeof(*w));
	struct store_counts counts;
	require(w != NULL);
	w->env = env_real(NULL, pool_new(0));
	w->store = store_count_new(store_mem_new(&w->env, NULL), NULL);
	require(w->store != NULL);
	w->ranges.joins = true;
	ranges_init(&w->ranges, &w->env, NULL, NULL);
	for (size_t i = 0; i < 2; i++) {
		put(w, i);
		w->objects[i] = (struct range_object){.all = &w->ranges,
						      .store = w->store,
						      .key = i ? "b" : "a",
						      .name = "object",
						      .required_size = UINT64_MAX,
						      .size = UINT64_MAX};
	}
	struct range_batch *batch = range_batch_begin(&w->ranges);
	require(batch != NULL);
	while (cur_ok(&c) && cur_left(&c) > 0 && w->n < READS)
		add(w, &c, batch);
	require(w->done == 0);
	range_batch_end(batch);
	require(w->done == w->n);
	store_count_read(w->store, &counts);
	require(counts.calls[STORE_GET] <= w->n);
	ranges_release(&w->ranges);
	store_free(w->store);
	pool_free(w->env.pool);
	free(w);
	return 0;
}
