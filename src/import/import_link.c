/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links: which datasets keep their data in the file, the references to these data, and the chunk
 * tables.
 *
 * The data stay in the file if the service could read them there: at least LINKED_MIN elements that
 * are contiguous or in chunks, in the form that they would have in a chunk object before filters.
 * So elements are neither of variable length nor references, and compounds have no gaps. All other
 * datasets are copied, and so are those whose data are in external files. The service reads whole
 * chunks of contiguous data, and zeros if the last one would end behind the file. So the rows of a
 * chunk are chosen such that it does not, or the dataset is copied.
 *
 * Up to LISTED_MAX chunks are listed in the document. More are in a chunk table: a dataset without
 * a link, with one record for each chunk of the grid. A record is a compound of
 *
 *   +0  i64  offset of the chunk in the file
 *   +8  i32  stored bytes; 0: the file does not store the chunk
 *  +12  i32  filter mask; only if a chunk of the dataset has one
 *
 * The table is cut into chunks of consecutive records.
 */
#include "import_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <codec/chunk.h>
#include <data/chunk_source.h>
#include <data/number.h>

enum {
	LINKED_MIN = 512,
	LISTED_MAX = 1000,
	TABLE_CHUNK = 1 << 20, /* bytes of a chunk of a table, at most */
	RECORD = 12,
	RECORD_MASKED = 16,
	SIZE_AT = 8,
	MASK_AT = 12,
	ADVISED_MAX = 64 << 20, /* bytes of chunks to copy that are announced */
	PROGRESS_EVERY = 4096,	/* chunks */
	ROWS_SHRINK = 8,	/* a chunk has at least 1/8 of its rows … */
	ROWS_TRIES = 1 << 16,	/* … or of so many fewer */
};

/* ---- the chunks of one dataset ---- */

struct scan {
	struct import *im;
	const struct h5file_dataset *file;
	uint64_t base; /* offset of address 0 */
	bool has_masks;
	uint64_t n, bytes;
	struct bytes listed; /* of struct reference_chunk, at most LISTED_MAX */
};

static struct reference_chunk range_of(const struct scan *s, const struct h5file_chunk *chunk)
{
	struct reference_chunk r = {.number = chunk->number,
				    .offset = s->base + chunk->addr,
				    .size = chunk->size,
				    .filter_mask = chunk->filter_mask};
	/* A partial edge chunk that the file stores without filters. */
	if (!chunk->is_filtered && s->file->pipeline->n)
		r.filter_mask = (uint32_t)((UINT64_C(1) << s->file->pipeline->n) - 1);
	return r;
}

/* The data stay where they are, so an overlap is no reason to refuse the file. rc and `why` are
 * those of a claim. Only the first overlap is reported. */
static int note_overlap(struct import *im, int rc, const struct err *why, struct err *err)
{
	if (rc == -EIO && !im->overlaps)
		import_note(im, "chunks overlap in the file: %s", why->msg);
	im->overlaps = im->overlaps || rc == -EIO;
	if (!rc || rc == -EIO)
		return 0;
	err_copy(err, why);
	return rc;
}

static int claim(const struct scan *s, const struct h5file_chunk *chunk, struct err *err)
{
	struct err why = ERR_INIT;
	if (s->im->overlaps || s->file->layout != LAYOUT_CHUNKED)
		return 0; /* the open has claimed contiguous data */
	return note_overlap(s->im, h5file_claim(s->im->file, chunk, &why), &why, err);
}

static int scan_chunk(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct scan *s = ctx;
	const struct reference_chunk r = range_of(s, chunk);
	if (r.size > CHUNK_BYTES_MAX)
		return err_set(err, -EOPNOTSUPP,
			       "chunk %" PRIu64 " has %" PRIu64 " bytes; the limit is 256 MiB",
			       r.number, r.size);
	s->has_masks = s->has_masks || r.filter_mask;
	s->bytes += r.size;
	if (++s->n % PROGRESS_EVERY == 0)
		import_progress(s->im);
	if (s->n <= LISTED_MAX && bytes_append(&s->listed, &r, sizeof(r)))
		return err_no_memory(err);
	return claim(s, chunk, err);
}

