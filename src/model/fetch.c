/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One chunk: name its object, get it, decode it in a worker. Where the listing of the opening named
 * the object's version, it is that version or -ESTALE: an open file never mixes two. A chunk is
 * named in every message by its key. Nothing here waits; the callers' callback gets the result in a
 * worker thread (or in the calling thread where the environment has no workers).
 *
 * A chunk is absent, and has the fill value or a computed one, in two cases:
 *   - a complete listing of the opening does not name it. Then no request is made;
 *   - nothing was listed, the store proves that the object is not there, and the dataset's document
 *     is still the one that was opened (recheck.c).
 */
#include <model/model.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "model_internal.h"

#include <codec/chunk.h>

enum presence {
	NEVER_LISTED, /* not known */
	LISTED,	      /* it was there */
	NOT_LISTED,   /* it was not there */
};

struct fetch {
	struct model *m;
	uint32_t dataset;
	uint64_t number;
	model_chunk_done done;
	void *arg;
	char key[SCHEMA_KEY_MAX + 1];
	enum presence presence;
	struct store_get_result got;
	struct model_recheck recheck;
};

/* What the opening knows of a chunk. */
static enum presence presence_of(const struct model *m, uint32_t dataset, uint64_t number,
				 const char *key)
{
	const struct model_chunks *chunks = &m->chunks[dataset];

	if (chunks->listed)
		return model_chunks_find(chunks, number) < chunks->n ? LISTED : NOT_LISTED;
	if (m->listed_whole)
		return model_listed(m, key) ? LISTED : NOT_LISTED;
	return NEVER_LISTED;
}

