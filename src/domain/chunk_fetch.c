/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetches one chunk: place.c finds its place in the store, the store gets the object, and the
 * worker that completes the request decodes it. If the listing of the open named the version of the
 * object, or an earlier load found it (chunk_version.c), a fetch of another version fails with
 * -ESTALE, because an open file must not mix two versions. Every error names the chunk's key, or
 * the HDF5 file that has the chunk. No function blocks.
 *
 * A chunk in an HDF5 file is decoded with the filters that the dataset records. If the record may
 * be incomplete (struct reference) and the chunk does not decode to exactly its size, the index of
 * the file is read, and the chunk is decoded with the file's own filters. These are used first for
 * the next chunks.
 *
 * A chunk is absent, and has the fill value or computed elements, in four cases:
 *   - the complete listing of the open does not name its object; no request is made;
 *   - it is in a shard, whose index says that it is not stored;
 *   - the schema finds that it has no place;
 *   - there is no listing, the store proves that the object is absent, and no earlier load has
 *     found it.
 * In the last two cases the dataset's document must still be the version that was opened
 * (recheck.c).
 */
#include <domain/domain.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "place.h"

#include <codec/chunk.h>

enum presence {
	NEVER_LISTED, /* no listing covers it */
	LISTED,	      /* it existed at the open */
	NOT_LISTED,   /* it was absent at the open */
};

