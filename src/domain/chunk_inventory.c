/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which chunks exist. Where the domain was listed whole they are known for every dataset and cost
 * nothing. Datasets with variable-length data need them in any case, with the size of each chunk
 * once it is decoded, because their heap regions are laid out before anything is read: those are
 * listed one by one when the domain was too large, and of compressed chunks the first bytes (or,
 * for a bare zlib stream, all) are read.
 */
#include <domain/domain.h>

#include <errno.h>
#include <string.h>

#include "domain_internal.h"

#include <codec/chunk.h>

enum {
	VLEN_CHUNKS_MAX = 1 << 20, /* chunks of one variable-length dataset */
	HEAD_BYTES = 16,	   /* a Blosc header */
	HEADS_AT_ONCE = 1024,
	WHOLE_AT_ONCE = 16,
};

struct stored_chunk {
	uint64_t number;
	const struct store_item *item; /* of the listing; borrowed */
};

static int by_number(const void *a, const void *b)
{
	const struct stored_chunk *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

/* Turns n sorted items into a chunk_list; sizes are returned beside it. */
static int keep_list(struct domain *d, uint32_t number, struct stored_chunk *known, size_t n,
		     struct err *err)
{
	struct chunk_list *chunks = &d->chunks[number];
	uint64_t *numbers = arena_array(d->arena, n ? n : 1, sizeof(*numbers));

	if (!numbers)
		return err_set(err, -ENOMEM, "out of memory: a list of %zu chunks", n);
	qsort(known, n, sizeof(*known), by_number);
	for (size_t i = 0; i < n; i++)
		numbers[i] = known[i].number;
	chunks->numbers = numbers;
	chunks->n = n;
	chunks->listed = true;
	return 0;
}

/* Collects a dataset's chunks from a run of a listing. */
static int collect(struct domain *d, uint32_t number, const struct store_page *page, size_t from,
		   size_t to, struct stored_chunk **out, size_t *out_n, struct err *err)
{
	const struct object *o = &tree_object(d->tree, number)->o;
	struct stored_chunk *known = calloc(to - from + 1, sizeof(*known));
	size_t n = 0;

	if (!known)
		return err_set(err, -ENOMEM, "out of memory: a list of %zu chunks", to - from);
	for (size_t i = from; i < to; i++) {
		const struct store_item *item = &page->items[i];

		if (d->schema->chunk_of_key(o, item->key, &known[n].number))
			known[n++].item = item;
	}
	*out = known;
	*out_n = n;
	return 0;
}

/* The store did not give the chunk, and may give it the next time: what is laid out without it
 * would be another file. Too large is a fact of the chunk itself. */
static int passing_failure(const struct store_request *req, struct err *err)
{
	int rc = store_failure(&req->answer, NULL);

	if (store_absence(&req->answer))
		return err_set(err, -ESTALE, "chunk %s: it was there when it was listed", req->key);
	if (rc == 0 || rc == -EFBIG)
		return 0;
	store_failure(&req->answer, err);
	return err_wrap(err, rc, "chunk %s", req->key);
}

/* What a chunk is decoded, from what came of it. 0; -EAGAIN: more of it is needed; or what is wrong
 * with it. */
static int size_of(const struct domain *d, uint32_t number, const struct store_request *req,
		   uint64_t *size, struct err *why)
{
	const struct store_answer *a = &req->answer;
	struct pipeline pipeline;
	int rc = store_failure(a, why);

	if (rc)
		return rc;
	dataset_pipeline(&tree_object(d->tree, number)->o.dataset, &pipeline);
	return codec_decoded_size(&pipeline, a->body.data, a->body.len, a->meta.size,
				  CHUNK_BYTES_MAX, size, why);
}

/* Enters the decoded sizes of chunks that came, and leaves in which[] (and *left) those of which
 * more is needed. */
static int take_sizes(struct domain *d, uint32_t number, struct store_request *const *reqs,
		      size_t *which, size_t n, uint64_t *decoded, size_t *left, struct err *err)
{
	size_t again = 0;

	for (size_t i = 0; i < n; i++) {
		struct err why = ERR_INIT;
		uint64_t *size = &decoded[which[i]];
		int rc = passing_failure(reqs[i], err);

		if (rc)
			return rc;
		rc = size_of(d, number, reqs[i], size, &why);
		if (rc == -EAGAIN && reqs[i]->range.length != STORE_TO_END) {
			which[again++] = which[i];
		} else if (rc) {
			tree_note(d->tree, "%s: chunk cannot be read: %s", reqs[i]->key, why.msg);
			*size = UINT64_MAX;
		}
	}
	*left = again;
	return 0;
}

/* Asks for the first `length` bytes of the chunks known[which[i]], then take_sizes(). */
static int measure_some(struct domain *d, uint32_t number, const struct stored_chunk *known,
			size_t *which, size_t n, uint64_t length, uint64_t *decoded, size_t *left,
			struct err *err)
{
	struct store_request **reqs = store_requests_new(d->store, n);
	int rc = reqs ? 0 : err_set(err, -ENOMEM, "out of memory for %zu requests", n);

	for (size_t i = 0; !rc && i < n; i++) {
		struct store_request *req = reqs[i];

		store_request_key(req, known[which[i]].item->key);
		req->range.length = length;
		req->max = CHUNK_BYTES_MAX;
		req->known_etag = domain_listed_etag(d, req->key);
	}
	if (!rc)
		store_run_all(d->store, reqs, n);
	if (!rc)
		rc = take_sizes(d, number, reqs, which, n, decoded, left, err);
	store_requests_free(reqs, n);
	return rc;
}

/* Sizes of compressed chunks: most tell theirs at their beginning, the others are read whole. */
static int measure_compressed(struct domain *d, uint32_t number, const struct stored_chunk *known,
			      size_t n, uint64_t *decoded, struct err *err)
{
	auto_free size_t *which = calloc(n ? n : 1, sizeof(*which));
	size_t whole = 0;
	int rc = 0;

	if (!which)
		return err_set(err, -ENOMEM, "out of memory: a list of %zu chunks", n);
	for (size_t first = 0; !rc && first < n; first += HEADS_AT_ONCE) {
		const size_t some = (size_t)min_u64(HEADS_AT_ONCE, n - first);
		size_t left = 0;

		for (size_t i = 0; i < some; i++)
			which[whole + i] = first + i;
		rc = measure_some(d, number, known, which + whole, some, HEAD_BYTES, decoded, &left,
				  err);
		whole += left;
	}
	for (size_t first = 0; !rc && first < whole; first += WHOLE_AT_ONCE) {
		size_t left = 0;

		rc = measure_some(d, number, known, which + first,
				  (size_t)min_u64(WHOLE_AT_ONCE, whole - first), UINT64_MAX,
				  decoded, &left, err);
	}
	return rc;
}

/* known is sorted already. */
static int measure(struct domain *d, uint32_t number, const struct stored_chunk *known, size_t n,
		   struct err *err)
{
	const struct dataset *ds = &tree_object(d->tree, number)->o.dataset;
	uint64_t *decoded = arena_array(d->arena, n ? n : 1, sizeof(*decoded));

	if (!decoded)
		return err_set(err, -ENOMEM, "out of memory: a list of %zu chunks", n);
	d->chunks[number].decoded = decoded;
	if (ds->nfilters > 0)
		return measure_compressed(d, number, known, n, decoded, err);
	for (size_t i = 0; i < n; i++)
		decoded[i] = known[i].item->meta.size <= CHUNK_BYTES_MAX ? known[i].item->meta.size
									 : UINT64_MAX;
	return 0;
}

static int list_dataset(struct domain *d, uint32_t number, const struct store_page *page,
			size_t from, size_t to, struct err *err)
{
	const struct dataset *ds = &tree_object(d->tree, number)->o.dataset;
	auto_free struct stored_chunk *known = NULL;
	size_t n = 0;
	int rc = collect(d, number, page, from, to, &known, &n, err);

	if (!rc)
		rc = keep_list(d, number, known, n, err);
	if (!rc && ds->type->has_vlen)
		rc = measure(d, number, known, n, err);
	return rc;
}

/* The listing is sorted by key, so the keys of one dataset lie together. */
static int list_from_page(struct domain *d, uint32_t number, const char *prefix, struct err *err)
{
	const size_t len = strlen(prefix);
	size_t low = 0, high = d->listing.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(d->listing.items[middle].key, prefix) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (high = low; high < d->listing.n; high++)
		if (strncmp(d->listing.items[high].key, prefix, len) != 0)
			break;
	return list_dataset(d, number, &d->listing, low, high, err);
}

static int list_by_asking(struct domain *d, uint32_t number, const char *prefix, struct err *err)
{
	auto_request struct store_request *req = store_request_new(d->store, STORE_LIST);

	if (!req)
		return err_set(err, -ENOMEM, "out of memory");
	store_request_key(req, prefix);
	req->list.complete = true;
	req->list.whole = true;
	req->list.limit = VLEN_CHUNKS_MAX;
	store_run(d->store, req);
	int rc = store_failure(&req->answer, err);
	if (rc)
		return err_wrap(err, rc, "listing %s", req->key);
	return list_dataset(d, number, &req->answer.page, 0, req->answer.page.n, err);
}

bool domain_is_vast(const struct dataset *ds)
{
	uint64_t bytes;

	return !mul_u64(ds->grid.nchunks, ds->grid.chunk_elems, &bytes) ||
	       !mul_u64(bytes, ds->type->size, &bytes) || bytes > DATASET_DENSE_MAX;
}

/* What must be known of a dataset before a file is laid out. */
static bool must_list(const struct dataset *ds)
{
	return ds->grid.nchunks > 0 && (ds->type->has_vlen || domain_is_vast(ds));
}

/* What a listing must cover to show the dataset's chunks. False: none shows them, so every chunk
 * may have a value. */
static bool chunk_prefix(const struct domain *d, const struct object *o,
			 char prefix[SCHEMA_KEY_MAX + 1])
{
	return !o->dataset.elsewhere && d->schema->chunk_prefix(o, prefix, SCHEMA_KEY_MAX + 1) >= 0;
}

bool domain_can_list(const struct domain *d, const struct object *o)
{
	char prefix[SCHEMA_KEY_MAX + 1];

	return chunk_prefix(d, o, prefix);
}

static int list_chunks(struct domain *d, uint32_t number, const struct object *o, struct err *err)
{
	char prefix[SCHEMA_KEY_MAX + 1];
	int rc = 0;

	if (o->dataset.initializer != INITIALIZER_NONE && !o->dataset.type->has_vlen)
		return 0; /* every chunk has a value, stored or not */
	if (!chunk_prefix(d, o, prefix)) {
		/* Chunks have values that no listing shows. Sizes cannot be known. */
		d->chunks[number].unknown = o->dataset.type->has_vlen;
		return 0;
	}
	if (domain_was_listed(d, prefix))
		rc = list_from_page(d, number, prefix, err);
	else if (must_list(&o->dataset))
		rc = list_by_asking(d, number, prefix, err);
	if (rc != -E2BIG)
		return rc;
	/* The dataset alone is lost: it stays in the file, its reads fail. Any other failure may
	 * pass, and must not stay in a snapshot. */
	tree_note(d->tree, "dataset %s: its chunks are not known: %s", o->id, err ? err->msg : "");
	d->chunks[number] = (struct chunk_list){.unknown = true};
	return 0;
}

int domain_list_chunks(struct domain *d, struct err *err)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < tree_count(d->tree); i++) {
		const uint32_t number = tree_nth(d->tree, i);
		const struct object *o = &tree_object(d->tree, number)->o;

		if (o->kind == OBJECT_DATASET)
			rc = list_chunks(d, number, o, err);
	}
	return rc;
}
