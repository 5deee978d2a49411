/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One chunk: its place in the store, a request for it, and the codec in a worker. Where the listing
 * of the opening named the object's version, it is that version or -ESTALE: an open file never
 * mixes two. A chunk is named in every message by its key. Nothing here waits; the callers'
 * callback gets the result in a worker thread (or in the calling thread where the environment has
 * no workers).
 */
#include <domain/domain.h>

#include <errno.h>
#include <math.h>

#include "domain_internal.h"

#include <codec/chunk.h>

struct fetch {
	struct domain *d;
	uint32_t dataset;
	uint64_t number;
	chunk_done done;
	void *arg;
	char key[SCHEMA_KEY_MAX + 1];
	bool listed; /* its version is known, and no other will do */
	struct store_get_result got;
};

static uint64_t decoded_limit(const struct dataset *ds)
{
	uint64_t size = codec_stored_elem_size(ds->type);

	/* the product was checked when the domain was opened */
	return size == 0 ? CHUNK_BYTES_MAX : size * ds->grid.chunk_elems;
}

/* A stored chunk is hardly larger than its decoded bytes: compressors fall back to copying. */
static uint64_t stored_limit(const struct dataset *ds)
{
	uint64_t decoded = decoded_limit(ds);

	return decoded + decoded / 8 + (1 << 16);
}

/* What was known of the chunk when the domain was opened bounds what it may be now: there is room
 * for no more in the image, and a small object that inflates to very much costs nothing. A chunk
 * that could not be measured has UINT64_MAX. */
static uint64_t measured(const struct domain *d, uint32_t dataset, uint64_t number)
{
	const struct chunk_list *chunks = &d->chunks[dataset];
	const uint64_t place = chunks->decoded ? chunk_list_find(chunks, number) : chunks->n;

	return place < chunks->n ? chunks->decoded[place] : CHUNK_BYTES_MAX;
}

/* As the service computes it, chunk by chunk: integers take a chunk's start and the step without
 * their fractions. */
static int compute_arange(const struct fetch *f, struct chunk_result *chunk)
{
	const struct dataset *ds = &tree_object(f->d->tree, f->dataset)->o.dataset;
	uint64_t n = ds->grid.chunk_elems;
	double step = ds->arange_step;
	double start = ds->arange_start + (double)(f->number * n) * step;
	struct bytes *out = &chunk->elems.fixed;

	if (ds->space.rank > 1)
		return err_set(&chunk->err, -EOPNOTSUPP, "an arange initializer has one dimension");
	if (ds->type->cls == DTYPE_INTEGER) {
		start = trunc(start);
		step = trunc(step);
	}
	int rc = bytes_reserve(out, (size_t)(n * ds->type->size));
	if (rc)
		return err_set(&chunk->err, rc, "no memory for a chunk");
	rc = codec_arange(ds->type, start, step, 0, n, out->data, &chunk->err);
	if (!rc)
		out->len = (size_t)(n * ds->type->size);
	return rc;
}

static int decode(struct fetch *f, struct chunk_result *chunk)
{
	const struct dataset *ds = &tree_object(f->d->tree, f->dataset)->o.dataset;
	struct pipeline pipeline;
	const struct codec_chunk spec = {
		.type = ds->type,
		.nelems = ds->grid.chunk_elems,
		.pipeline = &pipeline,
		.schema_v1 = f->d->schema->v1,
		.max_bytes = measured(f->d, f->dataset, f->number),
		.resolver = &f->d->resolver,
	};

	dataset_pipeline(ds, &pipeline);
	if (f->got.code == -ENOENT && f->listed)
		return err_set(&chunk->err, -ESTALE, "it was there when the domain was opened");
	if (f->got.code == -ENOENT && ds->initializer == INITIALIZER_ARANGE)
		return compute_arange(f, chunk);
	if (f->got.code == -ENOENT) {
		/* fill, unless the schema knows that the chunk is kept elsewhere */
		chunk->absent = true;
		return f->d->schema->chunk_absent(&tree_object(f->d->tree, f->dataset)->o,
						  &chunk->err);
	}
	if (f->got.code) {
		err_copy(&chunk->err, &f->got.err);
		return f->got.code;
	}
	chunk->fetched = f->got.body.len;
	return codec_chunk_decode(&spec, &f->got.body, &chunk->elems, &chunk->err);
}

static void finish(struct fetch *f, struct chunk_result *chunk)
{
	if (chunk->code) {
		elems_release(&chunk->elems);
		err_wrap(&chunk->err, chunk->code, "domain /%s: chunk %s", f->d->path, f->key);
	}
	bytes_release(&f->got.body);
	f->done(f->arg, chunk);
	free(f);
}

static void decode_job(void *arg)
{
	struct fetch *f = arg;
	struct chunk_result chunk = {0};

	chunk.code = decode(f, &chunk);
	finish(f, &chunk);
}

static void fail(struct fetch *f, int code, const char *why)
{
	struct chunk_result chunk = {.code = code};

	err_set(&chunk.err, code, "%s", why);
	finish(f, &chunk);
}

static void got_object(void *arg, struct store_get_result *res)
{
	struct fetch *f = arg;

	f->got = *res;
	res->body = (struct bytes){0};
	if (pool_submit(f->d->env->pool, decode_job, f))
		fail(f, -ENOMEM, "no memory for a job");
}

void domain_fetch_chunk(void *ctx, uint32_t dataset, uint64_t number, const atomic_bool *unwanted,
			chunk_done done, void *arg)
{
	struct domain *d = ctx;
	const struct object *o = &tree_object(d->tree, dataset)->o;
	struct fetch *f = calloc(1, sizeof(*f));
	uint64_t coords[DSPACE_MAX_RANK];

	if (!f) {
		struct chunk_result chunk = {.code = -ENOMEM};

		err_set(&chunk.err, -ENOMEM, "no memory for a request");
		done(arg, &chunk);
		return;
	}
	*f = (struct fetch){.d = d, .dataset = dataset, .number = number, .done = done, .arg = arg};
	grid_coords(&o->dataset.grid, number, coords);
	int rc = d->schema->chunk_key(o, &d->entries[dataset].id, coords, f->key, sizeof(f->key));
	if (rc < 0) {
		fail(f, rc,
		     rc == -EOPNOTSUPP ? "this storage layout is not read yet"
				       : "the chunk has no key");
		return;
	}
	if (measured(d, dataset, number) == UINT64_MAX) {
		fail(f, -EIO, "it could not be read when the domain was opened");
		return;
	}
	const char *etag = domain_listed_etag(d, f->key);
	f->listed = etag != NULL;
	store_get_async(d->store, &(struct store_get){.op = STORE_GET,
						      .key = f->key,
						      .length = UINT64_MAX,
						      .max = stored_limit(&o->dataset),
						      .cond = {.if_match = etag},
						      .known_etag = etag,
						      .unwanted = unwanted,
						      .done = got_object,
						      .arg = f});
}