static uint64_t decoded_limit(const struct dataset *ds)
{
	uint64_t size = codec_stored_elem_size(ds->type);

	/* the product was checked when the domain was opened */
	return size == 0 ? MODEL_CHUNK_MAX : size * ds->grid.chunk_elems;
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
static uint64_t measured(const struct model *m, uint32_t dataset, uint64_t number)
{
	const struct model_chunks *chunks = &m->chunks[dataset];
	const uint64_t place = chunks->decoded ? model_chunks_find(chunks, number) : chunks->n;

	return place < chunks->n ? chunks->decoded[place] : MODEL_CHUNK_MAX;
}

/* As the service computes it, chunk by chunk: integers take a chunk's start and the step without
 * their fractions. */
static int compute_arange(const struct fetch *f, struct model_chunk *chunk)
{
	const struct dataset *ds = &f->m->objects[f->dataset].o.dataset;
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

static int decode(struct fetch *f, struct model_chunk *chunk)
{
	const struct dataset *ds = &f->m->objects[f->dataset].o.dataset;
	struct pipeline pipeline;
	const struct codec_chunk spec = {
		.type = ds->type,
		.nelems = ds->grid.chunk_elems,
		.pipeline = &pipeline,
		.schema_v1 = f->m->schema->v1,
		.max_bytes = measured(f->m, f->dataset, f->number),
		.resolver = &f->m->resolver,
	};

	dataset_pipeline(ds, &pipeline);
	if (f->got.code == -ENOENT && f->presence == LISTED)
		return err_set(&chunk->err, -ESTALE, "it was there when the domain was opened");
	if (f->got.code == -ENOENT && ds->initializer == INITIALIZER_ARANGE)
		return compute_arange(f, chunk);
	if (f->got.code == -ENOENT) {
		/* fill, unless the schema knows that the chunk is kept elsewhere */
		chunk->absent = true;
		return f->m->schema->chunk_absent(&f->m->objects[f->dataset].o, &chunk->err);
	}
	if (f->got.code) {
		err_copy(&chunk->err, &f->got.err);
		return f->got.code;
	}
	chunk->fetched = f->got.body.len;
	return codec_chunk_decode(&spec, &f->got.body, &chunk->elems, &chunk->err);
}

static void finish(struct fetch *f, struct model_chunk *chunk)
{
	if (chunk->code) {
		elems_release(&chunk->elems);
		err_wrap(&chunk->err, chunk->code, "domain /%s: chunk %s", f->m->path, f->key);
	}
	bytes_release(&f->got.body);
	f->done(f->arg, chunk);
	free(f);
}

static void decode_job(void *arg)
{
	struct fetch *f = arg;
	struct model_chunk chunk = {0};

	chunk.code = decode(f, &chunk);
	finish(f, &chunk);
}

static void submit_decode(struct fetch *f)
{
	struct model_chunk chunk = {0};

	if (pool_submit(f->m->env->pool, decode_job, f) == 0)
		return;
	chunk.code = err_set(&chunk.err, -ENOMEM, "no memory for a job");
	finish(f, &chunk);
}

static void rechecked(void *arg, int code, const struct err *err)
{
	struct fetch *f = arg;

	if (code) {
		f->got.code = code;
		err_copy(&f->got.err, err);
	}
	submit_decode(f);
}

static void got_object(void *arg, struct store_get_result *res)
{
	struct fetch *f = arg;

	f->got = *res;
	res->body = (struct bytes){0};
	if (f->got.code == -ENOENT && f->presence == NEVER_LISTED)
		model_recheck(f->m, f->dataset, &f->recheck);
	else
		submit_decode(f);
}

/* Nothing to ask: the listing has proved it. */
static bool is_known_absent(const struct fetch *f)
{
	return f->presence == NOT_LISTED &&
	       f->m->schema->chunk_absent(&f->m->objects[f->dataset].o, NULL) == 0;
}

/* Which object, and what is known of it. A negative errno with the reason in err. */
static int name_chunk(struct fetch *f, struct err *err)
{
	struct model *m = f->m;
	const struct object *o = &m->objects[f->dataset].o;
	uint64_t coords[DSPACE_MAX_RANK];

	grid_coords(&o->dataset.grid, f->number, coords);
	int rc =
		m->schema->chunk_key(o, &m->entries[f->dataset].id, coords, f->key, sizeof(f->key));
	if (rc < 0) {
		snprintf(f->key, sizeof(f->key), "%" PRIu64 " of %s", f->number, o->id);
		if (rc == -EOPNOTSUPP && m->schema->chunk_absent(o, err))
			return rc;
		return err_set(err, rc, "the chunk has no key");
	}
	if (measured(m, f->dataset, f->number) == UINT64_MAX)
		return err_set(err, -EIO, "it could not be read when the domain was opened");
	if (!m->listed_whole && model_is_stale(m, f->dataset))
		return err_set(err, -ESTALE, "the dataset has changed since the file was opened");
	f->presence = presence_of(m, f->dataset, f->number, f->key);
	return 0;
}

void model_get_chunk(struct model *m, uint32_t dataset, uint64_t number,
		     const atomic_bool *unwanted, model_chunk_done done, void *arg)
{
	struct model_chunk chunk = {0};
	struct fetch *f = calloc(1, sizeof(*f));

	if (!f) {
		chunk.code = err_set(&chunk.err, -ENOMEM, "no memory for a request");
		done(arg, &chunk);
		return;
	}
	*f = (struct fetch){.m = m, .dataset = dataset, .number = number, .done = done, .arg = arg};
	f->recheck = (struct model_recheck){.unwanted = unwanted, .done = rechecked, .arg = f};
	chunk.code = name_chunk(f, &chunk.err);
	if (chunk.code) {
		finish(f, &chunk);
		return;
	}
	if (is_known_absent(f)) {
		f->got.code = -ENOENT;
		submit_decode(f);
		return;
	}
	const char *etag = model_listed_etag(m, f->key);
	store_get_async(m->store,
			&(struct store_get){.op = STORE_GET,
					    .key = f->key,
					    .length = UINT64_MAX,
					    .max = stored_limit(&m->objects[dataset].o.dataset),
					    .cond = {.if_match = etag},
					    .known_etag = etag,
					    .unwanted = unwanted,
					    .done = got_object,
					    .arg = f});
}
