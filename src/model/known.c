/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which chunks exist. Where the domain was listed whole they are known for every dataset and cost
 * nothing. Datasets with variable-length data need them in any case, with the size of each chunk
 * once it is decoded, because their heap regions are laid out before anything is read: those are
 * listed one by one when the domain was too large, and of compressed chunks the first bytes (or,
 * for a bare zlib stream, all) are read.
 */
#include <model/model.h>

#include <errno.h>
#include <string.h>

#include "model_internal.h"

#include <codec/chunk.h>

enum {
	VLEN_CHUNKS_MAX = 1 << 20, /* chunks of one variable-length dataset */
	HEAD_BYTES = 16,	   /* a Blosc header */
	HEADS_AT_ONCE = 1024,
	WHOLE_AT_ONCE = 16,
};

struct known_chunk {
	uint64_t number;
	uint64_t size; /* of the stored object */
};

static int by_number(const void *a, const void *b)
{
	const struct known_chunk *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

/* A chunk key counts when it is exactly the key that a reader would ask for: in range, and in the
 * right partition. */
static bool chunk_of_key(const struct model *m, uint32_t number, const struct schema_key *parsed,
			 const char *key, uint64_t *chunk)
{
	const struct object *o = &m->objects[number].o;
	const struct grid *grid = &o->dataset.grid;
	char expected[SCHEMA_KEY_MAX + 1];

	if (parsed->rank != grid->rank)
		return false;
	for (uint32_t d = 0; d < grid->rank; d++)
		if (parsed->coords[d] >= grid->count[d])
			return false;
	if (m->schema->chunk_key(o, &m->entries[number].id, parsed->coords, expected,
				 sizeof(expected)) < 0 ||
	    strcmp(expected, key) != 0)
		return false;
	*chunk = grid_number(grid, parsed->coords);
	return true;
}

/* Turns n sorted items into the model's form; sizes are returned beside it. */
static int keep_known(struct model *m, uint32_t number, struct known_chunk *known, size_t n,
		      struct err *err)
{
	struct model_chunks *chunks = &m->chunks[number];
	uint64_t *numbers = arena_array(m->arena, n ? n : 1, sizeof(*numbers));

	if (!numbers)
		return err_set(err, -ENOMEM, "no memory for a list of %zu chunks", n);
	qsort(known, n, sizeof(*known), by_number);
	for (size_t i = 0; i < n; i++)
		numbers[i] = known[i].number;
	chunks->numbers = numbers;
	chunks->n = n;
	chunks->listed = true;
	return 0;
}

/* Collects a dataset's chunks from a run of a listing. */
static int collect(struct model *m, uint32_t number, const struct store_page *page, size_t from,
		   size_t to, struct known_chunk **out, size_t *out_n, struct err *err)
{
	struct known_chunk *known = calloc(to - from + 1, sizeof(*known));
	size_t n = 0;

	if (!known)
		return err_set(err, -ENOMEM, "no memory for a list of %zu chunks", to - from);
	for (size_t i = from; i < to; i++) {
		struct schema_key key;
		uint64_t chunk;

		m->schema->key_classify(page->items[i].key, &key);
		if (key.cls == SCHEMA_KEY_CHUNK &&
		    schema_id_equal(&key.id, &m->entries[number].id) &&
		    chunk_of_key(m, number, &key, page->items[i].key, &chunk))
			known[n++] = (struct known_chunk){chunk, page->items[i].meta.size};
	}
	*out = known;
	*out_n = n;
	return 0;
}

static int chunk_key_of(const struct model *m, uint32_t number, uint64_t chunk, char *key)
{
	uint64_t coords[DSPACE_MAX_RANK];
	const struct object *o = &m->objects[number].o;

	grid_coords(&o->dataset.grid, chunk, coords);
	return m->schema->chunk_key(o, &m->entries[number].id, coords, key, SCHEMA_KEY_MAX + 1);
}

/* The store did not give the chunk, and may give it the next time: what is laid out without it
 * would be another file. Too large is a fact of the chunk itself. */
static bool is_failure(int code)
{
	return code && code != -EFBIG;
}

static int tell_failure(const char *key, const struct store_get_result *res, struct err *err)
{
	if (res->code == -ENOENT)
		return err_set(err, -ESTALE, "chunk %s: it was there when it was listed", key);
	err_copy(err, &res->err);
	return err_wrap(err, res->code, "chunk %s", key);
}

/* Requests for the first `length` bytes of the chunks known[which[i]]: enters their decoded sizes,
 * and leaves in which[] (and *left) those of which more is needed. */
static int measure_some(struct model *m, uint32_t number, const struct known_chunk *known,
			size_t *which, size_t n, uint64_t length, uint64_t *decoded, size_t *left,
			struct err *err)
{
	struct pipeline pipeline;
	auto_free char *keys = calloc(n, SCHEMA_KEY_MAX + 1);
	auto_free struct store_get *reqs = calloc(n, sizeof(*reqs));
	auto_free struct store_get_result *results = calloc(n, sizeof(*results));
	size_t again = 0;
	int failed = 0;

	if (!keys || !reqs || !results)
		return err_set(err, -ENOMEM, "no memory for %zu requests", n);
	dataset_pipeline(&m->objects[number].o.dataset, &pipeline);
	for (size_t i = 0; i < n; i++) {
		char *key = keys + i * (SCHEMA_KEY_MAX + 1);

		if (chunk_key_of(m, number, known[which[i]].number, key) < 0)
			return err_set(err, -EIO, "a chunk of %s has no key",
				       m->objects[number].o.id);
		reqs[i] = (struct store_get){.op = STORE_GET,
					     .key = key,
					     .length = length,
					     .max = MODEL_CHUNK_MAX,
					     .known_etag = model_listed_etag(m, key)};
	}
	int rc = store_get_many(m->store, reqs, n, results);
	if (rc)
		return err_set(err, rc, "no memory for %zu requests", n);
	for (size_t i = 0; i < n; i++) {
		const struct store_get_result *res = &results[i];
		struct err why = ERR_INIT;
		uint64_t *size = &decoded[which[i]];

		if (!failed && is_failure(res->code))
			failed = tell_failure(reqs[i].key, res, err);
		if (res->code)
			err_copy(&why, &res->err);
		rc = res->code ? res->code
			       : codec_decoded_size(&pipeline, res->body.data, res->body.len,
						    res->meta.size, MODEL_CHUNK_MAX, size, &why);
		if (rc == -EAGAIN && length != UINT64_MAX) {
			which[again++] = which[i];
		} else if (rc && !failed) {
			model_note(m, "%s: chunk cannot be read: %s", reqs[i].key, why.msg);
			*size = UINT64_MAX;
		}
		bytes_release(&results[i].body);
	}
	*left = again;
	return failed;
}

/* Sizes of compressed chunks: most tell theirs at their beginning, the others are read whole. */
static int measure_compressed(struct model *m, uint32_t number, const struct known_chunk *known,
			      size_t n, uint64_t *decoded, struct err *err)
{
	auto_free size_t *which = calloc(n ? n : 1, sizeof(*which));
	size_t whole = 0;
	int rc = 0;

	if (!which)
		return err_set(err, -ENOMEM, "no memory for a list of %zu chunks", n);
	for (size_t first = 0; !rc && first < n; first += HEADS_AT_ONCE) {
		const size_t some = (size_t)min_u64(HEADS_AT_ONCE, n - first);
		size_t left = 0;

		for (size_t i = 0; i < some; i++)
			which[whole + i] = first + i;
		rc = measure_some(m, number, known, which + whole, some, HEAD_BYTES, decoded, &left,
				  err);
		whole += left;
	}
	for (size_t first = 0; !rc && first < whole; first += WHOLE_AT_ONCE) {
		size_t left = 0;

		rc = measure_some(m, number, known, which + first,
				  (size_t)min_u64(WHOLE_AT_ONCE, whole - first), UINT64_MAX,
				  decoded, &left, err);
	}
	return rc;
}

/* known is sorted already. */
static int measure(struct model *m, uint32_t number, const struct known_chunk *known, size_t n,
		   struct err *err)
{
	const struct dataset *ds = &m->objects[number].o.dataset;
	uint64_t *decoded = arena_array(m->arena, n ? n : 1, sizeof(*decoded));

	if (!decoded)
		return err_set(err, -ENOMEM, "no memory for a list of %zu chunks", n);
	m->chunks[number].decoded = decoded;
	if (ds->nfilters > 0)
		return measure_compressed(m, number, known, n, decoded, err);
	for (size_t i = 0; i < n; i++)
		decoded[i] = known[i].size <= MODEL_CHUNK_MAX ? known[i].size : UINT64_MAX;
	return 0;
}

/* The prefix under which a dataset's chunks lie: that of its document. */
static int dataset_prefix(const struct model *m, uint32_t number, char *prefix)
{
	int n = m->schema->object_key(&m->entries[number].id, prefix, SCHEMA_KEY_MAX + 1);
	char *slash = n < 0 ? NULL : strrchr(prefix, '/');

	if (!slash)
		return -EIO;
	slash[1] = '\0';
	return 0;
}

static int know_dataset(struct model *m, uint32_t number, const struct store_page *page,
			size_t from, size_t to, struct err *err)
{
	const struct dataset *ds = &m->objects[number].o.dataset;
	auto_free struct known_chunk *known = NULL;
	size_t n = 0;
	int rc = collect(m, number, page, from, to, &known, &n, err);

	if (!rc)
		rc = keep_known(m, number, known, n, err);
	if (!rc && ds->type->has_vlen)
		rc = measure(m, number, known, n, err);
	return rc;
}

/* The listing is sorted by key, so the keys of one dataset lie together. */
static int know_from_listing(struct model *m, uint32_t number, struct err *err)
{
	char prefix[SCHEMA_KEY_MAX + 1];
	size_t low = 0, high = m->listing.n;

	if (dataset_prefix(m, number, prefix))
		return err_set(err, -EIO, "object %s has no key", m->objects[number].o.id);
	size_t len = strlen(prefix);
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(m->listing.items[middle].key, prefix) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (high = low; high < m->listing.n; high++)
		if (strncmp(m->listing.items[high].key, prefix, len) != 0)
			break;
	return know_dataset(m, number, &m->listing, low, high, err);
}

static int know_by_asking(struct model *m, uint32_t number, struct err *err)
{
	char prefix[SCHEMA_KEY_MAX + 1];
	auto_page struct store_page page = {0};

	if (dataset_prefix(m, number, prefix))
		return err_set(err, -EIO, "object %s has no key", m->objects[number].o.id);
	int rc = store_list_all(m->store, prefix, STORE_COMPLETE, VLEN_CHUNKS_MAX, &page, err);
	if (rc)
		return err_wrap(err, rc, "listing %s", prefix);
	return know_dataset(m, number, &page, 0, page.n, err);
}

bool model_is_vast(const struct dataset *ds)
{
	uint64_t bytes;

	return !mul_u64(ds->grid.nchunks, ds->grid.chunk_elems, &bytes) ||
	       !mul_u64(bytes, ds->type->size, &bytes) || bytes > MODEL_DENSE_MAX;
}

/* What must be known of a dataset before a file is laid out. */
static bool must_know(const struct dataset *ds)
{
	return ds->grid.nchunks > 0 && (ds->type->has_vlen || model_is_vast(ds));
}

int model_know_chunks(struct model *m, struct err *err)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < m->count; i++) {
		uint32_t number = m->order[i];
		const struct object *o = &m->objects[number].o;

		if (o->kind != OBJECT_DATASET)
			continue;
		if (o->dataset.initializer != INITIALIZER_NONE && !o->dataset.type->has_vlen)
			continue; /* every chunk has a value, stored or not */
		if (m->schema->chunk_absent(o, NULL)) {
			/* Chunks have values that no listing shows. Sizes cannot be known. */
			m->chunks[number].unknown = o->dataset.type->has_vlen;
			continue;
		}
		if (m->listed_whole)
			rc = know_from_listing(m, number, err);
		else if (must_know(&o->dataset))
			rc = know_by_asking(m, number, err);
		if (rc == -E2BIG) {
			/* The dataset alone is lost: it stays in the file, its reads fail. Any
			 * other failure may pass, and must not stay in a snapshot. */
			model_note(m, "dataset %s: its chunks are not known: %s", o->id,
				   err ? err->msg : "");
			m->chunks[number] = (struct model_chunks){.unknown = true};
			rc = 0;
		}
	}
	return rc;
}
