/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data layout message, 0x08 (Spec IV.A.2.i). Pure functions. Versions 1 and 2:
 *
 *   +0 u8   version
 *   +1 u8   dimensionality
 *   +2 u8   class
 *   +3 u8   reserved[5]
 *   +8 u64  address of the data or of the version 1 B-tree; not in compact layouts
 *      u32  dims[dimensionality]: chunked: the chunk's, then the element size
 *      u32  size, data[size]; only in compact layouts
 *
 * Versions 3 to 5:
 *
 *   +0 u8   version
 *   +1 u8   class
 *   compact:      +2 u16 size, +4 data[size]
 *   contiguous:   +2 u64 address, +10 u64 size
 *   chunked, 3:   +2 u8 dimensionality (rank + 1), +3 u64 address of the version 1 B-tree,
 *                 +11 u32 dims[dimensionality]: the chunk's, then the element size
 *   chunked, 4 and 5:
 *                 +2 u8 flags, +3 u8 dimensionality, +4 u8 width of the dimensions,
 *                 +5 dims[dimensionality], u8 type of index, its parameters, u64 its address
 *   parameters:   single chunk: u64 stored size, u32 filter mask, if the flag says so
 *                 implicit: none
 *                 fixed array: u8 bits of a page
 *                 extensible array: u8 bits of the number of elements, u8 elements of the index
 *                   block, u8 least pointers of a super block, u8 least elements of a data block,
 *                   u8 bits of a page
 *                 version 2 B-tree: u32 node size, u8 split percentage, u8 merge percentage
 *
 * Version 5 (HDF5 2.0) differs in the width of stored sizes in indexes. It also has a class for
 * structured chunks, which is only recognized.
 */
#include <h5/message.h>

#include "msg.h"

enum { CLASS_VIRTUAL = 3, CLASS_STRUCTURED = 4 };
enum { WHOLE_EDGES = 1 << 0, SINGLE_FILTERED = 1 << 1 }; /* flags of version 4 */

_Static_assert(LAYOUT_COMPACT == 0 && LAYOUT_CONTIGUOUS == 1 && LAYOUT_CHUNKED == 2,
	       "the message has the same numbers of classes");

void h5_layout_encode(struct emit *e, const struct h5_layout *l)
{
	emit_u8(e, 3);
	emit_u8(e, (uint8_t)l->cls);
	switch (l->cls) {
	case LAYOUT_COMPACT:
		h5_emit_len16(e, l->size);
		h5_emit_raw(e, l->data, l->size);
		break;
	case LAYOUT_CONTIGUOUS:
		emit_u64(e, l->addr);
		emit_u64(e, l->size);
		break;
	case LAYOUT_CHUNKED:
		emit_u8(e, (uint8_t)(l->rank + 1));
		emit_u64(e, l->addr);
		for (uint32_t i = 0; i < l->rank; i++)
			emit_u32(e, l->chunk[i]);
		emit_u32(e, l->elem_size);
		break;
	}
}

/* Decodes the chunk dimensions, the last of which is the element size: ndims numbers of `width`
 * bytes. */
static int decode_dims(struct cursor *c, unsigned int ndims, unsigned int width,
		       struct h5_layout *l, struct err *err)
{
	uint64_t dims[DSPACE_MAX_RANK + 1] = {0};
	if (ndims < 2 || ndims > DSPACE_MAX_RANK + 1)
		return err_set(err, -EIO, "layout: invalid dimensionality %u", ndims);
	if (width < 1 || width > 8)
		return err_set(err, -EIO, "layout: chunk dimensions of %u bytes", width);
	for (unsigned int i = 0; i < ndims; i++)
		dims[i] = cur_uint(c, width);
	if (!cur_ok(c))
		return h5_msg_end(c, "layout", err);
	for (unsigned int i = 0; i < ndims; i++) {
		if (dims[i] == 0)
			return err_set(err, -EIO,
				       "layout: a chunk dimension or the element size is 0");
		if (dims[i] > UINT32_MAX)
			return err_set(err, -EOPNOTSUPP,
				       "layout: chunk dimension %" PRIu64 " is over 2^32", dims[i]);
	}
	l->rank = ndims - 1;
	for (uint32_t i = 0; i < l->rank; i++)
		l->chunk[i] = (uint32_t)dims[i];
	l->elem_size = (uint32_t)dims[l->rank];
	return 0;
}

/* Decodes versions 1 and 2. */
static int decode_old(const struct h5_file *f, struct cursor *c, struct h5_layout *l,
		      struct err *err)
{
	const uint8_t ndims = cur_u8(c), cls = cur_u8(c);
	cur_skip(c, 5);
	if (!cur_ok(c))
		return h5_msg_end(c, "layout", err);
	if (cls > LAYOUT_CHUNKED)
		return err_set(err, -EIO, "layout: invalid class %u", cls);
	l->cls = (enum layout_class)cls;
	if (l->cls != LAYOUT_COMPACT)
		l->addr = h5_cur_addr(f, c);
	if (l->cls == LAYOUT_CHUNKED)
		return decode_dims(c, ndims, 4, l, err);
	/* The dimensions of the dataset, which its dataspace has, too. */
	if (ndims > DSPACE_MAX_RANK + 1)
		return err_set(err, -EIO, "layout: invalid dimensionality %u", ndims);
	cur_skip(c, (size_t)ndims * 4);
	l->size = UINT64_MAX;
	if (l->cls == LAYOUT_COMPACT) {
		l->size = cur_u32(c);
		l->data = cur_bytes(c, (size_t)l->size);
	}
	return h5_msg_end(c, "layout", err);
}

