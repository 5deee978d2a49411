/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extensible arrays of chunks (Spec VII.D). The header:
 *
 *    +0 "EAHD", u8 version 0, u8 client: 1 if the chunks are filtered
 *    +6 u8   bytes of an entry
 *    +7 u8   bits of the largest number of elements
 *    +8 u8   elements in the index block
 *    +9 u8   least elements of a data block, a power of two
 *   +10 u8   least data block pointers of a super block, a power of two
 *   +11 u8   bits of a page: a data block of more than 2^bits elements has pages of so many
 *   +12 u64  super blocks, bytes of them, data blocks, bytes of them
 *       u64  elements up to the last one that was ever set
 *       u64  elements for which there are blocks
 *       u64  address of the index block, undefined if there is none
 *       u32  checksum of the bytes before it
 *
 * The index block holds the first elements. The others are in groups: group u has 2^(u/2) data
 * blocks of 2^((u+1)/2) times the least number of elements. The first groups have their pointers in
 * the index block; each further group has a super block.
 *
 *   index block "EAIB", u8 version 0, u8 client, u64 address of the header
 *          entries, pointers to data blocks, pointers to super blocks, u32 checksum
 *   super block "EASB", u8 version 0, u8 client, u64 address of the header
 *          first element of the group
 *          with pages: for each data block, whole bytes with a bit for each of its pages; but the
 *          bits of all data blocks follow each other without a gap, the highest of a byte first
 *          pointers to data blocks, u32 checksum
 *   data block "EADB", u8 version 0, u8 client, u64 address of the header
 *          first element of the block
 *          without pages: entries, u32 checksum
 *          with pages: u32 checksum; pages: entries, u32 checksum of these
 *
 * First elements are as wide as the largest number of elements, and do not count those of the index
 * block. In data blocks whose pointers are in the index block, libhdf5 writes another number: see
 * libhdf5_offset().
 *
 * All sizes are computed, so each block is read at most once.
 */
#include "chunk_array.h"

#include <errno.h>

enum {
	HEADER_FIXED = 16,
	HEADER_LENGTHS = 6,
	MAX_BITS = 62, /* so that numbers of elements do not overflow; libhdf5 writes 32 */
	MAX_PAGE_BITS = 32,
	MAX_DIRECT = 2 * (128 - 1), /* 128 is the largest power of two in a byte */
};

struct earray {
	struct chunk_array array;
	uint8_t bits;
	unsigned int offset_len; /* bytes of the first element in blocks */
	uint64_t in_index;	 /* elements in the index block */
	uint64_t least;		 /* elements of a data block */
	unsigned int groups;
	unsigned int direct; /* groups without a super block */
	uint64_t page;	     /* elements of a page */
	uint64_t end;	     /* elements that may be set */
	uint64_t index_block;
};

struct group {
	unsigned int number;
	uint64_t first;	 /* element */
	uint64_t blocks; /* data blocks */
	uint64_t each;	 /* elements of a data block */
	uint64_t pages;	 /* of a data block; 0 if it has no pages */
};

static struct group group_of(const struct earray *ea, unsigned int u)
{
	struct group g = {.number = u,
			  .first = ea->in_index + ea->least * ((UINT64_C(1) << u) - 1),
			  .blocks = UINT64_C(1) << u / 2,
			  .each = ea->least << (u + 1) / 2};
	g.pages = g.each > ea->page ? g.each / ea->page : 0;
	return g;
}

static bool wanted(const struct earray *ea, uint64_t first, uint64_t n)
{
	return first < ea->end && array_wanted(&ea->array, first, min_u64(first + n, ea->end));
}

/* Returns the power of two that v is, or -1 if it is none. */
static int log2_of(uint64_t v)
{
	return v && !(v & (v - 1)) ? __builtin_ctzll(v) : -1;
}

static int check_sizes(struct earray *ea, uint8_t pointers, uint8_t page_bits, struct err *err)
{
	const struct chunk_array *a = &ea->array;
	const int least = log2_of(ea->least), direct = log2_of(pointers);
	if (least < 0 || direct < 1 || ea->bits > MAX_BITS || ea->bits < least ||
	    page_bits > MAX_PAGE_BITS)
		return array_damaged(a, a->addr, "impossible sizes", err);
	ea->groups = 1U + ea->bits - (unsigned int)least;
	ea->direct = 2 * (unsigned int)direct;
	ea->page = UINT64_C(1) << page_bits;
	ea->offset_len = (ea->bits + 7U) / 8;
	/* Data blocks whose pointers are in the index block have no pages. */
	if (ea->direct > ea->groups || group_of(ea, ea->direct - 1).pages)
		return array_damaged(a, a->addr, "impossible sizes", err);
	return 0;
}

