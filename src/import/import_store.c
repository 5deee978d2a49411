/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts chunks, then documents. A commit puts them side by side, because no reader sees an object
 * before the document of the domain. The thread of the caller reads the indexes and fills the
 * queue; all else happens in the pool.
 *
 * A chunk that an interrupted import has put is not put again. If all chunks of the dataset have
 * the same size, that of the object is compared.
 */
#include "import_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <codec/chain.h>

/* Waits for what was put so far, unless it may be put together with what follows. */
static int end_step(struct import *im, struct err *err)
{
	const struct import_commit *commit = im->opt->commit;
	return commit && !commit->in_order && !im->restores ? 0 : put_queue_flush(im->queue, err);
}

/* ---- chunks ---- */

struct chunks {
	struct import *im;
	struct chunk_context *context;
	uint32_t factors[DSPACE_MAX_RANK];
	uint64_t size;		   /* of each object, bytes, or CODEC_UNKNOWN */
	struct chunk_parts *parts; /* of the chunk that is collected; NULL if none */
};

/* The number of the domain's chunk that holds a chunk of the file. */
static uint64_t number_of(const struct chunks *c, uint64_t number)
{
	uint64_t coords[DSPACE_MAX_RANK];
	if (!c->context->is_joined)
		return number;
	grid_coords(&c->context->file->grid, number, coords);
	for (uint32_t i = 0; i < c->context->file->grid.rank; i++)
		coords[i] /= c->factors[i];
	return grid_number(&c->context->ds->grid, coords);
}

static bool is_stored(const struct chunks *c, const char *key)
{
	uint64_t size;
	if (!key_set_find(c->im->keys, key, &size) || (c->size != CODEC_UNKNOWN && size != c->size))
		return false;
	import_summary_add(c->im, key, size);
	return true;
}

/* Makes the body here, because the source of a link may block. */
static int put_made(struct chunks *c, struct chunk_parts *parts, const char *key, uint64_t weight,
		    struct err *err)
{
	auto_bytes struct bytes body = {0};
	int rc = chunk_make(parts, &body, err);
	if (rc < 0)
		chunk_explain(parts, err);
	chunk_free(parts);
	if (rc)
		return rc < 0 ? rc : 0;
	return import_put_body(c->im, key, &body, weight, err);
}

/* Hands the collected chunk over to the queue. */
static int put_chunk(struct chunks *c, struct err *err)
{
	struct import *im = c->im;
	struct chunk_parts *parts = c->parts;
	char key[SCHEMA_KEY_MAX + 1];
	uint64_t weight = 0;
	if (!parts)
		return 0;
	int rc = im->schema->writer->chunk_key(im->tree, c->context->number, parts->number, key,
					       sizeof(key));
	if (rc < 0)
		return err_set(err, rc, "%s: the key of chunk %" PRIu64 " is too long",
			       import_path(im, c->context->number), parts->number);
	c->parts = NULL;
	for (uint32_t i = 0; i < parts->n; i++)
		weight += parts->parts[i].size;
	if (is_stored(c, key)) {
		im->result->found++;
		im->passed += weight;
		chunk_free(parts);
		return 0;
	}
	if (im->opt->link)
		return put_made(c, parts, key, weight, err);
	const struct put put = {
		.key = key,
		.make = chunk_make,
		.find = chunk_find,
		.explain = chunk_explain,
		.release = chunk_free,
		.arg = parts,
		.memory = chunk_memory(parts),
		.weight = weight,
	};
	rc = put_queue_add(im->queue, &put, err);
	import_progress(im);
	return rc;
}

static int take_chunk(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct chunks *c = ctx;
	const uint64_t number = number_of(c, chunk->number);
	int rc = 0;
	if (c->parts && c->parts->number != number)
		rc = put_chunk(c, err);
	if (!rc && chunk_add_part(&c->parts, c->context, number, chunk))
		rc = err_no_memory(err);
	/* Without joining the chunk is complete now. */
	return rc || c->context->is_joined ? rc : put_chunk(c, err);
}

static int put_dataset(struct import *im, uint32_t number, struct err *err)
{
	const struct chunk_origin from = {.file = im->file,
					  .tree = im->tree,
					  .schema = im->schema,
					  .paths = im->paths,
					  .is_damaged = &im->is_damaged};
	struct chunks c = {.im = im, .context = chunk_context_new(&from, number)};
	if (!c.context)
		return err_no_memory(err);
	const struct grid *grid = &c.context->ds->grid, *file = &c.context->file->grid;
	c.size = codec_chunk_size(c.context->chain).exact;
	for (uint32_t i = 0; i < grid->rank; i++)
		c.factors[i] = grid->chunk[i] / file->chunk[i];
	int rc = im->opt->link ? link_advise(im, number, err) : 0;
	if (!rc)
		rc = h5file_chunks(im->file, number, 0, file->nchunks, take_chunk, &c, err);
	if (!rc)
		rc = put_chunk(&c, err);
	chunk_free(c.parts);
	chunk_context_unref(c.context);
	return rc;
}

