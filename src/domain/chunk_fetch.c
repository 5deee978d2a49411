/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One chunk: its place in the store, a request for it, and the codec in the worker in which the
 * request is done. Where the listing of the opening named the object's version, it is that version
 * or -ESTALE: an open file never mixes two. A chunk is named in every message by its key. Nothing
 * here waits.
 *
 * A chunk is absent, and has the fill value or a computed one, in two cases:
 *   - a complete listing of the opening does not name it. Then no request is made;
 *   - nothing was listed, the store proves that the object is not there, and the dataset's document
 *     is still the one that was opened (recheck.c).
 */
#include <domain/domain.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "domain_internal.h"

#include <codec/chunk.h>

enum presence {
	NEVER_LISTED, /* not known */
	LISTED,	      /* it was there */
	NOT_LISTED,   /* it was not there */
};

/* A fetch with its request. */
struct fetch {
	struct domain *d;
	uint32_t dataset;
	uint64_t number;
	chunk_done done;
	void *arg;
	enum presence presence;
	struct domain_recheck recheck;
	struct pool_job job;
	struct store_request *req; /* in `memory` */
	alignas(max_align_t) char memory[];
};

static const struct object *object_of(const struct fetch *f)
{
	return &tree_object(f->d->tree, f->dataset)->o;
}

/* What the opening knows of a chunk. */
static enum presence presence_of(const struct domain *d, uint32_t dataset, uint64_t number,
				 const char *key)
{
	const struct chunk_list *chunks = &d->chunks[dataset];

	if (chunks->listed)
		return chunk_list_find(chunks, number) < chunks->n ? LISTED : NOT_LISTED;
	if (d->listed_whole)
		return domain_listed(d, key) ? LISTED : NOT_LISTED;
	return NEVER_LISTED;
}

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
		return err_set(&chunk->err, rc, "out of memory for a chunk");
	rc = codec_arange(ds->type, start, step, 0, n, out->data, &chunk->err);
	if (!rc)
		out->len = (size_t)(n * ds->type->size);
	return rc;
}

/* ---- the end ---- */

static void finish(struct fetch *f, struct chunk_result *chunk)
{
	if (chunk->code) {
		elems_release(&chunk->elems);
		err_wrap(&chunk->err, chunk->code, "domain /%s: chunk %s", f->d->path, f->req->key);
	}
	store_request_release(f->req);
	f->done(f->arg, chunk);
	free(f);
}

static void fail(struct fetch *f, int code, const struct err *err)
{
	struct chunk_result chunk = {.code = code};

	err_copy(&chunk.err, err);
	finish(f, &chunk);
}

/* proof: what proves that there is no chunk. */
static void give_absent(struct fetch *f, const struct store_absence *proof)
{
	struct chunk_result chunk = {0};

	if (object_of(f)->dataset.initializer == INITIALIZER_ARANGE) {
		chunk.code = compute_arange(f, &chunk);
	} else {
		/* The fill value, unless the schema knows that the chunk is kept elsewhere. */
		chunk.absent = proof != NULL;
		chunk.code = f->d->schema->chunk_absent(object_of(f), &chunk.err);
	}
	finish(f, &chunk);
}

static void give_stored(struct fetch *f)
{
	const struct dataset *ds = &object_of(f)->dataset;
	struct store_answer *a = &f->req->answer;
	struct chunk_result chunk = {.fetched = a->body.len};
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
	chunk.code = codec_chunk_decode(&spec, &a->body, &chunk.elems, &chunk.err);
	finish(f, &chunk);
}

static void rechecked(void *arg, int code, const struct err *err)
{
	struct fetch *f = arg;

	if (code)
		fail(f, code, err);
	else
		give_absent(f, store_absence(&f->req->answer));
}

