/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads items of global heap collections (Spec III.E). A collection is read whole, once, and kept
 * while there is room for it, so a chunk of strings takes one read for each collection.
 *
 * One thread at a time: the caller has a lock if it has threads.
 */
#ifndef H5_GHEAP_CACHE_H
#define H5_GHEAP_CACHE_H

#include <h5/format.h>

enum {
	H5_GHEAP_CACHED = 64,		  /* most collections that are kept */
	H5_GHEAP_CACHED_BYTES = 16 << 20, /* most bytes of them; a larger one is kept alone */
};

struct h5_gheap_cache;
/* f is copied; its source and claims are borrowed. Each collection is claimed when it is read for
 * the first time. Returns NULL if out of memory. */
struct h5_gheap_cache *h5_gheap_cache_new(const struct h5_file *f);
void h5_gheap_cache_free(struct h5_gheap_cache *c); /* c may be NULL */
/* Finds item `index` of the collection at addr. *data points to its *n bytes, which are borrowed
 * until the next call. Fails with -EIO if there is no such item, if the collection is damaged, or
 * if collections that are much larger than the items in use had to be read too often, and with
 * -ENOMEM. See base/source.h for -EAGAIN. A damaged collection is not read again. */
int h5_gheap_cache_get(struct h5_gheap_cache *c, uint64_t addr, uint32_t index,
		       const uint8_t **data, size_t *n, struct err *err);

#endif
