/* SPDX-License-Identifier: Apache-2.0 */
/* Copies plain elements with gaps to their packed form, and back. */
#ifndef CODEC_PACK_H
#define CODEC_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include <data/dtype.h>

enum { PACK_RUNS = 128 };

/* Bytes that are adjacent in both forms. */
struct pack_run {
	uint32_t at; /* offset in the element; in the packed form, the runs follow each other */
	uint32_t n;  /* bytes */
};

struct pack {
	uint32_t size;	 /* bytes of an element */
	uint32_t packed; /* bytes of its packed form */
	uint32_t n;	 /* number of runs */
	struct pack_run runs[PACK_RUNS];
};

/* Returns false if elements of t have slots, or more than PACK_RUNS runs. */
bool pack_init(struct pack *p, const struct dtype *t);
/* Packs the n elements at `from` to the n * p->packed bytes at `to`. */
void pack_elems(const struct pack *p, uint8_t *to, const uint8_t *from, uint64_t n);
/* Does the reverse. It does not write the bytes in gaps. */
void unpack_elems(const struct pack *p, uint8_t *to, const uint8_t *from, uint64_t n);

#endif
