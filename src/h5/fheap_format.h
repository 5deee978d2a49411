/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of a fractal heap (Spec III.G) and the arithmetic of its doubling table, which the
 * writer and the reader share.
 *
 * Header "FRHP" (all tables are for addresses and lengths of 8 bytes):
 *
 *    +0  signature, u8 version 0       +70  u64  managed objects
 *    +5  u16  heap id length           +78  u64  bytes of huge objects
 *    +7  u16  length of filters        +86  u64  huge objects
 *    +9  u8   flags                    +94  u64  bytes of tiny objects
 *   +10  u32  max. managed object     +102  u64  tiny objects
 *   +14  u64  last id of a huge object      +110  u16  table width
 *   +22  u64  B-tree of huge objects  +112  u64  starting block size
 *   +30  u64  free managed space      +120  u64  max. direct block size
 *   +38  u64  free-space manager      +128  u16  max. heap size, in bits
 *   +46  u64  managed space           +130  u16  starting rows of the root indirect block
 *   +54  u64  space of direct blocks  +132  u64  root block, undefined when empty
 *   +62  u64  allocation iterator     +140  u16  rows of the root block, 0: it is direct
 *
 *   only if there are filters: u64 stored size and u32 filter mask of a direct root block, then the
 *   filter pipeline message; the encoder writes none
 *   u32 checksum of the bytes before it
 *
 * Direct block "FHDB" and indirect block "FHIB":
 *
 *    +0  signature, u8 version 0
 *    +5  u64  address of the heap header
 *   +13  block's offset in the heap, ceil(max. heap size / 8) bytes
 *        direct: u32 checksum of the whole block with this field 0 (flag FHEAP_CHECKSUM_BLOCKS),
 *                then objects
 *        indirect: u64 address of each of rows * width children, undefined if there is none; if
 *                there are filters, each address of a direct block is followed by the u64 stored
 *                size and the u32 filter mask of the block; then u32 checksum of the bytes before
 * it
 *
 * Filters are applied to a whole direct block with its prefix, and to each huge object.
 *
 * Heap id: one byte of version (bits 6-7, 0) and class (bits 4-5), then
 *   managed  offset in the heap, which counts block prefixes too and is as wide as in blocks;
 *            then the length
 *   huge     address and stored length if the id has room for them, with filters also u32 filter
 *            mask and length; otherwise a number that the B-tree of huge objects maps to them
 *   tiny     the length minus 1 (in bits 0-3; also in a second byte if ids have more than 18
 *            bytes), then the bytes of the object
 *
 * Doubling table. The heap consists of rows of `width` blocks each. Blocks have the starting size
 * in rows 0 and 1, and twice the size of row r - 1 in row r > 1. So row r > 0 begins at heap offset
 * start * width * 2^(r-1). The rows of blocks up to the maximum direct size are direct blocks. In
 * the rows after them each block is an indirect block, whose range is divided by the same table.
 */
#ifndef H5_FHEAP_FORMAT_H
#define H5_FHEAP_FORMAT_H

#include <stdbool.h>

#include <h5/fheap.h>

enum {
	FHEAP_HEADER_SIZE = 146, /* without filters */
	FHEAP_MAX_ROWS = 64,
	FHEAP_ID_CLASS = 0x30,
	FHEAP_ID_VERSION = 0xc0,
};

enum fheap_flags {
	FHEAP_CHECKSUM_BLOCKS = 1 << 1,
};

enum fheap_id_class {
	FHEAP_ID_MANAGED = 0x00,
	FHEAP_ID_HUGE = 0x10,
	FHEAP_ID_TINY = 0x20,
};

struct fheap_header {
	struct h5_fheap_params params;
	uint8_t flags;
	uint64_t huge_last_id, huge_tree;
	uint64_t free_bytes, free_space; /* free_space is the address of the free-space manager */
	uint64_t managed_bytes, block_bytes, iterator, managed_n;
	uint64_t huge_bytes, huge_n;
	uint64_t tiny_bytes, tiny_n;
	uint64_t root;
	uint16_t root_rows;
	uint16_t filter_len;  /* 0 if there are no filters */
	uint64_t root_stored; /* if there are filters, stored bytes and filter mask of a direct root
				 block */
	uint32_t root_mask;
};

