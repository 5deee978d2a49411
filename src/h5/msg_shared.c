/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared message (Spec IV.A.2, "shared message"): the body of a message with flag H5_MSG_SHARED,
 * and the datatype field of an attribute with a committed datatype. Pure functions.
 *
 * Version 2 (encoded) and 3:               Version 1:
 *   +0 u8   version                          +0  u8   version, 1
 *   +1 u8   type                             +1  u8   unused
 *   +2 u64  address of the object header     +2  6    reserved
 *                                            +8  u64  name offset of a symbol table entry
 *                                            +16 u64  address of the object header
 *
 * Version 3, type 1: +2 8 heap id. The heap is that of the messages' type.
 */
#include "msg_shared.h"

#include <string.h>

#include <h5/message.h>

#include "msg.h"

/* libhdf5 up to 1.6 has no types and writes 0 in version 2. */
enum { SHARED_UNTYPED = 0, SHARED_IN_HEAP = 1, SHARED_COMMITTED = 2 };

void h5_shared_encode(struct emit *e, uint64_t addr)
{
	emit_u8(e, 2);
	emit_u8(e, SHARED_COMMITTED);
	emit_u64(e, addr);
}

int msg_shared_decode(const struct h5_file *f, struct cursor *c, struct msg_shared *out,
		      struct err *err)
{
	uint8_t version = cur_u8(c), type = cur_u8(c);
	*out = (struct msg_shared){.addr = H5_UNDEF};
	if (!cur_ok(c))
		return h5_msg_end(c, "shared message", err);
	if (version < 1 || version > 3)
		return h5_msg_version(version, "shared message", err);
	out->in_heap = version == 3 && type == SHARED_IN_HEAP;
	if (version != 1 && !out->in_heap && type != SHARED_COMMITTED &&
	    !(version == 2 && type == SHARED_UNTYPED))
		return err_set(err, -EIO, "shared message: invalid type %u", type);
	if (version == 1)
		cur_skip(c, 6U + f->len_size);
	const uint8_t *id = out->in_heap ? cur_bytes(c, H5_SHARED_ID) : NULL;
	if (id)
		memcpy(out->id, id, H5_SHARED_ID);
	else
		out->addr = h5_cur_addr(f, c);
	return h5_msg_end(c, "shared message", err);
}

int h5_shared_decode(const struct h5_file *f, struct cursor *c, uint64_t *addr, struct err *err)
{
	struct msg_shared ref;
	int rc = msg_shared_decode(f, c, &ref, err);
	*addr = ref.addr;
	if (!rc && ref.in_heap)
		rc = err_set(err, -EOPNOTSUPP,
			     "shared message: a message in the shared message heap, which has no "
			     "object header");
	return rc;
}