/* The stored size of a chunk may be larger than the chunk, for which version 4 has at least a byte
 * more than the size of the chunk needs. */
static uint8_t stored_len(const struct h5_layout *l, unsigned int version, const struct h5_file *f)
{
	uint64_t bytes = l->elem_size;
	uint8_t n = 2;
	if (version > 4)
		return f->len_size;
	for (uint32_t i = 0; i < l->rank; i++)
		if (!mul_u64(bytes, l->chunk[i], &bytes))
			return 8;
	while (bytes >>= 8)
		n++;
	return n < 8 ? n : 8;
}

/* Decodes the parameters of an index. The headers of the arrays and trees repeat them, so they are
 * only checked. */
static int decode_index(const struct h5_file *f, struct cursor *c, struct h5_layout *l,
			uint8_t flags, struct err *err)
{
	static const uint8_t params[] = {
		[H5_INDEX_FIXED_ARRAY] = 1, [H5_INDEX_EXTENSIBLE_ARRAY] = 5};
	const uint8_t type = cur_u8(c);
	bool zero = false;
	if (cur_ok(c) && (type < H5_INDEX_SINGLE || type > H5_INDEX_BTREE2))
		return err_set(err, -EIO, "layout: invalid type %u of a chunk index", type);
	l->index = (enum h5_index_type)type;
	if (type == H5_INDEX_SINGLE && flags & SINGLE_FILTERED) {
		l->single_size = h5_cur_len(f, c);
		l->single_mask = cur_u32(c);
	} else if (type == H5_INDEX_BTREE2) {
		zero = cur_u32(c) == 0; /* node size */
		zero |= cur_u8(c) == 0; /* split and merge percentages */
		zero |= cur_u8(c) == 0;
	} else if (type < sizeof(params)) {
		for (unsigned int i = 0; i < params[type]; i++)
			zero |= cur_u8(c) == 0;
	}
	l->addr = h5_cur_addr(f, c);
	if (cur_ok(c) && zero)
		return err_set(err, -EIO, "layout: a parameter of the chunk index is 0");
	return h5_msg_end(c, "layout", err);
}

/* Decodes versions 4 and 5. */
static int decode_chunked4(const struct h5_file *f, struct cursor *c, unsigned int version,
			   struct h5_layout *l, struct err *err)
{
	const uint8_t flags = cur_u8(c), ndims = cur_u8(c), width = cur_u8(c);
	if (cur_ok(c) && flags & ~(WHOLE_EDGES | SINGLE_FILTERED))
		return err_set(err, -EIO, "layout: invalid flags 0x%02x", flags);
	if (!cur_ok(c))
		return h5_msg_end(c, "layout", err);
	int rc = decode_dims(c, ndims, width, l, err);
	if (rc)
		return rc;
	l->whole_edges = flags & WHOLE_EDGES;
	l->stored_len = stored_len(l, version, f);
	return decode_index(f, c, l, flags, err);
}

static int decode_new(const struct h5_file *f, struct cursor *c, unsigned int version,
		      struct h5_layout *l, struct err *err)
{
	const uint8_t cls = cur_u8(c);
	if (!cur_ok(c))
		return h5_msg_end(c, "layout", err);
	if ((cls == CLASS_VIRTUAL && version >= 4) || (cls == CLASS_STRUCTURED && version >= 5)) {
		l->cls = LAYOUT_CHUNKED;
		l->raw = cls == CLASS_VIRTUAL ? RAW_VIRTUAL : RAW_STRUCTURED;
		return 0;
	}
	if (cls > LAYOUT_CHUNKED)
		return err_set(err, -EIO, "layout: invalid class %u", cls);
	l->cls = (enum layout_class)cls;
	if (l->cls == LAYOUT_CHUNKED && version > 3)
		return decode_chunked4(f, c, version, l, err);
	if (l->cls == LAYOUT_CHUNKED) {
		const uint8_t ndims = cur_u8(c);
		l->addr = h5_cur_addr(f, c);
		return cur_ok(c) ? decode_dims(c, ndims, 4, l, err) : h5_msg_end(c, "layout", err);
	}
	if (l->cls == LAYOUT_COMPACT) {
		l->size = cur_u16(c);
		l->data = cur_bytes(c, (size_t)l->size);
	} else {
		l->addr = h5_cur_addr(f, c);
		l->size = h5_cur_len(f, c);
	}
	return h5_msg_end(c, "layout", err);
}

int h5_layout_decode(const struct h5_file *f, struct cursor *c, struct h5_layout *l,
		     struct err *err)
{
	*l = (struct h5_layout){.addr = H5_UNDEF};
	const uint8_t version = cur_u8(c);
	if (!cur_ok(c))
		return h5_msg_end(c, "layout", err);
	if (version < 1 || version > 5)
		return h5_msg_version(version, "layout", err);
	return version < 3 ? decode_old(f, c, l, err) : decode_new(f, c, version, l, err);
}
