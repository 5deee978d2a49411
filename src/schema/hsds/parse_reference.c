/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts that refer to HDF5 files, as the service's loader and `hsimage link` write them:
 *
 *   H5D_CONTIGUOUS_REF        {file_uri, offset, size}
 *   H5D_CHUNKED_REF           {file_uri, dims, chunks: {"i_j": [offset, size, filter mask]}}
 *   H5D_CHUNKED_REF_INDIRECT  {file_uri, dims, hyper_dims, chunk_table}; another spelling is
 *                             H5D_CHUNKED_INDIRECT_REF
 *
 * `hyper_dims` is the chunk shape of the file if `dims` is a multiple of it. `hsmount` has what the
 * service does not record: {h5path, etag, size, exact}.
 *
 * A chunk table is a dataset with one record for each chunk of the file. A record is a compound of
 * the integers `offset` and `size` (or `length`). It may have the integer `filter_mask`. If the
 * layout has no file_uri, it also has the string `file_uri`. The size is 0 if the chunk is absent.
 * Pure.
 */
#include "parse_reference.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <data/chunk_source.h>
#include <data/number.h>

bool schema_reference_layout(const char *cls, enum reference_layout *out)
{
	enum { N = 4 };
	static const char *const known[N] = {"H5D_CONTIGUOUS_REF", "H5D_CHUNKED_REF",
					     "H5D_CHUNKED_REF_INDIRECT",
					     "H5D_CHUNKED_INDIRECT_REF"};
	static const enum reference_layout layouts[N] = {REFERENCE_CONTIGUOUS, REFERENCE_CHUNKED,
							 REFERENCE_TABLE, REFERENCE_TABLE};
	const int i = schema_word_index(cls, known, N);
	if (i >= 0)
		*out = layouts[i];
	return i >= 0;
}

/* ---- the chunk shape of contiguous data ---- */

enum {
	CUT_TRIES = 1 << 16, /* numbers that are tried as divisors */
	CUT_SHRINKS = 8,     /* a chunk has at least 1/8 of REFERENCE_CUT … */
	CUT_WHOLE_ROWS = 16, /* … or whole rows of at most 16 times as much */
};

/* Returns a number of rows for a chunk, such that chunks do not end within a row of the dimension
 * above if possible. It is a divisor of n from most / CUT_SHRINKS to `most`, or else n if that is
 * at most about CUT_WHOLE_ROWS times `most`. If neither exists, returns `most`. */
static uint64_t even_rows(uint64_t n, uint64_t most)
{
	const uint64_t least = max_u64(most / CUT_SHRINKS, 1);
	uint64_t tries = CUT_TRIES;
	for (uint64_t rows = most; rows >= least && tries; rows--, tries--)
		if (n % rows == 0)
			return rows;
	return n / CUT_WHOLE_ROWS <= most ? n : most;
}

void schema_reference_cut(const struct dspace *space, uint32_t elem_size, uint64_t *chunk)
{
	uint64_t dims[DSPACE_MAX_RANK], before = 1;
	uint32_t cut = 0;
	for (uint32_t d = 0; d < space->rank; d++)
		dims[d] = max_u64(space->dims[d], 1);
	grid_cut(space->rank, dims, elem_size, REFERENCE_CUT, chunk);
	while (cut < space->rank && chunk[cut] == 1)
		before = max_u64(before, dims[cut++]);
	if (cut < space->rank && before > 1 && dims[cut] % chunk[cut] != 0)
		chunk[cut] = even_rows(dims[cut], chunk[cut]);
}

/* ---- the layout ---- */

static int parse_text(struct schema_ctx *ctx, const json_t *object, const char *member,
		      const char **out, struct err *err)
{
	const json_t *v = json_object_get(object, member);
	*out = NULL;
	if (!v || json_is_null(v))
		return 0;
	if (!json_is_string(v) || json_string_length(v) == 0)
		return err_set(err, -EIO, "%s: not a text", member);
	const int rc =
		schema_ctx_name(ctx, json_string_value(v), json_string_length(v), out, false, err);
	return rc ? err_wrap(err, rc, "%s", member) : 0;
}