static int by_number(const void *a, const void *b)
{
	const struct reference_chunk *x = a, *y = b;
	return (x->number > y->number) - (x->number < y->number);
}

/* ---- references ---- */

/* The URI of the file, "bucket/key". */
static const char *uri_of(struct import *im)
{
	const struct import_link *link = im->opt->link;
	const size_t room = strlen(link->bucket) + strlen(link->key) + 2;
	char *uri = arena_alloc(im->arena, room);
	if (uri)
		snprintf(uri, room, "%s/%s", link->bucket, link->key);
	return uri;
}

static int list_chunks(struct import *im, struct scan *s, struct reference *r, struct err *err)
{
	struct reference_chunk *chunks =
		arena_array(tree_arena(im->tree), (size_t)s->n, sizeof(*chunks));
	if (!chunks)
		return err_no_memory(err);
	memcpy(chunks, s->listed.data, s->listed.len);
	qsort(chunks, (size_t)s->n, sizeof(*chunks), by_number);
	r->layout = REFERENCE_CHUNKED;
	r->nchunks = s->n;
	r->chunks = chunks;
	return 0;
}

static const struct dtype *record_type(struct arena *a, bool has_masks, struct err *err)
{
	const struct dtype *i64 = dtype_integer(a, 8, true, false, err);
	const struct dtype *i32 = i64 ? dtype_integer(a, 4, true, false, err) : NULL;
	const struct dtype_member members[] = {
		{"offset", 0, i64}, {"size", SIZE_AT, i32}, {"filter_mask", MASK_AT, i32}};
	return i32 ? dtype_compound(a, has_masks ? 3 : 2, members,
				    has_masks ? RECORD_MASKED : RECORD, err)
		   : NULL;
}

static int fill_table(struct import *im, uint32_t number, const struct scan *s, struct err *err)
{
	struct object *o = tree_edit(im->tree, number);
	struct dataset *ds = &o->dataset;
	const struct grid *g = &s->file->grid;
	struct arena *a = tree_arena(im->tree);
	uint64_t chunk[DSPACE_MAX_RANK];
	o->kind = OBJECT_DATASET;
	*ds = (struct dataset){.committed = OBJECT_NONE,
			       .requested = LAYOUT_CHUNKED,
			       .alloc_time = ALLOC_TIME_INCR,
			       .fill_time = FILL_TIME_IFSET};
	ds->type = record_type(a, s->has_masks, err);
	if (!ds->type)
		return -ENOMEM;
	int rc = dspace_simple(a, &ds->space, g->rank, g->count, NULL, err);
	if (rc)
		return rc;
	grid_cut(g->rank, g->count, ds->type->size, TABLE_CHUNK, chunk);
	return grid_init(a, &ds->grid, g->rank, g->count, chunk, err);
}

/* HSDS passes the words of the initializer to a shell, without quotes: other characters would
 * change what it runs. */