static int read_header(struct earray *ea, struct err *err)
{
	const struct chunk_array *a = &ea->array;
	const struct h5_file *f = a->walk->f;
	const uint64_t size = HEADER_FIXED + HEADER_LENGTHS * f->len_size + f->addr_size;
	auto_free uint8_t *raw = NULL;
	struct cursor c;
	int rc = array_read(a, a->addr, size, "EAHD", &raw, &c, err);
	if (rc)
		return rc;
	const uint8_t entry = cur_u8(&c);
	ea->bits = cur_u8(&c);
	ea->in_index = cur_u8(&c);
	ea->least = cur_u8(&c);
	const uint8_t pointers = cur_u8(&c), page_bits = cur_u8(&c);
	cur_skip(&c, (size_t)4 * f->len_size);
	ea->end = h5_cur_len(f, &c);
	cur_skip(&c, f->len_size);
	ea->index_block = h5_cur_addr(f, &c);
	if (entry != index_entry_size(a->walk))
		return array_damaged(a, a->addr, "wrong size of an entry", err);
	return check_sizes(ea, pointers, page_bits, err);
}

/* Data block k of a direct group has the number of blocks before the group added to k in its first
 * element. */
static uint64_t libhdf5_offset(const struct earray *ea, const struct group *g, uint64_t k)
{
	const uint64_t half = UINT64_C(1) << g->number / 2;
	const uint64_t before = 2 * (half - 1) + (g->number % 2 ? half : 0);
	return g->first - ea->in_index + (before + k) * g->each;
}

/* Checks the address of the header and the first element of a super block (k 0) or of data block k
 * of a group. */
static int check_prefix(const struct earray *ea, uint64_t addr, const struct group *g, uint64_t k,
			struct cursor *c, struct err *err)
{
	int rc = array_owner(&ea->array, addr, c, err);
	const uint64_t offset = cur_uint(c, ea->offset_len);
	if (!rc && offset != g->first + k * g->each - ea->in_index &&
	    (g->number >= ea->direct || offset != libhdf5_offset(ea, g, k)))
		rc = array_damaged(&ea->array, addr, "the block is in the wrong place", err);
	return rc;
}

static uint64_t data_block_size(const struct earray *ea, const struct group *g)
{
	const uint64_t entries = g->pages ? 0 : g->each * index_entry_size(ea->array.walk);
	return array_prefix(&ea->array) + ea->offset_len + entries + ARRAY_CHECKSUM;
}

static uint64_t super_block_size(const struct earray *ea, const struct group *g)
{
	return array_prefix(&ea->array) + ea->offset_len + g->blocks * div_up_u64(g->pages, 8) +
	       g->blocks * ea->array.walk->f->addr_size + ARRAY_CHECKSUM;
}

/* Announces the reads of the data blocks of a group. */
static void advise_blocks(const struct earray *ea, const struct group *g, struct cursor *pointers)
{
	const struct h5_file *f = ea->array.walk->f;
	for (uint64_t k = 0; k < g->blocks; k++) {
		const uint64_t addr = h5_cur_addr(f, pointers);
		if (addr != H5_UNDEF && wanted(ea, g->first + k * g->each, g->each))
			h5_file_advise(f, addr, data_block_size(ea, g));
	}
}

/* Walks the pages of the data block at addr, whose prefix has been read. bit is that of its first
 * page. */