static void came(struct store_request *req)
{
	struct fetch *f = req->arg;
	const struct store_absence *proof = store_absence(&req->answer);
	struct err err = ERR_INIT;
	const int rc = store_failure(&req->answer, &err);

	if (rc)
		fail(f, rc, &err);
	else if (!proof)
		give_stored(f);
	else if (f->presence == LISTED)
		fail(f, err_set(&err, -ESTALE, "it was there when the domain was opened"), &err);
	else if (f->presence == NEVER_LISTED)
		domain_recheck(f->d, f->dataset, &f->recheck);
	else
		give_absent(f, proof);
}

/* ---- the beginning ---- */

/* Nothing to ask: the listing of the opening has proved it. */
static void not_listed(void *arg)
{
	static const struct store_absence proof = {.evidence = STORE_LISTED};

	give_absent(arg, &proof);
}

static bool is_known_absent(const struct fetch *f)
{
	return f->presence == NOT_LISTED && f->d->schema->chunk_absent(object_of(f), NULL) == 0;
}

/* Which object, and what is known of it. A negative errno with the reason in err. */
static int name_chunk(struct fetch *f, struct err *err)
{
	struct domain *d = f->d;
	struct store_request *req = f->req;
	const struct object *o = object_of(f);
	uint64_t coords[DSPACE_MAX_RANK];

	grid_coords(&o->dataset.grid, f->number, coords);
	int rc = d->schema->chunk_key(o, &d->entries[f->dataset].id, coords, req->key, req->room);
	if (rc < 0) {
		snprintf(req->key, req->room, "%" PRIu64 " of %s", f->number, o->id);
		if (rc == -EOPNOTSUPP && d->schema->chunk_absent(o, err))
			return rc;
		return err_set(err, rc, "the chunk has no key");
	}
	if (measured(d, f->dataset, f->number) == UINT64_MAX)
		return err_set(err, -EIO, "it could not be read when the domain was opened");
	if (!d->listed_whole && domain_is_stale(d, f->dataset))
		return err_set(err, -ESTALE, "the dataset has changed since the file was opened");
	f->presence = presence_of(d, f->dataset, f->number, req->key);
	return 0;
}

static void ask(struct fetch *f, const struct chunk_wanted *wanted)
{
	struct store_request *req = f->req;
	const char *etag = domain_listed_etag(f->d, req->key);

	req->max = stored_limit(&object_of(f)->dataset);
	req->cond.if_match = etag;
	req->known_etag = etag;
	req->priority = wanted->ahead ? STORE_PREFETCH : STORE_READER;
	req->cancelled = wanted->cancelled;
	req->done = came;
	req->arg = f;
	store_submit(f->d->store, req);
}

static void fetch(void *ctx, const struct chunk_wanted *wanted, chunk_done done, void *arg)
{
	struct domain *d = ctx;
	struct err err = ERR_INIT;
	struct fetch *f = malloc(sizeof(*f) + store_request_size(d->store));

	if (!f) {
		struct chunk_result chunk = {.code = -ENOMEM};

		err_set(&chunk.err, -ENOMEM, "out of memory for a request");
		done(arg, &chunk);
		return;
	}
	*f = (struct fetch){.d = d,
			    .dataset = wanted->dataset,
			    .number = wanted->number,
			    .done = done,
			    .arg = arg};
	f->req = store_request_init(f->memory, d->store, STORE_GET);
	f->recheck = (struct domain_recheck){
		.cancelled = wanted->cancelled, .done = rechecked, .arg = f};
	const int rc = name_chunk(f, &err);
	if (rc) {
		fail(f, rc, &err);
		return;
	}
	if (!is_known_absent(f)) {
		ask(f, wanted);
		return;
	}
	/* In a worker, as all answers are: fill values take time to make. */
	f->job = (struct pool_job){.fn = not_listed, .arg = f};
	if (pool_run(d->env->pool, &f->job))
		fail(f, err_set(&err, -ENOMEM, "out of memory for a job"), &err);
}

static const struct chunk_list *list_chunks(void *ctx, uint32_t dataset)
{
	return domain_chunks(ctx, dataset);
}

struct chunk_source domain_chunk_source(struct domain *d)
{
	return (struct chunk_source){.list = list_chunks, .get = fetch, .ctx = d};
}
