/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads back the file that is rendered from a domain, with the decoder of HDF5 files. The objects
 * of the file must be those of the domain. Its chunk indexes must have exactly the chunks that have
 * slots, at the addresses of the slots. A decoded chunk must have the elements that the domain
 * delivers.
 *
 * The image gets its chunks through a source of its own, so that a chunk that the check has just
 * fetched is not fetched again. The file may differ from the domain in:
 *   - filters, because the file has only those that every libhdf5 has;
 *   - the chunk shape of a contiguous dataset, which has no chunks in the file;
 *   - the file name of an external link, which is relative to the directory of the file;
 *   - a fill value that is too large for a header;
 *   - times before 1970 and after 2106, for which a file has no room;
 *   - a reference to an object without a link, which is null in the file.
 */
#include "check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include <data/tree_diff.h>
#include <engine/parts.h>
#include <h5file/h5file.h>
#include <image/image.h>
#include <names/names.h>

enum {
	/* Longer indexes are compared only at both ends. */
	INDEX_MAX = 10000000,
	INDEX_END = 100000,
	INDEX_FINDINGS = 10, /* for one dataset */
};

/* The chunk that the check has just fetched. */
struct held {
	bool valid;
	struct check_chunk chunk;
	const struct chunk_result *result;
};

struct check_image {
	struct domain_check *dc;
	struct chunk_source source; /* the domain's */
	struct held held;
	struct image *image;
	struct source bytes;
	struct h5file *file;
	uint32_t *map;		      /* numbers in the file, by number in the domain */
	struct image_layout *layouts; /* by number in the domain */
};

/* ---- the source of chunks ---- */

static const struct chunk_list *list_chunks(void *ctx, uint32_t dataset)
{
	const struct check_image *ci = ctx;
	return ci->source.list(ci->source.ctx, dataset);
}

static void give_held(const struct held *h, chunk_done done, void *arg)
{
	const struct elems *e = &h->result->data.elems;
	struct chunk_result copy = {.absent = h->result->absent};
	struct elems *to = &copy.data.elems;
	if (bytes_append(&to->fixed, e->fixed.data, e->fixed.len) ||
	    bytes_append(&to->heap, e->heap.data, e->heap.len)) {
		elems_release(to);
		copy.code = err_set(&copy.err, -ENOMEM, "out of memory: a chunk");
	}
	done(arg, &copy);
}

static void get_chunk(void *ctx, const struct chunk_request *request, chunk_done done, void *arg)
{
	const struct check_image *ci = ctx;
	const struct held *h = &ci->held;
	if (h->valid && h->chunk.dataset == request->dataset && h->chunk.number == request->number)
		give_held(h, done, arg);
	else
		ci->source.get(ci->source.ctx, request, done, arg);
}

/* ---- the bytes ---- */

/* Reads from the file without its user block, so that addresses are offsets. */
static int read_at(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	const struct check_image *ci = ctx;
	for (size_t done = 0; done < n;) {
		const ssize_t got = image_read(ci->image, NULL, (uint8_t *)buf + done, n - done,
					       image_base(ci->image) + offset + done, NULL, err);
		if (got <= 0)
			return got < 0 ? (int)got : err_set(err, -EIO, "the file ends early");
		done += (size_t)got;
	}
	return 0;
}

/* ---- the objects ---- */

static int report_difference(void *ctx, const char *path, const char *text)
{
	const struct check_image *ci = ctx;
	return check_find(ci->dc->c, ENGINE_CHECK_ERROR, path, NULL, "the rendered file: %s", text);
}

static int file_name(void *ctx, const char *file, char *out, size_t room)
{
	const struct check_image *ci = ctx;
	return image_external_file(ci->image, file, out, room);
}

static bool has_fill(void *ctx, uint32_t number)
{
	const struct check_image *ci = ctx;
	return !ci->layouts[number].fill_hidden;
}

