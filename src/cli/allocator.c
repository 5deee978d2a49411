/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache allocates and frees chunks of several megabytes all the time. By default glibc maps and
 * unmaps each of them: 256 page faults and zeroed pages for each megabyte, a third of the CPU time
 * of a sequential read. With these settings glibc keeps the pages and reuses them for the next
 * chunk. Chunks of 4 MiB are common, and glibc adds a header to a block.
 *
 * libcurl allocates and frees a buffer of 32 KiB for each request. By default glibc keeps small
 * blocks apart when they are freed, and each such buffer makes it merge all of them again.
 */
#include "allocator.h"

#include <malloc.h>

#include <base/mem.h>

enum {
	ARENAS = 2,    /* each keeps its own free memory */
	HEADER = 4096, /* bytes; more than glibc and the alignment of a block take */
	/* Larger blocks would leave larger gaps, so they are unmapped. */
	MAP_ABOVE = (4 << 20) + HEADER,
};

void allocator_setup(void)
{
#ifdef __GLIBC__
	mallopt(M_ARENA_MAX, ARENAS);
	mallopt(M_MMAP_THRESHOLD, MAP_ABOVE);
	mallopt(M_TRIM_THRESHOLD, MEM_KEPT);
	mallopt(M_MXFAST, 0);
#endif
}
