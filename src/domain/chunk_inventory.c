/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out which chunks exist. If the domain was listed whole, the listing names the chunks of
 * every dataset. Otherwise only two kinds of datasets are listed, each with its own request: those
 * whose chunks do not all fit into a file, and those with variable-length data. For the latter, the
 * decoded size of each chunk is needed, too (chunk_measure.c). If a document says where the chunks
 * of a dataset are in an HDF5 file, it names all of them.
 */
#include <domain/domain.h>

#include <errno.h>
#include <string.h>

#include "domain_internal.h"

#include <codec/chain.h>

enum {
	VLEN_CHUNKS_MAX = 1 << 20, /* chunks of one variable-length dataset */
	HEAD_BYTES = 16,	   /* of a Blosc header */
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
		return err_no_memory(err);
	if (n)
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

/* Collects a dataset's chunks from the items [from, to) of a listing. The caller frees *out. */
static int collect(struct domain *d, uint32_t number, const struct store_page *page, size_t from,
		   size_t to, struct stored_chunk **out, size_t *out_n, struct err *err)
{
	const struct object *o = &tree_object(d->tree, number)->o;
	struct stored_chunk *known = calloc(to - from + 1, sizeof(*known));
	size_t n = 0;
	if (!known)
		return err_no_memory(err);
	for (size_t i = from; i < to; i++) {
		const struct store_item *item = &page->items[i];
		if (d->schema->chunk_of_key(o, item->key, &known[n].number))
			known[n++].item = item;
	}
	*out = known;
	*out_n = n;
	return 0;
}

/* Finds the decoded sizes of the n chunks in `known`, which are in the order of their numbers. */
static int measure(struct domain *d, uint32_t number, const struct stored_chunk *known, size_t n,
		   struct err *err)
{
	const struct dataset *ds = &tree_object(d->tree, number)->o.dataset;
	uint64_t *decoded = arena_array(d->arena, n ? n : 1, sizeof(*decoded));
	if (!decoded)
		return err_no_memory(err);
	d->chunks[number].decoded = decoded;
	if (codec_chunk_size(ds->chain).is_filtered) {
		auto_free struct chunk_probe *probes = calloc(n ? n : 1, sizeof(*probes));
		if (!probes)
			return err_no_memory(err);
		for (size_t i = 0; i < n; i++)
			probes[i].number = known[i].number;
		int rc = domain_measure_chunks(d, number, probes, n, HEAD_BYTES, true, err);
		for (size_t i = 0; i < n; i++)
			decoded[i] = probes[i].decoded;
		return rc;
	}
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

/* Finds the chunks of a dataset in the listing of the domain. It is sorted by key, so the keys of
 * one dataset are adjacent. */
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
	d->lists_chunks = true;
	if (!req)
		return err_no_memory(err);
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

/* Returns true if the dataset's chunks must be known before a file is laid out. */
static bool must_list(const struct dataset *ds)
{
	return ds->grid.nchunks > 0 && (ds->type->has_vlen || domain_is_vast(ds));
}

/* Gets the prefix of the dataset's chunks. Returns false if no listing shows them, so that every
 * chunk may have a value. */
static bool chunk_prefix(const struct domain *d, const struct object *o,
			 char prefix[SCHEMA_KEY_MAX + 1])
{
	return !o->dataset.absence_unknown &&
	       d->schema->chunk_prefix(o, prefix, SCHEMA_KEY_MAX + 1) >= 0;
}

bool domain_names_chunks(const struct dataset *ds)
{
	return ds->reference && ds->reference->layout == REFERENCE_CHUNKED &&
	       !ds->absence_unknown && !ds->type->has_vlen;
}

bool domain_can_list(const struct domain *d, const struct object *o)
{
	char prefix[SCHEMA_KEY_MAX + 1];
	return chunk_prefix(d, o, prefix);
}

/* Makes the list of a dataset whose document names its chunks. */
static int keep_references(struct domain *d, uint32_t number, const struct reference *r,
			   struct err *err)
{
	struct chunk_list *chunks = &d->chunks[number];
	uint64_t *numbers = arena_array(d->arena, r->nchunks ? r->nchunks : 1, sizeof(*numbers));
	if (!numbers)
		return err_no_memory(err);
	*chunks = (struct chunk_list){.listed = true, .n = r->nchunks, .numbers = numbers};
	for (uint64_t i = 0; i < r->nchunks; i++) {
		numbers[i] = r->chunks[i].number;
		chunks->bytes += r->chunks[i].size;
	}
	return 0;
}

static int list_chunks(struct domain *d, uint32_t number, const struct object *o, struct err *err)
{
	if (domain_names_chunks(&o->dataset))
		return keep_references(d, number, o->dataset.reference, err);
	char prefix[SCHEMA_KEY_MAX + 1];
	int rc = 0;
	if (!o->dataset.absence_unknown && d->schema->chunk_prefix(o, prefix, sizeof(prefix)) == 0)
		return keep_list(d, number, NULL, 0, err);
	/* The file needs a place for a chunk whose reads fail. */
	if (d->missing_chunks_fail && d->schema->marks && !must_list(&o->dataset))
		return 0;
	if (o->dataset.reference_damaged)
		tree_note(d->tree, TREE_DAMAGE, "dataset %s: %s", o->id,
			  o->dataset.absence_unknown);
	if (o->dataset.initializer != INITIALIZER_NONE && !o->dataset.type->has_vlen)
		return 0; /* the initializer gives every chunk a value */
	if (!chunk_prefix(d, o, prefix)) {
		if (!o->dataset.type->has_vlen || o->dataset.grid.nchunks == 0)
			return 0;
		if (!o->dataset.absence_unknown &&
		    domain_chunk_key(d, number, 0, prefix, sizeof(prefix)) >= 0)
			rc = domain_probe_chunks(d, number, err);
		else /* the chunks have no objects, so their sizes are not known */
			d->chunks[number].unknown = true;
	} else if (domain_was_listed(d, prefix))
		rc = list_from_page(d, number, prefix, err);
	else if (must_list(&o->dataset) && d->plan && d->plan->document_only)
		return err_set(err, -E2BIG, "dataset %s: the file depends on its chunks", o->id);
	else if (must_list(&o->dataset))
		rc = list_by_request(d, number, prefix, err);
	if (rc != -E2BIG)
		return rc;
	/* Only this dataset is affected. It stays in the file, and its reads fail. Any other
	 * failure may be temporary, so it fails the open. */
	tree_note(d->tree, TREE_UNSUPPORTED, "dataset %s: its chunks are not known: %s", o->id,
		  err ? err->msg : "");
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
