/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the object of one chunk from one or several chunks of the file. A chunk whose stored bytes
 * the service can read passes as it is; any other is decoded and encoded again. A stream that
 * passes is inflated once, so that no damaged one gets into the bucket, and none with fewer or more
 * elements than a whole chunk, which libhdf5 reads and the service does not.
 *
 * A chunk in which every element is the fill value is not stored: the readers of the bucket show
 * the fill value where no object is. Such a chunk is recognised in its elements. The bytes of a
 * compressed chunk that passes are decoded for this only if they are few: deflate makes at least
 * FILL_RATIO times less of elements that are all equal.
 *
 * All functions run in workers, side by side. They read the tree and the file, which are constant.
 */
#include <import/chunk_body.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <codec/chunk.h>
#include <data/chunk_source.h>

#include <store/put_queue.h>

enum { FILL_RATIO = 50 };
enum { MUST_DECODE = 2 /* result besides 0, PUT_NOTHING and negative errnos */ };

/* ---- the dataset ---- */

/* Returns the path of an object of the file; never NULL. */
static const char *origin_path(const struct chunk_origin *o, uint32_t number)
{
	const bool known = number < tree_numbers(o->tree) && o->paths && o->paths[number];
	return known ? o->paths[number] : "";
}

/* A reference to an object that is left out becomes the null reference. */
static void name_object(void *ctx, uint64_t ref, char *text)
{
	const struct chunk_origin *from = ctx;
	const struct tree_object *o = ref && ref <= tree_numbers(from->tree)
					      ? tree_object(from->tree, (uint32_t)(ref - 1))
					      : NULL;
	if (o && o->linked && !o->broken)
		from->schema->writer->ref_text(from->tree, ref, text);
	else
		memset(text, 0, OBJECT_REF_TEXT);
}

static int copy_fill(struct chunk_context *c)
{
	const struct elems *fill = &c->ds->fill;
	if (!c->ds->fill_defined || !dtype_is_plain(c->ds->type) || !elems_end(fill))
		return 0;
	c->fill = malloc(c->ds->type->size);
	if (!c->fill)
		return -ENOMEM;
	elems_read(fill, 0, c->fill, c->ds->type->size);
	return 0;
}

struct chunk_context *chunk_context_new(const struct chunk_origin *from, uint32_t number)
{
	struct pipeline recorded, object, own;
	struct chunk_context *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	atomic_init(&c->refs, 1);
	c->from = *from;
	c->number = number;
	c->ds = &tree_object(from->tree, number)->o.dataset;
	c->file = h5file_dataset(from->file, number);
	c->namer = (struct object_namer){.name = name_object, .ctx = &c->from};
	const struct grid *g = &c->ds->grid;
	dataset_pipeline(c->ds, &recorded);
	pipeline_of_object(&recorded, &object);
	pipeline_of_object(c->file->pipeline, &own);
	codec_plan_object(&c->new_form, c->ds->type, g->chunk_elems, &object, OBJECT_SHUFFLED,
			  NULL);
	c->chain = &c->new_form.chain;
	c->is_joined = !grid_same_chunks(g, &c->file->grid);
	c->is_filtered = object.n != 0;
	/* codec_verbatim() compares the filters of a chunk with `own`, which are equal to `object`
	 * if there are as many. */
	c->may_pass = !c->is_joined && dtype_is_plain(c->ds->type) && own.n == object.n;
	c->plain_size = c->ds->type->size * g->chunk_elems; /* import_check() */
	if (copy_fill(c)) {
		chunk_context_unref(c);
		return NULL;
	}
	return c;
}

/* Returns whether the service reads the form that chunks of new datasets have. It reads a zlib
 * stream where it would compress with zlib. */
static bool reads_new_form(const struct chunk_context *c, const struct service_filters *s)
{
	const bool has_zlib = s->compressor && strcmp(s->compressor, "zlib") == 0;
	return !s->refused && s->shuffle != SERVED_SHUFFLE_BIT &&
	       (c->is_filtered ? has_zlib : !s->compressor);
}