/* Returns whether a file has room for all times of the domain. */
static bool times_fit(const struct tree *t)
{
	for (uint32_t i = 0; i < tree_count(t); i++) {
		const struct object *o = &tree_object(t, tree_nth(t, i))->o;
		const int64_t limit = (int64_t)UINT32_MAX * 1000000000;
		if (o->created_ns < 0 || o->created_ns > limit || o->modified_ns < 0 ||
		    o->modified_ns > limit)
			return false;
	}
	return true;
}

static int compare_trees(struct check_image *ci)
{
	const struct tree_diff_sink sink = {.difference = report_difference,
					    .file_name = file_name,
					    .has_fill = has_fill,
					    .ctx = ci};
	const struct tree *t = ci->dc->tree;
	uint64_t n;
	return tree_diff(t, h5file_tree(ci->file),
			 TREE_DIFF_ORDER | (times_fit(t) ? TREE_DIFF_TIMES : 0), &sink, ci->map, &n,
			 ci->dc->c->err);
}

/* ---- the chunk indexes ---- */

struct index_walk {
	struct check_image *ci;
	const struct image_layout *layout;
	const struct chunk_list *known;
	uint64_t slot; /* of the next chunk */
	uint64_t findings;
	int rc;
};

static uint64_t chunk_of_slot(const struct index_walk *w, uint64_t slot)
{
	return w->layout->listed ? w->known->numbers[slot] : slot;
}

static int __attribute__((format(printf, 2, 3)))
report_index(struct index_walk *w, const char *fmt, ...)
{
	auto_str struct str text = {0};
	va_list ap;
	if (w->findings++ >= INDEX_FINDINGS)
		return 0;
	va_start(ap, fmt);
	str_addv(&text, fmt, ap);
	va_end(ap);
	w->rc = check_find_at(w->ci->dc, ENGINE_CHECK_ERROR, w->layout->number, NULL,
			      "the rendered file: %s", str_text(&text));
	return w->rc;
}

static int compare_record(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct index_walk *w = ctx;
	const struct image_layout *l = w->layout;
	const uint64_t slot = w->slot++;
	if (slot >= l->slots || chunk->number != chunk_of_slot(w, slot))
		return report_index(w, "the chunk index has chunk %" PRIu64 " at place %" PRIu64,
				    chunk->number, slot);
	if (chunk->addr != l->addr + slot * l->stride || chunk->size != l->size ||
	    chunk->filter_mask)
		return report_index(w,
				    "chunk %" PRIu64 " is at %" PRIu64 " and has %" PRIu64
				    " bytes, its slot is at %" PRIu64 " and has %" PRIu64,
				    chunk->number, chunk->addr, chunk->size,
				    l->addr + slot * l->stride, l->size);
	return 0;
}

static int walk_slots(struct index_walk *w, uint64_t first, uint64_t end)
{
	struct err why = ERR_INIT;
	const uint64_t nchunks =
		tree_object(w->ci->dc->tree, w->layout->number)->o.dataset.grid.nchunks;
	const uint64_t from = first ? chunk_of_slot(w, first) : 0;
	const uint64_t to = end < w->layout->slots ? chunk_of_slot(w, end) : nchunks;
	w->slot = first;
	int rc = h5file_chunks(w->ci->file, w->ci->map[w->layout->number], from, to, compare_record,
			       w, &why);
	if (w->rc)
		return w->rc;
	if (rc)
		return report_index(w, "the chunk index cannot be read: %s", why.msg);
	if (w->slot != end)
		return report_index(w, "the chunk index has %" PRIu64 " chunks instead of %" PRIu64,
				    w->slot - first, end - first);
	return 0;
}

static int first_record(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	uint64_t *addr = ctx;
	*addr = chunk->addr;
	return 0;
}

/* Checks that the raw data of a contiguous dataset begin at its first slot. */
static int compare_contiguous(struct index_walk *w)
{
	const struct image_layout *l = w->layout;
	uint64_t addr = UINT64_MAX;
	struct err why = ERR_INIT;
	int rc = h5file_chunks(w->ci->file, w->ci->map[l->number], 0, 1, first_record, &addr, &why);
	if (rc)
		return report_index(w, "the raw data cannot be read: %s", why.msg);
	if ((l->slots ? l->addr : UINT64_MAX) != addr)
		return report_index(w, "the raw data begin at another address than their slots");
	return 0;
}

