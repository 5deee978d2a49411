/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of any datatype. Each element has dtype->size bytes, as in an HDF5 file. Only the image
 * knows file addresses, so where the file has an address an element has a slot of the same size:
 *
 *   vlen slot, 16 bytes:   +0 u32 LE  count (base elements; strings: bytes)
 *                          +4 u32 LE  1: a value, which may be empty;
 *                                     0: no value, and the whole slot is zero
 *                          +8 u64 LE  offset of the items in the heap, 8-aligned; 0 if count is 0
 *   object reference, 8:   +0 u64 LE  object number + 1; 0: the null reference
 *   region reference, 12:  +0 u64 LE  offset of the selection in the heap + 1; 0: null
 *                          +8 u32 LE  length of the selection
 *
 * The items of a vlen slot are elements of its base type, which may have slots too. A selection is
 * an object reference of 8 bytes and the serialized selection of the File Format Specification.
 *
 * Unset elements take no memory. A value of `len` bytes (number of elements times element size)
 * consists of
 *
 *   fixed | `repeated` bytes: the last `period` bytes of fixed, repeated | zeros up to len
 *
 * Only elements without slots are repeated. In a value with slots, fixed holds whole elements. The
 * elements of a chunk are all in fixed.
 */
#ifndef DATA_ELEMS_H
#define DATA_ELEMS_H

#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>
#include <data/dtype.h>

struct elems {
	struct bytes fixed;
	uint32_t period;
	uint64_t repeated;
	struct bytes heap; /* items of vlens, selections */
};
void elems_release(struct elems *e);
/* Bytes of a value before its zeros. */
static inline uint64_t elems_end(const struct elems *e)
{
	return e->fixed.len + e->repeated;
}
/* Bytes [at, at + n) of a value. The caller knows its length. */
void elems_read(const struct elems *e, uint64_t at, void *out, size_t n);
/* Fills out up to n bytes with repetitions of its first `period` bytes. */
void elems_repeat(uint8_t *out, size_t period, size_t n);

struct elems_vlen {
	bool is_set; /* false: no value */
	uint32_t count;
	uint64_t offset;
};
struct elems_vlen elems_get_vlen(const uint8_t *slot);
/* Writes a slot with a value. A slot without a value is all zeros. */
void elems_put_vlen(uint8_t *slot, uint32_t count, uint64_t offset);
/* Whether libhdf5 writes an object of a global heap for a slot of type t: it does for every value
 * that is not empty, and for the empty string. An empty sequence is a null reference. */
bool elems_vlen_has_object(const struct dtype *t, const uint8_t *slot);
/* Appends len bytes of items, 8-aligned, and sets *offset to their offset (0 if len is 0). items
 * must not point into e. -ENOMEM; -E2BIG: the heap would exceed 2^32 bytes. On failure e is
 * unchanged. */
int elems_heap_add(struct elems *e, const void *items, size_t len, uint64_t *offset);

struct elems_visitor {
	/* slot: the DTYPE_VLEN_SIZE bytes of an element of type t. The slots in its items are
	 * visited before, so a visitor may rewrite the items, store them, and rewrite the slot.
	 * items: borrowed, writable, count * base->size bytes; NULL if count is 0. Either callback
	 * may be NULL. */
	int (*vlen)(void *ctx, const struct dtype *t, uint8_t *slot, uint8_t *items,
		    size_t items_len, struct err *err);
	int (*reference)(void *ctx, const struct dtype *t, uint8_t *slot, struct err *err);
	void *ctx;
};
/* Visits every vlen and reference slot of n elements at fixed (n * t->size bytes). Elements are
 * visited in order, members of a compound in the order of the type. -EIO: a slot points outside of
 * the heap, or items with slots add up to more than the heap. So slots may share items only if
 * these have no slots themselves. A type without slots takes no time. If a callback returns
 * non-zero, the visit ends and returns that value. */
int elems_visit(const struct dtype *t, uint8_t *fixed, uint64_t n, uint8_t *heap, size_t heap_len,
		const struct elems_visitor *v, struct err *err);

#endif
