/* SPDX-License-Identifier: Apache-2.0 */
/* See linked_data.h. */
#include "linked_data.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <base/mem.h>
#include <base/search.h>
#include <base/str.h>
#include <data/describe.h>
#include <data/tree.h>
#include <domain/domain.h>
#include <image/image.h>
#include <overlay/draft.h>
#include <update/update.h>

/* The data of one dataset, [start, end) of the file. */
struct linked {
	uint64_t start, end;
	uint32_t number; /* in the tree of the domain */
	atomic_bool is_free, is_refused;
};

struct linked_data {
	const struct image *image;
	const struct tree *tree;
	uint32_t n;
	struct linked v[]; /* in the order of the file */
};

static bool is_linked(const struct tree *t, const struct image_layout *at)
{
	const struct dataset *ds = &tree_object(t, at->number)->o.dataset;
	return at->bytes > 0 && (ds->reference || ds->initializer != INITIALIZER_NONE);
}

static uint32_t count(const struct tree *t, const struct image *img)
{
	struct image_layout at;
	uint32_t n = 0;
	for (uint32_t i = 0; image_layout(img, i, &at); i++)
		n += is_linked(t, &at);
	return n;
}

static int by_start(const void *a, const void *b)
{
	const struct linked *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

struct linked_data *linked_data_new(const struct domain *d, const struct image *img)
{
	const struct tree *t = domain_tree(d);
	const uint32_t n = count(t, img);
	struct linked_data *l = calloc(1, sizeof(*l) + n * sizeof(l->v[0]));
	struct image_layout at;
	if (!l)
		return NULL;
	l->image = img;
	l->tree = t;
	for (uint32_t i = 0; image_layout(img, i, &at); i++) {
		if (!is_linked(t, &at))
			continue;
		struct linked *x = &l->v[l->n++];
		x->start = image_base(img) + at.addr;
		x->end = x->start + at.bytes;
		x->number = at.number;
	}
	qsort(l->v, l->n, sizeof(l->v[0]), by_start);
	return l;
}

void linked_data_free(struct linked_data *l)
{
	free(l);
}

/* Returns whether a byte of [start, end) is that of the image, and was neither written nor cut
 * off. */
static bool is_beneath(const struct linked_data *l, struct draft *bytes, uint64_t start,
		       uint64_t end)
{
	struct draft_extent x = {.end = start};
	if (!bytes)
		return start < image_size(l->image);
	while (x.end < end && draft_next_extent(bytes, &x))
		if (x.kind == DRAFT_BENEATH)
			return true;
	return false;
}

static int refuse(const struct linked_data *l, struct linked *x, bool *is_first, struct err *err)
{
	auto_str struct str name = {0};
	struct object_paths *paths = object_paths_new(l->tree);
	const struct object *o = &tree_object(l->tree, x->number)->o;
	const struct reference *ref = o->dataset.reference;
	*is_first = !atomic_exchange(&x->is_refused, true);
	if (paths)
		describe_path(&name, paths, x->number);
	object_paths_free(paths);
	return err_set(err, -EROFS,
		       "no program can write to the dataset %s, because its data are %s%s; to "
		       "replace the dataset, remove it and close the file first",
		       name.b.len ? (const char *)name.b.data : o->id,
		       ref ? "in the file " : "computed", ref ? ref->file.uri : "");
}

int linked_data_check(struct linked_data *l, struct draft *bytes, uint64_t offset, uint64_t n,
		      bool *is_first, struct err *err)
{
	const uint64_t end = n > UINT64_MAX - offset ? UINT64_MAX : offset + n;
	*is_first = false;
	for (uint32_t i = LOWER_BOUND(k, l->n, l->v[k].end <= offset);
	     i < l->n && l->v[i].start < end; i++) {
		struct linked *x = &l->v[i];
		if (!atomic_load(&x->is_free) &&
		    is_beneath(l, bytes, max_u64(offset, x->start), min_u64(end, x->end)))
			return refuse(l, x, is_first, err);
	}
	return 0;
}

bool linked_data_is_refused(void *l, uint32_t number)
{
	struct linked_data *all = l;
	for (uint32_t i = 0; i < all->n; i++)
		if (all->v[i].number == number)
			return atomic_load(&all->v[i].is_refused);
	return false;
}

void linked_data_committed(struct linked_data *l, const struct update_base *base)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (!update_base_has(base, l->v[i].number))
			atomic_store(&l->v[i].is_free, true);
}
