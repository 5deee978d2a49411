/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversion of slots (data/elems.h) to file form:
 *   vlen (Spec IV.A.2.d, class 9)  +0 u32 count, +4 u64 collection address, +12 u32 index; zero is
 *                                  null. An empty string is not null: it has an empty object
 *   object reference               +0 u64 object header address; zero is null
 *   region reference               +0 u64 collection address, +8 u32 index; zero is null
 */
#include "image_plan.h"

#include <errno.h>
#include <string.h>

struct relocation {
	const struct image *img;
	struct h5_gheap_writer *heap;
};

static void put(uint8_t *slot, uint64_t v, unsigned int n)
{
	struct emit e = emit_to(slot, n);
	emit_uint(&e, v, n);
}

static int place_vlen(void *ctx, const struct dtype *t, uint8_t *slot, uint8_t *items,
		      size_t items_len, struct err *err)
{
	struct relocation *r = ctx;
	uint64_t addr = 0;
	uint32_t index = 0;
	if (elems_vlen_has_object(t, slot)) {
		int rc = h5_gheap_add(r->heap, items, items_len, &addr, &index, err);
		if (rc)
			return rc;
	}
	put(slot + 4, addr, 8); /* +0 has the count already */
	put(slot + 12, index, 4);
	return 0;
}

static int place_reference(void *ctx, const struct dtype *t, uint8_t *slot, struct err *err)
{
	const struct relocation *r = ctx;
	if (t->reference.kind == DTYPE_REF_REGION) {
		/* No schema stores selections, so all region references are null. */
		memset(slot, 0, DTYPE_REGREF_SIZE);
		return 0;
	}
	struct cursor c = cursor_of(slot, DTYPE_OBJREF_SIZE);
	uint64_t number = cur_u64(&c);
	uint64_t addr = 0;
	if (number > 0 && number <= tree_numbers(r->img->tree)) {
		addr = r->img->header_addr[number - 1];
		if (addr == H5_UNDEF)
			addr = 0; /* not reachable, so not in the file */
	}
	put(slot, addr, DTYPE_OBJREF_SIZE);
	return 0;
}

int relocate_elems(const struct image *img, const struct dtype *t, uint64_t n, struct elems *e,
		   struct h5_gheap_writer *heap, struct err *err)
{
	struct relocation r = {.img = img, .heap = heap};
	const struct elems_visitor visitor = {
		.vlen = place_vlen, .reference = place_reference, .ctx = &r};
	if (e->fixed.len != n * t->size)
		return err_set(err, -EIO,
			       "the value has %zu bytes instead of %llu elements of %u bytes",
			       e->fixed.len, (unsigned long long)n, t->size);
	return elems_visit(t, e->fixed.data, n, e->heap.data, e->heap.len, &visitor, err);
}

int relocate_copy(const struct image *img, const struct dtype *t, uint64_t n, const struct elems *e,
		  struct h5_gheap_writer *heap, struct bytes *out, struct err *err)
{
	const size_t len = (size_t)(n * t->size);
	struct elems copy = {0};
	int rc = bytes_reserve(&copy.fixed, len);
	if (!rc)
		rc = bytes_append(&copy.heap, e->heap.data, e->heap.len);
	if (rc)
		return err_set(err, rc, "out of memory: a value of %zu bytes", len);
	copy.fixed.len = len;
	elems_read(e, 0, copy.fixed.data, len);
	rc = relocate_elems(img, t, n, &copy, heap, err);
	if (!rc) {
		*out = copy.fixed;
		copy.fixed = (struct bytes){0};
	}
	elems_release(&copy);
	return rc;
}