static int parse_file(struct schema_ctx *ctx, const json_t *layout, struct reference_file *f,
		      struct err *err)
{
	const json_t *hsmount = json_object_get(layout, "hsmount");
	const json_t *size = json_object_get(hsmount, "size");
	int rc = parse_text(ctx, layout, "file_uri", &f->uri, err);
	if (!rc)
		rc = parse_text(ctx, hsmount, "h5path", &f->h5path, err);
	if (!rc)
		rc = parse_text(ctx, hsmount, "etag", &f->etag, err);
	f->size = UINT64_MAX;
	if (!rc && size && !schema_count(size, &f->size))
		rc = err_set(err, -EIO, "size: not a number of bytes");
	return rc;
}

static int parse_range(const json_t *offset, const json_t *size, uint64_t *out_offset,
		       uint64_t *out_size, struct err *err)
{
	uint64_t end;
	if (!schema_count(offset, out_offset) || !schema_count(size, out_size) ||
	    !add_u64(*out_offset, *out_size, &end))
		return err_set(err, -EIO, "not the offset and size of a range");
	return 0;
}

/* Gets the number of the chunk with coordinates such as "3_0_12". *inside is false if the grid has
 * no such chunk. */
static int parse_coords(const char *text, const struct grid *g, uint64_t *number, bool *inside,
			struct err *err)
{
	uint64_t coords[DSPACE_MAX_RANK];
	const char *p = text;
	*inside = true;
	for (uint32_t d = 0; d < g->rank; d++) {
		const char *start = p;
		coords[d] = 0;
		for (; *p >= '0' && *p <= '9'; p++)
			if (!mul_u64(coords[d], 10, &coords[d]) ||
			    !add_u64(coords[d], (uint64_t)(*p - '0'), &coords[d]))
				return err_set(err, -EIO, "a coordinate is too large");
		if (p == start || *p++ != (d + 1 < g->rank ? '_' : '\0'))
			return err_set(err, -EIO, "not %u coordinates", g->rank);
		*inside = *inside && coords[d] < g->count[d];
	}
	if (*inside)
		*number = grid_number(g, coords);
	return 0;
}

static int parse_entry(const char *key, const json_t *v, const struct grid *g,
		       struct reference_chunk *c, bool *used, struct err *err)
{
	const json_t *mask = json_array_get(v, 2);
	uint64_t bits = 0;
	int rc = parse_coords(key, g, &c->number, used, err);
	if (!rc)
		rc = parse_range(json_array_get(v, 0), json_array_get(v, 1), &c->offset, &c->size,
				 err);
	if (!rc && mask && (!schema_count(mask, &bits) || bits > UINT32_MAX))
		rc = err_set(err, -EIO, "not a filter mask");
	c->filter_mask = (uint32_t)bits;
	*used = *used && c->size > 0;
	return rc ? err_wrap(err, rc, "chunks: \"%.64s\"", key) : 0;
}

static int by_number(const void *a, const void *b)
{
	const struct reference_chunk *x = a, *y = b;
	return (x->number > y->number) - (x->number < y->number);
}