static int compare_index(struct check_image *ci, const struct image_layout *layout)
{
	struct index_walk w = {.ci = ci, .layout = layout};
	const uint32_t in_file = ci->map[layout->number];
	const struct h5file_dataset *fd =
		in_file == OBJECT_NONE ? NULL : h5file_dataset(ci->file, in_file);
	const struct dataset *ds = &tree_object(ci->dc->tree, layout->number)->o.dataset;
	if (!fd)
		return 0; /* the comparison of the trees has reported it */
	if (layout->chunked != (fd->layout == LAYOUT_CHUNKED))
		return report_index(&w, "the layout is not the planned one");
	w.known = list_chunks(ci, layout->number);
	if (!layout->chunked)
		return compare_contiguous(&w);
	if (!grid_same_chunks(&ds->grid, &fd->grid))
		return report_index(&w, "the chunks have another shape");
	if (layout->slots <= INDEX_MAX)
		return walk_slots(&w, 0, layout->slots);
	const int rc = walk_slots(&w, 0, INDEX_END);
	return rc ? rc : walk_slots(&w, layout->slots - INDEX_END, layout->slots);
}

/* ---- opening ---- */

static int make_image(struct check_image *ci, const char *mount_dir, struct err *why)
{
	struct engine *e = ci->dc->e;
	const struct image_options opt = {
		.flags = e->bucket.no_filters ? IMAGE_NO_FILTERS : 0,
		.domain_dir = mount_dir,
		.file_name = names_of_domain,
		.suffix = domain_schema(ci->dc->d)->suffix,
	};
	const struct chunk_source source = {.list = list_chunks, .get = get_chunk, .ctx = ci};
	return image_new(&e->bucket.env, e->bucket.cache, ci->dc->tree, &source, &opt, &ci->image,
			 why);
}

static int open_file(struct check_image *ci, struct err *why)
{
	const struct h5file_options opt = {.budget = ci->dc->e->bucket.env.budget};
	ci->bytes = (struct source){.size = image_size(ci->image) - image_base(ci->image),
				    .read_at = read_at,
				    .ctx = ci};
	return h5file_open(&ci->bytes, &opt, &ci->file, why);
}

int check_image_open(struct domain_check *dc, const char *mount_dir)
{
	struct err why = ERR_INIT;
	struct check_image *ci = calloc(1, sizeof(*ci));
	if (!ci)
		return err_no_memory(dc->c->err);
	*ci = (struct check_image){.dc = dc, .source = domain_chunk_source(dc->d)};
	const char *what = "rendered";
	int rc = make_image(ci, mount_dir, &why);
	if (!rc) {
		what = "read back";
		rc = open_file(ci, &why);
	}
	if (rc) {
		const bool is_damage = rc != -ENOMEM;
		check_image_close(ci);
		return check_find(dc->c, is_damage ? ENGINE_CHECK_ERROR : ENGINE_CHECK_UNCHECKED,
				  NULL, NULL, "the HDF5 file of the domain cannot be %s: %s", what,
				  why.msg);
	}
	dc->image = ci;
	const uint32_t n = tree_numbers(ci->dc->tree);
	struct image_layout layout;
	ci->map = calloc(n, sizeof(*ci->map));
	ci->layouts = calloc(n, sizeof(*ci->layouts));
	if (!ci->map || !ci->layouts)
		return err_no_memory(ci->dc->c->err);
	for (uint32_t i = 0; image_layout(ci->image, i, &layout); i++)
		ci->layouts[layout.number] = layout;
	return 0;
}

int check_image_compare(struct domain_check *dc)
{
	struct check_image *ci = dc->image;
	const struct h5file_problem *p;
	struct image_layout layout;
	int rc = 0;
	if (!ci)
		return 0;
	for (uint64_t i = 0; !rc && (p = h5file_problem(ci->file, i)); i++)
		rc = check_find(dc->c, ENGINE_CHECK_ERROR, p->path, NULL, "the rendered file: %s",
				p->text);
	if (!rc)
		rc = compare_trees(ci);
	for (uint32_t i = 0; !rc && image_layout(ci->image, i, &layout); i++)
		rc = compare_index(ci, &layout);
	return rc;
}

