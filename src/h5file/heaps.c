/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The global heap collections of a chunk. Of most of them only the header is read, which has the
 * size. Items are read only if they are not of a plain type (dtype_is_plain()).
 *
 * The set of addresses has at most as many entries as there are vlens and region references in the
 * elements and in the items that were read. Items are limited as in values_decode().
 */
#include "heaps.h"

#include <errno.h>

#include <h5/gheap.h>

#include "values.h"

struct visit {
	struct values_items items;
	struct addr_map seen; /* addresses of collections; the numbers are not used */
	uint64_t last;	      /* the address that was seen last */
	int (*fn)(void *ctx, uint64_t addr, uint64_t size);
	void *ctx;
	struct err *err;
};

static int visit(struct visit *v, const struct dtype *t, const uint8_t *at, uint64_t n);

static int visit_collection(struct visit *v, uint64_t addr)
{
	uint64_t size;
	if (addr == v->last || addr_map_get(&v->seen, addr) != UINT32_MAX)
		return 0;
	int rc = h5_gheap_size(&v->items.f->file, addr, &size, v->err);
	if (!rc && addr_map_add(&v->seen, addr, 0))
		rc = err_no_memory(v->err);
	v->last = addr;
	return rc ? rc : v->fn(v->ctx, addr, size);
}

static int visit_vlen(struct visit *v, const struct dtype *t, const uint8_t *elem)
{
	const struct dtype *base = t->vlen.base;
	auto_bytes struct bytes items = {0};
	struct values_vlen value;
	if (!values_vlen(elem, &value) || !value.count)
		return 0;
	int rc = visit_collection(v, value.addr);
	if (rc || dtype_is_plain(base))
		return rc;
	rc = values_read(&v->items, base, &value, &items, v->err);
	return rc ? rc : visit(v, base, items.data, value.count);
}

static int visit_reference(struct visit *v, const struct dtype *t, const uint8_t *elem)
{
	uint64_t addr;
	uint32_t index;
	const bool is_set =
		t->reference.kind == DTYPE_REF_REGION && values_region(elem, &addr, &index);
	return is_set ? visit_collection(v, addr) : 0;
}

static int visit_compound(struct visit *v, const struct dtype *t, const uint8_t *at)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < t->compound.n; i++)
		rc = visit(v, t->compound.members[i].type, at + t->compound.members[i].offset, 1);
	return rc;
}

/* Each recursion visits a child type, so it is at most DTYPE_MAX_DEPTH deep. */
static int visit(struct visit *v, const struct dtype *t, const uint8_t *at, uint64_t n)
{
	int rc = 0;
	if (dtype_is_plain(t))
		return 0;
	for (; n > 0 && !rc; n--, at += t->size) {
		switch (t->cls) {
		case DTYPE_VLEN:
			rc = visit_vlen(v, t, at);
			break;
		case DTYPE_REFERENCE:
			rc = visit_reference(v, t, at);
			break;
		case DTYPE_COMPOUND:
			rc = visit_compound(v, t, at);
			break;
		case DTYPE_ARRAY:
			rc = visit(v, t->array.base, at, t->array.nelems);
			break;
		default:
			return 0; /* a plain type */
		}
	}
	return rc;
}

int heaps_visit(struct h5file *f, const struct dtype *t, struct bytes *in, uint64_t n,
		int (*fn)(void *ctx, uint64_t addr, uint64_t size), void *ctx, struct err *err)
{
	struct visit v = {
		.items = values_items_of(f), .last = H5_UNDEF, .fn = fn, .ctx = ctx, .err = err};
	int rc = values_widen(f, t, in, n, err);
	if (!rc)
		rc = visit(&v, t, in->data, n);
	addr_map_release(&v.seen);
	return rc;
}