/* Values computed from the parameters. */
struct fheap_table {
	struct h5_fheap_params params;
	struct h5_file file; /* for its sizes */
	bool checksum;	     /* direct blocks have one */
	bool filtered;
	unsigned int row_bits;	/* log2 of the bytes of row 0 */
	unsigned int max_rows;	/* most rows of the root indirect block */
	unsigned int direct;	/* rows of direct blocks */
	unsigned int off_size;	/* bytes of an offset in ids and blocks */
	unsigned int len_size;	/* bytes of a length in ids */
	unsigned int prefix;	/* bytes of a direct block before its objects */
	unsigned int huge_size; /* bytes of the number of a huge object in ids */
	bool huge_direct;	/* ids of huge objects hold address and length */
	unsigned int tiny_max;	/* bytes of the largest tiny object */
	bool tiny_extended;	/* the length of a tiny object has a second byte */
};

/* checksum is true if direct blocks have one. Fails with -EIO if the parameters are impossible. */
int fheap_table_init(struct fheap_table *t, const struct h5_file *f,
		     const struct h5_fheap_params *params, bool checksum, bool filtered,
		     struct err *err);

/* An entry of an indirect block. */
struct fheap_entry {
	unsigned int row;
	uint64_t offset; /* in the range of the indirect block */
	uint64_t size;
};

/* Returns the bytes of a block of a row. */
uint64_t fheap_row_size(const struct fheap_table *t, unsigned int row);
/* Returns the offset of a row in the range of its indirect block. */
uint64_t fheap_row_offset(const struct fheap_table *t, unsigned int row);
/* Returns the entry for an offset in the range of an indirect block. The row may be past the end of
 * the block. */
struct fheap_entry fheap_find(const struct fheap_table *t, uint64_t offset);
struct fheap_entry fheap_entry_at(const struct fheap_table *t, unsigned int row, unsigned int col);
/* Returns the rows of an indirect block that is a child in a row >= t->direct. */
unsigned int fheap_child_rows(const struct fheap_table *t, unsigned int row);
/* Returns the bytes for objects in all direct blocks that `rows` rows can have. */
uint64_t fheap_capacity(const struct fheap_table *t, unsigned int rows);
uint64_t fheap_indirect_size(const struct fheap_table *t, unsigned int rows);

void fheap_header_encode(struct emit *e, const struct fheap_header *h);
/* Returns the bytes of a header with the sizes of a file, without what filters add to it. */
size_t fheap_header_size(const struct h5_file *f);
/* Returns the bytes that filters add to a header that begins with these fheap_header_size()
 * bytes. */
size_t fheap_header_more(const struct h5_file *f, const uint8_t *raw);
/* raw has the n bytes of the whole header. *filters becomes the filter pipeline message, empty if
 * there are no filters. */
int fheap_header_decode(const struct h5_file *f, const uint8_t *raw, size_t n,
			struct fheap_header *h, struct cursor *filters, struct err *err);

/* Encodes a block of `size` bytes. data has n bytes of objects, n <= size - t->prefix. */
void fheap_direct_encode(struct emit *e, const struct fheap_table *t, uint64_t heap,
			 uint64_t offset, uint64_t size, const uint8_t *data, size_t n);
/* Checks prefix and checksum of a block. Sets its checksum field to 0. */
int fheap_direct_check(const struct fheap_table *t, uint64_t heap, uint64_t offset, uint8_t *block,
		       size_t size, struct err *err);

/* child returns the address of an entry; it is called in order. */
void fheap_indirect_encode(struct emit *e, const struct fheap_table *t, uint64_t heap,
			   uint64_t offset, unsigned int rows,
			   uint64_t (*child)(void *ctx, const struct fheap_entry *entry),
			   void *ctx);
/* raw has fheap_indirect_size() bytes. *children becomes a cursor over the children. */
int fheap_indirect_decode(const struct fheap_table *t, uint64_t heap, uint64_t offset,
			  const uint8_t *raw, size_t size, struct cursor *children,
			  struct err *err);
struct fheap_child {
	uint64_t addr;	 /* H5_UNDEF if there is none */
	uint64_t stored; /* of direct blocks, bytes in the file */
	uint32_t mask;	 /* of filters that were not applied */
};
/* Decodes the next child, which belongs to a row. */
struct fheap_child fheap_child_decode(const struct fheap_table *t, struct cursor *children,
				      unsigned int row);

#endif