static int put_chunks(struct import *im, struct err *err)
{
	int rc = 0;
	import_progress(im);
	for (uint32_t i = 0; !rc && i < tree_count(im->tree); i++) {
		const uint32_t number = tree_nth(im->tree, i);
		if (im->datasets[number].stored)
			rc = put_dataset(im, number, err);
	}
	if (!rc)
		rc = link_put_tables(im, err);
	if (!rc)
		rc = end_step(im, err);
	import_progress(im);
	return rc;
}

/* ---- documents ---- */

struct document {
	const struct import *im;
	uint32_t number;
};

static int make_document(void *arg, struct bytes *body, struct err *err)
{
	const struct document *d = arg;
	return d->im->schema->writer->emit_object(d->im->tree, d->number, body, err);
}

static int document_answered(void *arg, struct store_request *req, struct err *err)
{
	const struct document *d = arg;
	const int rc = store_failure(&req->answer, err);
	if (!rc)
		import_puts_add(d->im, d->number, req);
	return rc;
}

static void explain_document(void *arg, struct err *err)
{
	const struct document *d = arg;
	err_wrap(err, err->code, "object %s", import_path(d->im, d->number));
}

/* Only of what this process has put: an interrupted import may have put another text. */
static bool is_there(const struct import *im, const char *key)
{
	uint64_t size;
	return im->restores && key_set_find(im->keys, key, &size);
}

static int put_document(struct import *im, uint32_t number, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	struct document *d = malloc(sizeof(*d));
	if (!d)
		return err_no_memory(err);
	*d = (struct document){.im = im, .number = number};
	const int rc = im->schema->writer->object_key(im->tree, number, key, sizeof(key));
	if (rc < 0) {
		free(d);
		return err_set(err, rc, "%s: the key of the object is too long",
			       import_path(im, number));
	}
	const struct put put = {
		.key = key,
		.make = make_document,
		.answered = document_answered,
		.explain = explain_document,
		.release = free,
		.arg = d,
		.memory = import_document_memory(&tree_object(im->tree, number)->o),
	};
	im->result->objects++;
	if (is_there(im, key)) {
		free(d);
		return 0;
	}
	return put_queue_add(im->queue, &put, err);
}

/* Puts the documents of all objects of a kind, except for the root group. */
static int put_documents(struct import *im, enum object_kind kind, struct err *err)
{
	int rc = 0;
	for (uint32_t i = 1; !rc && i < tree_count(im->tree); i++) {
		const uint32_t number = tree_nth(im->tree, i);
		if (tree_object(im->tree, number)->o.kind == kind)
			rc = put_document(im, number, err);
	}
	const struct import_table *tables = (const void *)im->tables.data;
	for (size_t i = 0; !rc && kind == OBJECT_DATASET && i < im->tables.len / sizeof(*tables);
	     i++)
		rc = put_document(im, tables[i].table, err);
	return rc ? rc : end_step(im, err);
}

/* A user block that is an object of its own. The document of the root group names it. */
static int put_user_block(struct import *im, struct err *err)
{
	const struct user_block *b = tree_user_block(im->tree);
	char key[SCHEMA_KEY_MAX + 1];
	auto_bytes struct bytes body = {0};
	const int rc = im->schema->user_block_key(im->tree, key, sizeof(key));
	if (rc < 0)
		return err_set(err, rc, "the key of the user block is too long");
	if (rc == 0 || is_there(im, key))
		return 0;
	if (bytes_append(&body, b->data, b->len))
		return err_set(err, -ENOMEM, "out of memory: the user block");
	return import_put_body(im, key, &body, 0, err);
}

int import_store(struct import *im, struct err *err)
{
	static const enum object_kind kinds[] = {OBJECT_DATASET, OBJECT_DATATYPE, OBJECT_GROUP};
	struct put_queue_counts counts;
	int rc = put_chunks(im, err);
	put_queue_counts(im->queue, &counts);
	if (!im->opt->commit)
		im->result->chunks = im->result->found + counts.puts;
	if (!rc)
		rc = put_user_block(im, err);
	for (size_t i = 0; !rc && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		rc = put_documents(im, kinds[i], err);
	if (!rc)
		rc = put_document(im, tree_nth(im->tree, 0), err);
	if (!rc)
		rc = put_queue_flush(im->queue, err);
	put_queue_counts(im->queue, &counts);
	im->result->puts = counts.puts;
	im->result->bytes = counts.bytes;
	im->is_refused = counts.is_made && atomic_load(&im->is_damaged);
	return rc;
}
