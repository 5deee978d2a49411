/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document of a dataset: type, shape, layout and creation properties -> struct dataset.
 * "layout" has the shape of the chunks as they are stored. "creationProperties" has what the
 * creator requested. It may be missing, and some clients write a base64 string, which is ignored
 * here. Its member "hsmount" has what the service cannot express (emit_dataset.c). A dataset with a
 * damaged reference to HDF5 files stays in the domain, but its chunks cannot be read. Pure.
 */
#include "parse.h"

#include <errno.h>
#include <string.h>

#include <codec/chain.h>
#include <json/numbers.h>

#include "hsds2.h"
#include "parse_reference.h"

struct layout {
	const json_t *stored;	 /* "layout" */
	const json_t *requested; /* "creationProperties.layout" */
	const char *cls;	 /* class of `requested`; "" if there is none */
	const json_t *reference; /* the layout that refers to HDF5 files, or NULL */
	enum reference_layout kind;
};

static struct layout layout_of(const json_t *doc, const json_t *props)
{
	struct layout l = {
		.stored = json_object_get(doc, "layout"),
		.requested = json_object_get(props, "layout"),
		.cls = "",
	};
	const char *requested = json_text_word(l.requested, "class");
	if (requested)
		l.cls = requested;
	if (schema_reference_layout(requested, &l.kind))
		l.reference = l.requested;
	else if (schema_reference_layout(json_text_word(l.stored, "class"), &l.kind))
		l.reference = l.stored;
	return l;
}

/* ---- chunk grid ---- */

/* Returns the chunk dimensions of the document, or NULL if it has none. Those of a reference are
 * those of the HDF5 file. */
static const json_t *find_dims(const struct layout *l)
{
	const json_t *dims = json_object_get(l->reference, "hyper_dims");
	if (!dims || json_is_null(dims))
		dims = json_object_get(l->reference, "dims");
	if (!dims)
		dims = json_object_get(l->stored, "dims");
	return dims ? dims : json_object_get(l->requested, "dims");
}

/* Gets the chunk dimensions of a simple dataspace. If the document has none, nothing of the dataset
 * is stored, and the dataset counts as one chunk. */
static int chunk_dims(const struct layout *l, const struct dspace *space, uint64_t *chunk,
		      struct err *err)
{
	const json_t *dims = find_dims(l);
	uint32_t rank = 0;
	if (!dims) {
		for (uint32_t d = 0; d < space->rank; d++)
			chunk[d] = max_u64(space->dims[d], 1);
		return 0;
	}
	int rc = schema_dims(dims, &rank, chunk, err);
	if (rc)
		return err_wrap(err, rc, "dims");
	if (rank != space->rank)
		return err_set(err, -EIO, "dims: %u dimensions, the shape has %u", rank,
			       space->rank);
	for (uint32_t d = 0; d < rank; d++) {
		if (chunk[d] == 0 && space->dims[d] != 0)
			return err_set(err, -EIO, "dims: dimension %u is 0", d);
		chunk[d] = max_u64(chunk[d], 1); /* the dataset is empty, so it has no chunks */
	}
	return 0;
}

static int parse_grid(struct schema_ctx *ctx, const struct layout *l, struct dataset *ds,
		      struct err *err)
{
	uint64_t chunk[DSPACE_MAX_RANK] = {1};
	static const uint64_t one = 1;
	uint64_t bytes;
	int rc;
	if (ds->space.cls == DSPACE_NULL)
		return 0;
	if (ds->space.cls == DSPACE_SCALAR) {
		rc = grid_init(ctx->arena, &ds->grid, 1, &one, chunk, err);
		return rc ? schema_defect(err) : 0;
	}
	if (l->reference && l->kind == REFERENCE_CONTIGUOUS)
		schema_reference_cut(&ds->space, ds->type->size, chunk);
	else if ((rc = chunk_dims(l, &ds->space, chunk, err)))
		return rc;
	if (grid_init(ctx->arena, &ds->grid, ds->space.rank, ds->space.dims, chunk, err))
		return schema_defect(err);
	if (!mul_u64(ds->grid.chunk_elems, ds->type->size, &bytes) || bytes > UINT32_MAX)
		return err_set(err, -EIO, "chunks of 4 GiB or more");
	return 0;
}

