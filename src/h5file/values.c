/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversion of elements (File Format Specification, IV.B "data storage", VIII): see values.h.
 * h5_dtype_widen() makes all addresses 8 bytes long. Then
 *
 *   a vlen element is    +0 u32 count, +4 u64 address of a heap collection, +12 u32 index
 *   an object reference  +0 u64 address of an object header; also of a revised reference
 *   a region reference   +0 u64 address of a heap collection, +8 u32 index; the item there is the
 *                        address of an object header and a serialized selection
 *
 * The address 0, or the undefined address, means that there is no value. Each item is read once for
 * each element that refers to it. Valid files have one such element for each item, so the bytes of
 * all items of a call are limited by the size of the file.
 */
#include "values.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <base/cursor.h>
#include <base/emit.h>
#include <data/number.h>

struct convert {
	struct elems_walker walker;
	struct values_items items;
	struct elems *out;
	struct err *err;
};

/* Appends the item of a heap to out, which is empty. The cache keeps it only until another thread
 * reads the next one, so it is copied under the lock. */
static int read_item(struct values_items *r, uint64_t addr, uint32_t index, struct bytes *out,
		     struct err *err)
{
	const uint8_t *data;
	size_t n;
	pthread_mutex_lock(&r->f->heap_lock);
	int rc = h5_gheap_cache_get(r->f->heaps, addr, index, &data, &n, err);
	if (!rc && n > r->left)
		rc = err_set(err, -EIO, "the elements refer to more bytes than the file has");
	if (!rc)
		rc = h5_file_spend(&r->f->file, n, err);
	if (!rc && bytes_append(out, data, n))
		rc = err_no_memory(err);
	pthread_mutex_unlock(&r->f->heap_lock);
	if (!rc)
		r->left -= n;
	return rc;
}

static int add_item(struct convert *c, const void *bytes, size_t n, uint64_t *offset)
{
	const int rc = elems_heap_add(c->out, bytes, n, offset);
	if (rc == -E2BIG)
		return err_set(c->err, -EOPNOTSUPP, "more than 2^32 bytes of variable length");
	return rc ? err_set(c->err, rc, "out of memory") : 0;
}

int values_widen(const struct h5file *f, const struct dtype *t, struct bytes *in, uint64_t n,
		 struct err *err)
{
	struct bytes out = {0};
	uint64_t size;
	if (!h5_dtype_widens(&f->file, t))
		return 0;
	if (!mul_u64(n, t->size, &size) || size > SIZE_MAX || bytes_reserve(&out, (size_t)size))
		return err_no_memory(err);
	int rc = h5_dtype_widen(&f->file, t, in->data, n, out.data, err);
	bytes_release(in);
	out.len = (size_t)size;
	*in = out;
	return rc;
}

struct values_items values_items_of(struct h5file *f)
{
	return (struct values_items){.f = f, .left = h5_file_size(&f->file)};
}

bool values_vlen(const uint8_t *elem, struct values_vlen *out)
{
	struct cursor in = cursor_of(elem, DTYPE_VLEN_SIZE);
	out->count = cur_u32(&in);
	out->addr = cur_u64(&in);
	out->index = cur_u32(&in);
	return out->addr && out->addr != H5_UNDEF;
}

int values_read(struct values_items *r, const struct dtype *base, const struct values_vlen *v,
		struct bytes *items, struct err *err)
{
	const uint64_t need = (uint64_t)v->count * h5_dtype_file_size(&r->f->file, base);
	int rc = read_item(r, v->addr, v->index, items, err);
	if (!rc && need > items->len)
		rc = err_set(err, -EIO,
			     "%" PRIu32 " elements need %" PRIu64 " bytes, but item %" PRIu32
			     " of the global heap at %" PRIu64 " has %zu",
			     v->count, need, v->index, v->addr, items->len);
	if (rc)
		return rc;
	items->len = (size_t)need;
	return values_widen(r->f, base, items, v->count, err);
}

static int convert_vlen(void *ctx, const struct dtype *t, uint8_t *elem)
{
	struct convert *c = ctx;
	auto_bytes struct bytes items = {0};
	struct values_vlen v;
	uint64_t offset = 0;
	int rc = 0;
	const bool is_set = values_vlen(elem, &v);
	memset(elem, 0, DTYPE_VLEN_SIZE);
	if (!is_set)
		return 0;
	if (v.count)
		rc = values_read(&c->items, t->vlen.base, &v, &items, c->err);
	if (!rc && v.count)
		rc = elems_walk(t->vlen.base, items.data, v.count, &c->walker);
	if (!rc)
		rc = add_item(c, items.data, items.len, &offset);
	if (!rc)
		elems_put_vlen(elem, v.count, offset);
	return rc;
}

