/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetches and decodes chunks, several at a time, and compares each with the rendered file. The
 * results are processed in the order of the chunks, so the findings have the same order every time.
 */
#include "check.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <store/store.h>

enum {
	AT_ONCE = 64,
	BYTES_AT_ONCE = 64 << 20, /* of decoded chunks, unless a single one is larger */
};

struct runner;

struct flight {
	struct runner *r;
	bool done;
	uint64_t bytes; /* of the decoded chunk */
	struct chunk_result result;
};

struct runner {
	struct domain_check *dc;
	struct chunk_source source;
	const struct check_chunk *chunks;
	size_t n, sent, used;
	uint64_t bytes;	   /* of the decoded chunks in flight */
	uint64_t failures; /* check_failed_requests() at the start */
	uint32_t denied;   /* the last dataset whose chunk table was found to be wrong */
	pthread_mutex_t lock;
	pthread_cond_t arrived;
	struct flight flights[AT_ONCE]; /* chunk i has flights[i % AT_ONCE] */
};

static const struct dataset *dataset_of(const struct domain_check *dc,
					const struct check_chunk *chunk)
{
	return &tree_object(dc->tree, chunk->dataset)->o.dataset;
}

static uint64_t bytes_of(const struct dataset *ds)
{
	return ds->grid.chunk_elems * ds->type->size;
}

uint64_t check_chunk_bytes(const struct domain_check *dc, uint32_t number)
{
	const struct object *o = &tree_object(dc->tree, number)->o;
	const struct chunk_list *known = domain_chunks(dc->d, number);
	uint64_t bytes;
	if (o->kind != OBJECT_DATASET || o->dataset.absence_unknown || known->unknown)
		return 0;
	return mul_u64(known->listed ? known->n : o->dataset.grid.nchunks, bytes_of(&o->dataset),
		       &bytes)
		       ? bytes
		       : 0;
}

static void arrived(void *arg, struct chunk_result *result)
{
	struct flight *f = arg;
	struct runner *r = f->r;
	pthread_mutex_lock(&r->lock);
	f->result = *result;
	f->done = true;
	pthread_cond_signal(&r->arrived);
	pthread_mutex_unlock(&r->lock);
}

static void send(struct runner *r)
{
	while (r->sent < r->n && r->sent - r->used < AT_ONCE) {
		const struct check_chunk *chunk = &r->chunks[r->sent];
		const uint64_t bytes = bytes_of(dataset_of(r->dc, chunk));
		struct flight *f = &r->flights[r->sent % AT_ONCE];
		if (r->sent > r->used && r->bytes + bytes > BYTES_AT_ONCE)
			return;
		f->r = r;
		f->done = false;
		f->bytes = bytes;
		r->bytes += bytes;
		r->sent++;
		const struct chunk_request request = {.dataset = chunk->dataset,
						      .number = chunk->number,
						      .only_place = chunk->only_place};
		r->source.get(r->source.ctx, &request, arrived, f);
	}
}

/* Returns the text after a prefix, or the whole text if it does not begin with the prefix. */
static const char *without(const char *text, const struct str *prefix)
{
	const size_t n = strlen(str_text(prefix));
	return strncmp(text, str_text(prefix), n) == 0 ? text + n : text;
}

/* Returns the reason without the path of the domain and the key, which the finding has as members.
 * The message for a chunk without a key names the number of the chunk. */
static const char *reason(const struct domain_check *dc, const char *key, const struct err *err)
{
	auto_str struct str domain = {0}, chunk = {0};
	str_addf(&domain, "domain /%s: ", domain_path(dc->d));
	str_addf(&chunk, "chunk %s: ", key);
	return without(without(err->msg, &domain), &chunk);
}

/* Decides how severe a failure is. A chunk that arrived, even if only in part, and cannot be
 * decoded is damaged. If nothing arrived, the request may have failed. If all requests were
 * answered, a place in an HDF5 file or in a shard is wrong. */
static enum engine_check_severity severity_of(const struct runner *r,
					      const struct check_chunk *chunk,
					      const struct chunk_result *result)
{
	const bool in_range = dataset_is_in_ranges(dataset_of(r->dc, chunk));
	/* The bytes of a chunk that no listing has shown may be none at all. */
	const bool arrived =
		result->fetched || (!chunk->size && !chunk->probed && !in_range) ||
		((in_range || chunk->probed) && check_failed_requests(r->dc->e) == r->failures);
	if (result->code == -EFBIG || (result->code == -EIO && arrived))
		return ENGINE_CHECK_ERROR;
	return ENGINE_CHECK_UNCHECKED;
}