static bool is_safe(const char *text)
{
	static const char safe[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-";
	return text[strspn(text, safe)] == '\0';
}

/* Returns whether the records of a table can be left to HSDS, which then finds them with the
 * initializer "chunklocator". */
static bool may_locate(struct import *im, uint32_t dataset, const struct reference_file *f)
{
	if (!im->opt->link->locate || !f->h5path)
		return false;
	if (is_safe(f->h5path) && is_safe(f->uri))
		return true;
	import_note(
		im,
		"dataset %s: its chunk table is stored, as without --fastlink: HSDS can find the "
		"chunks only if the path of the dataset, the key of the file and the name of the "
		"bucket have no other characters than letters, digits, '_', '.', '/' and '-'",
		import_path(im, dataset));
	return false;
}

static int add_table(struct import *im, uint32_t dataset, const struct scan *s, struct reference *r,
		     struct err *err)
{
	struct import_table t = {.dataset = dataset, .has_masks = s->has_masks};
	int rc = tree_add(im->tree, &t.table, err);
	if (!rc)
		rc = fill_table(im, t.table, s, err);
	if (!rc && bytes_append(&im->tables, &t, sizeof(t)))
		rc = err_no_memory(err);
	r->layout = REFERENCE_TABLE;
	r->table = t.table;
	if (rc || !may_locate(im, dataset, &r->file))
		return rc;
	struct dataset *table = &tree_edit(im->tree, t.table)->dataset;
	table->initializer = INITIALIZER_CHUNK_LOCATOR;
	table->indexed = &r->file;
	return 0;
}

/* ---- which datasets ---- */

/* Returns whether the extent is too large for a table, and for a file of a mount with room for all
 * chunks, stored or not. Readers show such a dataset if its document lists its chunks; otherwise it
 * is copied. Either way only stored chunks count. See domain/accept.c. */
static bool is_vast(const struct dataset *ds)
{
	uint64_t bytes;
	return !mul_u64(ds->grid.nchunks, ds->grid.chunk_elems, &bytes) ||
	       !mul_u64(bytes, ds->type->size, &bytes) || bytes > DATASET_DENSE_MAX;
}

static bool is_linkable(const struct import *im, uint32_t number)
{
	const struct tree_object *o = tree_object(im->tree, number);
	const struct h5file_dataset *file = h5file_dataset(im->file, number);
	if (o->o.kind != OBJECT_DATASET || !file || !im->datasets[number].stored)
		return false;
	const struct dataset *ds = &o->o.dataset;
	return ds->raw == RAW_STORED && !file->pieces && file->layout != LAYOUT_COMPACT &&
	       ds->space.cls == DSPACE_SIMPLE && ds->space.nelems >= LINKED_MIN &&
	       dtype_is_plain(ds->type) && ds->type->is_packed;
}

/* ---- contiguous data near the end of the file ---- */

/* The grid of contiguous data: chunks of some rows of one dimension. */
struct rows {
	uint32_t cut;	  /* the dimension */
	uint64_t n;	  /* its rows */
	uint64_t before;  /* of the rows of the last index of the dimensions in front */
	uint64_t row;	  /* bytes */
	uint64_t in_file; /* bytes from the first element to the end of the file */
};

static bool ends_inside(const struct rows *r, uint64_t chunk)
{
	uint64_t rows, bytes;
	return mul_u64(div_up_u64(r->n, chunk), chunk, &rows) && add_u64(r->before, rows, &rows) &&
	       mul_u64(rows, r->row, &bytes) && bytes <= r->in_file;
}

/* Returns the rows of a chunk, `most` or fewer, or 0 if no number is right. Prefers `most`, then
 * what the service itself would choose, which halves the dimension. */
static uint64_t choose_rows(const struct rows *r, uint64_t most)
{
	const uint64_t least = max_u64(most / ROWS_SHRINK, 1);
	if (ends_inside(r, most))
		return most;
	for (uint64_t half = r->n / 2; half >= least; half /= 2)
		if (half <= most && ends_inside(r, half))
			return half;
	for (uint64_t fewer = most, i = 0; fewer >= least && i < ROWS_TRIES; fewer--, i++)
		if (ends_inside(r, fewer))
			return fewer;
	return 0;
}

/* Cuts the grid of a contiguous dataset such that the last chunk ends in the file. *fits is false
 * if that is not possible. */
static int fit_into_file(struct import *im, struct dataset *ds, const struct scan *s, bool *fits,
			 struct err *err)
{
	const struct reference_chunk *first = (const void *)s->listed.data;
	const struct grid *g = &ds->grid;
	struct rows r = {.row = ds->type->size,
			 .in_file =
				 im->opt->file.size - min_u64(first->offset, im->opt->file.size)};
	uint64_t chunk[DSPACE_MAX_RANK];
	for (; r.cut + 1 < g->rank && g->chunk[r.cut] == 1; r.cut++)
		r.before = r.before * g->dims[r.cut] + g->dims[r.cut] - 1;
	r.n = g->dims[r.cut];
	r.before *= r.n;
	for (uint32_t d = r.cut + 1; d < g->rank; d++)
		r.row *= g->dims[d];
	for (uint32_t d = 0; d < g->rank; d++)
		chunk[d] = g->chunk[d];
	chunk[r.cut] = choose_rows(&r, chunk[r.cut]);
	*fits = chunk[r.cut] > 0;
	if (!*fits || chunk[r.cut] == g->chunk[r.cut])
		return 0;
	struct grid cut;
	const int rc = grid_init(tree_arena(im->tree), &cut, g->rank, g->dims, chunk, err);
	if (!rc)
		ds->grid = cut;
	return rc;
}

/* The address of contiguous data is that of their first chunk. */
static int link_contiguous(const struct scan *s, const struct dataset *ds, struct reference *r)
{
	const struct reference_chunk *first = (const void *)s->listed.data;
	r->layout = REFERENCE_CONTIGUOUS;
	r->offset = first->offset;
	r->size = min_u64(ds->space.nelems * ds->type->size, s->file->stored_bytes);
	return 0;
}

static int make_reference(struct import *im, uint32_t number, struct scan *s, struct err *err)
{
	struct reference *r = arena_alloc(tree_arena(im->tree), sizeof(*r));
	if (!r)
		return err_no_memory(err);
	const struct import_link *link = im->opt->link;
	const char *path = import_path(im, number);
	*r = (struct reference){.exact = true, .table = OBJECT_NONE};
	/* A very long path has been shortened in the middle (h5file/objects.h). */
	r->file = (struct reference_file){.uri = uri_of(im),
					  .h5path = strstr(path, "/.../") ? NULL : path,
					  .etag = link->etag,
					  .size = im->opt->file.size};
	if (!r->file.uri)
		return err_no_memory(err);
	int rc = s->file->layout == LAYOUT_CONTIGUOUS
			 ? link_contiguous(s, &tree_object(im->tree, number)->o.dataset, r)
		 : s->n <= LISTED_MAX ? list_chunks(im, s, r, err)
				      : add_table(im, number, s, r, err);
	if (!rc) /* add_table() may have moved the object */
		tree_edit(im->tree, number)->dataset.reference = r;
	return rc;
}

static int link_scanned(struct import *im, uint32_t number, struct scan *s, struct err *err)
{
	struct dataset *ds = &tree_edit(im->tree, number)->dataset;
	const bool is_contiguous = s->file->layout == LAYOUT_CONTIGUOUS;
	bool fits = is_contiguous || s->n <= LISTED_MAX || !is_vast(ds);
	int rc = is_contiguous ? fit_into_file(im, ds, s, &fits, err) : 0;
	if (rc || !fits)
		return rc; /* it is copied */
	const uint64_t chunks = is_contiguous ? ds->grid.nchunks : s->n;
	rc = make_reference(im, number, s, err);
	if (rc)
		return rc;
	im->total -= im->datasets[number].bytes;
	im->datasets[number] = (struct import_dataset){.linked = chunks, .bytes = s->bytes};
	im->result->linked++;
	im->result->linked_bytes += s->bytes;
	import_progress(im);
	return 0;
}

static int link_dataset(struct import *im, uint32_t number, struct err *err)
{
	struct scan s = {
		.im = im, .file = h5file_dataset(im->file, number), .base = h5file_base(im->file)};
	int rc = h5file_chunks(im->file, number, 0, s.file->grid.nchunks, scan_chunk, &s, err);
	if (!rc)
		rc = link_scanned(im, number, &s, err);
	bytes_release(&s.listed);
	return rc ? err_wrap(err, rc, "dataset %s", import_path(im, number)) : 0;
}

int link_plan(struct import *im, struct err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < tree_count(im->tree); i++)
		if (is_linkable(im, tree_nth(im->tree, i)))
			rc = link_dataset(im, tree_nth(im->tree, i), err);
	struct err why = ERR_INIT;
	if (!rc)
		rc = note_overlap(im, h5file_claims_check(im->file, &why), &why, err);
	return rc || !im->opt->link->verify ? rc : link_verify(im, err);
}

