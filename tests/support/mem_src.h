/* SPDX-License-Identifier: Apache-2.0 */
/* A source of bytes over a memory block, which counts reads and refuses any past its end. */
#ifndef SUPPORT_MEM_SRC_H
#define SUPPORT_MEM_SRC_H

#include <errno.h>
#include <string.h>

#include <h5/format.h>

struct mem_src {
	struct h5_src src; /* ctx points here: do not copy */
	const uint8_t *bytes;
	size_t reads;
};

static inline int mem_src_read(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct mem_src *m = ctx;
	if (offset > m->src.size || n > m->src.size - offset)
		abort(); /* a caller went around h5_src_read() */
	m->reads++;
	memcpy(buf, m->bytes + offset, n);
	return 0;
}

static inline void mem_src_init(struct mem_src *m, const void *bytes, size_t n)
{
	m->src = (struct h5_src){.size = n, .read_at = mem_src_read, .ctx = m};
	m->bytes = bytes;
	m->reads = 0;
}

#endif