/* Reads the item of a region reference, and gives its address 8 bytes. */
static int read_selection(struct convert *c, uint64_t addr, uint32_t index, struct bytes *out)
{
	auto_bytes struct bytes item = {0};
	uint8_t object[sizeof(uint64_t)];
	int rc = read_item(&c->items, addr, index, &item, c->err);
	if (rc)
		return rc;
	struct cursor in = cursor_of(item.data, item.len);
	struct emit e = emit_to(object, sizeof(object));
	emit_u64(&e, h5_cur_addr(&c->items.f->file, &in));
	if (!cur_ok(&in))
		return err_set(c->err, -EIO,
			       "item %" PRIu32 " of the global heap at %" PRIu64
			       " is too short for a region reference",
			       index, addr);
	if (bytes_append(out, object, sizeof(object)) ||
	    bytes_append(out, item.data + cur_pos(&in), cur_left(&in)))
		return err_no_memory(c->err);
	return 0;
}

bool values_region(const uint8_t *elem, uint64_t *addr, uint32_t *index)
{
	struct cursor in = cursor_of(elem, DTYPE_REGREF_SIZE);
	*addr = cur_u64(&in);
	*index = cur_u32(&in);
	return *addr && *addr != H5_UNDEF;
}

static int convert_reference(void *ctx, const struct dtype *t, uint8_t *elem)
{
	struct convert *c = ctx;
	auto_bytes struct bytes selection = {0};
	uint64_t addr, offset;
	uint32_t index;
	if (t->reference.kind != DTYPE_REF_REGION)
		return 0;
	const bool is_set = values_region(elem, &addr, &index);
	memset(elem, 0, DTYPE_REGREF_SIZE);
	if (!is_set)
		return 0;
	int rc = read_selection(c, addr, index, &selection);
	if (!rc)
		rc = add_item(c, selection.data, selection.len, &offset);
	if (rc)
		return rc;
	struct emit e = emit_to(elem, DTYPE_REGREF_SIZE);
	emit_u64(&e, offset + 1);
	emit_u32(&e, (uint32_t)selection.len);
	return 0;
}

int values_decode(struct h5file *f, const struct dtype *t, struct bytes *in, uint64_t n,
		  struct elems *out, struct err *err)
{
	struct convert c = {.walker = {convert_vlen, convert_reference, &c},
			    .items = values_items_of(f),
			    .out = out,
			    .err = err};
	out->fixed = *in;
	*in = (struct bytes){0};
	int rc = values_widen(f, t, &out->fixed, n, err);
	if (!rc)
		rc = elems_walk(t, out->fixed.data, n, &c.walker);
	if (rc)
		elems_release(out);
	return rc;
}

struct resolve {
	const struct h5file *f;
	struct elems *e;
	uint64_t dangling, addr;
};

/* Replaces an address by object number + 1. Returns false if there is no such object. */
static bool replace(struct resolve *r, uint8_t *at)
{
	const uint64_t addr = number_get_int(at, sizeof(uint64_t), false);
	const bool null = !addr || addr == H5_UNDEF;
	const uint32_t number = null ? UINT32_MAX : h5_addrs_get(&r->f->numbers, addr);
	const bool found = number != UINT32_MAX && !tree_object(r->f->tree, number)->broken;
	number_put_int(at, sizeof(uint64_t), false, found ? (uint64_t)number + 1 : 0);
	if (!null && !found && !r->dangling++)
		r->addr = addr;
	return found;
}

static int resolve(void *ctx, const struct dtype *t, uint8_t *elem, struct err *err)
{
	struct resolve *r = ctx;
	const uint64_t selection = number_get_int(elem, sizeof(uint64_t), false);
	if (t->reference.kind == DTYPE_REF_OBJECT)
		replace(r, elem);
	else if (selection && !replace(r, r->e->heap.data + selection - 1))
		memset(elem, 0, DTYPE_REGREF_SIZE);
	return 0;
}

int values_resolve(const struct h5file *f, const struct dtype *t, struct elems *e, uint64_t n,
		   uint64_t *dangling, uint64_t *addr, struct err *err)
{
	struct resolve r = {.f = f, .e = e};
	const struct elems_visitor v = {.reference = resolve, .ctx = &r};
	const int rc =
		t->has_ref ? elems_visit(t, e->fixed.data, n, e->heap.data, e->heap.len, &v, err)
			   : 0;
	*dangling = r.dangling;
	*addr = r.addr;
	return rc;
}
