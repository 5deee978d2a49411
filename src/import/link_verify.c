/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads all data to which a link refers, before anything is put: each chunk must be decoded by its
 * filters, and must have all elements inside of the extent. Contiguous data must be readable.
 *
 * The source of a link is read in the thread of the caller. The reads of the next chunks are
 * announced, so that ranges are fetched side by side.
 */
#include "import_internal.h"

#include <errno.h>
#include <inttypes.h>

enum {
	ANNOUNCED = 16 << 20, /* bytes of chunks that are announced and then read */
	REPORTED = 20,	      /* lines about damaged chunks */
};

struct verify {
	struct import *im;
	uint32_t number;	 /* of the dataset */
	const struct grid *grid; /* of the file */
	struct bytes chunks;	 /* struct h5file_chunk, announced */
	uint64_t announced;	 /* bytes of them */
	uint64_t damaged;	 /* chunks of all datasets */
};

static void explain(const struct verify *v, uint64_t chunk, struct err *err)
{
	chunk_explain_number(import_path(v->im, v->number), v->grid, chunk, err);
}

static int check_chunk(struct verify *v, const struct h5file_chunk *chunk, struct err *err)
{
	const atomic_bool *cancelled = v->im->opt->cancelled;
	struct h5file *f = v->im->file;
	struct err why = ERR_INIT;
	struct elems elems = {0};
	auto_bytes struct bytes stored = {0};
	if (cancelled && atomic_load(cancelled))
		return err_set(err, -ECANCELED, "interrupted");
	int rc = h5file_chunk_read(f, chunk, &stored, err);
	if (rc) {
		explain(v, chunk->number, err);
		return rc;
	}
	rc = h5file_chunk_decode(f, v->number, chunk, &stored, &elems, &why);
	elems_release(&elems);
	if (rc == -ENOMEM) {
		err_copy(err, &why);
		explain(v, chunk->number, err);
		return rc;
	}
	if (rc && v->damaged++ < REPORTED) {
		explain(v, chunk->number, &why);
		import_note(v->im, "%s", why.msg);
	}
	v->im->verified += chunk->size;
	import_progress(v->im);
	return 0;
}

/* Checks the chunks that were announced. */
static int check_announced(struct verify *v, struct err *err)
{
	const struct h5file_chunk *chunk = (const void *)v->chunks.data;
	const size_t n = v->chunks.len / sizeof(*chunk);
	int rc = 0;
	for (size_t i = 0; i < n; i++)
		h5file_chunk_advise(v->im->file, &chunk[i]);
	for (size_t i = 0; !rc && i < n; i++)
		rc = check_chunk(v, &chunk[i], err);
	v->chunks.len = 0;
	v->announced = 0;
	return rc;
}

static int take_chunk(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct verify *v = ctx;
	if (bytes_append(&v->chunks, chunk, sizeof(*chunk)))
		return err_no_memory(err);
	v->announced += chunk->size;
	return v->announced < ANNOUNCED ? 0 : check_announced(v, err);
}

static int check_dataset(struct verify *v, uint32_t number, struct err *err)
{
	v->number = number;
	v->grid = &h5file_dataset(v->im->file, number)->grid;
	const int rc = h5file_chunks(v->im->file, number, 0, v->grid->nchunks, take_chunk, v, err);
	return rc ? rc : check_announced(v, err);
}

static int judge(const struct verify *v, struct err *err)
{
	const uint64_t n = v->damaged;
	if (n > REPORTED)
		import_note(v->im, "and %" PRIu64 " more", n - REPORTED);
	v->im->result->problems = n;
	return n ? err_set(err, -EIO, "%s: %" PRIu64 " chunk%s of the file %s damaged",
			   import_file_name(v->im), n, n == 1 ? "" : "s", n == 1 ? "is" : "are")
		 : 0;
}

int link_verify(struct import *im, struct err *err)
{
	struct verify v = {.im = im};
	int rc = 0;
	for (uint32_t i = 0; !rc && i < tree_count(im->tree); i++) {
		const uint32_t number = tree_nth(im->tree, i);
		const struct object *o = &tree_object(im->tree, number)->o;
		if (o->kind == OBJECT_DATASET && o->dataset.reference)
			rc = check_dataset(&v, number, err);
	}
	bytes_release(&v.chunks);
	return rc ? rc : judge(&v, err);
}