void check_image_close(struct check_image *ci)
{
	if (!ci)
		return;
	h5file_close(ci->file);
	image_unref(ci->image);
	free(ci->map);
	free(ci->layouts);
	free(ci);
}

/* ---- chunks ---- */

/* Returns the elements from `first` on, which are borrowed from e. */
static struct elems part(const struct elems *e, const struct dtype *t, uint64_t first)
{
	const size_t at = (size_t)min_u64(first * t->size, e->fixed.len);
	return (struct elems){
		.fixed = {.data = e->fixed.data + at, .len = e->fixed.len - at},
		.heap = e->heap,
	};
}

/* Returns the index of the first of n elements that differs between the chunk of the domain, from
 * element `from` on, and the elements of the file. Returns n if none differs. */
static uint64_t compare_elems(const struct check_image *ci, const struct dataset *ds,
			      const struct chunk_result *result, uint64_t from,
			      const struct elems *in_file, uint64_t n)
{
	static const struct elems unset;
	if (!result->absent) {
		const struct elems mine = part(&result->data.elems, ds->type, from);
		return elems_diff(ds->type, n, &mine, in_file, ci->map);
	}
	const struct elems *fill = ds->fill_defined ? &ds->fill : &unset;
	for (uint64_t i = 0; i < n; i++) {
		const struct elems one = part(in_file, ds->type, i);
		if (elems_diff(ds->type, 1, fill, &one, ci->map) == 0)
			return i;
	}
	return n;
}

struct found_chunk {
	bool found;
	struct h5file_chunk chunk;
};

static int take_record(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct found_chunk *f = ctx;
	*f = (struct found_chunk){.found = true, .chunk = *chunk};
	return 0;
}

/* Decodes chunk `number` of the grid of the file. *found becomes true if the file has the chunk. */
static int decode(struct check_image *ci, uint32_t in_file, uint64_t number, bool *found,
		  struct elems *out, struct err *why)
{
	struct found_chunk record = {0};
	auto_bytes struct bytes stored = {0};
	int rc = h5file_chunks(ci->file, in_file, number, number + 1, take_record, &record, why);
	*found = record.found;
	if (rc || !record.found)
		return rc;
	rc = h5file_chunk_read(ci->file, &record.chunk, &stored, why);
	return rc ? rc : h5file_chunk_decode(ci->file, in_file, &record.chunk, &stored, out, why);
}

static int report_chunk(struct check_image *ci, const struct check_chunk *chunk, const char *how)
{
	char key[STORE_KEY_MAX + 1] = "";
	if (domain_chunk_key(ci->dc->d, chunk->dataset, chunk->number, key, sizeof(key)) < 0)
		key[0] = '\0';
	return check_find_at(ci->dc, ENGINE_CHECK_ERROR, chunk->dataset, key,
			     "the rendered file: chunk %" PRIu64 " %s", chunk->number, how);
}

static int report_unreadable(struct check_image *ci, const struct check_chunk *chunk,
			     const struct err *why)
{
	auto_str struct str text = {0};
	str_addf(&text, "cannot be read: %s", why->msg);
	return report_chunk(ci, chunk, str_text(&text));
}

static int compare_chunked(struct check_image *ci, const struct check_chunk *chunk,
			   const struct chunk_result *result)
{
	const struct dataset *ds = &tree_object(ci->dc->tree, chunk->dataset)->o.dataset;
	__attribute__((cleanup(elems_release))) struct elems in_file = {0};
	struct err why = ERR_INIT;
	bool found;
	int rc = decode(ci, ci->map[chunk->dataset], chunk->number, &found, &in_file, &why);
	if (rc)
		return report_unreadable(ci, chunk, &why);
	if (!found)
		return result->absent ? 0 : report_chunk(ci, chunk, "is missing");
	const uint64_t n = ds->grid.chunk_elems;
	if (compare_elems(ci, ds, result, 0, &in_file, n) < n)
		return report_chunk(ci, chunk, "has other elements");
	return 0;
}

