/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetches one chunk: the schema names its place in the store, the store gets the object, and the
 * worker that completes the request decodes it. If the schema needs another object first to find
 * the place, such as a table, that is requested in the same way. If the listing of the open named
 * the object's version, another version fails with -ESTALE: an open file never mixes two versions.
 * Every error names the chunk's key. No function blocks.
 *
 * A chunk is absent, and has the fill value or a computed one, in three cases:
 *   - the complete listing of the open does not name it; no request is made;
 *   - the schema finds that it has no place;
 *   - there is no listing, and the store proves that the object is absent.
 * In the last two cases the dataset's document must still be the version that was opened
 * (recheck.c).
 */
#include <domain/domain.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "domain_internal.h"

#include <codec/chunk.h>

enum presence {
	NEVER_LISTED, /* no listing covers it */
	LISTED,	      /* it existed at the open */
	NOT_LISTED,   /* it was absent at the open */
};

enum { PLACE_MAX = 1 << 24 /* bytes of an object that is read to find a place */ };

/* A fetch with its request. */
struct fetch {
	struct domain *d;
	uint32_t dataset;
	uint64_t number;
	bool prefetch; /* as in struct chunk_request, like the next */
	const atomic_bool *cancelled;
	chunk_done done;
	void *arg;
	unsigned int step; /* of locating the chunk */
	bool located;	   /* the key of the request is the chunk's */
	enum chunk_encoding encoding;
	enum presence presence;
	struct store_absence absence; /* the proof, once there is one */
	struct domain_recheck recheck;
	struct pool_job job;
	struct store_request *req; /* in `memory` */
	alignas(max_align_t) char memory[];
};

static const struct object *object_of(const struct fetch *f)
{
	return &tree_object(f->d->tree, f->dataset)->o;
}

static enum presence presence_of(const struct domain *d, uint32_t dataset, uint64_t number,
				 const char *key)
{
	const struct chunk_list *chunks = &d->chunks[dataset];
	if (chunks->listed)
		return chunk_list_find(chunks, number) < chunks->n ? LISTED : NOT_LISTED;
	if (domain_listed(d, key))
		return LISTED;
	return domain_was_listed(d, key) ? NOT_LISTED : NEVER_LISTED;
}

static uint64_t decoded_limit(const struct dataset *ds)
{
	uint64_t size = codec_stored_elem_size(ds->type);
	/* accept.c has checked that the product does not overflow. */
	return size == 0 ? CHUNK_BYTES_MAX : size * ds->grid.chunk_elems;
}

/* Compressors copy what they cannot compress, so a stored chunk is hardly larger than decoded. */
static uint64_t stored_limit(const struct dataset *ds)
{
	uint64_t decoded = decoded_limit(ds);
	return decoded + decoded / 8 + (1 << 16);
}

/* The limit of the chunk's decoded bytes. If its size was measured at the open, this is that size:
 * the image has room for no more. UINT64_MAX: it could not be measured. */
static uint64_t measured(const struct domain *d, uint32_t dataset, uint64_t number)
{
	const struct chunk_list *chunks = &d->chunks[dataset];
	const uint64_t place = chunks->decoded ? chunk_list_find(chunks, number) : chunks->n;
	return place < chunks->n ? chunks->decoded[place] : CHUNK_BYTES_MAX;
}

/* Computes the elements chunk by chunk as the service does: for integers, the chunk's start and the
 * step lose their fractions. */
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
		return err_set(&chunk->err, rc, "out of memory");
	rc = codec_arange(ds->type, start, step, 0, n, out->data, &chunk->err);
	if (!rc)
		out->len = (size_t)(n * ds->type->size);
	return rc;
}

/* ---- results ---- */

