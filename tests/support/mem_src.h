/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file in a memory block, which counts reads and aborts at a read past its end. After
 * mem_src_hide() its pages are missing until they are fetched, as those of an object in a bucket.
 */
#ifndef SUPPORT_MEM_SRC_H
#define SUPPORT_MEM_SRC_H

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <h5/file.h>

struct mem_src {
	struct source source; /* ctx points here: do not copy */
	struct h5_file file;
	const uint8_t *bytes;
	size_t reads;
	size_t page;   /* size of a page; 0: all bytes are present */
	bool *present; /* for each page */
	size_t fetched;
};

static inline int mem_src_read(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct mem_src *m = ctx;
	if (offset > m->source.size || n > m->source.size - offset)
		abort(); /* source_read() refuses this */
	m->reads++;
	for (uint64_t at = offset; m->page && at < offset + n; at += m->page - at % m->page)
		if (!m->present[at / m->page])
			return -EAGAIN;
	memcpy(buf, m->bytes + offset, n);
	return 0;
}

static inline void mem_src_init(struct mem_src *m, const void *bytes, size_t n)
{
	*m = (struct mem_src){.source = {.size = n, .read_at = mem_src_read, .ctx = m},
			      .bytes = bytes};
	m->file = h5_file_of(&m->source);
}

/* Makes all pages missing. */
static inline void mem_src_hide(struct mem_src *m, size_t page)
{
	m->page = page;
	m->present = calloc((size_t)m->source.size / page + 1, sizeof(*m->present));
}

/* Fetches the pages that the last read needed. */
static inline void mem_src_fetch(struct mem_src *m)
{
	const struct source *s = &m->source;
	for (uint64_t at = s->missing_offset; at < s->missing_offset + s->missing_length;
	     at += m->page - at % m->page)
		if (!m->present[at / m->page]) {
			m->present[at / m->page] = true;
			m->fetched++;
		}
}

static inline void mem_src_release(struct mem_src *m)
{
	free(m->present);
	m->present = NULL;
}

#endif
