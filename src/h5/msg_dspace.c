/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dataspace message, 0x01 (Spec IV.A.2.b). Pure functions.
 *
 * Version 2 (encoded):           Version 1 (decoded):
 *   +0 u8   version, 2             +0 u8   version, 1
 *   +1 u8   rank                   +1 u8   rank
 *   +2 u8   flags                  +2 u8   flags
 *   +3 u8   type                   +3 5    reserved
 *   +4 u64  dims[rank]             +8 u64  dims[rank]
 *      u64  max[rank] (flag bit 0)    u64  max[rank] (flag bit 0)
 *
 * Flag bit 1 of version 1 means that permutation indices follow. No release of libhdf5 has written
 * or read them, so they are ignored.
 */
#include <h5/message.h>

#include "msg.h"

enum { FLAG_MAX = 1 << 0 };

/* libhdf5 always writes the maximum dimensions of a simple dataspace. */
void h5_dspace_encode(struct emit *e, const struct dspace *s)
{
	bool simple = s->cls == DSPACE_SIMPLE;
	uint32_t rank = simple ? s->rank : 0;
	emit_u8(e, 2);
	emit_u8(e, (uint8_t)rank);
	emit_u8(e, simple ? FLAG_MAX : 0);
	emit_u8(e, (uint8_t)s->cls);
	for (uint32_t i = 0; i < rank; i++)
		emit_u64(e, s->dims[i]);
	for (uint32_t i = 0; i < rank; i++)
		emit_u64(e, s->max[i]);
}

static int decode_simple(const struct h5_file *f, struct cursor *c, struct arena *a, uint8_t rank,
			 uint8_t flags, struct dspace *s, struct err *err)
{
	uint64_t dims[DSPACE_MAX_RANK], max[DSPACE_MAX_RANK];
	if (rank > DSPACE_MAX_RANK)
		return err_set(err, -EIO, "dataspace: invalid rank %u", rank);
	for (uint8_t i = 0; i < rank; i++)
		dims[i] = h5_cur_len(f, c);
	for (uint8_t i = 0; i < rank && flags & FLAG_MAX; i++)
		max[i] = h5_cur_undef(c, f->len_size);
	int rc = h5_msg_end(c, "dataspace", err);
	if (rc)
		return rc;
	rc = dspace_simple(a, s, rank, dims, flags & FLAG_MAX ? max : NULL, err);
	return rc ? h5_msg_refused(rc, "dataspace", err) : 0;
}

int h5_dspace_decode(const struct h5_file *f, struct cursor *c, struct arena *a, struct dspace *s,
		     struct err *err)
{
	uint8_t version = cur_u8(c), rank = cur_u8(c), flags = cur_u8(c), cls = cur_u8(c);
	if (version == 1) {
		cls = rank ? DSPACE_SIMPLE : DSPACE_SCALAR;
		cur_skip(c, 4);
	}
	int rc = h5_msg_end(c, "dataspace", err);
	if (rc)
		return rc;
	if (version != 1 && version != 2)
		return h5_msg_version(version, "dataspace", err);
	if (cls == DSPACE_SIMPLE && rank) /* like libhdf5, take rank 0 for one element */
		return decode_simple(f, c, a, rank, flags, s, err);
	if (rank || cls > DSPACE_NULL)
		return err_set(err, -EIO, "dataspace: invalid type %u with rank %u", cls, rank);
	if (cls == DSPACE_NULL)
		dspace_null(s);
	else
		dspace_scalar(s);
	return 0;
}