/* ---- tables ---- */

struct records {
	const struct scan *s;
	uint64_t first; /* number of the first chunk */
	uint32_t size;	/* of a record */
	uint8_t *to;
};

static int put_record(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	const struct records *rec = ctx;
	const struct reference_chunk r = range_of(rec->s, chunk);
	uint8_t *to = rec->to + (r.number - rec->first) * rec->size;
	(void)err;
	number_put_int(to, 8, false, r.offset);
	number_put_int(to + SIZE_AT, 4, false, r.size);
	if (rec->size == RECORD_MASKED)
		number_put_int(to + MASK_AT, 4, false, r.filter_mask);
	return 0;
}

static bool is_stored(const struct import *im, const char *key, uint64_t bytes)
{
	uint64_t size;
	return key_set_find(im->keys, key, &size) && size == bytes;
}

/* The chunks whose records a chunk of the table has: a run of consecutive numbers. */
static void find_run(const struct grid *g, uint64_t number, uint64_t *first, uint64_t *n)
{
	uint64_t coords[DSPACE_MAX_RANK];
	grid_coords(g, number, coords);
	*first = 0;
	*n = 1;
	for (uint32_t d = 0; d < g->rank; d++) {
		const uint64_t start = coords[d] * g->chunk[d];
		*first = *first * g->dims[d] + start;
		*n *= min_u64(g->chunk[d], g->dims[d] - start);
	}
}

