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

/* -EINVAL: h5file/ finds an object elsewhere than image_header() says. *n: objects that are in the
 * file. */
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

#endif
