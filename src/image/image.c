/* SPDX-License-Identifier: Apache-2.0 */
/* An image's life. */
#include <image/image.h>

#include <errno.h>
#include <string.h>

#include "plan.h"

static void free_dataset(struct image_dataset *d)
{
	free(d->windows);
	if (!d->fill_borrowed)
		elems_release(&d->fill);
}

static void free_object(struct image_object *o)
{
	for (uint32_t i = 0; o->values && i < o->mo->o.nattrs; i++)
		bytes_release(&o->values[i]);
	free(o->values);
	o->values = NULL;
}

void image_free(struct image *img)
{
	if (!img)
		return;
	if (img->owner)
		cache_owner_free(img->owner);
	for (uint32_t i = 0; img->datasets && i < img->ndatasets; i++)
		free_dataset(&img->datasets[i]);
	for (uint32_t i = 0; img->objects && i < img->nobjects; i++)
		free_object(&img->objects[i]);
	values_free(img);
	free(img->datasets);
	free(img->objects);
	free(img->header_addr);
	free(img->extents);
	free(img->meta);
	free(img->dir);
	model_unref(img->model);
	budget_set(&img->charge, 0, NULL);
	free(img);
}

/* Relocated values are in the metadata now; headers are not encoded again. */
static void forget_values(struct image *img)
{
	for (uint32_t i = 0; i < img->nobjects; i++)
		free_object(&img->objects[i]);
}

int image_new(const struct env *env, struct cache *cache, struct model *m,
	      const struct image_options *opt, struct image **out, struct err *err)
{
	struct image *img = calloc(1, sizeof(*img));

	*out = NULL;
	if (!img)
		return err_set(err, -ENOMEM, "domain /%s: no memory", model_path(m));
	img->env = env;
	img->model = model_ref(m);
	img->charge = (struct budget_charge){.budget = env->budget, .use = BUDGET_PLANS};
	img->flags = opt->flags;
	img->file_name = opt->file_name;
	img->dir = strdup(opt->domain_dir ? opt->domain_dir : "");
	int rc = img->dir ? image_plan(img, err) : err_set(err, -ENOMEM, "no memory");
	if (!rc) {
		const struct cache_source source = image_source(img);

		forget_values(img);
		for (uint32_t i = 0; i < img->ndatasets; i++)
			dataset_costs(&img->datasets[i]);
		img->owner = cache_owner_new(cache, &source, err);
		rc = img->owner ? 0 : -ENOMEM;
	}
	if (rc) {
		err_wrap(err, rc, "domain /%s", model_path(m));
		image_free(img);
		return rc;
	}
	*out = img;
	return 0;
}

uint64_t image_size(const struct image *img)
{
	return img->size;
}

uint64_t image_allocated(const struct image *img)
{
	return img->allocated;
}

struct model *image_model(const struct image *img)
{
	return img->model;
}

uint64_t image_memory(const struct image *img)
{
	uint64_t sum = sizeof(*img) + img->meta_size;

	sum += (uint64_t)img->nobjects * sizeof(*img->objects);
	sum += (uint64_t)model_numbers(img->model) * sizeof(*img->header_addr);
	sum += (uint64_t)img->ndatasets * (sizeof(*img->datasets) + 3 * sizeof(*img->extents));
	for (uint32_t i = 0; i < img->ndatasets; i++)
		if (img->datasets[i].windows)
			sum += (img->datasets[i].known->n + 1) * sizeof(uint64_t);
	for (uint32_t i = 0; i < img->ndatasets; i++)
		if (!img->datasets[i].fill_borrowed)
			sum += img->datasets[i].fill.fixed.cap;
	return sum + values_memory(img);
}

void image_get_stats(const struct image *img, struct cache_owner_stats *out)
{
	cache_owner_get_stats(img->owner, out);
}

uint64_t image_fetched(const struct image *img)
{
	return atomic_load_explicit(&img->fetched, memory_order_relaxed);
}
