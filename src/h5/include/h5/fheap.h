/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fractal heaps (Spec III.G) as dense link and attribute storage use them. Built in one go:
 * objects are inserted (their ids do not depend on addresses), then everything (header, direct and
 * indirect blocks, huge objects and their B-tree) is laid down contiguously.
 */
#ifndef H5_FHEAP_H
#define H5_FHEAP_H

#include <h5/format.h>

struct h5_fheap_params {
	uint16_t id_len;      /* 7 links, 8 attributes */
	uint16_t table_width; /* 4 */
	uint64_t start_block; /* 512 links, 1024 attributes */
	uint64_t max_direct;  /* 65,536 */
	uint16_t max_index;   /* heap size in bits: 32 links, 40 attributes */
	uint32_t max_managed; /* 4,096: larger objects are huge */
};
/* libhdf5's own settings (H5G and H5A dense storage). */
extern const struct h5_fheap_params h5_fheap_links, h5_fheap_attrs;

struct h5_fheap;
/* NULL without memory. */
struct h5_fheap *h5_fheap_new(const struct h5_fheap_params *params);
void h5_fheap_free(struct h5_fheap *h);
/* Copies a managed object; a huge one is borrowed until the heap is freed. id: params.id_len
 * bytes. -E2BIG when the heap is full, -ENOMEM. */
int h5_fheap_insert(struct h5_fheap *h, const void *obj, size_t n, uint8_t *id, struct err *err);
/* A huge object of n bytes that lie elsewhere in the file, at address addr. */
int h5_fheap_insert_apart(struct h5_fheap *h, uint64_t addr, uint64_t n, uint8_t *id,
			  struct err *err);
uint64_t h5_fheap_size(const struct h5_fheap *h);
/* addr: file address of the header = the emitter's position now. Exactly h5_fheap_size() bytes. */
void h5_fheap_encode(struct emit *e, const struct h5_fheap *h, uint64_t addr);

/* Reading: opens a heap at addr. Objects by id: managed (in direct blocks), huge (by B-tree) and
 * tiny. Filtered heaps: -EOPNOTSUPP. */
struct h5_fheap_reader;
int h5_fheap_open(const struct h5_file *f, uint64_t addr, struct h5_fheap_reader **out,
		  struct err *err);
/* Appends the object's bytes to out; at most max. */
int h5_fheap_get(struct h5_fheap_reader *r, const uint8_t *id, size_t id_len, size_t max,
		 struct bytes *out, struct err *err);
void h5_fheap_close(struct h5_fheap_reader *r);

#endif
