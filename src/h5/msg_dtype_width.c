/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements whose size in the file differs from that of struct dtype, which describes elements with
 * addresses of 8 bytes. In a file whose addresses have 2 or 4 bytes:
 *
 *   variable-length    u32 count, addr collection, u32 index: shorter by `gap` bytes
 *   object reference   addr, zeros up to 8 bytes: the same in little-endian
 *   region reference   addr collection, u32 index, zeros up to 12 bytes
 *
 * In all files, a revised reference (H5T_STD_REF) is longer than the object reference that it
 * becomes. The file has
 *
 *   +0 u8   kind: 2 object, 3 dataset region, 4 attribute; 0: no value
 *   +1 u8   flags; bit 0: the object is in another file
 *   +2 u8   of an object: bytes of its address
 *   +3      its address, then zeros
 *
 * So a compound with such members has another size, and members after them are at other offsets. A
 * member moves by the differences of all members before it, which keeps its padding and its
 * overlaps. So the layout in the file follows from the type alone.
 *
 * Pure functions. Recursion is at most DTYPE_MAX_DEPTH deep.
 */
#include "msg_dtype.h"

#include <string.h>

#include "msg.h"

enum { ADDR_SIZE = 8, INDEX_SIZE = 4, COUNT_SIZE = 4 };
enum { REVISED_OBJECT = 2, REVISED_REGION = 3, REVISED_ATTRIBUTE = 4, REVISED_EXTERNAL = 1 << 0 };

static uint32_t gap_of(const struct h5_file *f)
{
	return ADDR_SIZE - (uint32_t)f->addr_size;
}

/* Returns by how many bytes an element is larger than in the file. Each slot takes 16 bytes of the
 * size, so the result has 32 bits. */
static int64_t growth_of(const struct h5_file *f, const struct dtype *t)
{
	return (int64_t)(gap_of(f) * t->nvlens) - t->surplus;
}

uint32_t h5_dtype_file_size(const struct h5_file *f, const struct dtype *t)
{
	return (uint32_t)(t->size - growth_of(f, t));
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
	int64_t moved = 0;
	bool moves = false;
	for (uint32_t i = 0; i < n; i++)
		moves = moves || growth_of(f, members[i].type);
	if (!moves)
		return 0;
	auto_free uint32_t *offsets = calloc(n ? n : 1, sizeof(*offsets));
	auto_free const struct dtype_member **sorted = by_offset(n, members);
	if (!offsets || !sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const int64_t offset = sorted[i]->offset + moved;
		if (offset > UINT32_MAX || offset < 0)
			return -EOPNOTSUPP;
		offsets[sorted[i] - members] = (uint32_t)offset;
		moved += growth_of(f, sorted[i]->type);
	}
	if (moved > UINT32_MAX - (int64_t)*size || moved <= -(int64_t)*size)
		return -EOPNOTSUPP;
	for (uint32_t i = 0; i < n; i++)
		members[i].offset = offsets[i];
	*size = (uint32_t)(*size + moved);
	return 0;
}

static int widen_one(const struct h5_file *f, const struct dtype *t, const uint8_t *in,
		     uint8_t *out, struct err *err);

static int widen_compound(const struct h5_file *f, const struct dtype *t, const uint8_t *in,
			  uint8_t *out, struct err *err)
{
	auto_free const struct dtype_member **sorted =
		by_offset(t->compound.n, t->compound.members);
	int64_t moved = 0;
	if (!sorted)
		return err_no_memory(err);
	memset(out, 0, t->size);
	for (uint32_t i = 0; i < t->compound.n; i++) {
		const struct dtype_member *m = sorted[i];
		int rc = widen_one(f, m->type, in + (m->offset - moved), out + m->offset, err);
		if (rc)
			return rc;
		moved += growth_of(f, m->type);
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

/* Makes an object reference of a revised one. */
static int widen_revised(const struct dtype *t, const uint8_t *in, uint8_t *out, struct err *err)
{
	static const char *const kinds[] = {
		[REVISED_REGION] = "dataset region", [REVISED_ATTRIBUTE] = "attribute"};
	struct cursor c = cursor_of(in, t->reference.revised_size);
	const uint8_t kind = cur_u8(&c), flags = cur_u8(&c), n = kind ? cur_u8(&c) : 0;
	memset(out, 0, t->size);
	if (!kind)
		return 0;
	if (kind == REVISED_REGION || kind == REVISED_ATTRIBUTE)
		return err_set(err, -EOPNOTSUPP, "a revised reference (H5T_STD_REF) to %s %s",
			       kind == REVISED_REGION ? "a" : "an", kinds[kind]);
	if (kind == REVISED_OBJECT && flags & REVISED_EXTERNAL)
		return err_set(err, -EOPNOTSUPP,
			       "a revised reference (H5T_STD_REF) to another file");
	const uint8_t *addr = cur_bytes(&c, n);
	if (kind != REVISED_OBJECT || n > t->size || !addr)
		return err_set(err, -EIO,
			       "a revised reference (H5T_STD_REF) of kind %u is not valid", kind);
	memcpy(out, addr, n);
	return 0;
}

static int widen_one(const struct h5_file *f, const struct dtype *t, const uint8_t *in,
		     uint8_t *out, struct err *err)
{
	if (t->cls == DTYPE_COMPOUND)
		return widen_compound(f, t, in, out, err);
	if (t->cls == DTYPE_ARRAY)
		return h5_dtype_widen(f, t->array.base, in, t->array.nelems, out, err);
	if (t->cls == DTYPE_REFERENCE && t->reference.revised_size)
		return widen_revised(t, in, out, err);
	if (t->cls == DTYPE_VLEN)
		widen_item(f, COUNT_SIZE, in, out);
	else if (t->cls == DTYPE_REFERENCE && t->reference.kind == DTYPE_REF_REGION)
		widen_item(f, 0, in, out);
	else
		memcpy(out, in, t->size);
	return 0;
}

bool h5_dtype_widens(const struct h5_file *f, const struct dtype *t)
{
	return t->surplus || (gap_of(f) && !dtype_is_plain(t));
}

int h5_dtype_widen(const struct h5_file *f, const struct dtype *t, const uint8_t *in, uint64_t n,
		   uint8_t *out, struct err *err)
{
	const uint32_t size = h5_dtype_file_size(f, t);
	if (!h5_dtype_widens(f, t)) {
		memcpy(out, in, (size_t)(n * size));
		return 0;
	}
	for (uint64_t i = 0; i < n; i++) {
		int rc = widen_one(f, t, in + i * size, out + i * t->size, err);
		if (rc)
			return rc;
	}
	return 0;
}
