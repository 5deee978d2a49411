/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See raw_object.h. If the store has ETags, each block is requested on the condition that the
 * object has the ETag that was opened, so a read never mixes two versions. A raw_object is constant
 * after opening, except for the parts that the cache owns.
 */
#include <snapshots/raw_object.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct raw_object {
	struct store *store;
	struct store_meta meta;
	uint64_t nblocks;
	struct cache_owner *owner;   /* with one "dataset", 0, whose chunks are the blocks */
	struct cache_stream *stream; /* NULL if there is no prefetching */
	char path[];
};

/* The load of one block, with its request. */
struct block {
	const struct raw_object *object;
	struct cache_fill *fill;
	size_t n; /* bytes that were requested */
	alignas(max_align_t) char request[];
};

static void block_done(struct store_request *req)
{
	struct block *b = req->arg;
	struct store_answer *a = &req->answer;
	struct chunk_data chunk = {.elems.fixed = a->body};
	int rc = store_failure(a, NULL);
	a->body = (struct bytes){0};
	if (store_absence(a))
		rc = err_set(&a->err, -ESTALE, "it was deleted");
	else if (rc == 0 && chunk.elems.fixed.len != b->n)
		rc = err_set(&a->err, -EIO, "%zu bytes were requested, %zu received", b->n,
			     chunk.elems.fixed.len);
	if (rc)
		err_wrap(&a->err, rc, "object %s", b->object->path);
	cache_complete(b->fill, rc, &chunk, &a->err);
	store_request_release(req);
	free(b);
}

static void load(void *ctx, uint32_t dataset, uint64_t slot, struct cache_fill *fill)
{
	const struct raw_object *p = ctx;
	const uint64_t start = slot * RAW_OBJECT_BLOCK;
	struct block *b = malloc(sizeof(*b) + store_request_size(p->store));
	if (!b) {
		struct err err = ERR_INIT;
		cache_complete(fill, err_no_memory(&err), NULL, &err);
		return;
	}
	*b = (struct block){
		.object = p,
		.fill = fill,
		.n = (size_t)min_u64(RAW_OBJECT_BLOCK, p->meta.size - start),
	};
	const char *etag = p->meta.etag[0] ? p->meta.etag : NULL;
	struct store_request *req = store_request_init(b->request, p->store, STORE_GET);
	store_request_key(req, p->path);
	req->range = (struct store_range){.first = start, .length = b->n};
	req->max = b->n;
	req->cond.if_match = etag;
	req->known_etag = etag;
	req->priority = cache_fill_ahead(fill) ? STORE_PREFETCH : STORE_READER;
	req->cancelled = cancelled_by(cache_fill_cancel(fill));
	req->done = block_done;
	req->arg = b;
	store_submit(p->store, req);
}

static void describe(void *ctx, uint32_t dataset, struct cache_dataset *out)
{
	const struct raw_object *p = ctx;
	const uint64_t bytes = min_u64(RAW_OBJECT_BLOCK, p->meta.size);
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
	const struct raw_object *p = ctx;
	*slot = number;
	return number < p->nblocks;
}

int raw_object_open(struct store *store, struct cache *cache, const char *path,
		    const struct store_meta *meta, struct raw_object **out, struct err *err)
{
	struct raw_object *p = calloc(1, sizeof(*p) + strlen(path) + 1);
	if (!p)
		return err_no_memory(err);
	strcpy(p->path, path);
	p->store = store;
	p->meta = *meta;
	p->nblocks = div_up_u64(meta->size, RAW_OBJECT_BLOCK);
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

void raw_object_close(struct raw_object *p)
{
	if (!p)
		return;
	cache_stream_free(p->stream);
	cache_owner_free(p->owner);
	free(p);
}

const char *raw_object_path(const struct raw_object *p)
{
	return p->path;
}

/* Reads up to the end of the block that holds offset. Returns the bytes copied. */
static ssize_t read_block(struct raw_object *p, uint8_t *buf, size_t n, uint64_t offset,
			  struct cancel *cancel, struct err *err)
{
	const uint64_t in = offset % RAW_OBJECT_BLOCK;
	const struct chunk_data *chunk;
	int rc = cache_get(p->owner, p->stream, 0, offset / RAW_OBJECT_BLOCK, cancel, &chunk, err);
	if (rc)
		return rc;
	n = (size_t)min_u64(n, RAW_OBJECT_BLOCK - in);
	chunk_data_read(chunk, in, buf, n);
	cache_put(p->owner, chunk, in + n == RAW_OBJECT_BLOCK || offset + n == p->meta.size);
	return (ssize_t)n;
}

ssize_t raw_object_read(struct raw_object *p, void *buf, size_t n, uint64_t offset,
			struct cancel *cancel, struct err *err)
{
	size_t done = 0;
	if (n == 0 || offset >= p->meta.size)
		return 0;
	n = (size_t)min_u64(n, p->meta.size - offset);
	const uint64_t first = offset / RAW_OBJECT_BLOCK,
		       last = (offset + n - 1) / RAW_OBJECT_BLOCK;
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
