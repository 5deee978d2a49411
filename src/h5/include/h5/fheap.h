/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fractal heaps (Spec III.G) of dense link and attribute storage.
 *
 * Writing: the caller inserts all objects and gets their heap ids, which do not depend on
 * addresses. Then it encodes the whole heap: header, direct and indirect blocks, huge objects and
 * their B-tree.
 */
#ifndef H5_FHEAP_H
#define H5_FHEAP_H

#include <h5/format.h>

struct h5_fheap_params {
	uint16_t id_len;      /* bytes of heap ids; links 7, attributes 8 */
	uint16_t table_width; /* blocks in a row; 4 */
	uint64_t start_block; /* bytes of the smallest block; links 512, attributes 1024 */
	uint64_t max_direct;  /* bytes of the largest direct block; 65,536 */
	uint16_t max_index;   /* bits of heap offsets; links 32, attributes 40 */
	uint32_t max_managed; /* bytes; larger objects are huge; 4,096 */
};
/* The parameters that libhdf5 uses for links and attributes. */
extern const struct h5_fheap_params h5_fheap_links, h5_fheap_attrs;

struct h5_fheap;
/* Returns NULL if out of memory. */
struct h5_fheap *h5_fheap_new(const struct h5_fheap_params *params);
void h5_fheap_free(struct h5_fheap *h);
/* Adds an object of n > 0 bytes. Copies it unless it is huge; a huge object is borrowed until the
 * heap is freed. id has params.id_len bytes. Fails with -E2BIG if the heap is full, and with
 * -ENOMEM. */
int h5_fheap_insert(struct h5_fheap *h, const void *obj, size_t n, uint8_t *id, struct err *err);
/* Adds a huge object of n bytes that the caller puts at addr, outside of the encoded heap. */
int h5_fheap_insert_apart(struct h5_fheap *h, uint64_t addr, uint64_t n, uint8_t *id,
			  struct err *err);
/* Encodes the heap. The header begins at the emitter's position, whose file address is addr. */
void h5_fheap_encode(struct emit *e, const struct h5_fheap *h, uint64_t addr);

/* Opens the heap at addr for reading, and claims its blocks. f is copied; what it points to is
 * borrowed. Fails with -EOPNOTSUPP, also for a heap with filters if f->unfilter is NULL. */
struct h5_fheap_reader;
int h5_fheap_open(const struct h5_file *f, uint64_t addr, struct h5_fheap_reader **out,
		  struct err *err);
/* Appends the bytes of an object to out. Fails with -EIO, also if it has more than max bytes.
 * Claims a huge object, and the B-tree of huge objects, the first time. */
int h5_fheap_get(struct h5_fheap_reader *r, const uint8_t *id, size_t id_len, size_t max,
		 struct bytes *out, struct err *err);
/* Announces that all objects are read soon: see source_advise(). */
void h5_fheap_advise(const struct h5_fheap_reader *r);
void h5_fheap_close(struct h5_fheap_reader *r);

#endif
