/* SPDX-License-Identifier: Apache-2.0 */
/*
 * External file list message, 0x07 (Spec IV.A.2.h). Only a decoder. Pure.
 *
 *   +0 u8   version, 1
 *   +1 3    reserved
 *   +4 u16  allocated slots
 *   +6 u16  used slots
 *   +8 addr local heap with the names
 *           slots: len offset of the name in the heap, len offset in the file, len bytes
 */
#include <h5/message.h>

#include "msg.h"

int h5_efl_decode(const struct h5_file *f, struct cursor *c, struct arena *a, struct h5_efl *out,
		  struct err *err)
{
	*out = (struct h5_efl){.heap = H5_UNDEF};
	const uint8_t version = cur_u8(c);
	cur_skip(c, 3);
	const uint16_t allocated = cur_u16(c), used = cur_u16(c);
	const uint64_t heap = h5_cur_addr(f, c);
	struct cursor slots = cur_sub(c, (size_t)used * 3 * f->len_size);
	int rc = h5_msg_end_of(c, version, 1, "external file list", err);
	if (rc)
		return rc;
	if (used > allocated || !used || heap == H5_UNDEF)
		return err_set(err, -EIO,
			       "external file list: %u of %u slots are used, or there is no heap",
			       used, allocated);
	struct h5_efl_slot *files = arena_array(a, used, sizeof(*files));
	if (!files)
		return err_set(err, -ENOMEM, "external file list: out of memory");
	for (uint16_t i = 0; i < used; i++) {
		files[i].name = h5_cur_len(f, &slots);
		files[i].offset = h5_cur_len(f, &slots);
		files[i].size = h5_cur_undef(&slots, f->len_size);
	}
	*out = (struct h5_efl){.heap = heap, .n = used, .slots = files};
	return 0;
}