/* Drops a reference that is damaged. `why` describes the defect. */
static int leave_reference(struct schema_ctx *ctx, struct layout *l, struct dataset *ds,
			   const struct err *why, struct err *err)
{
	static const char text[] = "its reference to HDF5 files is damaged: ";
	const size_t n = strlen(why->msg);
	char *reason = arena_alloc(ctx->arena, sizeof(text) + n);
	if (why->code == -ENOMEM || !reason)
		return err_no_memory(err);
	memcpy(reason, text, sizeof(text) - 1);
	memcpy(reason + sizeof(text) - 1, why->msg, n + 1);
	l->reference = NULL;
	ds->reference = NULL;
	ds->reference_damaged = true;
	ds->absence_unknown = reason;
	return 0;
}

/* Sets the grid. If the dimensions of a reference are damaged, drops the reference and tries
 * again. */
static int parse_grid_anyway(struct schema_ctx *ctx, struct layout *l, struct dataset *ds,
			     struct err *err)
{
	struct err why = ERR_INIT;
	if (!l->reference)
		return parse_grid(ctx, l, ds, err);
	int rc = parse_grid(ctx, l, ds, &why);
	if (rc)
		rc = leave_reference(ctx, l, ds, &why, err);
	return rc || l->reference ? rc : parse_grid(ctx, l, ds, err);
}

/* Sets the chunk shape that the creator requested, if it is valid and differs from the stored
 * one. */
static int parse_requested_chunk(struct schema_ctx *ctx, const struct layout *l,
				 const json_t *hsmount, struct dataset *ds, struct err *err)
{
	const json_t *own = json_object_get(hsmount, "chunk");
	const json_t *dims = own ? own : json_object_get(l->requested, "dims");
	uint64_t given[DSPACE_MAX_RANK];
	uint32_t rank = 0;
	bool same = true;
	if (ds->requested != LAYOUT_CHUNKED || ds->space.cls != DSPACE_SIMPLE || !dims)
		return 0;
	struct err ignored = ERR_INIT;
	if (schema_dims(dims, &rank, given, &ignored) || rank != ds->grid.rank)
		return 0;
	uint32_t *chunk = arena_array(ctx->arena, rank, sizeof(*chunk));
	if (!chunk)
		return err_errno(err, -ENOMEM, "layout");
	for (uint32_t d = 0; d < rank; d++) {
		if (given[d] == 0 || given[d] > UINT32_MAX)
			return 0;
		chunk[d] = (uint32_t)given[d];
		same = same && chunk[d] == ds->grid.chunk[d];
	}
	ds->requested_chunk = same ? NULL : chunk;
	return 0;
}

/* Returns whether a class is that of a layout that refers to other files, known or not. */
static bool is_ref(const char *cls)
{
	return cls && strstr(cls, "_REF");
}

static int parse_locator(struct schema_ctx *ctx, struct layout *l, const struct schema_id *id,
			 struct dataset *ds, struct err *err)
{
	struct err why = ERR_INIT;
	struct hsds2_locator *loc = arena_alloc(ctx->arena, sizeof(*loc));
	const json_t *partitions = json_object_get(l->stored, "partition_count");
	uint64_t n = 1;
	if (!loc)
		return err_errno(err, -ENOMEM, "layout");
	if (partitions && !json_is_null(partitions) &&
	    (!schema_count(partitions, &n) || n > INT32_MAX))
		return err_set(err, -EIO, "partition_count: not a count");
	loc->partition_count = n > 1 ? (uint32_t)n : 1;
	loc->id = *id;
	ds->locator = loc;
	int rc = 0;
	if (l->reference && !dtype_is_plain(ds->type)) {
		l->reference = NULL;
		ds->absence_unknown = "variable-length data and references in another HDF5 file "
				      "cannot be read";
	}
	if (l->reference && schema_reference_parse(ctx, l->reference, l->kind, ds, &why))
		rc = leave_reference(ctx, l, ds, &why, err);
	loc->is_ref =
		!l->reference && (is_ref(l->cls) || is_ref(json_text_word(l->stored, "class")));
	if (loc->is_ref && !ds->absence_unknown)
		ds->absence_unknown = "its data is in another file, in a layout that is not known";
	return rc;
}

/* ---- creation properties ---- */