/* Entries outside of the extent remain from before the dataset was shrunk. They are ignored. */
static int parse_chunks(struct schema_ctx *ctx, const json_t *layout, const struct grid *g,
			struct reference *r, struct err *err)
{
	json_t *all = json_object_get(layout, "chunks");
	const size_t n = json_object_size(all);
	const char *key;
	json_t *v;
	if (!json_is_object(all))
		return err_set(err, -EIO, "chunks: %s", all ? "not an object" : "missing");
	struct reference_chunk *chunks = arena_array(ctx->arena, n ? n : 1, sizeof(*chunks));
	if (!chunks)
		return err_set(err, -ENOMEM, "out of memory: %zu chunks", n);
	json_object_foreach(all, key, v)
	{
		bool used;
		int rc = parse_entry(key, v, g, &chunks[r->nchunks], &used, err);
		if (rc)
			return rc;
		r->nchunks += used;
	}
	qsort(chunks, r->nchunks, sizeof(*chunks), by_number);
	for (uint64_t i = 1; i < r->nchunks; i++)
		if (chunks[i].number == chunks[i - 1].number)
			return err_set(err, -EIO, "chunks: chunk %" PRIu64 " occurs twice",
				       chunks[i].number);
	r->chunks = chunks;
	return 0;
}

static int parse_table(struct schema_ctx *ctx, const json_t *layout, struct reference *r,
		       struct err *err)
{
	const char *text = json_text_word(layout, "chunk_table");
	struct schema_id id;
	if (!text || !schema_id_parse(text, strlen(text), &id) || id.kind != OBJECT_DATASET)
		return err_set(err, -EIO, "chunk_table: not the id of a dataset");
	r->table = schema_number(ctx, &id);
	return 0;
}

static int parse_layout(struct schema_ctx *ctx, const json_t *layout, const struct grid *g,
			struct reference *r, struct err *err)
{
	int rc = parse_file(ctx, layout, &r->file, err);
	if (!rc && !r->file.uri && r->layout != REFERENCE_TABLE)
		rc = err_set(err, -EIO, "file_uri: missing");
	if (rc)
		return rc;
	switch (r->layout) {
	case REFERENCE_CONTIGUOUS:
		return parse_range(json_object_get(layout, "offset"),
				   json_object_get(layout, "size"), &r->offset, &r->size, err);
	case REFERENCE_CHUNKED:
		return parse_chunks(ctx, layout, g, r, err);
	case REFERENCE_TABLE:
		return parse_table(ctx, layout, r, err);
	}
	return 0;
}

int schema_reference_parse(struct schema_ctx *ctx, const json_t *layout, enum reference_layout kind,
			   struct dataset *ds, struct err *err)
{
	struct reference *r = arena_alloc(ctx->arena, sizeof(*r));
	if (!r)
		return err_no_memory(err);
	*r = (struct reference){.layout = kind, .table = OBJECT_NONE};
	r->exact = json_is_true(json_object_get(json_object_get(layout, "hsmount"), "exact"));
	const int rc = parse_layout(ctx, layout, &ds->grid, r, err);
	if (rc)
		return rc;
	ds->reference = r;
	/* The chunks of the grid are those of the file, and contiguous data have no filters. */
	ds->requested_chunk = NULL;
	if (kind == REFERENCE_CONTIGUOUS)
		ds->nfilters = 0;
	return 0;
}

/* Returns the argument that begins with `name`, such as "--h5path=", and has text after it, or NULL
 * if there is none. *skip is the length of `name`. */
static const json_t *find_argument(const json_t *list, const char *name, size_t *skip)
{
	*skip = strlen(name);
	for (size_t i = 1; i < json_array_size(list); i++) {
		const char *word = json_string_value(json_array_get(list, i));
		if (word && strncmp(word, name, *skip) == 0 && word[*skip])
			return json_array_get(list, i);
	}
	return NULL;
}

static int argument(struct schema_ctx *ctx, const json_t *list, const char *name, const char **out,
		    struct err *err)
{
	size_t skip;
	const json_t *v = find_argument(list, name, &skip);
	*out = NULL;
	if (!v)
		return 0;
	const int rc = schema_ctx_name(ctx, json_string_value(v) + skip,
				       json_string_length(v) - skip, out, false, err);
	return rc ? err_wrap(err, rc, "%s", name) : 0;
}

/* Makes a URI of a bucket and a path. Without a bucket, the path is in the bucket of the domain,
 * and "/path" stands for this. */