/* Compares a chunk with a contiguous dataset of the file. A chunk of the domain is a run of
 * elements, and so are the chunks into which h5file cuts the dataset. One may contain or overlap
 * the other. */
static int compare_runs(struct check_image *ci, const struct check_chunk *chunk,
			const struct chunk_result *result)
{
	const struct dataset *ds = &tree_object(ci->dc->tree, chunk->dataset)->o.dataset;
	const struct grid *g = &h5file_dataset(ci->file, ci->map[chunk->dataset])->grid;
	const uint64_t first = chunk->number * ds->grid.chunk_elems;
	const uint64_t end = min_u64(first + ds->grid.chunk_elems, ds->space.nelems);
	for (uint64_t at = first; at < end;) {
		__attribute__((cleanup(elems_release))) struct elems in_file = {0};
		struct err why = ERR_INIT;
		uint64_t number;
		bool found;
		const uint64_t start = at - grid_find(g, at, &number);
		int rc = decode(ci, ci->map[chunk->dataset], number, &found, &in_file, &why);
		if (rc)
			return report_unreadable(ci, chunk, &why);
		if (!found)
			return result->absent ? 0 : report_chunk(ci, chunk, "is missing");
		const uint64_t n = min_u64(end, start + g->chunk_elems) - at;
		const struct elems from = part(&in_file, ds->type, at - start);
		if (compare_elems(ci, ds, result, at - first, &from, n) < n)
			return report_chunk(ci, chunk, "has other elements");
		at += n;
	}
	return 0;
}

/* Compares a chunk with its slot. The bytes of plain elements are the same in the file, so the slot
 * is read directly, and no other chunk has to be fetched. */
static int compare_slot(struct check_image *ci, const struct check_chunk *chunk,
			const struct chunk_result *result)
{
	const struct image_layout *l = &ci->layouts[chunk->dataset];
	const struct dataset *ds = &tree_object(ci->dc->tree, chunk->dataset)->o.dataset;
	const uint64_t first = chunk->number * ds->grid.chunk_elems;
	const uint64_t n = min_u64(ds->grid.chunk_elems, ds->space.nelems - first);
	__attribute__((cleanup(elems_release))) struct elems in_file = {0};
	struct err why = ERR_INIT;
	if (chunk->number >= l->slots)
		return result->absent ? 0 : report_chunk(ci, chunk, "is missing");
	const size_t len = (size_t)(n * ds->type->size);
	if (bytes_reserve(&in_file.fixed, len))
		return err_no_memory(ci->dc->c->err);
	in_file.fixed.len = len;
	if (source_read(&ci->bytes, l->addr + chunk->number * l->stride, in_file.fixed.data, len,
			&why))
		return report_unreadable(ci, chunk, &why);
	if (compare_elems(ci, ds, result, 0, &in_file, n) < n)
		return report_chunk(ci, chunk, "has other elements");
	return 0;
}

int check_image_chunk(struct domain_check *dc, const struct check_chunk *chunk,
		      const struct chunk_result *result)
{
	struct check_image *ci = dc->image;
	if (!ci || ci->map[chunk->dataset] == OBJECT_NONE)
		return 0;
	const uint32_t in_file = ci->map[chunk->dataset];
	const struct h5file_dataset *fd = h5file_dataset(ci->file, in_file);
	const struct dataset *ds = &tree_object(dc->tree, chunk->dataset)->o.dataset;
	if (!fd ||
	    !dtype_equal(ds->type, tree_object(h5file_tree(ci->file), in_file)->o.dataset.type))
		return 0; /* the comparison of the trees has reported it */
	int rc;
	ci->held = (struct held){.valid = true, .chunk = *chunk, .result = result};
	if (ci->layouts[chunk->dataset].chunked)
		rc = compare_chunked(ci, chunk, result);
	else if (dtype_is_plain(ds->type))
		rc = compare_slot(ci, chunk, result);
	else
		rc = compare_runs(ci, chunk, result);
	ci->held.valid = false;
	return rc;
}
