/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data layout message, 0x08 (Spec IV.A.2.i), version 3. Pure functions. Version 4 differs only in
 * chunked and virtual layouts, which the decoder does not support.
 *
 *   +0 u8   version, 3 or 4
 *   +1 u8   class
 *   compact:      +2 u16 size, +4 data[size]
 *   contiguous:   +2 u64 address, +10 u64 size
 *   chunked:      +2 u8 dimensionality (rank + 1), +3 u64 address of the version 1 B-tree,
 *                 +11 u32 dims[dimensionality]: the chunk's, then the element size
 */
#include <h5/message.h>

#include "msg.h"

enum { CLASS_VIRTUAL = 3 };

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

static int decode_chunked(const struct h5_file *f, struct cursor *c, struct h5_layout *l,
			  struct err *err)
{
	uint8_t ndims = cur_u8(c);
	l->addr = h5_cur_addr(f, c);
	if (cur_ok(c) && (ndims < 2 || ndims > DSPACE_MAX_RANK + 1))
		return err_set(err, -EIO, "layout: invalid dimensionality %u", ndims);
	if (!cur_ok(c))
		return h5_msg_end(c, "layout", err);
	l->rank = ndims - 1U;
	bool zero = false;
	for (uint32_t i = 0; i < l->rank; i++) {
		l->chunk[i] = cur_u32(c);
		zero = zero || !l->chunk[i];
	}
	l->elem_size = cur_u32(c);
	int rc = h5_msg_end(c, "layout", err);
	if (!rc && (zero || !l->elem_size))
		rc = err_set(err, -EIO, "layout: a chunk dimension or the element size is 0");
	return rc;
}

int h5_layout_decode(const struct h5_file *f, struct cursor *c, struct h5_layout *l,
		     struct err *err)
{
	*l = (struct h5_layout){.addr = H5_UNDEF};
	uint8_t version = cur_u8(c), cls = cur_u8(c);
	if (!cur_ok(c))
		return h5_msg_end(c, "layout", err);
	if (version != 3 && (version != 4 || cls == LAYOUT_CHUNKED || cls == CLASS_VIRTUAL))
		return h5_msg_version(version, "layout", err);
	if (cls > LAYOUT_CHUNKED)
		return err_set(err, -EIO, "layout: invalid class %u", cls);
	l->cls = (enum layout_class)cls;
	if (l->cls == LAYOUT_CHUNKED)
		return decode_chunked(f, c, l, err);
	if (l->cls == LAYOUT_COMPACT) {
		l->size = cur_u16(c);
		l->data = cur_bytes(c, (size_t)l->size);
	} else {
		l->addr = h5_cur_addr(f, c);
		l->size = h5_cur_len(f, c);
	}
	return h5_msg_end(c, "layout", err);
}