static int put_table_chunk(struct import *im, const struct import_table *t, const struct scan *s,
			   uint64_t number, struct err *err)
{
	const struct grid *g = &tree_object(im->tree, t->table)->o.dataset.grid;
	struct records rec = {.s = s, .size = t->has_masks ? RECORD_MASKED : RECORD};
	auto_bytes struct bytes body = {0};
	char key[SCHEMA_KEY_MAX + 1];
	uint64_t n;
	int rc = im->schema->writer->chunk_key(im->tree, t->table, number, key, sizeof(key));
	if (rc < 0)
		return err_set(err, rc, "the key of a chunk of its table is too long");
	const uint64_t size = g->chunk_elems * rec.size;
	if (is_stored(im, key, size)) {
		import_summary_add(im, key, size);
		im->result->found++;
		return 0;
	}
	find_run(g, number, &rec.first, &n);
	if (bytes_append_zero(&body, (size_t)size))
		return err_no_memory(err);
	rec.to = body.data;
	rc = h5file_chunks(im->file, t->dataset, rec.first, rec.first + n, put_record, &rec, err);
	return rc ? rc : import_put_body(im, key, &body, 0, err);
}

static int put_table(struct import *im, const struct import_table *t, struct err *err)
{
	const struct scan s = {.im = im,
			       .file = h5file_dataset(im->file, t->dataset),
			       .base = h5file_base(im->file)};
	const uint64_t n = tree_object(im->tree, t->table)->o.dataset.grid.nchunks;
	int rc = 0;
	for (uint64_t i = 0; !rc && i < n; i++)
		rc = put_table_chunk(im, t, &s, i, err);
	return rc ? err_wrap(err, rc, "dataset %s", import_path(im, t->dataset)) : 0;
}

int link_put_tables(struct import *im, struct err *err)
{
	const struct import_table *t = (const void *)im->tables.data;
	int rc = 0;
	for (size_t i = 0; !rc && i < im->tables.len / sizeof(*t); i++)
		if (!tree_object(im->tree, t[i].table)->o.dataset.indexed)
			rc = put_table(im, &t[i], err);
	return rc;
}

/* ---- datasets that are copied ---- */

struct advice {
	struct import *im;
	uint64_t bytes;
};

static int advise_chunk(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct advice *a = ctx;
	(void)err;
	a->bytes += chunk->size;
	if (!chunk->data && a->bytes <= ADVISED_MAX)
		h5file_chunk_advise(a->im->file, chunk);
	return 0;
}

int link_advise(struct import *im, uint32_t number, struct err *err)
{
	struct advice a = {.im = im};
	return h5file_chunks(im->file, number, 0, h5file_dataset(im->file, number)->grid.nchunks,
			     advise_chunk, &a, err);
}