static int join_uri(struct schema_ctx *ctx, const char *bucket, const char *path, const char **out,
		    struct err *err)
{
	const size_t room = (bucket ? strlen(bucket) : 0) + strlen(path) + 2;
	const bool is_uri = !bucket && strstr(path, "://");
	char *uri = arena_alloc(ctx->arena, room);
	if (!uri)
		return err_no_memory(err);
	snprintf(uri, room, "%s%s%s", bucket ? bucket : "", is_uri ? "" : "/", path);
	*out = uri;
	return 0;
}

int schema_chunk_locator(struct schema_ctx *ctx, const json_t *list, struct dataset *ds,
			 struct err *err)
{
	const char *bucket, *path;
	struct reference_file *f = arena_alloc(ctx->arena, sizeof(*f));
	if (!f)
		return err_no_memory(err);
	*f = (struct reference_file){.size = UINT64_MAX};
	int rc = argument(ctx, list, "--h5path=", &f->h5path, err);
	if (!rc)
		rc = argument(ctx, list, "--filepath=", &path, err);
	if (!rc)
		rc = argument(ctx, list, "--bucket=", &bucket, err);
	if (rc || !f->h5path || !path)
		return rc;
	rc = join_uri(ctx, bucket, path, &f->uri, err);
	if (rc)
		return rc;
	ds->initializer = INITIALIZER_CHUNK_LOCATOR;
	ds->indexed = f;
	return 0;
}

/* ---- the place of a chunk ---- */

static int set_range(const struct reference_file *file, uint64_t offset, uint64_t size,
		     uint32_t mask, struct chunk_place *place, struct err *err)
{
	if (size > CHUNK_BYTES_MAX)
		return err_set(err, -EIO,
			       "the chunk has %" PRIu64 " bytes in its file, the limit is %d", size,
			       CHUNK_BYTES_MAX);
	place->file = file;
	place->offset = offset;
	place->length = size;
	place->filter_mask = mask;
	return 0;
}

/* The elements of each chunk are consecutive in the file, see schema_reference_cut(). */
static int place_contiguous(const struct dataset *ds, uint64_t number, struct chunk_place *place,
			    struct err *err)
{
	const struct reference *r = ds->reference;
	const struct grid *g = &ds->grid;
	uint64_t first, n, at, bytes, end;
	place->absent = r->size == 0;
	if (place->absent)
		return 0;
	grid_run(g, number, &first, &n);
	if (!mul_u64(first, ds->type->size, &at) || !mul_u64(n, ds->type->size, &bytes) ||
	    !add_u64(at, bytes, &end) || end > r->size)
		return err_set(err, -EIO,
			       "the reference has %" PRIu64
			       " bytes, which are fewer than those of the dataset",
			       r->size);
	place->ends_early = n < g->chunk_elems;
	return set_range(&r->file, r->offset + at, bytes, 0, place, err);
}

static int place_chunk(const struct reference *r, uint64_t number, struct chunk_place *place,
		       struct err *err)
{
	const struct reference_chunk key = {.number = number};
	const struct reference_chunk *c =
		r->nchunks ? bsearch(&key, r->chunks, r->nchunks, sizeof(key), by_number) : NULL;
	place->absent = !c;
	return c ? set_range(&r->file, c->offset, c->size, c->filter_mask, place, err) : 0;
}

/* ---- the records of a chunk table ---- */

static const struct dtype_member *find_member(const struct dtype *t, const char *name)
{
	for (uint32_t i = 0; i < t->compound.n; i++)
		if (strcmp(t->compound.members[i].name, name) == 0)
			return &t->compound.members[i];
	return NULL;
}

/* The members of a record. */
struct record_type {
	const struct dtype_member *offset, *size, *uri, *mask; /* the last two may be NULL */
};

static bool is_number(const struct dtype_member *m)
{
	return m && m->type->cls == DTYPE_INTEGER && m->type->size <= sizeof(uint64_t);
}

