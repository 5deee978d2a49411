/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large attributes. Their message is a huge object of the fractal heap. The heap holds only its
 * address, so it is not part of the metadata in memory. The image keeps the message up to the
 * value. Reads of the file take the value from the tree, where its unset part takes no memory,
 * however long it is.
 */
#include "image_plan.h"

#include <errno.h>
#include <string.h>

#include <base/search.h>
#include <h5/fheap.h>
#include <h5/message.h>

/* Returns the bytes of the attribute message before the value, which do not depend on addresses. */
static uint64_t head_size(const struct image *img, const struct image_object *o, uint32_t i)
{
	struct emit count = emit_count();
	struct h5_attr attr;
	attr_message(img, o, i, &attr);
	attr.data_len = 0;
	h5_attr_encode(&count, &attr);
	return count.pos;
}

static bool is_large(const struct image *img, const struct image_object *o, uint32_t i)
{
	const uint64_t len = attribute_bytes(&o->node->o.attrs[i]);
	return o->attrs_dense && head_size(img, o, i) + len > h5_fheap_attrs.max_managed;
}

static uint64_t count_large(const struct image *img)
{
	uint64_t n = 0;
	for (uint32_t k = 0; k < img->nobjects; k++)
		for (uint32_t i = 0; i < img->objects[k].node->o.nattrs; i++)
			n += is_large(img, &img->objects[k], i);
	return n;
}

int values_plan(struct image *img, struct err *err)
{
	const uint64_t n = count_large(img);
	img->values = n < UINT32_MAX ? calloc(n ? n : 1, sizeof(*img->values)) : NULL;
	if (!img->values)
		return err_set(err, -ENOMEM, "out of memory: %llu large attributes",
			       (unsigned long long)n);
	for (uint32_t k = 0; k < img->nobjects; k++) {
		struct image_object *o = &img->objects[k];
		o->first_large = img->nvalues;
		for (uint32_t i = 0; i < o->node->o.nattrs; i++) {
			if (!is_large(img, o, i))
				continue;
			const struct attribute *a = &o->node->o.attrs[i];
			img->values[img->nvalues++] = (struct image_value){
				.attr = i,
				.elems = &a->value,
				.size = head_size(img, o, i) + attribute_bytes(a),
			};
		}
		o->nlarge = img->nvalues - o->first_large;
	}
	return 0;
}

struct image_value *value_find(const struct image *img, const struct image_object *o, uint32_t attr)
{
	struct image_value *values = &img->values[o->first_large];
	const uint32_t found = LOWER_BOUND(i, o->nlarge, values[i].attr < attr);
	return found < o->nlarge && values[found].attr == attr ? &values[found] : NULL;
}

int value_relocate(struct image *img, const struct attribute *a, struct image_value *v,
		   struct h5_gheap_writer *heap, struct err *err)
{
	if (dtype_is_plain(a->type))
		return 0;
	v->elems = &v->own;
	return relocate_copy(img, a->type, a->value.fixed.len / a->type->size, &a->value, heap,
			     &v->own.fixed, err);
}

void image_take_values(void *image, uint32_t i, struct object *o)
{
	struct image *img = image;
	const struct image_object *at = &img->objects[i];
	for (uint32_t k = at->first_large; k < at->first_large + at->nlarge; k++) {
		struct image_value *v = &img->values[k];
		struct elems *value = &o->attrs[v->attr].value;
		if (v->elems != value)
			continue;
		v->own = *value;
		v->elems = &v->own;
		*value = (struct elems){0};
	}
}

static int encode_head(struct image *img, const struct image_object *o, struct image_value *v,
		       struct err *err)
{
	struct h5_attr attr;
	const uint64_t n = head_size(img, o, v->attr);
	if (bytes_reserve(&v->head, (size_t)n))
		return err_set(err, -ENOMEM, "out of memory: an attribute message");
	struct emit e = emit_to(v->head.data, (size_t)n);
	attr_message(img, o, v->attr, &attr);
	attr.data_len = 0;
	h5_attr_encode(&e, &attr);
	v->head.len = (size_t)n;
	return e.bad ? err_set(err, -EIO, "a length in a message is larger than its field") : 0;
}

int values_place(struct image *img, uint64_t *at, struct err *err)
{
	for (uint32_t k = 0; k < img->nobjects; k++) {
		const struct image_object *o = &img->objects[k];
		for (uint32_t i = o->first_large; i < o->first_large + o->nlarge; i++) {
			struct image_value *v = &img->values[i];
			int rc = encode_head(img, o, v, err);
			if (rc)
				return err_wrap(err, rc, "object %s", o->node->o.id);
			v->addr = *at;
			rc = advance(at, align_u64(v->size, 8), err);
			if (rc)
				return rc;
		}
	}
	return 0;
}

void value_read(const struct image_value *v, uint64_t at, uint8_t *buf, size_t n)
{
	const size_t head = at < v->head.len ? (size_t)min_u64(n, v->head.len - at) : 0;
	if (head)
		memcpy(buf, v->head.data + at, head);
	elems_read(v->elems, at + head - v->head.len, buf + head, n - head);
}

uint64_t value_stored_bytes(const struct image_value *v)
{
	return v->head.len + elems_end(v->elems);
}

uint64_t values_memory(const struct image *img)
{
	uint64_t sum = (uint64_t)img->nvalues * sizeof(*img->values);
	for (uint32_t i = 0; i < img->nvalues; i++)
		sum += img->values[i].head.cap + img->values[i].own.fixed.cap +
		       img->values[i].own.heap.cap;
	return sum;
}

void values_free(struct image *img)
{
	for (uint32_t i = 0; i < img->nvalues; i++) {
		bytes_release(&img->values[i].head);
		elems_release(&img->values[i].own);
	}
	free(img->values);
}