/* Reports once that the chunks of a dataset cannot be read, because their file is lost. */
static int report_lost(struct domain_check *dc, enum engine_check_severity severity,
		       const struct check_chunk *chunk, const struct err *err)
{
	const char *why = reason(dc, "", err);
	if (dc->lost_why && dc->lost == chunk->dataset && strcmp(dc->lost_why, why) == 0)
		return 0;
	free(dc->lost_why);
	dc->lost = chunk->dataset;
	dc->lost_why = strdup(why);
	return check_find_at(dc, severity, chunk->dataset, NULL, "no chunk can be read: %s", why);
}

static int use(struct runner *r, const struct check_chunk *chunk, struct chunk_result *result)
{
	struct domain_check *dc = r->dc;
	char key[STORE_KEY_MAX + 1] = "";
	const bool in_shard = dataset_of(dc, chunk)->shard;
	if (result->code == 0 &&
	    ((result->absent && (chunk->probed || in_shard)) || chunk->only_place))
		return 0;
	if (chunk->probed && result->fetched) {
		dc->c->result.chunks++;
		dc->c->result.bytes += result->fetched;
	}
	if (result->denied && r->denied != chunk->dataset) {
		r->denied = chunk->dataset;
		const int rc = check_find_at(
			dc, ENGINE_CHECK_ERROR, chunk->dataset, NULL,
			"the chunk table has an empty record for chunk %" PRIu64
			" (and perhaps for others), but the HDF5 file has the chunk. A mount shows "
			"the data. HSDS shows the fill value; `hsimage link --replace` without "
			"--fastlink mends that",
			chunk->number);
		if (rc)
			return rc;
	}
	if (result->code == 0) {
		check_decoded(dc->c, chunk->probed || in_shard ? result->fetched : chunk->size);
		return check_image_chunk(dc, chunk, result);
	}
	if (result->file_lost)
		return report_lost(dc, severity_of(r, chunk, result), chunk, &result->err);
	if (domain_chunk_key(dc->d, chunk->dataset, chunk->number, key, sizeof(key)) < 0)
		key[0] = '\0';
	return check_find_at(dc, severity_of(r, chunk, result), chunk->dataset, key, "%s",
			     reason(dc, key, &result->err));
}

/* Waits for the next chunk, and uses it if rc is 0. Otherwise the check ends. */
static int next(struct runner *r, int rc)
{
	struct flight *f = &r->flights[r->used % AT_ONCE];
	pthread_mutex_lock(&r->lock);
	while (!f->done)
		pthread_cond_wait(&r->arrived, &r->lock);
	pthread_mutex_unlock(&r->lock);
	if (!rc)
		rc = use(r, &r->chunks[r->used], &f->result);
	if (!r->chunks[r->used].only_place)
		check_handled(r->dc->c, f->bytes);
	chunk_data_release(&f->result.data);
	r->bytes -= f->bytes;
	r->used++;
	return rc;
}

static int check_chunks(struct domain_check *dc, const struct check_chunk *chunks, size_t n)
{
	struct runner *r = calloc(1, sizeof(*r));
	int rc = 0;
	if (!r)
		return err_no_memory(dc->c->err);
	r->dc = dc;
	r->source = domain_chunk_source(dc->d);
	r->failures = check_failed_requests(dc->e);
	r->chunks = chunks;
	r->n = n;
	r->denied = OBJECT_NONE;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->arrived, NULL);
	while (r->used < r->n && (!rc || r->used < r->sent)) {
		if (!rc)
			send(r);
		rc = next(r, rc);
	}
	pthread_cond_destroy(&r->arrived);
	pthread_mutex_destroy(&r->lock);
	free(r);
	return rc;
}

static int check_batch(struct domain_check *dc, struct check_choice *choice)
{
	const size_t n = choice->n;
	choice->n = 0;
	return check_chunks(dc, choice->batch, n);
}

int check_choice_add(struct domain_check *dc, struct check_choice *choice,
		     const struct check_chunk *chunk)
{
	if (!dc->c->all && !chunk->only_place) {
		check_sample_add(&choice->sample, chunk);
		return 0;
	}
	choice->batch[choice->n++] = *chunk;
	return choice->n == sizeof(choice->batch) / sizeof(choice->batch[0])
		       ? check_batch(dc, choice)
		       : 0;
}

int check_choice_end(struct domain_check *dc, struct check_choice *choice)
{
	_Static_assert(CHECK_SAMPLE <= sizeof(choice->batch) / sizeof(choice->batch[0]),
		       "a sample is a batch");
	const int rc = check_batch(dc, choice);
	if (rc || dc->c->all)
		return rc;
	choice->n = check_sample_take(&choice->sample, choice->batch);
	for (size_t i = 0; i < choice->n; i++)
		dc->c->expected += bytes_of(dataset_of(dc, &choice->batch[i]));
	return check_batch(dc, choice);
}