static bool is_text(const struct dtype_member *m)
{
	return m && (m->type->cls == DTYPE_STRING ||
		     (m->type->cls == DTYPE_VLEN && m->type->vlen.is_string));
}

static int check_record(const struct reference *r, const struct dtype *t, struct record_type *out,
			struct err *err)
{
	if (t->cls != DTYPE_COMPOUND)
		return err_set(err, -EIO, "its elements are not records");
	*out = (struct record_type){
		.offset = find_member(t, "offset"),
		.size = find_member(t, "size"),
		.mask = find_member(t, "filter_mask"),
		.uri = r->file.uri ? NULL : find_member(t, "file_uri"),
	};
	if (!out->size)
		out->size = find_member(t, "length");
	if (!is_number(out->offset) || !is_number(out->size) ||
	    (out->mask && !is_number(out->mask)))
		return err_set(err, -EIO, "its records have no offset and size");
	if (!r->file.uri && !is_text(out->uri))
		return err_set(err, -EIO, "neither the dataset nor its records name a file");
	return 0;
}

/* Gets the number of the record of a chunk. A table may have more records than the dataset has
 * chunks, because a table that can grow grows before its dataset. */
static int record_number(const struct dataset *ds, const struct dataset *table, uint64_t number,
			 uint64_t *out, struct err *err)
{
	const struct dspace *s = &table->space;
	uint64_t coords[DSPACE_MAX_RANK];
	if (table->reference || table->grid.nchunks == 0 || s->cls == DSPACE_NULL)
		return err_set(err, -EIO, "it has no records of its own");
	if ((s->cls == DSPACE_SCALAR ? 1 : s->rank) != ds->grid.rank)
		return err_set(err, -EIO, "it has %u dimensions, the dataset has %u", s->rank,
			       ds->grid.rank);
	grid_coords(&ds->grid, number, coords);
	*out = 0;
	for (uint32_t d = 0; d < s->rank; d++) {
		if (s->dims[d] < ds->grid.count[d])
			return err_set(err, -EIO,
				       "it has %" PRIu64 " records along dimension %u, the dataset "
				       "has %" PRIu64 " chunks",
				       s->dims[d], d, ds->grid.count[d]);
		*out = *out * s->dims[d] + coords[d];
	}
	return 0;
}

static int read_number(const struct elems *e, const struct dtype_member *m, uint64_t *out,
		       struct err *err)
{
	const struct dtype *t = m->type;
	*out = number_get_int(e->fixed.data + m->offset, t->size, t->integer.big_endian);
	if (t->integer.is_signed && *out >> (8 * t->size - 1))
		return err_set(err, -EIO, "%s is negative", m->name);
	return 0;
}

/* Copies a text to the `room` bytes at `to`. */
static int read_text(const struct elems *e, const struct dtype_member *m, char *to, size_t room,
		     struct err *err)
{
	const uint8_t *at = e->fixed.data + m->offset;
	size_t n = m->type->size;
	if (m->type->cls == DTYPE_VLEN) {
		const struct elems_vlen v = elems_get_vlen(at);
		if (v.offset > e->heap.len || v.count > e->heap.len - v.offset)
			return err_set(err, -EIO, "%s is damaged", m->name);
		at = v.count ? e->heap.data + v.offset : at;
		n = v.count;
	} else {
		while (n && (at[n - 1] == '\0' || at[n - 1] == ' '))
			n--;
	}
	if (n == 0 || memchr(at, '\0', n))
		return err_set(err, -EIO, "%s is not a text", m->name);
	if (n >= room)
		return err_set(err, -EIO, "%s is too long", m->name);
	memcpy(to, at, n);
	to[n] = '\0';
	return 0;
}

