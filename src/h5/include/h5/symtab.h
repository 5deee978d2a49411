/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbol-table groups (Spec III.A.1 node type 0, III.B symbol table nodes, III.C symbol table
 * entries, III.D local heaps), the groups of libhdf5 before 1.8 and, by default, after it.
 */
#ifndef H5_SYMTAB_H
#define H5_SYMTAB_H

#include <h5/format.h>

/* Symbol table message, 0x11, with both addresses of a group. */
struct h5_symtab {
	uint64_t btree, heap;
};
int h5_symtab_decode(const struct h5_file *f, struct cursor *c, struct h5_symtab *out,
		     struct err *err);

struct h5_symbol {
	const char *name; /* NUL-terminated, borrowed until fn returns; not empty */
	uint64_t header;  /* address of the object header; H5_UNDEF for a soft link */
	const char *path; /* of a soft link */
};
typedef int (*h5_symtab_fn)(void *ctx, const struct h5_symbol *s, struct err *err);
/* Calls fn for the link with this name, if there is one. Reads the heap, and of the nodes only
 * those that can have the link. If name is NULL, it calls fn for each link in the order of the
 * names, and reads each node once. */
int h5_symtab_find(const struct h5_file *f, const struct h5_symtab *t, const char *name,
		   h5_symtab_fn fn, void *ctx, struct err *err);

/* Local heap (Spec III.D), read whole. Strings are borrowed from the arena. */
struct h5_lheap {
	const uint8_t *data;
	size_t n;
};
/* Reads a local heap. Fails with -EIO, also if its data segment has more than 64 MiB. */
int h5_lheap_read(const struct h5_file *f, uint64_t addr, struct arena *a, struct h5_lheap *out,
		  struct err *err);
/* Claims the bytes of a heap that was read without claims. */
int h5_lheap_claim(const struct h5_file *f, uint64_t addr, struct err *err);
/* Returns the NUL-terminated string at an offset, or NULL if it is not within the heap. */
const char *h5_lheap_string(const struct h5_lheap *h, uint64_t offset);

#endif
