/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local heaps (Spec III.D), which hold the strings of symbol-table groups.
 *
 *   +0  4    "HEAP"
 *   +4  u8   version, 0
 *   +5  3    reserved
 *   +8  len  bytes of the data segment
 *       len  offset of the first free block in it; 1: none
 *       addr data segment
 *
 *   A free block: len offset of the next one (1: none), len bytes of this one.
 *
 * The sizes of lengths and addresses are those of the file. Reads have no side effects, except for
 * claims, which are made last.
 */
#include <h5/symtab.h>

#include <string.h>

#include <h5/claims.h>

#include "msg.h"

enum {
	SIGNATURE_LEN = 4,
	FIXED = 8,
	HEADER_MAX = FIXED + 3 * 8,
	FREE_NONE = 1,
	SEGMENT_MAX = 64 << 20,
};

struct header {
	uint64_t size, free, segment;
};

static size_t header_size(const struct h5_file *f)
{
	return FIXED + 2 * (size_t)f->len_size + f->addr_size;
}

static int read_header(const struct h5_file *f, uint64_t addr, struct header *h, struct err *err)
{
	uint8_t raw[HEADER_MAX];
	const size_t n = header_size(f);
	int rc = h5_file_read(f, addr, raw, n, err);
	if (rc)
		return rc;
	struct cursor c = cursor_of(raw, n);
	const uint8_t *signature = cur_bytes(&c, SIGNATURE_LEN);
	const uint8_t version = cur_u8(&c);
	cur_skip(&c, 3);
	h->size = h5_cur_len(f, &c);
	h->free = h5_cur_undef(&c, f->len_size);
	h->segment = h5_cur_addr(f, &c);
	if (memcmp(signature, "HEAP", SIGNATURE_LEN) != 0)
		return err_set(err, -EIO, "wrong signature");
	if (version != 0)
		return err_set(err, -EOPNOTSUPP, "unsupported version %u", version);
	if (h->size > SEGMENT_MAX)
		return err_set(err, -EIO, "data segment of %" PRIu64 " bytes; the limit is %d",
			       h->size, SEGMENT_MAX);
	return 0;
}

/* Checks that each free block is in the segment, and that the list ends. */
static int check_free_list(const struct h5_file *f, const struct header *h,
			   const struct h5_lheap *heap, struct err *err)
{
	const uint64_t smallest = 2 * (uint64_t)f->len_size;
	uint64_t at = h->free;
	for (uint64_t left = h->size / smallest; at != FREE_NONE && at != H5_UNDEF; left--) {
		if (at > h->size || h->size - at < smallest)
			return err_set(err, -EIO,
				       "free block at offset %" PRIu64 " is outside of the heap",
				       at);
		if (!left)
			return err_set(err, -EIO, "the list of free blocks is a circle");
		struct cursor c = cursor_of(heap->data + at, (size_t)smallest);
		const uint64_t next = h5_cur_undef(&c, f->len_size), size = h5_cur_len(f, &c);
		if (size < smallest || size > h->size - at)
			return err_set(err, -EIO,
				       "free block at offset %" PRIu64 " has %" PRIu64 " bytes", at,
				       size);
		at = next;
	}
	return 0;
}

static int read_segment(const struct h5_file *f, const struct header *h, struct arena *a,
			struct h5_lheap *out, struct err *err)
{
	uint64_t end;
	if (!add_u64(h->segment, h->size, &end) || end > h5_file_size(f))
		return err_set(err, -EIO, "the data segment at %" PRIu64 " is outside of the file",
			       h->segment);
	uint8_t *data = arena_alloc(a, h->size ? (size_t)h->size : 1);
	if (!data)
		return err_no_memory(err);
	out->data = data;
	out->n = (size_t)h->size;
	int rc = h->size ? h5_file_read(f, h->segment, data, out->n, err) : 0;
	return rc ? rc : check_free_list(f, h, out, err);
}

static int claim(const struct h5_file *f, uint64_t addr, const struct header *h, struct err *err)
{
	int rc = h5_claim(f->claims, addr, header_size(f), "local heap", err);
	return rc ? rc : h5_claim(f->claims, h->segment, h->size, "data of a local heap", err);
}

int h5_lheap_read(const struct h5_file *f, uint64_t addr, struct arena *a, struct h5_lheap *out,
		  struct err *err)
{
	struct header h;
	*out = (struct h5_lheap){.n = 0};
	int rc = read_header(f, addr, &h, err);
	if (!rc)
		rc = read_segment(f, &h, a, out, err);
	if (!rc)
		rc = claim(f, addr, &h, err);
	if (!rc)
		return 0;
	*out = (struct h5_lheap){.n = 0};
	return err_wrap(err, rc, "local heap at %" PRIu64, addr);
}

int h5_lheap_claim(const struct h5_file *f, uint64_t addr, struct err *err)
{
	struct header h;
	if (!f->claims)
		return 0;
	int rc = read_header(f, addr, &h, err);
	if (!rc)
		rc = claim(f, addr, &h, err);
	return rc ? err_wrap(err, rc, "local heap at %" PRIu64, addr) : 0;
}

const char *h5_lheap_string(const struct h5_lheap *h, uint64_t offset)
{
	if (offset >= h->n || !memchr(h->data + offset, 0, h->n - (size_t)offset))
		return NULL;
	return (const char *)h->data + offset;
}
