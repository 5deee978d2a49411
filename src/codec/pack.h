/* SPDX-License-Identifier: Apache-2.0 */
/* Copies plain elements with gaps to their packed form, and back. */
#ifndef CODEC_PACK_H
#define CODEC_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <data/dtype.h>

enum { PACK_RUNS = 128 };

/* Bytes that are together in both forms. */
struct pack_run {
	uint32_t at; /* in the element; the runs follow each other in the packed form */
	uint32_t n;
};

struct pack {
	uint32_t size;	 /* of an element */
	uint32_t packed; /* of its packed form */
	uint32_t n;
	struct pack_run runs[PACK_RUNS];
};

/* False: elements of t have slots, or more than PACK_RUNS runs. */
bool pack_init(struct pack *p, const struct dtype *t);
/* from: n elements; to: n * p->packed bytes. */
void pack_elems(const struct pack *p, uint8_t *to, const uint8_t *from, uint64_t n);
/* The reverse. The bytes in gaps are not written. */
void unpack_elems(const struct pack *p, uint8_t *to, const uint8_t *from, uint64_t n);

#endif
