/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks of a megabyte come and go all the time. By default glibc maps each of them afresh and
 * gives it back: 256 page faults and as many zeroed pages for every chunk, a third of the processor
 * time of a sequential read. Kept in a few arenas the same pages serve the next chunk.
 */
#include "allocator.h"

#include <malloc.h>

enum {
	ARENAS = 2,		    /* more would each keep chunks of their own */
	MAP_ABOVE = 4 << 20,	    /* bytes; larger ones would leave larger gaps: they go back */
	KEEP_AT_THE_TOP = 16 << 20, /* bytes of free memory that an arena may keep */
};

void allocator_setup(void)
{
#ifdef __GLIBC__
	mallopt(M_ARENA_MAX, ARENAS);
	mallopt(M_MMAP_THRESHOLD, MAP_ABOVE);
	mallopt(M_TRIM_THRESHOLD, KEEP_AT_THE_TOP);
#endif
}
