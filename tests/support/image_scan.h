/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an image with h5file/, and compares where both say that the objects are. */
#ifndef SUPPORT_IMAGE_SCAN_H
#define SUPPORT_IMAGE_SCAN_H

#include <errno.h>
#include <stdlib.h>

#include <data/tree_diff.h>
#include <h5file/h5file.h>
#include <image/image.h>

struct image_scan {
	const struct tree *tree;
	struct image *img;
	struct source source;
	struct h5file *file;
	uint32_t *map; /* numbers of the tree: numbers of the same objects in the file */
};

static inline int image_scan_read(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct image_scan *s = ctx;
	const ssize_t got = image_read(s->img, NULL, buf, n, offset, NULL, err);
	return got == (ssize_t)n ? 0 : got < 0 ? (int)got : err_set(err, -EIO, "short read");
}

/* Opens the image as a file, and finds which objects of it are those of the tree by their links. */
static inline int image_scan_open(struct image_scan *s, struct image *img, const struct tree *tree,
				  struct err *err)
{
	static const struct tree_diff_sink none = {0};
	uint64_t differences;
	*s = (struct image_scan){.tree = tree, .img = img};
	s->source = (struct source){.size = image_size(img), .read_at = image_scan_read, .ctx = s};
	s->map = calloc(tree_numbers(tree), sizeof(*s->map));
	int rc = s->map ? h5file_open(&s->source, NULL, &s->file, err) : -ENOMEM;
	return rc ? rc : tree_diff(tree, h5file_tree(s->file), 0, &none, s->map, &differences, err);
}

static inline void image_scan_close(struct image_scan *s)
{
	h5file_close(s->file);
	free(s->map);
}

/* Fails with -EINVAL if h5file/ finds an object elsewhere than image_header() says. *n is the
 * number of objects that are in the file. */
static inline int image_scan_headers(const struct image_scan *s, uint32_t *n, struct err *err)
{
	*n = 0;
	for (uint32_t i = 0; i < tree_numbers(s->tree); i++) {
		const struct object *o = &tree_object(s->tree, i)->o;
		const uint64_t addr = image_header(s->img, i);
		const uint32_t found = h5file_at(s->file, addr);
		struct h5file_header h = {0};
		if (found != s->map[i] || (found == OBJECT_NONE) != (addr == UINT64_MAX))
			return err_set(err, -EINVAL, "%s: object %u at %llu is object %u, not %u",
				       o->id, i, (unsigned long long)addr, found, s->map[i]);
		if (found == OBJECT_NONE)
			continue;
		if (!h5file_header(s->file, found, &h) || h.addr != addr || h.version != 2 ||
		    h.birth_ns / 1000000000 != o->created_ns / 1000000000)
			return err_set(err, -EINVAL, "%s: the header differs", o->id);
		++*n;
	}
	return 0;
}

/* What image_scan_items() has found. */
struct image_items_found {
	uint64_t chunks, collections;
	struct image_items_range {
		uint64_t start, end;
	} * ranges; /* of all chunks, for free() */
	size_t n, cap;
};

struct image_items_visit {
	const struct image_scan *s;
	struct image_items_found *found;
	uint32_t dataset; /* in the tree */
	uint64_t chunk, start, end;
	bool has_range;
};

static inline int image_scan_collection(void *ctx, uint64_t addr, uint64_t size)
{
	const struct image_items_visit *v = ctx;
	v->found->collections++;
	return v->has_range && addr >= v->start && addr + size <= v->end ? 0 : -EINVAL;
}

static inline int image_scan_range(struct image_items_visit *v)
{
	struct image_items_found *f = v->found;
	v->has_range = image_items(v->s->img, v->dataset, v->chunk, &v->start, &v->end);
	if (!v->has_range)
		return 0;
	if (f->n == f->cap) {
		f->cap = f->cap ? 2 * f->cap : 64;
		void *more = realloc(f->ranges, f->cap * sizeof(*f->ranges));
		if (!more)
			return -ENOMEM;
		f->ranges = more;
	}
	f->ranges[f->n++] = (struct image_items_range){v->start, v->end};
	return 0;
}

static inline int image_scan_chunk(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct image_items_visit *v = ctx;
	struct h5file *f = v->s->file;
	const uint32_t number = v->s->map[v->dataset];
	struct bytes stored = {0};
	v->chunk = chunk->number;
	v->found->chunks++;
	int rc = image_scan_range(v);
	if (!rc)
		rc = h5file_chunk_read(f, chunk, &stored, err);
	if (!rc)
		rc = h5file_chunk_heaps(f, number, chunk, &stored, image_scan_collection, v, err);
	if (rc == -EINVAL)
		err_set(err, rc, "%s: chunk %llu has items outside of its range",
			tree_object(v->s->tree, v->dataset)->o.id,
			(unsigned long long)chunk->number);
	bytes_release(&stored);
	return rc;
}

static inline int image_items_order(const void *a, const void *b)
{
	const struct image_items_range *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

/* Cuts a dataset of the image into the chunks of the tree. */
static inline int image_scan_cut(const struct image_scan *s, uint32_t dataset, struct err *err)
{
	const struct dataset *ds = &tree_object(s->tree, dataset)->o.dataset;
	const uint32_t number = s->map[dataset];
	return h5file_dataset(s->file, number)->layout == LAYOUT_CHUNKED
		       ? 0
		       : h5file_set_cut(s->file, number, ds->grid.chunk, err);
}

static inline bool image_scan_has(const struct image_scan *s, uint32_t number)
{
	return s->map[number] != OBJECT_NONE &&
	       tree_object(s->tree, number)->o.kind == OBJECT_DATASET;
}

/* Fails with -EINVAL if a collection of a chunk is not in the range of image_items(), or if ranges
 * overlap. */
static inline int image_scan_items(const struct image_scan *s, struct image_items_found *found,
				   struct err *err)
{
	int rc = 0;
	*found = (struct image_items_found){.n = 0};
	for (uint32_t i = 0; !rc && i < tree_numbers(s->tree); i++) {
		struct image_items_visit v = {.s = s, .found = found, .dataset = i};
		if (!image_scan_has(s, i) || !tree_object(s->tree, i)->o.dataset.type->has_vlen)
			continue;
		rc = image_scan_cut(s, i, err);
		if (!rc)
			rc = h5file_chunks(s->file, s->map[i], 0, UINT64_MAX, image_scan_chunk, &v,
					   err);
	}
	if (found->n)
		qsort(found->ranges, found->n, sizeof(*found->ranges), image_items_order);
	for (size_t i = 1; !rc && i < found->n; i++)
		if (found->ranges[i - 1].end > found->ranges[i].start)
			rc = err_set(err, -EINVAL, "two chunks have items at %llu",
				     (unsigned long long)found->ranges[i].start);
	return rc;
}

#endif
