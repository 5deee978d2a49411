/* SPDX-License-Identifier: Apache-2.0 */
/* One object of a global heap. */
#ifndef SUPPORT_GHEAP_ITEM_H
#define SUPPORT_GHEAP_ITEM_H

#include <errno.h>

#include <h5/gheap_cache.h>

/* Appends the bytes of object `index` of the collection at addr to out. Reads the whole collection.
 * Fails with -EIO, also if the object has more than max bytes. */
static inline int gheap_item(const struct h5_file *f, uint64_t addr, uint32_t index, size_t max,
			     struct bytes *out, struct err *err)
{
	struct h5_gheap_cache *c = h5_gheap_cache_new(f);
	const uint8_t *data;
	size_t n;
	int rc = c ? h5_gheap_cache_get(c, addr, index, &data, &n, err) : err_no_memory(err);
	if (!rc && n > max)
		rc = err_set(err, -EIO, "object %u has %zu bytes", index, n);
	if (!rc && bytes_append(out, data, n))
		rc = err_no_memory(err);
	h5_gheap_cache_free(c);
	return rc;
}

#endif