static int place_record(const struct reference *r, const struct record_type *t,
			const struct elems *e, struct chunk_place *place, struct err *err)
{
	uint64_t offset, size, mask = 0, end;
	int rc = read_number(e, t->size, &size, err);
	place->absent = !rc && size == 0;
	if (rc || place->absent)
		return rc;
	rc = read_number(e, t->offset, &offset, err);
	if (!rc && t->mask)
		rc = read_number(e, t->mask, &mask, err);
	if (!rc && (!add_u64(offset, size, &end) || mask > UINT32_MAX))
		rc = err_set(err, -EIO, "it is no range");
	if (!rc && t->uri) {
		rc = read_text(e, t->uri, place->key, place->room, err);
		place->record_file = (struct reference_file){
			.uri = place->key, .h5path = r->file.h5path, .size = UINT64_MAX};
	}
	if (rc)
		return rc;
	return set_range(t->uri ? &place->record_file : &r->file, offset, size, (uint32_t)mask,
			 place, err);
}

/* The chunk index of the file tells which chunks exist. A service that could not read the file has
 * stored records of size 0, so such a record proves nothing. */
static int place_indexed(const struct reference *r, const struct dataset *table, bool denied,
			 struct chunk_place *place)
{
	const struct reference_file *f = table->indexed;
	place->record_file = *f;
	if (r->file.uri && strcmp(r->file.uri, f->uri) == 0) {
		place->record_file.etag = r->file.etag;
		place->record_file.size = r->file.size;
	}
	place->file = &place->record_file;
	place->absent = false;
	place->denied = denied;
	return SCHEMA_NEEDS_INDEX;
}

static int place_by_table(const struct object *o, const struct object *table, uint64_t number,
			  unsigned int *step, const struct schema_answer *answer,
			  struct chunk_place *place, struct err *err)
{
	const struct reference *r = o->dataset.reference;
	struct record_type t;
	if (!table || table->kind != OBJECT_DATASET)
		return err_set(err, -EIO, "its chunk table does not exist");
	int rc = check_record(r, table->dataset.type, &t, err);
	place->table = r->table;
	if (!rc)
		rc = record_number(&o->dataset, &table->dataset, number, &place->record, err);
	if (rc)
		return err_wrap(err, rc, "its chunk table %s", table->id);
	if ((*step)++ == 0)
		return SCHEMA_NEEDS_RECORD;
	if (!answer || answer->absent || !answer->record) {
		/* Unless a chunk locator fills the table, a record that has not been stored is the
		 * fill value of the table. */
		if (table->dataset.initializer == INITIALIZER_CHUNK_LOCATOR)
			return place_indexed(r, &table->dataset, false, place);
		if (table->dataset.fill_defined &&
		    table->dataset.fill.fixed.len == table->dataset.type->size)
			return place_record(r, &t, &table->dataset.fill, place, err);
		place->absent = true; /* a record of zeros */
		return 0;
	}
	if (answer->record->fixed.len != table->dataset.type->size)
		rc = err_set(err, -EIO, "it is incomplete");
	else
		rc = place_record(r, &t, answer->record, place, err);
	if (!rc && place->absent && table->dataset.initializer == INITIALIZER_CHUNK_LOCATOR)
		return place_indexed(r, &table->dataset, true, place);
	return rc < 0 ? err_wrap(err, rc, "its chunk table %s: record %" PRIu64, table->id,
				 place->record)
		      : rc;
}

int schema_reference_locate(const struct object *o, const struct object *table, uint64_t number,
			    unsigned int *step, const struct schema_answer *answer,
			    struct chunk_place *place, struct err *err)
{
	const struct dataset *ds = &o->dataset;
	place->key[0] = '\0';
	switch (ds->reference->layout) {
	case REFERENCE_CONTIGUOUS:
		return place_contiguous(ds, number, place, err);
	case REFERENCE_CHUNKED:
		return place_chunk(ds->reference, number, place, err);
	case REFERENCE_TABLE:
		break;
	}
	return place_by_table(o, table, number, step, answer, place, err);
}
