/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixed arrays of chunks (Spec VII.C). The header:
 *
 *   +0 "FAHD", u8 version 0, u8 client: 1 if the chunks are filtered
 *   +6 u8   bytes of an entry
 *   +7 u8   bits of a page: an array of more than 2^bits elements has pages of so many
 *   +8 u64  elements
 *      u64  address of the data block, undefined if there is none
 *      u32  checksum of the bytes before it
 *
 * The data block:
 *
 *   +0 "FADB", u8 version 0, u8 client
 *   +6 u64  address of the header
 *      without pages: entries, u32 checksum of the bytes before it
 *      with pages:    a bit for each page, the highest of a byte first: the page is in use;
 *                     u32 checksum of the bytes before it;
 *                     pages: entries, u32 checksum of these
 *
 * Page sizes are computed, so each page is read at most once.
 */
#include "chunk_array.h"

enum { HEADER_FIXED = 12, MAX_PAGE_BITS = 32 };

struct farray {
	struct chunk_array array;
	uint64_t n;    /* elements */
	uint64_t page; /* elements of a page; n if there are no pages */
	uint64_t block;
};

static int read_header(struct farray *fa, struct err *err)
{
	const struct chunk_array *a = &fa->array;
	const struct h5_file *f = a->walk->f;
	auto_free uint8_t *raw = NULL;
	struct cursor c;
	int rc = array_read(a, a->addr, HEADER_FIXED + f->len_size + f->addr_size, "FAHD", &raw, &c,
			    err);
	if (rc)
		return rc;
	const uint8_t entry = cur_u8(&c), bits = cur_u8(&c);
	fa->n = h5_cur_len(f, &c);
	fa->block = h5_cur_addr(f, &c);
	if (entry != index_entry_size(a->walk))
		return array_damaged(a, a->addr, "wrong size of an entry", err);
	if (bits > MAX_PAGE_BITS)
		return array_damaged(a, a->addr, "impossible size of a page", err);
	if (fa->n < a->needed)
		return array_damaged(a, a->addr, "it has fewer elements than the dataset chunks",
				     err);
	if (fa->n > h5_file_size(f) / entry && fa->block != H5_UNDEF)
		return array_damaged(a, a->addr, "it has more elements than the file has room for",
				     err);
	fa->page = min_u64(fa->n, UINT64_C(1) << bits);
	return 0;
}

/* A page that is in use and has elements of the range. */
struct page {
	uint64_t first; /* element */
	uint64_t addr, size;
};

/* Finds the first page at or after element `next`. at is the address of the first page. */
static bool next_page(const struct farray *fa, uint64_t at, const uint8_t *bitmap, uint64_t next,
		      struct page *out)
{
	const uint64_t entry = index_entry_size(fa->array.walk);
	struct array_run run;
	for (; array_next(&fa->array, next, &run); next = out->first + fa->page) {
		const uint64_t page = run.element / fa->page;
		out->first = page * fa->page;
		out->addr = at + page * (fa->page * entry + ARRAY_CHECKSUM);
		out->size = min_u64(fa->page, fa->n - out->first) * entry + ARRAY_CHECKSUM;
		if (bitmap[page / 8] & 0x80 >> page % 8)
			return true;
	}
	return false;
}

static int walk_pages(const struct farray *fa, uint64_t at, const uint8_t *bitmap, struct err *err)
{
	const struct chunk_array *a = &fa->array;
	struct page p;
	for (uint64_t next = 0; next_page(fa, at, bitmap, next, &p); next = p.first + fa->page)
		h5_file_advise(a->walk->f, p.addr, p.size);
	for (uint64_t next = 0; next_page(fa, at, bitmap, next, &p); next = p.first + fa->page) {
		auto_free uint8_t *raw = NULL;
		struct cursor c;
		int rc = array_read(a, p.addr, p.size, NULL, &raw, &c, err);
		if (!rc)
			rc = array_entries(a, p.first, c, err);
		if (rc)
			return rc;
	}
	return 0;
}

int farray_walk(const struct index_walk *w, struct err *err)
{
	struct farray fa;
	auto_free uint8_t *raw = NULL;
	struct cursor c;
	int rc = array_init(&fa.array, w, "fixed array", 0, err);
	if (!rc)
		rc = read_header(&fa, err);
	if (rc || fa.block == H5_UNDEF)
		return rc;
	const bool paged = fa.n > fa.page;
	const uint64_t npages = div_up_u64(fa.n, fa.page);
	const uint64_t rest = paged ? div_up_u64(npages, 8) : fa.n * index_entry_size(w);
	const uint64_t size = array_prefix(&fa.array) + rest + ARRAY_CHECKSUM;
	rc = array_read(&fa.array, fa.block, size, "FADB", &raw, &c, err);
	if (!rc)
		rc = array_owner(&fa.array, fa.block, &c, err);
	if (rc)
		return rc;
	return paged ? walk_pages(&fa, fa.block + size, c.pos, err)
		     : array_entries(&fa.array, 0, c, err);
}