/* A fetch with its request. */
struct fetch {
	struct domain *d;
	uint32_t dataset;
	uint64_t number;
	chunk_done done;
	void *arg;
	bool accepts_shuffled;
	bool only_place;
	bool is_table;	/* a chunk of a chunk table: see fetch_table_chunk() */
	uint64_t began; /* result of domain_versions_begin() */
	bool located;	/* the key of the request is the chunk's */
	struct place_search place;
	enum presence presence;
	struct store_absence absence; /* the proof, when it is known */
	struct domain_recheck recheck;
	struct pool_job job;
	/* A chunk in an HDF5 file. */
	struct range_read read;
	struct ref_search search;
	struct bytes stored;
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

/* Returns the limit of the chunk's decoded bytes. If the size of the chunk was measured at the
 * open, this is that size, because the image has room for no more. Returns UINT64_MAX if it could
 * not be measured. */
static uint64_t measured(const struct domain *d, uint32_t dataset, uint64_t number)
{
	const struct chunk_list *chunks = &d->chunks[dataset];
	const uint64_t place = chunks->decoded ? chunk_list_find(chunks, number) : chunks->n;
	return place < chunks->n ? chunks->decoded[place] : CHUNK_BYTES_MAX;
}

/* Computes the elements chunk by chunk, as the service does: in an integer type, the fractions of
 * the chunk's start and of the step are dropped. */
static int compute_arange(const struct fetch *f, struct chunk_result *chunk)
{
	const struct dataset *ds = &tree_object(f->d->tree, f->dataset)->o.dataset;
	uint64_t n = ds->grid.chunk_elems;
	double step = ds->arange_step;
	double start = ds->arange_start + (double)(f->number * n) * step;
	struct bytes *out = &chunk->data.elems.fixed;
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

/* Returns whether the HDF5 file that has the chunk is lost. */
static bool is_file_lost(const struct fetch *f)
{
	const struct range_object *file = f->place.object;
	return object_of(f)->dataset.reference && file && atomic_load(&file->is_lost);
}

static void finish(struct fetch *f, struct chunk_result *chunk)
{
	chunk->file_lost = chunk->code && is_file_lost(f);
	if (chunk->code) {
		chunk_data_release(&chunk->data);
		if (f->req->key[0])
			err_wrap(&chunk->err, chunk->code, "%s%s", f->located ? "chunk " : "",
				 f->req->key);
		if (chunk->file_lost)
			err_wrap(&chunk->err, chunk->code, "dataset %s", object_of(f)->id);
		else if (!f->located)
			err_wrap(&chunk->err, chunk->code, "chunk %" PRIu64 " of %s", f->number,
				 object_of(f)->id);
		err_wrap(&chunk->err, chunk->code, "domain /%s", f->d->path);
	}
	const chunk_done done = f->done;
	void *arg = f->arg;
	chunk->denied = f->place.place.denied && !chunk->code && !chunk->absent;
	bytes_release(&f->stored);
	place_release(&f->place);
	store_request_release(f->req);
	free(f);
	done(arg, chunk);
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
	if (f->is_table && ds->initializer == INITIALIZER_CHUNK_LOCATOR)
		chunk.absent = true;
	else if (f->d->missing_chunks_fail && f->d->schema->marks && !f->place.place.absent &&
		 !f->place.is_hole)
		chunk.code = err_set(&chunk.err, -EIO,
				     "it is not stored, and missing_chunks=error is set");
	else if (ds->absence_unknown)
		chunk.code = err_set(&chunk.err, -EOPNOTSUPP, "%s", ds->absence_unknown);
	else if (ds->initializer == INITIALIZER_ARANGE)
		chunk.code = compute_arange(f, &chunk);
	else
		chunk.absent = f->absence.evidence != 0; /* the fill value */
	finish(f, &chunk);
}

/* Converts a chunk that is stored as text. Returns SCHEMA_NOT_TEXT if the chunk is no text. */
static int convert_text(const struct fetch *f, struct bytes *out, struct err *err)
{
	const struct bytes *body = &f->req->answer.body;
	const struct domain *d = f->d;
	if (!d->schema->chunk_text)
		return SCHEMA_NOT_TEXT;
	return d->schema->chunk_text(d->space, object_of(f), body->data, body->len, body->len, out,
				     err);
}

/* Decodes the bytes of the chunk. Returns the code of the result. */
static int run_chain(const struct fetch *f, const struct codec_chain *chain, uint32_t filter_mask,
		     struct bytes *stored, struct chunk_result *chunk)
{
	const struct codec_chunk spec = {
		.chain = chain,
		.filter_mask = filter_mask,
		.covered = grid_covered(&object_of(f)->dataset.grid, f->number),
		.max_bytes = measured(f->d, f->dataset, f->number),
		.resolver = &f->d->resolver,
		.accepts_shuffled = f->accepts_shuffled,
	};
	chunk->fetched = stored->len;
	chunk->code = codec_chunk_decode(&spec, stored, &chunk->data, &chunk->err);
	return chunk->code;
}

/* Decodes the chunk with the filters p of the file, or, if p is NULL, with those that the dataset
 * records. Returns the code of the result. */
static int decode(struct fetch *f, const struct pipeline *p, uint32_t filter_mask,
		  struct chunk_result *chunk)
{
	const struct dataset *ds = &object_of(f)->dataset;
	struct codec_plan plan;
	if (p)
		codec_plan_file(&plan, ds->type, ds->grid.chunk_elems, p->f, p->n, true);
	return run_chain(f, p ? &plan.chain : ds->chain, filter_mask, &f->stored, chunk);
}

/* Appends zeros to a chunk that ends early. */
static int complete_edge(const struct fetch *f, struct bytes *stored, struct err *err)
{
	const struct chunk_place *place = &f->place.place;
	const uint64_t whole = codec_chunk_size(object_of(f)->dataset.chain).plain;
	if (!place->ends_early || stored->len != place->length || stored->len >= whole)
		return 0;
	return bytes_append_zero(stored, (size_t)(whole - stored->len)) ? err_no_memory(err) : 0;
}

static void give_stored(struct fetch *f)
{
	static const struct pipeline none;
	const struct dataset *ds = &object_of(f)->dataset;
	struct bytes *body = &f->req->answer.body;
	struct chunk_result chunk = {.fetched = body->len};
	struct bytes text auto_bytes = {0};
	const uint64_t fetched = body->len;
	struct codec_plan plan;
	const int is_text = convert_text(f, &text, &chunk.err);
	if (is_text < 0) {
		chunk.code = is_text;
	} else if (is_text) {
		chunk.code = complete_edge(f, body, &chunk.err);
		if (!chunk.code)
			run_chain(f, ds->chain, 0, body, &chunk);
	} else {
		codec_plan_object(&plan, ds->type, ds->grid.chunk_elems, &none, OBJECT_UNSHUFFLED,
				  NULL);
		run_chain(f, &plan.chain, 0, &text, &chunk);
	}
	chunk.fetched = fetched;
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

/* Returns the number under which the version of the chunk is kept. All chunks that an object holds
 * have the same version. */
static uint64_t version_number(const struct fetch *f)
{
	return f->place.place.is_shared || f->place.in_shard ? f->place.place.first : f->number;
}

/* Compares the version of a chunk with that of earlier loads, unless a listing names it. */
static int check_version(const struct fetch *f, struct err *err)
{
	const struct chunk_place *place = &f->place.place;
	const bool is_whole = place->offset == 0 && place->length == CHUNK_TO_END;
	if (!(is_whole || place->is_shared) || f->req->known_etag)
		return 0;
	return domain_versions_note(f->d, f->began, f->dataset, version_number(f),
				    f->req->answer.meta.etag, err);
}

/* The size of an object that holds several chunks is known. */
static int check_object_size(const struct fetch *f, struct err *err)
{
	const struct chunk_place *place = &f->place.place;
	const uint64_t size = f->req->answer.meta.size;
	if (!place->is_shared || size == place->object_size)
		return 0;
	return err_set(err, -EIO, "the object has %" PRIu64 " bytes instead of %" PRIu64, size,
		       place->object_size);
}

/* Returns whether a chunk whose request failed with rc counts as absent, because the user has set
 * forbidden_chunks=absent. The document of the array is requested afterwards, as for every absent
 * chunk. */
static bool is_absent_if_forbidden(const struct fetch *f, int rc)
{
	struct domain *d = f->d;
	if (rc != -EACCES || !d->forbidden_chunks_absent || !d->schema->marks ||
	    f->presence != NEVER_LISTED)
		return false;
	if (!atomic_exchange(&d->forbidden_logged, true))
		log_warning(d->env->log,
			    "domain /%s: chunk %s is forbidden, and counts as not stored because "
			    "forbidden_chunks=absent is set; so do others",
			    d->path, f->req->key);
	return true;
}

/* The object is absent, or forbidden and counts as absent. */
static void give_missing(struct fetch *f)
{
	struct err err = ERR_INIT;
	if (f->presence == LISTED)
		fail(f, err_set(&err, -ESTALE, "deleted since the domain was opened"), &err);
	else if (domain_versions_lost(f->d, f->dataset, version_number(f)))
		fail(f, err_set(&err, -ESTALE, "deleted since it was read first"), &err);
	else if (f->presence == NEVER_LISTED)
		domain_recheck(f->d, f->dataset, &f->recheck);
	else
		give_absent(f);
}

static void chunk_answered(struct store_request *req)
{
	struct fetch *f = req->arg;
	const struct store_absence *proof = store_absence(&req->answer);
	struct err err = ERR_INIT;
	int rc = store_failure(&req->answer, &err);
	const bool forbidden = is_absent_if_forbidden(f, rc);
	if (proof)
		f->absence = *proof;
	else if (forbidden)
		rc = 0;
	else if (!rc)
		rc = check_object_size(f, &err);
	if (!rc && !proof && !forbidden)
		rc = check_version(f, &err);
	if (rc)
		fail(f, rc, &err);
	else if (!proof && !forbidden && f->only_place)
		finish(f, &(struct chunk_result){.absent = false});
	else if (!proof && !forbidden)
		give_stored(f);
	else
		give_missing(f);
}

/* ---- absent chunks ---- */

static void give_unlisted(void *arg)
{
	struct fetch *f = arg;
	give_absent(f);
}

/* Completes without a request a fetch of a chunk that is absent, or in memory. done is called in a
 * worker, because it takes time to make fill values and to decode. */
static void run_later(struct fetch *f, pool_fn fn)
{
	struct err err = ERR_INIT;
	f->job = (struct pool_job){.fn = fn, .arg = f};
	if (pool_run(f->d->env->pool, &f->job))
		fail(f, err_no_memory(&err), &err);
}

/* ---- chunks in HDF5 files and shards ---- */

static void wrap_file(const struct fetch *f, struct chunk_result *chunk)
{
	if (chunk->code && !is_file_lost(f))
		err_wrap(&chunk->err, chunk->code, "%s, %" PRIu64 " bytes at offset %" PRIu64,
			 f->place.object ? f->place.object->name : "decoded shard",
			 f->place.place.length, f->place.place.offset);
}

/* Decodes the chunk with the filters that the index of the file gives. */
static void index_searched(struct ref_search *s, int code, const struct ref_place *found,
			   const struct err *err)
{
	struct fetch *f = s->arg;
	const struct chunk_place *place = &f->place.place;
	struct chunk_result chunk = {.code = code};
	if (code)
		err_copy(&chunk.err, err);
	else if (!found->stored || found->offset != place->offset || found->size != place->length)
		chunk.code = err_set(&chunk.err, -EIO,
				     "the index of the file does not have the chunk there");
	else
		decode(f, found->pipeline, found->filter_mask, &chunk);
	wrap_file(f, &chunk);
	finish(f, &chunk);
}

/* Returns whether a chunk may have failed to decode because it has other filters than the recorded
 * ones, or than those of the file without its mask. */
static bool may_have_other_filters(const struct fetch *f, int code)
{
	const struct reference *r = object_of(f)->dataset.reference;
	return (code == -EIO || code == -EOPNOTSUPP) && r && !r->exact && !f->place.pipeline &&
	       r->layout != REFERENCE_CONTIGUOUS;
}

static void search_index(struct fetch *f)
{
	const struct reference *r = object_of(f)->dataset.reference;
	f->search = (struct ref_search){
		.file = f->place.file,
		.dataset = f->dataset,
		.number = f->number,
		.h5path = r->file.h5path,
		.prefetch = f->place.prefetch,
		.done = index_searched,
		.arg = f,
	};
	ref_index_find(&f->search);
}

static void range_arrived(struct range_read *r, int code, struct bytes *body, const struct err *err)
{
	struct fetch *f = r->arg;
	const struct pipeline *p = f->place.pipeline;
	struct chunk_result chunk = {.code = code};
	if (code) {
		fail(f, code, err);
		return;
	}
	f->stored = *body;
	*body = (struct bytes){0};
	chunk.code = complete_edge(f, &f->stored, &chunk.err);
	if (!p && object_of(f)->dataset.reference && !object_of(f)->dataset.reference->exact)
		p = ref_index_pipeline(f->place.file, f->dataset);
	if (!chunk.code)
		decode(f, p, f->place.place.filter_mask, &chunk);
	if (may_have_other_filters(f, chunk.code)) {
		search_index(f);
		return;
	}
	wrap_file(f, &chunk);
	finish(f, &chunk);
}

static void read_range(struct fetch *f)
{
	const struct chunk_place *place = &f->place.place;
	f->read = (struct range_read){
		.object = f->place.object,
		.offset = place->offset,
		.length = place->length,
		.prefetch = f->place.prefetch,
		.cancelled = cancelled_by(f->place.cancelled),
		.batch = f->place.batch,
		.done = range_arrived,
		.arg = f,
	};
	range_read(&f->read);
}

/* ---- chunks in shards ---- */

/* Decodes a chunk of a shard that was decoded as a whole. */
static void give_part(void *arg)
{
	struct fetch *f = arg;
	const struct chunk_place *place = &f->place.place;
	struct chunk_result chunk = {0};
	if (bytes_append(&f->stored, shard_source_bytes(f->place.source, place->offset),
			 (size_t)place->length))
		chunk.code = err_no_memory(&chunk.err);
	else
		decode(f, NULL, 0, &chunk);
	wrap_file(f, &chunk);
	finish(f, &chunk);
}

static void get_from_shard(struct fetch *f)
{
	struct err err = ERR_INIT;
	if (f->place.absence.evidence)
		f->absence = f->place.absence;
	if (f->place.source && !domain_listed_etag(f->d, f->place.place.key) &&
	    domain_versions_note(f->d, f->began, f->dataset, version_number(f),
				 shard_source_etag(f->place.source), &err))
		fail(f, err.code, &err);
	else if (!f->place.source)
		give_missing(f);
	else if (f->place.is_hole)
		run_later(f, give_unlisted);
	else if (f->only_place)
		finish(f, &(struct chunk_result){.absent = false});
	else if (f->place.object)
		read_range(f);
	else
		run_later(f, give_part);
}

/* ---- all chunks ---- */

/* Fails if the snapshot already knows that the chunk cannot be read. */
static int check_known(const struct fetch *f, struct err *err)
{
	struct domain *d = f->d;
	if (measured(d, f->dataset, f->number) == UINT64_MAX)
		return err_set(err, -EIO, "it could not be read when the domain was opened");
	if (!d->listed_prefix && domain_is_stale(d, f->dataset))
		return err_set(err, -ESTALE, "the dataset has changed since the file was opened");
	return 0;
}

static void get_object(struct fetch *f)
{
	const struct codec_size size = codec_chunk_size(object_of(f)->dataset.chain);
	f->req->done = chunk_answered;
	f->req->arg = f;
	f->req->expected = f->only_place ? 1 : size.plain;
	if (f->only_place)
		f->place.place.length = 1;
	place_get(&f->place, size.most);
}

static void get_chunk(struct fetch *f)
{
	const struct dataset *ds = &object_of(f)->dataset;
	const struct chunk_place *place = &f->place.place;
	struct err err = ERR_INIT;
	const int rc = check_known(f, &err);
	const bool is_object = !place->absent && !place->file;
	f->located = is_object;
	f->presence =
		is_object ? presence_of(f->d, f->dataset, f->number, place->key) : NEVER_LISTED;
	f->absence.evidence =
		STORE_BY_LISTING; /* the schema's proof, until the store has answered */
	if (rc)
		fail(f, rc, &err);
	else if (place->absent)
		domain_recheck(f->d, f->dataset, &f->recheck);
	else if (place->file && f->only_place)
		finish(f, &(struct chunk_result){.absent = false});
	else if (place->file)
		read_range(f);
	else if (f->presence == NOT_LISTED && (!ds->absence_unknown || f->is_table))
		run_later(f, give_unlisted);
	else if (f->place.in_shard)
		get_from_shard(f);
	else
		get_object(f);
}

static void located(struct place_search *s, int code, const struct err *err)
{
	struct fetch *f = (struct fetch *)((char *)s - offsetof(struct fetch, place));
	f->located = s->in_shard;
	if (s->in_shard)
		f->presence = presence_of(f->d, f->dataset, f->number, s->place.key);
	if (code && !(s->in_shard && is_absent_if_forbidden(f, code)))
		fail(f, code, err);
	else
		get_chunk(f);
}

static void fetch_chunk(struct domain *d, const struct chunk_request *request, bool is_table,
			chunk_done done, void *arg);

/* Reads a chunk of a chunk table. A chunk that is not stored is absent, even if other programs
 * compute its values. */
static void fetch_table_chunk(void *domain, const struct chunk_request *request, chunk_done done,
			      void *arg)
{
	fetch_chunk(domain, request, true, done, arg);
}

static void fetch_chunk(struct domain *d, const struct chunk_request *request, bool is_table,
			chunk_done done, void *arg)
{
	struct fetch *f = malloc(sizeof(*f) + store_request_size(d->store));
	if (!f) {
		struct chunk_result chunk = {.code = -ENOMEM};
		err_no_memory(&chunk.err);
		done(arg, &chunk);
		return;
	}
	*f = (struct fetch){
		.d = d,
		.dataset = request->dataset,
		.number = request->number,
		.done = done,
		.arg = arg,
		.accepts_shuffled = request->accepts_shuffled,
		.only_place = request->only_place,
		.is_table = is_table,
		.began = domain_versions_begin(d),
	};
	f->req = store_request_init(f->memory, d->store, STORE_GET);
	f->recheck = (struct domain_recheck){
		.cancelled = request->cancelled, .done = rechecked, .arg = f};
	f->place = (struct place_search){
		.d = d,
		.dataset = request->dataset,
		.number = request->number,
		.prefetch = request->prefetch,
		.cancelled = request->cancelled,
		.load = fetch_table_chunk,
		.batch = request->batch,
		.req = f->req,
		.done = located,
	};
	place_find(&f->place);
}

void domain_fetch_chunk(void *domain, const struct chunk_request *request, chunk_done done,
			void *arg)
{
	fetch_chunk(domain, request, false, done, arg);
}
