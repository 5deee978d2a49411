/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the place of a chunk. It runs the schema's state machine, and reads what that needs: an
 * object of the bucket, a record of a chunk table (place_index.c), the chunk index of an HDF5 file
 * (ref_index.c), or the indexes of shards (ranges/shards.c). No function blocks.
 */
#include "place.h"

enum { PLACE_MAX = 1 << 24 /* bytes of an object that is read to find a place */ };

static const struct object *object_of(const struct place_search *s)
{
	return &tree_object(s->d->tree, s->dataset)->o;
}

/* Returns the chunk table of the dataset, or NULL if it has none or the table could not be loaded.
 */
static const struct object *table_of(const struct place_search *s)
{
	const struct reference *r = object_of(s)->dataset.reference;
	if (!r || r->table == OBJECT_NONE)
		return NULL;
	const struct tree_object *t = tree_object(s->d->tree, r->table);
	return t->broken ? NULL : &t->o;
}

static void fail(struct place_search *s, int code, const struct err *err)
{
	s->done(s, code, err);
}

void place_get(struct place_search *s, uint64_t max)
{
	struct store_request *req = s->req;
	const char *etag = domain_listed_etag(s->d, req->key);
	req->range = (struct store_range){.first = s->place.offset, .length = s->place.length};
	req->max = max;
	req->cond.if_match = etag;
	req->known_etag = etag;
	req->priority = s->prefetch ? STORE_PREFETCH : STORE_READER;
	req->cancelled = cancelled_by(s->cancelled);
	store_submit(s->d->store, req);
}

static void locate(struct place_search *s, const struct schema_answer *answer);

/* ---- an object of the bucket ---- */

static void object_answered(struct store_request *req)
{
	struct place_search *s = req->arg;
	struct err err = ERR_INIT;
	const int rc = store_failure(&req->answer, &err);
	struct bytes body auto_bytes = req->answer.body;
	struct schema_answer answer;
	domain_answer(req, &answer);
	req->answer.body = (struct bytes){0};
	if (rc) {
		fail(s, rc, &err);
		return;
	}
	store_request_reset(req, STORE_GET);
	locate(s, &answer);
}

/* ---- a record ---- */

static void record_read(struct place_read *r, int code, const struct elems *value,
			struct range_batch *batch, const struct err *err)
{
	struct place_search *s = r->arg;
	s->batch = batch;
	const struct schema_answer answer = {.absent = !value, .record = value};
	if (code)
		fail(s, code, err);
	else
		locate(s, &answer);
}

static void read_record(struct place_search *s)
{
	const struct dataset *table = &tree_object(s->d->tree, s->place.table)->o.dataset;
	s->record = (struct place_read){
		.ranges = &s->d->ranges,
		.part = {.dataset = s->place.table, .prefetch = s->prefetch},
		.type = table->type,
		.load = s->load,
		.ctx = s->d,
		.batch = s->batch,
		.done = record_read,
		.arg = s,
	};
	s->record.record = grid_find(&table->grid, s->place.record, &s->record.part.number);
	place_read(&s->record);
}

/* ---- a file ---- */

/* Sets s->file and s->object. The key of the request is empty from then on, because errors of a
 * file name the file. */
static int find_file(struct place_search *s, struct err *err)
{
	s->file = ref_file_find(&s->d->ranges, s->place.file, err);
	s->object = s->file ? ref_file_object(s->file) : NULL;
	s->req->key[0] = '\0';
	return s->file ? 0 : err->code;
}

static void index_searched(struct ref_search *search, int code, const struct ref_place *found,
			   const struct err *err)
{
	struct place_search *s = search->arg;
	if (!code) {
		s->place.absent = !found->stored;
		s->place.offset = found->offset;
		s->place.length = found->size;
		s->place.filter_mask = found->filter_mask;
		s->pipeline = found->pipeline;
	}
	s->done(s, code, err);
}

static void search_index(struct place_search *s)
{
	struct err err = ERR_INIT;
	if (find_file(s, &err)) {
		fail(s, err.code, &err);
		return;
	}
	s->index = (struct ref_search){
		.file = s->file,
		.dataset = s->dataset,
		.number = s->number,
		.h5path = s->place.file->h5path,
		.prefetch = s->prefetch,
		.done = index_searched,
		.arg = s,
	};
	ref_index_find(&s->index);
}

/* ---- a shard ---- */

static void shard_searched(struct shard_search *search, int code, struct range_batch *batch,
			   const struct err *err)
{
	struct place_search *s = search->arg;
	s->batch = batch;
	s->source = search->source;
	s->object = search->source ? shard_source_object(search->source) : NULL;
	s->absence = search->absence;
	s->is_hole = search->absent && search->source;
	s->place.offset = search->offset;
	s->place.length = search->length;
	s->done(s, code, err);
}

static void search_shard(struct place_search *s)
{
	const struct dataset *ds = &object_of(s)->dataset;
	const struct store_item *listed = domain_listed(s->d, s->req->key);
	s->in_shard = true;
	s->place.first = shard_first(ds->shard, &ds->grid, s->number);
	if (!listed && domain_was_listed(s->d, s->req->key)) {
		const struct err none = ERR_INIT;
		s->absence.evidence = STORE_BY_LISTING;
		s->done(s, 0, &none);
		return;
	}
	s->shard = (struct shard_search){
		.ranges = &s->d->ranges,
		.shard = ds->shard,
		.grid = &ds->grid,
		.dataset = s->dataset,
		.number = s->number,
		.store = s->d->store,
		.key = s->req->key,
		.etag = listed ? listed->meta.etag : "",
		.size = listed ? listed->meta.size : UINT64_MAX,
		.prefetch = s->prefetch,
		.batch = s->batch,
		.done = shard_searched,
		.arg = s,
	};
	shard_find(&s->shard);
}

/* ---- all together ---- */

/* Continues the search. `answer` is the answer to the schema's last request, or NULL at the start.
 */
static void locate(struct place_search *s, const struct schema_answer *answer)
{
	struct err err = ERR_INIT;
	s->place = (struct chunk_place){.key = s->req->key, .room = s->req->room};
	int rc = s->d->schema->locate(object_of(s), table_of(s), s->number, &s->step, answer,
				      &s->place, &err);
	if (rc == SCHEMA_NEEDS_ANSWER) {
		s->batch = NULL;
		s->req->done = object_answered;
		s->req->arg = s;
		place_get(s, PLACE_MAX);
	} else if (rc == SCHEMA_NEEDS_RECORD) {
		read_record(s);
	} else if (rc == SCHEMA_NEEDS_INDEX) {
		s->batch = NULL;
		search_index(s);
	} else if (rc == SCHEMA_NEEDS_SHARD) {
		search_shard(s);
	} else {
		if (!rc && !s->place.absent && s->place.file)
			rc = find_file(s, &err);
		s->done(s, rc, &err);
	}
}

void place_find(struct place_search *s)
{
	s->step = 0;
	s->object = NULL;
	s->file = NULL;
	s->pipeline = NULL;
	s->in_shard = s->is_hole = false;
	s->source = NULL;
	s->absence = (struct store_absence){0};
	locate(s, NULL);
}

void place_release(struct place_search *s)
{
	shard_source_unref(s->source);
	s->source = NULL;
}