void chunk_context_serve(struct chunk_context *c)
{
	const struct service_filters *served = codec_chain_served(c->ds->chain);
	if (!served || reads_new_form(c, served))
		return;
	c->chain = c->ds->chain;
	c->may_pass = false;
}

void chunk_context_unref(struct chunk_context *c)
{
	if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
		return;
	free(c->fill);
	free(c);
}

/* ---- fill values ---- */

/* Returns whether all n bytes are zero. */
static bool all_zero(const uint8_t *p, size_t n)
{
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Returns whether all elements are the fill value. `bytes` are the elements of a whole chunk, n
 * bytes. */
static bool is_fill(const struct chunk_context *c, const uint8_t *bytes, size_t n)
{
	const size_t size = c->ds->type->size;
	if (!dtype_is_plain(c->ds->type)) {
		/* Slots without a value, and null references, are zeros. */
		const bool zero_fill = !c->ds->fill_defined || !elems_end(&c->ds->fill);
		return zero_fill && all_zero(bytes, n);
	}
	if (!c->fill)
		return all_zero(bytes, n);
	return memcmp(bytes, c->fill, size) == 0 && memcmp(bytes, bytes + size, n - size) == 0;
}

/* ---- one chunk of the file ---- */

/* Notes that the bytes of the file are the reason of an error, so that it will come again. */
static int blame_file(const struct chunk_context *c, int rc)
{
	if (rc < 0 && rc != -ENOMEM)
		atomic_store(c->from.is_damaged, true);
	return rc;
}

static int decode(const struct chunk_context *c, const struct h5file_chunk *part,
		  struct bytes *stored, struct elems *out, struct err *err)
{
	struct h5file *f = c->from.file;
	const int rc = h5file_chunk_decode(f, c->number, part, stored, out, err);
	if (rc)
		elems_release(out);
	return blame_file(c, rc);
}

static int encode(const struct chunk_context *c, const struct elems *in, struct bytes *body,
		  struct err *err)
{
	const struct codec_encode how = {.chain = c->chain, .namer = &c->namer};
	if (is_fill(c, in->fixed.data, in->fixed.len))
		return PUT_NOTHING;
	return blame_file(c, codec_chunk_encode(&how, in, body, err));
}

/* Returns 1 if all elements of a chunk are the fill value, 0 if not, or a negative errno. */
static int decodes_to_fill(const struct chunk_context *c, const struct h5file_chunk *part,
			   const struct bytes *stored, struct err *err)
{
	struct elems elems = {0};
	auto_bytes struct bytes copy = {0};
	int rc = bytes_append(&copy, stored->data, stored->len);
	if (rc)
		return err_set(err, rc, "out of memory");
	rc = decode(c, part, &copy, &elems, err);
	if (!rc)
		rc = is_fill(c, elems.fixed.data, elems.fixed.len);
	elems_release(&elems);
	return rc;
}

/* The stored bytes as they are. Returns 0, PUT_NOTHING, a negative errno, or MUST_DECODE. *stored
 * is moved to *body on success. */
static int pass(const struct chunk_context *c, const struct h5file_chunk *part,
		struct bytes *stored, struct bytes *body, struct err *err)
{
	size_t keep = 0;
	if (!c->may_pass || (!part->is_filtered && c->is_filtered))
		return MUST_DECODE;
	uint64_t plain = c->plain_size;
	struct err why = ERR_INIT;
	int rc = codec_verbatim(c->file->pipeline, part->filter_mask, c->ds->type, stored->data,
				stored->len, &keep, err);
	if (rc)
		return blame_file(c, rc);
	if (!keep || (!c->is_filtered && keep != c->plain_size))
		return MUST_DECODE;
	if (c->is_filtered)
		rc = codec_verbatim_length(stored->data, keep, c->plain_size, &keep, &plain, &why);
	if (rc || plain != c->plain_size)
		return MUST_DECODE; /* which may say what is wrong */
	if (!c->is_filtered)
		rc = is_fill(c, stored->data, keep);
	else if (keep < c->plain_size / FILL_RATIO)
		rc = decodes_to_fill(c, part, stored, err);
	if (rc)
		return rc < 0 ? rc : PUT_NOTHING;
	stored->len = keep;
	*body = *stored;
	*stored = (struct bytes){0};
	return 0;
}

static int make_one(struct chunk_parts *parts, struct bytes *body, struct err *err)
{
	const struct chunk_context *c = parts->context;
	const struct h5file_chunk *part = parts->parts;
	auto_bytes struct bytes stored = {0};
	struct elems elems = {0};
	int rc = h5file_chunk_read(c->from.file, part, &stored, err);
	if (!rc)
		rc = pass(c, part, &stored, body, err);
	parts->is_verbatim = rc == 0;
	if (rc != MUST_DECODE)
		return rc;
	rc = decode(c, part, &stored, &elems, err);
	if (rc)
		return rc;
	bytes_release(&stored);
	rc = encode(c, &elems, body, err);
	elems_release(&elems);
	return rc;
}

/* ---- several chunks of the file ---- */

/* Copies the items of a slot to the heap of another value, and points the slot there. */
static int move_items(void *ctx, const struct dtype *t, uint8_t *slot, uint8_t *items, size_t len,
		      struct err *err)
{
	struct elems *to = ctx;
	const struct elems_vlen v = elems_get_vlen(slot);
	uint64_t offset;
	(void)t;
	if (!v.is_set)
		return 0;
	int rc = elems_heap_add(to, items, len, &offset);
	if (rc)
		return err_set(err, rc, "chunk of more than 2^32 bytes");
	elems_put_vlen(slot, v.count, offset);
	return 0;
}

/* Copies the elements of a chunk of the file to its place in the chunk of the domain. `at` has the
 * coordinates of its first element there. */
static void copy_rows(const struct chunk_context *c, const uint64_t *at, const uint8_t *from,
		      uint8_t *to)
{
	const struct grid *whole = &c->ds->grid, *part = &c->file->grid;
	const uint32_t last = part->rank - 1;
	const size_t size = c->ds->type->size, row = part->chunk[last] * size;
	uint64_t index[DSPACE_MAX_RANK] = {0};
	for (uint64_t done = 0; done < part->chunk_elems; done += part->chunk[last]) {
		uint64_t element = 0;
		for (uint32_t i = 0; i <= last; i++)
			element = element * whole->chunk[i] + at[i] + index[i];
		memcpy(to + element * size, from + done * size, row);
		for (uint32_t i = last; i-- > 0;) {
			if (++index[i] < part->chunk[i])
				break;
			index[i] = 0;
		}
	}
}

static int add_part(const struct chunk_context *c, uint64_t number, const struct h5file_chunk *part,
		    struct elems *out, struct err *err)
{
	const struct grid *whole = &c->ds->grid, *grid = &c->file->grid;
	const struct elems_visitor move = {.vlen = move_items, .ctx = out};
	uint64_t at[DSPACE_MAX_RANK], first[DSPACE_MAX_RANK];
	auto_bytes struct bytes stored = {0};
	struct elems elems = {0};
	int rc = h5file_chunk_read(c->from.file, part, &stored, err);
	if (!rc)
		rc = decode(c, part, &stored, &elems, err);
	if (rc)
		return rc;
	grid_coords(whole, number, first);
	grid_coords(grid, part->number, at);
	for (uint32_t i = 0; i < grid->rank; i++)
		at[i] = at[i] * grid->chunk[i] - first[i] * whole->chunk[i];
	rc = elems_visit(c->ds->type, elems.fixed.data, grid->chunk_elems, elems.heap.data,
			 elems.heap.len, &move, err);
	if (!rc)
		copy_rows(c, at, elems.fixed.data, out->fixed.data);
	elems_release(&elems);
	return rc;
}

static int make_joined(const struct chunk_parts *parts, struct bytes *body, struct err *err)
{
	const struct chunk_context *c = parts->context;
	struct elems out = {0};
	int rc = bytes_append_zero(&out.fixed, (size_t)c->plain_size);
	if (rc)
		return err_set(err, rc, "out of memory");
	if (c->fill) {
		memcpy(out.fixed.data, c->fill, c->ds->type->size);
		elems_repeat(out.fixed.data, c->ds->type->size, out.fixed.len);
	}
	for (uint32_t i = 0; !rc && i < parts->n; i++)
		rc = add_part(c, parts->number, &parts->parts[i], &out, err);
	if (!rc)
		rc = encode(c, &out, body, err);
	elems_release(&out);
	return rc;
}

/* ---- the body of a put ---- */

int chunk_add_part(struct chunk_parts **parts, struct chunk_context *context, uint64_t number,
		   const struct h5file_chunk *part)
{
	struct chunk_parts *p = *parts;
	const uint32_t n = p ? p->n : 0;
	if ((n & (n - 1)) == 0) { /* the room is doubled at each power of two */
		const size_t room = n ? 2 * (size_t)n : 1;
		struct chunk_parts *more = realloc(p, sizeof(*p) + room * sizeof(p->parts[0]));
		if (!more)
			return -ENOMEM;
		if (!p) {
			*more = (struct chunk_parts){.context = context, .number = number};
			atomic_fetch_add_explicit(&context->refs, 1, memory_order_relaxed);
		}
		*parts = p = more;
	}
	p->parts[p->n++] = *part;
	return 0;
}

void chunk_free(void *parts)
{
	struct chunk_parts *p = parts;
	if (p)
		chunk_context_unref(p->context);
	free(p);
}

uint64_t chunk_memory(const struct chunk_parts *parts)
{
	const struct chunk_context *c = parts->context;
	uint64_t largest = 0;
	for (uint32_t i = 0; i < parts->n; i++)
		largest = max_u64(largest, parts->parts[i].size);
	/* A compressed chunk may have to be encoded again: only its elements show that. */
	const bool passes = c->may_pass && parts->n == 1 && parts->parts[0].filter_mask == 0 &&
			    c->file->pipeline->n == 0 && largest == c->plain_size;
	return passes ? largest : largest + 2 * c->plain_size;
}

int chunk_make(void *arg, struct bytes *body, struct err *err)
{
	struct chunk_parts *parts = arg;
	parts->is_verbatim = false;
	return parts->context->is_joined ? make_joined(parts, body, err)
					 : make_one(parts, body, err);
}

/* A chunk without filters is put as it is, unless all its elements are the fill value. If the first
 * one is, chunk_make() looks at the others. */
bool chunk_find(void *arg, uint64_t min, struct source_part *out)
{
	struct chunk_parts *parts = arg;
	const struct chunk_context *c = parts->context;
	const struct h5file_chunk *part = parts->parts;
	const size_t size = c->ds->type->size;
	auto_bytes struct bytes first = {0};
	size_t keep;
	if (!c->may_pass || c->file->pipeline->n > 0 || part->size != c->plain_size ||
	    part->size < min || bytes_reserve(&first, size) ||
	    codec_verbatim(c->file->pipeline, 0, c->ds->type, NULL, part->size, &keep, NULL) ||
	    !keep || h5file_chunk_prepare(c->from.file, part, out, NULL))
		return false;
	return source_read(out->source, out->offset, first.data, size, NULL) == 0 &&
	       !is_fill(c, first.data, size);
}

void chunk_explain_number(const char *path, const struct grid *grid, uint64_t number,
			  struct err *err)
{
	uint64_t coords[DSPACE_MAX_RANK];
	char text[256] = "";
	size_t n = 0;
	grid_coords(grid, number, coords);
	for (uint32_t i = 0; i < grid->rank && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%" PRIu64, i ? "," : "",
				      coords[i]);
	err_wrap(err, err->code, "dataset %s: chunk (%s)", path, text);
}

void chunk_explain(void *arg, struct err *err)
{
	const struct chunk_parts *parts = arg;
	const struct chunk_context *c = parts->context;
	chunk_explain_number(origin_path(&c->from, c->number), &c->ds->grid, parts->number, err);
}