static int parse_filters(struct schema_ctx *ctx, const json_t *props, const json_t *hsmount,
			 struct dataset *ds, struct err *err)
{
	const json_t *exact = json_object_get(hsmount, "filters");
	const json_t *served = json_object_get(props, "filters");
	struct pipeline p;
	int rc = schema_pipeline(ctx, exact ? exact : served, &p, err);
	if (rc || p.n == 0)
		return rc;
	/* The list "filters" of "hsmount" has all parameters of a filter. So if it has none there,
	 * the filter gets no default parameter. */
	for (uint32_t i = 0; exact && i < p.n; i++)
		if (!json_array_size(json_object_get(json_array_get(exact, i), "parameters")))
			p.f[i].nparams = 0;
	struct filter *filters = arena_array(ctx->arena, p.n, sizeof(*filters));
	if (!filters)
		return err_set(err, -ENOMEM, "out of memory: %u filters", p.n);
	memcpy(filters, p.f, p.n * sizeof(*filters));
	ds->filters = filters;
	ds->nfilters = p.n;
	return 0;
}

/* Plans how stored chunks become elements. The plan depends on all other members. The chunks of a
 * reference are in HDF5 files; all others are chunk objects. */
static int plan_chain(struct schema_ctx *ctx, const json_t *props, struct dataset *ds,
		      struct err *err)
{
	const uint64_t n = ds->grid.chunk_elems;
	struct service_filters served;
	struct codec_plan plan;
	struct pipeline p;
	const int rc = schema_service_filters(ctx, json_object_get(props, "filters"), &served, err);
	if (rc)
		return err_wrap(err, rc, "filters");
	dataset_pipeline(ds, &p);
	if (ds->reference)
		codec_plan_file(&plan, ds->type, n, ds->filters, ds->nfilters,
				ds->reference->exact);
	else
		codec_plan_object(&plan, ds->type, n, &p,
				  ctx->form == SCHEMA_ID_V1 ? OBJECT_UNSHUFFLED : OBJECT_SHUFFLED,
				  &served);
	ds->chain = codec_chain_copy(&plan.chain, ctx->arena);
	return ds->chain ? 0 : err_errno(err, -ENOMEM, "filters");
}

static int parse_fill(struct schema_ctx *ctx, const json_t *props, struct dataset *ds,
		      struct err *err)
{
	const json_t *v = json_object_get(props, "fillValue");
	const char *word = json_string_value(v);
	const char *coded = json_text_word(props, "fillValue_encoding");
	bool is_text = ds->type->cls == DTYPE_STRING || ds->type->cls == DTYPE_OPAQUE ||
		       (ds->type->cls == DTYPE_VLEN && ds->type->vlen.is_string);
	const json_t *exact = json_object_get(json_object_get(props, "hsmount"), "fillValue");
	ds->fill_defined = json_is_null(exact); /* a string that has never been set */
	if (!v || json_is_null(v) || (word && !coded && strcmp(word, "None") == 0))
		return 0;
	if (word && word[0] == '\0' && !is_text)
		return 0;
	ctx->unset = json_object_get(json_object_get(props, "hsmount"), "unset");
	if (exact && !ds->fill_defined) {
		v = exact;
		coded = "base64";
	}
	const int rc = schema_fill_value(ctx, ds->type, v, coded, &ds->fill, err);
	ds->fill_defined = rc == 0;
	return rc;
}

const char *const schema_alloc_times[] = {
	[ALLOC_TIME_EARLY] = "H5D_ALLOC_TIME_EARLY",
	[ALLOC_TIME_LATE] = "H5D_ALLOC_TIME_LATE",
	[ALLOC_TIME_INCR] = "H5D_ALLOC_TIME_INCR",
};
const char *const schema_fill_times[] = {
	[FILL_TIME_ALLOC] = "H5D_FILL_TIME_ALLOC",
	[FILL_TIME_NEVER] = "H5D_FILL_TIME_NEVER",
	[FILL_TIME_IFSET] = "H5D_FILL_TIME_IFSET",
};

static void parse_times(const json_t *props, struct dataset *ds)
{
	const int alloc = schema_word_index(json_text_word(props, "allocTime"), schema_alloc_times,
					    ALLOC_TIME_INCR + 1);
	const int fill = schema_word_index(json_text_word(props, "fillTime"), schema_fill_times,
					   FILL_TIME_IFSET + 1);
	/* The defaults of libhdf5. */
	static const enum alloc_time by_layout[] = {
		[LAYOUT_COMPACT] = ALLOC_TIME_EARLY,
		[LAYOUT_CONTIGUOUS] = ALLOC_TIME_LATE,
		[LAYOUT_CHUNKED] = ALLOC_TIME_INCR,
	};
	ds->alloc_time = alloc < 0 ? by_layout[ds->requested] : (enum alloc_time)alloc;
	ds->fill_time = fill < 0 ? FILL_TIME_IFSET : (enum fill_time)fill;
}

