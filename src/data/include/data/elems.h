/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of any datatype. Each element has dtype->size bytes, as in an HDF5 file. Only the image
 * knows file addresses. So the bytes of vlen and reference elements differ from those in the file:
 *
 *   vlen, 16 bytes:        +0 u32 LE  count of items (of a string: bytes)
 *                          +4 u32 LE  1: a value, which may be empty;
 *                                     0: no value, and all 16 bytes are zero
 *                          +8 u64 LE  offset of the items in the heap, 8-aligned; 0 if count is 0
 *   object reference, 8:   +0 u64 LE  object number + 1; 0: the null reference
 *   region reference, 12:  +0 u64 LE  offset of the selection in the heap + 1; 0: null
 *                          +8 u32 LE  length of the selection
 *
 * The items of a vlen element are elements of its base type, which may be or contain vlens and
 * references, too. A selection is an object reference of 8 bytes and the serialized selection of
 * the File Format Specification. A type without vlens and references is plain: dtype_is_plain().
 *
 * Unset elements take no memory. A value of `len` bytes (number of elements times element size)
 * consists of
 *
 *   fixed | `repeated` bytes: the last `period` bytes of fixed, repeated | zeros up to len
 *
 * Only elements of plain types are repeated. In a value of another type, fixed holds whole
 * elements. The elements of a chunk are all in fixed.
 */
#ifndef DATA_ELEMS_H
#define DATA_ELEMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>
#include <data/dtype.h>

struct elems {
	struct bytes fixed;
	uint32_t period;
	/* `fixed` is in an arena, and others may share it; there is no heap. elems_release() frees
	 * nothing. */
	bool is_borrowed;
	uint64_t repeated;
	struct bytes heap; /* items of vlens, selections */
};
void elems_release(struct elems *e);

/* Returns the bytes of a value before its zeros. */
static inline uint64_t elems_end(const struct elems *e)
{
	return e->fixed.len + e->repeated;
}
/* Copies bytes [at, at + n) of a value, whose length the caller knows. */
void elems_read(const struct elems *e, uint64_t at, void *out, size_t n);
/* Fills out up to n bytes with repetitions of its first `period` bytes. */
void elems_repeat(uint8_t *out, size_t period, size_t n);

struct elems_vlen {
	bool is_set; /* false if there is no value */
	uint32_t count;
	uint64_t offset;
};
/* These functions take the DTYPE_VLEN_SIZE bytes of a vlen element. */
struct elems_vlen elems_get_vlen(const uint8_t *elem);
/* Writes a vlen element with a value. One without a value is all zeros. */
void elems_put_vlen(uint8_t *elem, uint32_t count, uint64_t offset);
/* Returns whether libhdf5 writes an object of a global heap for a vlen element of type t: it does
 * for every value that is not empty, and for the empty string. An empty sequence is a null
 * reference. */
bool elems_vlen_has_object(const struct dtype *t, const uint8_t *elem);
/* Appends len bytes of items, 8-aligned, and sets *offset to their offset (0 if len is 0). items
 * must not point into e. Returns -E2BIG if the heap would exceed 2^32 bytes, or -ENOMEM; e is then
 * unchanged. */
int elems_heap_add(struct elems *e, const void *items, size_t len, uint64_t *offset);

struct elems_walker {
	/* elem has the bytes of a vlen or reference element of type t. */
	int (*vlen)(void *ctx, const struct dtype *t, uint8_t *elem);
	int (*reference)(void *ctx, const struct dtype *t, uint8_t *elem);
	void *ctx;
};
/* Calls w for every vlen and reference in n elements at fixed (n * t->size bytes), in order,
 * members of a compound in the order of the type. The items of a vlen are left to the callback. A
 * plain type takes no time. If a callback returns non-zero, the walk ends and returns that value.
 */
int elems_walk(const struct dtype *t, uint8_t *fixed, uint64_t n, const struct elems_walker *w);

struct elems_visitor {
	/* elem has the bytes of a vlen or reference element of type t. What its items contain is
	 * visited before, so a visitor may rewrite the items, store them, and rewrite elem. items
	 * is borrowed, writable, and has count * base->size bytes; it is NULL if count is 0. Either
	 * callback may be NULL. */
	int (*vlen)(void *ctx, const struct dtype *t, uint8_t *elem, uint8_t *items,
		    size_t items_len, struct err *err);
	int (*reference)(void *ctx, const struct dtype *t, uint8_t *elem, struct err *err);
	void *ctx;
};
/* Does the same, and follows the vlens to their items in the heap. Returns -EIO if an offset is
 * outside of the heap, or if items of types that are not plain add up to more than the heap. So
 * vlens may share items only if these are of a plain type. */
int elems_visit(const struct dtype *t, uint8_t *fixed, uint64_t n, uint8_t *heap, size_t heap_len,
		const struct elems_visitor *v, struct err *err);

#endif
