/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every block is asked for on the condition of the version that was opened, where the store knows
 * versions: blocks of two versions never meet. Constant after opening, but for what is the cache's.
 */
#include "plain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct plain {
	struct store *store;
	struct store_meta meta;
	uint64_t nblocks;
	struct cache_owner *owner;   /* "dataset" 0 is the row of blocks */
	struct cache_stream *stream; /* NULL: no reading ahead */
	char path[];
};

/* A request under way. */
struct block {
	const struct plain *plain;
	struct cache_fill *fill;
	size_t n; /* bytes that were asked for */
};

static void block_done(void *arg, struct store_get_result *res)
{
	struct block *b = arg;
	struct cache_chunk chunk = {.slot = res->body};
	int rc = res->code;
	if (rc == 0 && res->body.len != b->n)
		rc = err_set(&res->err, -EIO, "%zu bytes were asked for, %zu came", b->n,
			     res->body.len);
	if (rc)
		err_wrap(&res->err, rc, "object %s", b->plain->path);
	cache_complete(b->fill, rc, &chunk, &res->err);
	free(b);
}

static void load(void *ctx, uint32_t dataset, uint64_t slot, struct cache_fill *fill)
{
	const struct plain *p = ctx;
	const uint64_t start = slot * PLAIN_BLOCK;
	struct block *b = malloc(sizeof(*b));
	if (!b) {
		struct err err = ERR_INIT;
		cache_complete(fill, err_set(&err, -ENOMEM, "no memory"), NULL, &err);
		return;
	}
	*b = (struct block){
		.plain = p,
		.fill = fill,
		.n = (size_t)min_u64(PLAIN_BLOCK, p->meta.size - start),
	};
	const char *etag = p->meta.etag[0] ? p->meta.etag : NULL;
	const struct store_get req = {
		.op = STORE_GET,
		.key = p->path,
		.offset = start,
		.length = b->n,
		.max = b->n,
		.cond = {.if_match = etag},
		.known_etag = etag,
		.unwanted = cache_fill_cancel(fill),
		.done = block_done,
		.arg = b,
	};
	store_get_async(p->store, &req);
}

static void describe(void *ctx, uint32_t dataset, struct cache_dataset *out)
{
	const struct plain *p = ctx;
	const uint64_t bytes = min_u64(PLAIN_BLOCK, p->meta.size);
	*out = (struct cache_dataset){
		.cost = bytes,
		.load_cost = bytes,
		.nslots = p->nblocks,
		.rank = 1,
		.counts = &p->nblocks,
	};
}

static uint64_t number_of(void *ctx, uint32_t dataset, uint64_t slot)
{
	return slot;
}

static bool slot_of(void *ctx, uint32_t dataset, uint64_t number, uint64_t *slot)
{
	const struct plain *p = ctx;
	*slot = number;
	return number < p->nblocks;
}

int plain_open(struct store *store, struct cache *cache, const char *path,
	       const struct store_meta *meta, struct plain **out, struct err *err)
{
	struct plain *p = calloc(1, sizeof(*p) + strlen(path) + 1);
	if (!p)
		return err_set(err, -ENOMEM, "no memory");
	strcpy(p->path, path);
	p->store = store;
	p->meta = *meta;
	p->nblocks = div_up_u64(meta->size, PLAIN_BLOCK);
	const struct cache_source source = {
		.load = load,
		.describe = describe,
		.number = number_of,
		.slot = slot_of,
		.ctx = p,
	};
	p->owner = cache_owner_new(cache, &source, err);
	if (!p->owner) {
		free(p);
		return -ENOMEM;
	}
	p->stream = cache_stream_new(p->owner);
	*out = p;
	return 0;
}

void plain_close(struct plain *p)
{
	if (!p)
		return;
	cache_stream_free(p->stream);
	cache_owner_free(p->owner);
	free(p);
}

const char *plain_path(const struct plain *p)
{
	return p->path;
}

/* Up to the end of one block. Returns the bytes copied. */
static ssize_t read_block(struct plain *p, uint8_t *buf, size_t n, uint64_t offset,
			  struct cancel *cancel, struct err *err)
{
	const uint64_t in = offset % PLAIN_BLOCK;
	const struct cache_chunk *chunk;
	int rc = cache_get(p->owner, p->stream, 0, offset / PLAIN_BLOCK, cancel, &chunk, err);
	if (rc)
		return rc;
	n = (size_t)min_u64(n, chunk->slot.len - in);
	memcpy(buf, chunk->slot.data + in, n);
	cache_put(p->owner, chunk, in + n == chunk->slot.len);
	return (ssize_t)n;
}

ssize_t plain_read(struct plain *p, void *buf, size_t n, uint64_t offset, struct cancel *cancel,
		   struct err *err)
{
	size_t done = 0;
	if (n == 0 || offset >= p->meta.size)
		return 0;
	n = (size_t)min_u64(n, p->meta.size - offset);
	const uint64_t first = offset / PLAIN_BLOCK, last = (offset + n - 1) / PLAIN_BLOCK;
	if (last > first)
		cache_advise(p->owner, p->stream, 0, first, last - first + 1);
	while (done < n) {
		ssize_t got =
			read_block(p, (uint8_t *)buf + done, n - done, offset + done, cancel, err);
		if (got < 0)
			return done > 0 ? (ssize_t)done : got;
		done += (size_t)got;
	}
	return (ssize_t)done;
}
