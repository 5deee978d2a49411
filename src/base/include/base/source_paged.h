/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source that keeps pages of other bytes in memory: of a file, whose small reads become few large
 * ones, or of an object in a bucket, whose pages arrive later.
 *
 * A fetch function that has the bytes delivers them at once. One that does not returns -EAGAIN, and
 * so does the read. Its caller fetches the missing range (source.missing_offset), stores it with
 * source_paged_put(), and starts again. A decoder that starts again reads all pages again, so from
 * the first -EAGAIN on no page is evicted: if they do not fit, reads fail with -ENOMEM.
 *
 * Any number of threads may read, if the fetch function permits it. With a fetch function that
 * returns -EAGAIN only one thread at a time may, because the source records the missing range.
 */
#ifndef BASE_SOURCE_PAGED_H
#define BASE_SOURCE_PAGED_H

#include <base/source.h>

enum { SOURCE_PAGE = 64 << 10 /* bytes of a page */ };

/* Reads n bytes at offset, as source.read_at does. */
typedef int (*source_fetch_fn)(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err);

struct source_paged;
/* size is the size of the source in bytes, pages (> 0) the number of pages to keep at most. Returns
 * NULL if out of memory. */
struct source_paged *source_paged_new(uint64_t size, uint32_t pages, source_fetch_fn fetch,
				      void *ctx);
void source_paged_free(struct source_paged *p); /* p may be NULL */
/* Returns the source, which lives as long as p. */
struct source *source_paged_source(struct source_paged *p);

/* Rounds a range to the pages that cover it: *offset and *n become multiples of SOURCE_PAGE, except
 * at the end of the source. The range must be within the source. */
void source_paged_round(const struct source_paged *p, uint64_t *offset, uint64_t *n);
/* Stores bytes whose range was rounded by source_paged_round(). Fails with -ENOMEM, also if they do
 * not fit. */
int source_paged_put(struct source_paged *p, uint64_t offset, const void *bytes, uint64_t n,
		     struct err *err);

/* A fetch function that reads another source, which is ctx. */
int source_paged_fetch_source(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err);

#endif
