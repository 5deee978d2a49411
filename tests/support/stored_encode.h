/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes a whole chunk, as an image shows it: makes its slot, and reads all of it. */
#ifndef SUPPORT_STORED_ENCODE_H
#define SUPPORT_STORED_ENCODE_H

#include <codec/chunk.h>

static inline void slot_read(const struct pipeline *p, const struct chunk_data *slot, uint64_t at,
			     uint8_t *out, size_t n)
{
	if (codec_slot_is_deflated(p))
		codec_stored_read(slot, at, out, n);
	else
		chunk_data_read(slot, at, out, n);
}

/* out has codec_stored_size() bytes. Fails as codec_slot_make(). */
static inline int stored_encode(const struct pipeline *p, uint32_t elem_size, const uint8_t *plain,
				size_t n, uint8_t *out)
{
	const uint64_t size = codec_stored_size(p, n);
	struct chunk_data slot = {0};
	if (!size)
		return 0;
	/* Room for a byte, so that the bytes are never NULL. */
	int rc = bytes_reserve(&slot.elems.fixed, n + 1);
	if (!rc)
		rc = bytes_append(&slot.elems.fixed, plain, n);
	if (!rc)
		rc = codec_slot_make(p, elem_size, &slot, NULL);
	if (!rc)
		slot_read(p, &slot, 0, out, (size_t)size);
	chunk_data_release(&slot);
	return rc;
}

#endif
