/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes a whole chunk, as an image shows it: makes its slot, and reads all of it. */
#ifndef SUPPORT_STORED_ENCODE_H
#define SUPPORT_STORED_ENCODE_H

#include <codec/chunk.h>

/* out has codec_stored_size() bytes. Fails as codec_slot_make(). */
static inline int stored_encode(const struct pipeline *p, uint32_t elem_size, const uint8_t *plain,
				size_t n, uint8_t *out)
{
	const uint64_t size = codec_stored_size(p, n);
	struct elems_coding coding = {0};
	auto_bytes struct bytes slot = {0};
	if (!size)
		return 0;
	/* Room for a byte, so that the bytes are never NULL. */
	int rc = bytes_reserve(&slot, n + 1);
	if (!rc)
		rc = bytes_append(&slot, plain, n);
	if (!rc)
		rc = codec_slot_make(p, elem_size, &slot, &coding, NULL);
	if (!rc)
		codec_slot_read(codec_slot_is_deflated(p), elem_size, &slot, &coding, 0, out,
				(size_t)size);
	return rc;
}

#endif
