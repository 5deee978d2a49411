/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders of global heap collections; gheap.c describes the bytes. Pure. */
#ifndef H5_GHEAP_FORMAT_H
#define H5_GHEAP_FORMAT_H

#include <h5/format.h>

enum { GHEAP_HEADER_SIZE = 16, GHEAP_OBJECT_HEADER = 16 };

struct gheap_item {
	size_t at, n; /* of the data, in the collection */
	uint16_t index;
};

/* raw has GHEAP_HEADER_SIZE bytes. *size becomes the bytes of the collection, at least
 * GHEAP_HEADER_SIZE. */
int gheap_header_decode(const struct h5_file *f, const uint8_t *raw, uint64_t *size,
			struct err *err);
/* Appends the items (struct gheap_item) of a collection of n bytes in ascending order of their
 * indexes. Fails with -EIO, also if two items have the same index. */
int gheap_items_decode(const struct h5_file *f, const uint8_t *raw, size_t n, struct bytes *items,
		       struct err *err);

#endif
