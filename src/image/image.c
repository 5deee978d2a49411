/* SPDX-License-Identifier: Apache-2.0 */
/* Creation and release of images. */
#include <image/image.h>

#include <errno.h>
#include <string.h>

#include <prefetch/kernel.h>

#include "image_plan.h"

static void free_object(struct image_object *o)
{
	for (uint32_t i = 0; o->values && i < o->node->o.nattrs; i++)
		bytes_release(&o->values[i]);
	free(o->values);
	o->values = NULL;
}

struct image *image_ref(struct image *img)
{
	atomic_fetch_add_explicit(&img->refs, 1, memory_order_relaxed);
	return img;
}

void image_unref(struct image *img)
{
	if (!img || atomic_fetch_sub_explicit(&img->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (img->owner)
		cache_owner_free(img->owner);
	for (uint32_t i = 0; img->datasets && i < img->ndatasets; i++) {
		struct elems *fill = img->datasets[i].own_fill;
		if (fill)
			elems_release(fill);
		free(fill);
		free(img->datasets[i].windows);
		dataset_forget_found(&img->datasets[i]);
	}
	for (uint32_t i = 0; img->objects && i < img->nobjects; i++)
		free_object(&img->objects[i]);
	values_free(img);
	free(img->datasets);
	free(img->objects);
	free(img->header_addr);
	free(img->dataset_of);
	free(img->extents);
	free(img->meta);
	packed_bytes_free(img->packed);
	free(img->dir);
	budget_set(&img->charge, 0, NULL);
	free(img);
}

/* Returns the bytes of the largest slots, which most of the file consists of. A dataset of one
 * slot, such as a coordinate, counts only if there is no other. If the source joins the loads of
 * neighbouring chunks, a small slot costs no request of its own, so it counts like a large one. */
static uint64_t largest_slot(const struct image *img)
{
	uint64_t single = 0, largest = 0;
	for (uint32_t i = 0; i < img->ndatasets; i++) {
		const struct image_dataset *d = &img->datasets[i];
		const uint64_t bytes = d->joined > 1 ? KERNEL_READ_AHEAD : d->stride;
		if (d->nslots == 1)
			single = max_u64(single, bytes);
		else if (d->nslots > 1)
			largest = max_u64(largest, bytes);
	}
	return largest ? largest : single;
}

int image_new(const struct env *env, struct cache *cache, const struct tree *tree,
	      const struct chunk_source *chunks, const struct image_options *opt,
	      struct image **out, struct err *err)
{
	struct image *img = calloc(1, sizeof(*img));
	*out = NULL;
	if (!img)
		return err_no_memory(err);
	atomic_init(&img->refs, 1);
	img->env = env;
	img->tree = tree;
	img->chunks = *chunks;
	img->charge = (struct budget_charge){.budget = env->budget, .use = BUDGET_PLANS};
	img->flags = opt->flags;
	img->file_name = opt->file_name;
	img->suffix = opt->suffix;
	img->block = tree_user_block(tree);
	img->base = img->block ? img->block->size : 0;
	img->dir = strdup(opt->domain_dir ? opt->domain_dir : "");
	int rc = img->dir ? image_plan(img, err) : err_no_memory(err);
	if (!rc) {
		const struct cache_source source = image_source(img);
		/* The attribute values in file form are part of the metadata now. */
		for (uint32_t i = 0; i < img->nobjects; i++)
			free_object(&img->objects[i]);
		for (uint32_t i = 0; i < img->ndatasets; i++)
			dataset_costs(&img->datasets[i]);
		img->read_ahead = opt->flags & IMAGE_DISTANT ? kernel_read_ahead(largest_slot(img))
							     : KERNEL_READ_AHEAD;
		image_set_read_ahead(img, img->read_ahead);
		img->owner = cache_owner_new(cache, &source, err);
		rc = img->owner ? 0 : -ENOMEM;
	}
	if (rc) {
		image_unref(img);
		return rc;
	}
	*out = img;
	return 0;
}

void image_forget_chunks(struct image *img)
{
	cache_owner_clear(img->owner);
	for (uint32_t i = 0; i < img->ndatasets; i++)
		dataset_forget_found(&img->datasets[i]);
	atomic_store(&img->found_holes, 0);
}

uint64_t image_size(const struct image *img)
{
	return img->base + img->size;
}

uint64_t image_base(const struct image *img)
{
	return img->base;
}

uint64_t image_allocated(const struct image *img)
{
	return img->base + img->allocated - atomic_load(&img->found_holes);
}

uint64_t image_certain(const struct image *img)
{
	uint64_t sum = image_allocated(img);
	for (uint32_t i = 0; i < img->ndatasets; i++)
		if (dataset_is_uncertain(&img->datasets[i]))
			sum -= img->datasets[i].raw_bytes;
	return sum;
}

uint64_t image_read_ahead(const struct image *img)
{
	return img->read_ahead;
}

void image_set_read_ahead(struct image *img, uint64_t bytes)
{
	atomic_store(&img->kernel_ahead, min_u64(bytes, KERNEL_READ_AHEAD));
}

void image_get_stats(const struct image *img, struct cache_owner_stats *out)
{
	cache_owner_get_stats(img->owner, out);
}

uint64_t image_fetched(const struct image *img)
{
	return atomic_load_explicit(&img->fetched, memory_order_relaxed);
}

uint64_t image_header(const struct image *img, uint32_t number)
{
	return number < tree_numbers(img->tree) ? img->header_addr[number] : H5_UNDEF;
}
