/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The global heap collections of a chunk. Of most of them only the header is read, which has the
 * size. Items are read only if they are not of a plain type (dtype_is_plain()).
 *
 * The set of addresses has at most as many entries as there are vlens and region references in the
 * elements and in the items that were read. Items are limited as in values_decode().
 */
#include "heaps.h"

#include <h5/gheap.h>

#include "values.h"

struct visit {
	struct elems_walker walker;
	struct values_items items;
	struct h5_addrs seen; /* addresses of collections */
	uint64_t last;	      /* the address that was seen last */
	int (*fn)(void *ctx, uint64_t addr, uint64_t size);
	void *ctx;
	struct err *err;
};

static int visit_collection(struct visit *v, uint64_t addr)
{
	uint64_t size;
	int rc = addr == v->last ? 0 : h5_addrs_add(&v->seen, addr, 0);
	if (rc <= 0)
		return rc ? err_no_memory(v->err) : 0;
	v->last = addr;
	rc = h5_gheap_size(&v->items.f->file, addr, &size, v->err);
	return rc ? rc : v->fn(v->ctx, addr, size);
}

static int visit_vlen(void *ctx, const struct dtype *t, uint8_t *elem)
{
	struct visit *v = ctx;
	const struct dtype *base = t->vlen.base;
	auto_bytes struct bytes items = {0};
	struct values_vlen value;
	if (!values_vlen(elem, &value) || !value.count)
		return 0;
	int rc = visit_collection(v, value.addr);
	if (rc || dtype_is_plain(base))
		return rc;
	rc = values_read(&v->items, base, &value, &items, v->err);
	return rc ? rc : elems_walk(base, items.data, value.count, &v->walker);
}

static int visit_reference(void *ctx, const struct dtype *t, uint8_t *elem)
{
	uint64_t addr;
	uint32_t index;
	const bool is_set =
		t->reference.kind == DTYPE_REF_REGION && values_region(elem, &addr, &index);
	return is_set ? visit_collection(ctx, addr) : 0;
}

int heaps_visit(struct h5file *f, const struct dtype *t, struct bytes *in, uint64_t n,
		int (*fn)(void *ctx, uint64_t addr, uint64_t size), void *ctx, struct err *err)
{
	struct visit v = {.walker = {visit_vlen, visit_reference, &v},
			  .items = values_items_of(f),
			  .last = H5_UNDEF,
			  .fn = fn,
			  .ctx = ctx,
			  .err = err};
	int rc = values_widen(f, t, in, n, err);
	if (!rc)
		rc = elems_walk(t, in->data, n, &v.walker);
	h5_addrs_release(&v.seen);
	return rc;
}