static void finish(struct fetch *f, struct chunk_result *chunk)
{
	if (chunk->code) {
		elems_release(&chunk->elems);
		if (f->req->key[0])
			err_wrap(&chunk->err, chunk->code, "%s%s", f->located ? "chunk " : "",
				 f->req->key);
		if (!f->located)
			err_wrap(&chunk->err, chunk->code, "chunk %" PRIu64 " of %s", f->number,
				 object_of(f)->id);
		err_wrap(&chunk->err, chunk->code, "domain /%s", f->d->path);
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

static void give_absent(struct fetch *f)
{
	const struct dataset *ds = &object_of(f)->dataset;
	struct chunk_result chunk = {0};
	if (ds->absence_unknown)
		chunk.code = err_set(&chunk.err, -EOPNOTSUPP, "%s", ds->absence_unknown);
	else if (ds->initializer == INITIALIZER_ARANGE)
		chunk.code = compute_arange(f, &chunk);
	else
		chunk.absent = f->absence.evidence != 0; /* the fill value */
	finish(f, &chunk);
}

/* Converts a chunk that is stored as text. SCHEMA_NOT_TEXT: it is not. */
static int convert_text(const struct fetch *f, struct bytes *out, struct err *err)
{
	const struct bytes *body = &f->req->answer.body;
	const struct domain *d = f->d;
	if (!d->schema->chunk_text)
		return SCHEMA_NOT_TEXT;
	return d->schema->chunk_text(d->space, object_of(f), body->data, body->len, body->len, out,
				     err);
}

static void give_stored(struct fetch *f)
{
	const struct dataset *ds = &object_of(f)->dataset;
	struct store_answer *a = &f->req->answer;
	struct chunk_result chunk = {.fetched = a->body.len};
	struct bytes text auto_bytes = {0};
	struct pipeline pipeline;
	const struct codec_chunk spec = {
		.type = ds->type,
		.nelems = ds->grid.chunk_elems,
		.pipeline = &pipeline,
		.encoding = f->encoding,
		.max_bytes = measured(f->d, f->dataset, f->number),
		.resolver = &f->d->resolver,
	};
	dataset_pipeline(ds, &pipeline);
	const int is_text = convert_text(f, &text, &chunk.err);
	if (is_text == 0)
		pipeline.n = 0;
	chunk.code = is_text < 0 ? is_text
				 : codec_chunk_decode(&spec, is_text ? &a->body : &text,
						      &chunk.elems, &chunk.err);
	finish(f, &chunk);
}

static void rechecked(void *arg, int code, const struct err *err)
{
	struct fetch *f = arg;
	if (code)
		fail(f, code, err);
	else
		give_absent(f);
}

static void chunk_answered(struct store_request *req)
{
	struct fetch *f = req->arg;
	const struct store_absence *proof = store_absence(&req->answer);
	struct err err = ERR_INIT;
	const int rc = store_failure(&req->answer, &err);
	if (proof)
		f->absence = *proof;
	if (rc)
		fail(f, rc, &err);
	else if (!proof)
		give_stored(f);
	else if (f->presence == LISTED)
		fail(f, err_set(&err, -ESTALE, "deleted since the domain was opened"), &err);
	else if (f->presence == NEVER_LISTED)
		domain_recheck(f->d, f->dataset, &f->recheck);
	else
		give_absent(f);
}

/* ---- the place ---- */

static void give_unlisted(void *arg)
{
	struct fetch *f = arg;
	give_absent(f);
}

/* The listing of the open proves that the chunk is absent, so no request is made. done is called in
 * a worker, because it takes time to make fill values. */
static void give_absent_later(struct fetch *f)
{
	struct err err = ERR_INIT;
	f->job = (struct pool_job){.fn = give_unlisted, .arg = f};
	if (pool_run(f->d->env->pool, &f->job))
		fail(f, err_set(&err, -ENOMEM, "out of memory"), &err);
}

static void submit(struct fetch *f, const struct chunk_place *place, uint64_t max, store_done done)
{
	struct store_request *req = f->req;
	const char *etag = domain_listed_etag(f->d, req->key);
	req->range = (struct store_range){.first = place->offset, .length = place->length};
	req->max = max;
	req->cond.if_match = etag;
	req->known_etag = etag;
	req->priority = f->prefetch ? STORE_PREFETCH : STORE_READER;
	req->cancelled = f->cancelled;
	req->done = done;
	req->arg = f;
	store_submit(f->d->store, req);
}

/* Whether the chunk can be read at all, as far as the snapshot knows. */
static int check_known(const struct fetch *f, struct err *err)
{
	struct domain *d = f->d;
	if (measured(d, f->dataset, f->number) == UINT64_MAX)
		return err_set(err, -EIO, "it could not be read when the domain was opened");
	if (!d->listed_prefix && domain_is_stale(d, f->dataset))
		return err_set(err, -ESTALE, "the dataset has changed since the file was opened");
	return 0;
}

static void get_chunk(struct fetch *f, const struct chunk_place *place)
{
	const struct dataset *ds = &object_of(f)->dataset;
	struct err err = ERR_INIT;
	const int rc = check_known(f, &err);
	f->located = !place->absent;
	f->encoding = place->encoding;
	f->presence =
		place->absent ? NEVER_LISTED : presence_of(f->d, f->dataset, f->number, place->key);
	f->absence.evidence =
		STORE_BY_LISTING; /* the schema's evidence, until the store has answered */
	if (rc)
		fail(f, rc, &err);
	else if (place->absent)
		domain_recheck(f->d, f->dataset, &f->recheck);
	else if (f->presence == NOT_LISTED && !ds->absence_unknown)
		give_absent_later(f);
	else
		submit(f, place, stored_limit(ds), chunk_answered);
}

static void place_answered(struct store_request *req);

/* answer: to the schema's last request; NULL at the start. */
static void locate(struct fetch *f, const struct schema_answer *answer)
{
	struct chunk_place place = {.key = f->req->key, .room = f->req->room};
	struct err err = ERR_INIT;
	const int rc =
		f->d->schema->locate(object_of(f), NULL, f->number, &f->step, answer, &place, &err);
	if (rc < 0)
		fail(f, rc, &err);
	else if (rc == SCHEMA_NEEDS_ANSWER)
		submit(f, &place, PLACE_MAX, place_answered);
	else
		get_chunk(f, &place);
}

static void place_answered(struct store_request *req)
{
	struct fetch *f = req->arg;
	struct err err = ERR_INIT;
	const int rc = store_failure(&req->answer, &err);
	struct bytes body auto_bytes = req->answer.body;
	struct schema_answer answer;
	domain_answer(req, &answer);
	req->answer.body = (struct bytes){0};
	if (rc) {
		fail(f, rc, &err);
		return;
	}
	store_request_reset(req, STORE_GET);
	locate(f, &answer);
}

static void fetch(void *ctx, const struct chunk_request *request, chunk_done done, void *arg)
{
	struct domain *d = ctx;
	struct fetch *f = malloc(sizeof(*f) + store_request_size(d->store));
	if (!f) {
		struct chunk_result chunk = {.code = -ENOMEM};
		err_set(&chunk.err, -ENOMEM, "out of memory");
		done(arg, &chunk);
		return;
	}
	*f = (struct fetch){
		.d = d,
		.dataset = request->dataset,
		.number = request->number,
		.prefetch = request->prefetch,
		.cancelled = request->cancelled,
		.done = done,
		.arg = arg,
	};
	f->req = store_request_init(f->memory, d->store, STORE_GET);
	f->recheck = (struct domain_recheck){
		.cancelled = request->cancelled, .done = rechecked, .arg = f};
	locate(f, NULL);
}

static const struct chunk_list *list_chunks(void *ctx, uint32_t dataset)
{
	return domain_chunks(ctx, dataset);
}

struct chunk_source domain_chunk_source(struct domain *d)
{
	return (struct chunk_source){.list = list_chunks, .get = fetch, .ctx = d};
}
