/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of files whose addresses have 2 or 4 bytes. struct dtype describes elements with
 * addresses of 8 bytes. In such a file:
 *
 *   variable-length    u32 count, addr collection, u32 index: shorter by `gap` bytes
 *   object reference   addr, zeros up to 8 bytes: the same in little-endian
 *   region reference   addr collection, u32 index, zeros up to 12 bytes
 *
 * So a compound with variable-length members is shorter, and members after them are at smaller
 * offsets. A member moves by the gaps of all members before it, which keeps its padding and its
 * overlaps. So the layout in the file follows from the type alone.
 *
 * Pure functions. Recursion is at most DTYPE_MAX_DEPTH deep.
 */
#include "msg_dtype.h"

#include <string.h>

#include "msg.h"

enum { ADDR_SIZE = 8, INDEX_SIZE = 4, COUNT_SIZE = 4 };

static uint32_t gap_of(const struct h5_file *f)
{
	return ADDR_SIZE - (uint32_t)f->addr_size;
}

uint32_t h5_dtype_file_size(const struct h5_file *f, const struct dtype *t)
{
	/* Each slot takes 16 bytes of the size. */
	return t->size - (uint32_t)(gap_of(f) * t->nvlens);
}

static int compare_offsets(const void *a, const void *b)
{
	const struct dtype_member *x = *(const struct dtype_member *const *)a;
	const struct dtype_member *y = *(const struct dtype_member *const *)b;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Returns the members in the order of their offsets, or NULL if out of memory. The caller frees the
 * array. */
static const struct dtype_member **by_offset(uint32_t n, const struct dtype_member *members)
{
	const struct dtype_member **sorted = calloc(n ? n : 1, sizeof(*sorted));
	bool in_order = true;
	if (!sorted)
		return NULL;
	for (uint32_t i = 0; i < n; i++) {
		sorted[i] = &members[i];
		in_order = in_order && (!i || members[i - 1].offset <= members[i].offset);
	}
	if (!in_order)
		qsort(sorted, n, sizeof(*sorted), compare_offsets);
	return sorted;
}

int h5_dtype_widen_members(const struct h5_file *f, uint32_t n, struct dtype_member *members,
			   uint32_t *size)
{
	uint64_t moved = 0;
	if (!gap_of(f))
		return 0;
	auto_free uint32_t *offsets = calloc(n ? n : 1, sizeof(*offsets));
	auto_free const struct dtype_member **sorted = by_offset(n, members);
	if (!offsets || !sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t offset = sorted[i]->offset + moved;
		if (offset > UINT32_MAX)
			return -EOPNOTSUPP;
		offsets[sorted[i] - members] = (uint32_t)offset;
		moved += gap_of(f) * sorted[i]->type->nvlens;
	}
	if (moved > UINT32_MAX - *size)
		return -EOPNOTSUPP;
	for (uint32_t i = 0; i < n; i++)
		members[i].offset = offsets[i];
	*size += (uint32_t)moved;
	return 0;
}

static int widen_one(const struct h5_file *f, const struct dtype *t, const uint8_t *in,
		     uint8_t *out);

static int widen_compound(const struct h5_file *f, const struct dtype *t, const uint8_t *in,
			  uint8_t *out)
{
	auto_free const struct dtype_member **sorted =
		by_offset(t->compound.n, t->compound.members);
	uint64_t moved = 0;
	if (!sorted)
		return -ENOMEM;
	memset(out, 0, t->size);
	for (uint32_t i = 0; i < t->compound.n; i++) {
		const struct dtype_member *m = sorted[i];
		int rc = widen_one(f, m->type, in + (m->offset - moved), out + m->offset);
		if (rc)
			return rc;
		moved += gap_of(f) * m->type->nvlens;
	}
	return 0;
}

/* Widens the address of a collection after `before` bytes, and the index of an item after it. */
static void widen_item(const struct h5_file *f, size_t before, const uint8_t *in, uint8_t *out)
{
	struct cursor c = cursor_of(in + before, f->addr_size);
	struct emit e = emit_to(out + before, ADDR_SIZE);
	memcpy(out, in, before);
	emit_u64(&e, h5_cur_addr(f, &c));
	memcpy(out + before + ADDR_SIZE, in + before + f->addr_size, INDEX_SIZE);
}

static int widen_one(const struct h5_file *f, const struct dtype *t, const uint8_t *in,
		     uint8_t *out)
{
	if (t->cls == DTYPE_COMPOUND)
		return widen_compound(f, t, in, out);
	if (t->cls == DTYPE_ARRAY)
		return h5_dtype_widen(f, t->array.base, in, t->array.nelems, out);
	if (t->cls == DTYPE_VLEN)
		widen_item(f, COUNT_SIZE, in, out);
	else if (t->cls == DTYPE_REFERENCE && t->reference.kind == DTYPE_REF_REGION)
		widen_item(f, 0, in, out);
	else
		memcpy(out, in, t->size);
	return 0;
}

int h5_dtype_widen(const struct h5_file *f, const struct dtype *t, const uint8_t *in, uint64_t n,
		   uint8_t *out)
{
	const uint32_t size = h5_dtype_file_size(f, t);
	if (!gap_of(f) || dtype_is_plain(t)) {
		memcpy(out, in, (size_t)(n * size));
		return 0;
	}
	for (uint64_t i = 0; i < n; i++) {
		int rc = widen_one(f, t, in + i * size, out + i * t->size);
		if (rc)
			return rc;
	}
	return 0;
}