/* Parses arguments such as "--start=5". Ignores "--stop", because the shape of the dataset limits
 * the values. */
static int parse_arange(const json_t *list, struct dataset *ds, struct err *err)
{
	ds->initializer = INITIALIZER_ARANGE;
	ds->arange_start = 0;
	ds->arange_step = 1;
	for (size_t i = 1; i < json_array_size(list); i++) {
		static const char start[] = "--start=";
		static const char step[] = "--step=";
		const char *word = json_string_value(json_array_get(list, i));
		bool is_start = word && strncmp(word, start, sizeof(start) - 1) == 0;
		bool is_step = word && strncmp(word, step, sizeof(step) - 1) == 0;
		if (!is_start && !is_step)
			continue;
		const char *text = word + (is_start ? sizeof(start) : sizeof(step)) - 1;
		struct json_number num;
		if (!json_number_text(text, strlen(text), &num))
			return err_set(err, -EIO, "\"%.64s\": not a number", word);
		if (is_start)
			ds->arange_start = num.real;
		else
			ds->arange_step = num.real;
	}
	return 0;
}

static int parse_initializer(struct schema_ctx *ctx, const json_t *props, struct dataset *ds,
			     struct err *err)
{
	const json_t *list = json_object_get(props, "initializer");
	const char *word = json_is_string(list) ? json_string_value(list)
						: json_string_value(json_array_get(list, 0));
	if (word && strcmp(word, "arange") == 0)
		return parse_arange(list, ds, err);
	if (word && !ds->reference_damaged)
		ds->absence_unknown = "its chunk table has not been filled by the service yet";
	return word && strcmp(word, "chunklocator") == 0 ? schema_chunk_locator(ctx, list, ds, err)
							 : 0;
}

int schema_dataset(struct schema_ctx *ctx, const json_t *doc, const struct schema_id *id,
		   struct object *o, struct err *err)
{
	struct dataset *ds = &o->dataset;
	const json_t *props = json_object_get(doc, "creationProperties");
	const json_t *hsmount = json_object_get(props, "hsmount");
	struct layout l = layout_of(doc, props);
	int rc = schema_type(ctx, json_object_get(doc, "type"), &ds->type, &ds->committed, err);
	if (rc)
		return err_wrap(err, rc, "type");
	rc = schema_space(ctx->arena, json_object_get(doc, "shape"), &ds->space, err);
	if (rc)
		return err_wrap(err, rc, "shape");
	rc = parse_grid_anyway(ctx, &l, ds, err);
	if (rc)
		return err_wrap(err, rc, "layout");
	const char *exact = json_text_word(hsmount, "layout");
	const bool is_exact = exact && (strcmp(exact, "H5D_COMPACT") == 0 ||
					strcmp(exact, "H5D_CONTIGUOUS") == 0);
	const char *cls = is_exact ? exact : l.cls;
	if (strcmp(cls, "H5D_COMPACT") == 0)
		ds->requested = LAYOUT_COMPACT;
	else if (strncmp(cls, "H5D_CONTIGUOUS", 14) == 0)
		ds->requested = LAYOUT_CONTIGUOUS;
	else if (strncmp(cls, "H5D_CHUNKED", 11) == 0 || ds->grid.nchunks > 1)
		ds->requested = LAYOUT_CHUNKED;
	else
		ds->requested = LAYOUT_CONTIGUOUS;
	rc = parse_requested_chunk(ctx, &l, hsmount, ds, err);
	if (rc)
		return rc;
	parse_times(props, ds);
	rc = parse_filters(ctx, props, hsmount, ds, err);
	if (rc)
		return err_wrap(err, rc, "filters");
	rc = parse_fill(ctx, props, ds, err);
	if (rc)
		return err_wrap(err, rc, "fillValue");
	rc = parse_initializer(ctx, props, ds, err);
	if (rc)
		return err_wrap(err, rc, "initializer");
	rc = parse_locator(ctx, &l, id, ds, err);
	if (rc)
		return err_wrap(err, rc, "layout");
	return plan_chain(ctx, props, ds, err);
}
