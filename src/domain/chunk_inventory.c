/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out which chunks exist. If the domain was listed whole, the listing names the chunks of
 * every dataset. Otherwise only two kinds of datasets are listed, each by itself: those whose
 * chunks do not all fit into a file, and those with variable-length data. For the latter the
 * decoded size of each chunk is needed, too, because the heaps are laid out before any chunk is
 * read. The first bytes of a compressed chunk contain its decoded size; a zlib stream has no size
 * and is read whole.
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

/* Sorts the n chunks and makes the dataset's chunk_list. */
static int keep_list(struct domain *d, uint32_t number, struct stored_chunk *known, size_t n,
		     struct err *err)
{
	struct chunk_list *chunks = &d->chunks[number];
	uint64_t bytes = 0;
	uint64_t *numbers = arena_array(d->arena, n ? n : 1, sizeof(*numbers));
	if (!numbers)
		return err_set(err, -ENOMEM, "out of memory");
	qsort(known, n, sizeof(*known), by_number);
	for (size_t i = 0; i < n; i++) {
		numbers[i] = known[i].number;
		bytes += known[i].item->meta.size;
	}
	chunks->numbers = numbers;
	chunks->n = n;
	chunks->bytes = bytes;
	chunks->listed = true;
	return 0;
}

/* Collects a dataset's chunks from the items from..to-1 of a listing. */
static int collect(struct domain *d, uint32_t number, const struct store_page *page, size_t from,
		   size_t to, struct stored_chunk **out, size_t *out_n, struct err *err)
{
	const struct object *o = &tree_object(d->tree, number)->o;
	struct stored_chunk *known = calloc(to - from + 1, sizeof(*known));
	size_t n = 0;
	if (!known)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = from; i < to; i++) {
		const struct store_item *item = &page->items[i];
		if (d->schema->chunk_of_key(o, item->key, &known[n].number))
			known[n++].item = item;
	}
	*out = known;
	*out_n = n;
	return 0;
}

/* Returns the error of a temporary failure, otherwise 0. A temporary failure fails the open,
 * because without the chunk the file would have another layout. -EFBIG is not temporary: it is a
 * property of the chunk. */
static int temporary_failure(const struct store_request *req, struct err *err)
{
	int rc = store_failure(&req->answer, NULL);
	if (store_absence(&req->answer))
		return err_set(err, -ESTALE, "chunk %s: deleted since it was listed", req->key);
	if (rc == 0 || rc == -EFBIG)
		return 0;
	store_failure(&req->answer, err);
	return err_wrap(err, rc, "chunk %s", req->key);
}

/* The decoded size of a chunk, from the bytes in req. -EAGAIN: more bytes are needed. Other errors:
 * the chunk is damaged. */
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

/* Takes the decoded sizes from n answers. which[] keeps the chunks of which more bytes are needed;
 * *left is their number. */
static int take_sizes(struct domain *d, uint32_t number, struct store_request *const *reqs,
		      size_t *which, size_t n, uint64_t *decoded, size_t *left, struct err *err)
{
	size_t again = 0;
	for (size_t i = 0; i < n; i++) {
		struct err why = ERR_INIT;
		uint64_t *size = &decoded[which[i]];
		int rc = temporary_failure(reqs[i], err);
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

/* Requests the first `length` bytes of the chunks known[which[i]] and takes their sizes. */
static int measure_some(struct domain *d, uint32_t number, const struct stored_chunk *known,
			size_t *which, size_t n, uint64_t length, uint64_t *decoded, size_t *left,
			struct err *err)
{
	struct store_request **reqs = store_requests_new(d->store, n);
	int rc = reqs ? 0 : err_set(err, -ENOMEM, "out of memory");
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

/* Reads the first bytes of all chunks, then the rest of those whose first bytes have no size. */
static int measure_compressed(struct domain *d, uint32_t number, const struct stored_chunk *known,
			      size_t n, uint64_t *decoded, struct err *err)
{
	auto_free size_t *which = calloc(n ? n : 1, sizeof(*which));
	size_t whole = 0;
	int rc = 0;
	if (!which)
		return err_set(err, -ENOMEM, "out of memory");
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

/* known: in order of numbers. */
static int measure(struct domain *d, uint32_t number, const struct stored_chunk *known, size_t n,
		   struct err *err)
{
	const struct dataset *ds = &tree_object(d->tree, number)->o.dataset;
	uint64_t *decoded = arena_array(d->arena, n ? n : 1, sizeof(*decoded));
	if (!decoded)
		return err_set(err, -ENOMEM, "out of memory");
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

/* The listing is sorted by key, so the keys of one dataset are adjacent. */
static int list_from_page(struct domain *d, uint32_t number, const char *prefix, struct err *err)
{
	const size_t len = strlen(prefix);
	const size_t from = domain_listed_from(d, prefix);
	size_t to = from;
	while (to < d->listing.n && strncmp(d->listing.items[to].key, prefix, len) == 0)
		to++;
	return list_dataset(d, number, &d->listing, from, to, err);
}

static int list_by_request(struct domain *d, uint32_t number, const char *prefix, struct err *err)
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

/* The dataset's chunks must be known before a file is laid out. */
static bool must_list(const struct dataset *ds)
{
	return ds->grid.nchunks > 0 && (ds->type->has_vlen || domain_is_vast(ds));
}

/* The prefix of the dataset's chunks. False: no listing shows them, so every chunk may have a
 * value.
 */
static bool chunk_prefix(const struct domain *d, const struct object *o,
			 char prefix[SCHEMA_KEY_MAX + 1])
{
	return !o->dataset.absence_unknown &&
	       d->schema->chunk_prefix(o, prefix, SCHEMA_KEY_MAX + 1) >= 0;
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
		return 0; /* the initializer gives every chunk a value */
	if (!chunk_prefix(d, o, prefix)) {
		/* No listing shows the chunks, so their sizes are not known. */
		d->chunks[number].unknown = o->dataset.type->has_vlen;
		return 0;
	}
	if (domain_was_listed(d, prefix))
		rc = list_from_page(d, number, prefix, err);
	else if (must_list(&o->dataset))
		rc = list_by_request(d, number, prefix, err);
	if (rc != -E2BIG)
		return rc;
	/* Only this dataset is affected: it stays in the file, and its reads fail. Any other
	 * failure may be temporary, so it fails the open. */
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