static int walk_pages(const struct earray *ea, const struct group *g, uint64_t addr, uint64_t first,
		      const uint8_t *bits, uint64_t bit, struct err *err)
{
	const struct chunk_array *a = &ea->array;
	const uint64_t size = ea->page * index_entry_size(a->walk) + ARRAY_CHECKSUM;
	for (uint64_t i = 0; i < g->pages; i++)
		if (bits[(bit + i) / 8] & 0x80 >> (bit + i) % 8 &&
		    wanted(ea, first + i * ea->page, ea->page))
			h5_file_advise(a->walk->f, addr + i * size, size);
	for (uint64_t i = 0; i < g->pages; i++, bit++, addr += size, first += ea->page) {
		if (!(bits[bit / 8] & 0x80 >> bit % 8) || !wanted(ea, first, ea->page))
			continue;
		auto_free uint8_t *raw = NULL;
		struct cursor c;
		int rc = array_read(a, addr, size, NULL, &raw, &c, err);
		if (!rc)
			rc = array_entries(a, first, c, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* Walks data block k of a group. bits are those of the pages of all data blocks of the group, NULL
 * if there are none. */
static int walk_data_block(const struct earray *ea, const struct group *g, uint64_t k,
			   uint64_t addr, const uint8_t *bits, struct err *err)
{
	const struct chunk_array *a = &ea->array;
	const uint64_t first = g->first + k * g->each;
	if (addr == H5_UNDEF || !wanted(ea, first, g->each))
		return 0;
	const uint64_t size = data_block_size(ea, g);
	auto_free uint8_t *raw = NULL;
	struct cursor c;
	int rc = array_read(a, addr, size, "EADB", &raw, &c, err);
	if (!rc)
		rc = check_prefix(ea, addr, g, k, &c, err);
	if (rc)
		return rc;
	return g->pages ? walk_pages(ea, g, addr + size, first, bits, k * g->pages, err)
			: array_entries(a, first, c, err);
}

static int walk_super_block(const struct earray *ea, const struct group *g, uint64_t addr,
			    struct err *err)
{
	const struct chunk_array *a = &ea->array;
	if (addr == H5_UNDEF || !wanted(ea, g->first, g->blocks * g->each))
		return 0;
	const uint64_t bitmap = g->blocks * div_up_u64(g->pages, 8);
	auto_free uint8_t *raw = NULL;
	struct cursor c;
	int rc = array_read(a, addr, super_block_size(ea, g), "EASB", &raw, &c, err);
	if (!rc)
		rc = check_prefix(ea, addr, g, 0, &c, err);
	const uint8_t *bits = rc || !bitmap ? NULL : cur_bytes(&c, (size_t)bitmap);
	struct cursor pointers = c;
	if (!rc)
		advise_blocks(ea, g, &pointers);
	for (uint64_t k = 0; k < g->blocks && !rc; k++)
		rc = walk_data_block(ea, g, k, h5_cur_addr(a->walk->f, &c), bits, err);
	return rc;
}

/* Returns true if two of the n pointers are equal. Data blocks of the index block need this,
 * because the number that libhdf5 writes to a block of a group is right for one of the next
 * group. */
static bool repeated(const struct earray *ea, struct cursor pointers, uint64_t n)
{
	uint64_t seen[MAX_DIRECT];
	for (uint64_t i = 0; i < n; i++) {
		seen[i] = h5_cur_addr(ea->array.walk->f, &pointers);
		for (uint64_t k = 0; k < i; k++)
			if (seen[k] == seen[i] && seen[i] != H5_UNDEF)
				return true;
	}
	return false;
}

/* Announces the reads of the blocks whose addresses are in the index block. */
static void advise_all(const struct earray *ea, struct cursor pointers)
{
	const struct h5_file *f = ea->array.walk->f;
	for (unsigned int u = 0; u < ea->groups; u++) {
		const struct group g = group_of(ea, u);
		if (u < ea->direct) {
			advise_blocks(ea, &g, &pointers);
			continue;
		}
		const uint64_t addr = h5_cur_addr(f, &pointers);
		if (addr != H5_UNDEF && wanted(ea, g.first, g.blocks * g.each))
			h5_file_advise(f, addr, super_block_size(ea, &g));
	}
}

static int walk_index_block(const struct earray *ea, struct err *err)
{
	const struct chunk_array *a = &ea->array;
	const struct h5_file *f = a->walk->f;
	const uint64_t entries = ea->in_index * index_entry_size(a->walk);
	const uint64_t direct = group_of(ea, ea->direct).blocks * 2 - 2; /* data blocks */
	const uint64_t pointers = direct + ea->groups - ea->direct;
	const uint64_t size = array_prefix(a) + entries + pointers * f->addr_size + ARRAY_CHECKSUM;
	auto_free uint8_t *raw = NULL;
	struct cursor c;
	int rc = array_read(a, ea->index_block, size, "EAIB", &raw, &c, err);
	if (!rc)
		rc = array_owner(a, ea->index_block, &c, err);
	if (rc)
		return rc;
	rc = array_entries(a, 0, cur_sub(&c, (size_t)entries), err);
	if (!rc && repeated(ea, c, direct))
		return array_damaged(a, ea->index_block, "it has a data block twice", err);
	advise_all(ea, c);
	for (unsigned int u = 0; u < ea->groups && !rc; u++) {
		const struct group g = group_of(ea, u);
		if (u >= ea->direct)
			rc = walk_super_block(ea, &g, h5_cur_addr(f, &c), err);
		for (uint64_t k = 0; u < ea->direct && k < g.blocks && !rc; k++)
			rc = walk_data_block(ea, &g, k, h5_cur_addr(f, &c), NULL, err);
	}
	return rc;
}

/* Returns the dimension without a limit, or the first one if there is none. */
static uint32_t unlimited(const struct dspace *s)
{
	for (uint32_t d = 0; d < s->rank; d++)
		if (s->max[d] == DSPACE_UNLIMITED)
			return d;
	return 0;
}

int earray_walk(const struct index_walk *w, struct err *err)
{
	struct earray ea;
	int rc = array_init(&ea.array, w, "extensible array", unlimited(w->space), err);
	if (!rc)
		rc = read_header(&ea, err);
	if (rc || ea.index_block == H5_UNDEF)
		return rc;
	return walk_index_block(&ea, err);
}
