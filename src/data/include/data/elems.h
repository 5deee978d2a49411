/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of any datatype in *file form with open ends*: each element has dtype->size bytes, as
 * in an HDF5 file, but where the file would hold addresses there are neutral slots, because
 * addresses are known to the image alone:
 *
 *   vlen slot, 16 bytes:   +0 u32 LE  count (base elements; strings: bytes)
 *                          +4 u32 LE  1: a value, which may be empty; 0: no value, all zero
 *                          +8 u64 LE  offset of the items in the heap, 8-aligned; count 0: zero
 *   object reference, 8:   +0 u64 LE  object number + 1; zero is the null reference
 *   region reference, 12:  +0 u64 LE  offset of the selection in the heap + 1, zero is null
 *                          +8 u32 LE  its length
 *
 * The items of a vlen are again elements in this form (vlens nest). A selection is 8 bytes object
 * reference followed by the serialized selection of the File Format Specification.
 *
 * Elements that were never set are a length and no memory. A value of `len` bytes (the number of
 * its elements times their size) is
 *
 *   fixed | its last `period` bytes again and again, `repeated` bytes in all | zeros up to len
 *
 * Only plain elements are repeated; in values with slots, fixed is whole elements. The elements of
 * a chunk are all in fixed.
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
/* Bytes before the zeros. */
static inline uint64_t elems_end(const struct elems *e)
{
	return e->fixed.len + e->repeated;
}
/* Bytes [at, at + n) of a value, whatever its length. */
void elems_read(const struct elems *e, uint64_t at, void *out, size_t n);
/* out, whose first `period` bytes are there, is filled up to n bytes with repetitions of them. */
void elems_repeat(uint8_t *out, size_t period, size_t n);

struct elems_vlen {
	bool is_set; /* false: no value */
	uint32_t count;
	uint64_t offset;
};
struct elems_vlen elems_get_vlen(const uint8_t *slot);
/* Puts a value. A slot without one is all zero. */
void elems_put_vlen(uint8_t *slot, uint32_t count, uint64_t offset);
/* Whether the value of a slot of type t is an object of its own in a file's heap, as libhdf5 writes
 * it: everything that is not empty, and the empty string. An empty sequence is a null reference. */
bool elems_vlen_has_object(const struct dtype *t, const uint8_t *slot);
/* Appends len bytes of items, 8-aligned; *offset is where (0 for no bytes). items must not lie in
 * e. -ENOMEM, -E2BIG (heap over 2^32); then nothing was added. */
int elems_heap_add(struct elems *e, const void *items, size_t len, uint64_t *offset);

struct elems_visitor {
	/* slot: the DTYPE_VLEN_SIZE bytes of an element of type t. Items are visited before the
	 * slot that owns them (so a visitor may rewrite items, place them, then rewrite the
	 * slot). items: borrowed, count * base->size bytes, writable; NULL when count is 0. Either
	 * callback may be NULL. */
	int (*vlen)(void *ctx, const struct dtype *t, uint8_t *slot, uint8_t *items,
		    size_t items_len, struct err *err);
	int (*reference)(void *ctx, const struct dtype *t, uint8_t *slot, struct err *err);
	void *ctx;
};
/* Visits every vlen and reference slot of n elements at fixed (n * t->size bytes) in order of
 * position (members of a compound: in the order in which the type lists them). Slots are checked
 * against heap (len): -EIO when one points outside. Slots may share items that are plain; items
 * with slots inside belong to one slot each, -EIO when they add up to more than the heap. Types
 * without slots cost nothing. The first non-zero result of a callback stops and is returned. */
int elems_visit(const struct dtype *t, uint8_t *fixed, uint64_t n, uint8_t *heap, size_t heap_len,
		const struct elems_visitor *v, struct err *err);

#endif
