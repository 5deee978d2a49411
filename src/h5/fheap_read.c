/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading objects of a fractal heap. h5_fheap_open() reads the header and all indirect blocks, and
 * makes a table of direct blocks by heap offset. A direct block is read when its first object is
 * needed. Blocks are then kept, up to CACHE_LIMIT bytes. Of other blocks, each object takes one
 * read. Blocks with filters are all kept, because decoding them for each object would take too long
 * in a hostile file; larger heaps with filters than FILTERED_LIMIT are not supported.
 *
 * A block contains its offset in the heap, so a block that is in the tree twice is damaged. Blocks
 * do not overlap, so the size of the file limits how much is read and kept.
 *
 * All blocks are claimed at the end of h5_fheap_open(), so an open that fails claims nothing. The
 * free-space manager, which only writers need, is claimed if it is not damaged. In a strict file,
 * damage of it is an error: libhdf5 reads it when it counts the space that an object takes.
 *
 * Not thread-safe.
 */
#include "fheap_format.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <base/search.h>
#include <data/filter.h>
#include <h5/claims.h>
#include <h5/free_space.h>
#include <h5/message.h>

#include "fheap_huge.h"

enum {
	CACHE_LIMIT = 16 << 20,
	BLOCK_MAX = 64 << 20,	   /* bytes of a direct block; libhdf5 writes 64 KiB */
	FILTERED_LIMIT = 64 << 20, /* bytes of all blocks; 1.5 million links */
	HUGE_LIMIT = 256 << 20,	   /* bytes of filtered huge objects that are read */
	FILTERS_LIMIT = 1 << 20,   /* memory of decoded filters */
};

struct block {
	uint64_t offset; /* in the heap; ascending */
	uint64_t size;
	uint64_t addr;
	uint64_t stored; /* bytes in the file */
	uint8_t *data;	 /* NULL if not kept */
	uint32_t mask;
	bool is_checked;
	int failed; /* code of a lasting failure; the block is not read again */
};

struct run {
	uint64_t addr, n;
};

struct h5_fheap_reader {
	struct h5_file file;
	uint64_t addr;
	size_t header_size;
	struct fheap_header header;
	struct fheap_table table;
	struct arena *arena; /* of the pipeline; NULL if there are no filters */
	struct pipeline pipeline;
	struct bytes blocks;   /* of struct block */
	struct bytes indirect; /* of struct run; the indirect blocks, until they are claimed */
	uint64_t bytes_left;   /* bytes of the file that no block has used */
	uint64_t kept;	       /* bytes of blocks that are kept */
	uint64_t filtered;     /* if there are filters, bytes of all blocks */
	uint64_t huge_read;    /* if there are filters, bytes of huge objects so far */
	struct fheap_huge_index huge;
};

/* ---- opening ---- */

/* Counts n bytes of the file for a block. */
static int use(struct h5_fheap_reader *r, uint64_t n, struct err *err)
{
	if (n > r->bytes_left)
		return err_set(err, -EIO, "fractal heap: more blocks than the file has room for");
	r->bytes_left -= n;
	return 0;
}

static int add_block(struct h5_fheap_reader *r, uint64_t offset, uint64_t size,
		     const struct fheap_child *child, struct err *err)
{
	struct block b = {.offset = offset,
			  .size = size,
			  .addr = child->addr,
			  .stored = child->stored,
			  .mask = child->mask};
	int rc = use(r, b.stored, err);
	if (!rc && r->table.filtered) {
		if (size > FILTERED_LIMIT - r->filtered)
			return err_set(err, -EOPNOTSUPP,
				       "fractal heap: more than %d bytes behind filters",
				       FILTERED_LIMIT);
		r->filtered += size;
	}
	if (!rc && bytes_append(&r->blocks, &b, sizeof(b)))
		rc = err_no_memory(err);
	return rc;
}

static int read_indirect(struct h5_fheap_reader *r, uint64_t addr, uint64_t offset, uint64_t size,
			 uint8_t *raw, struct cursor *children, struct err *err)
{
	const struct run run = {addr, size};
	int rc = h5_file_read(&r->file, addr, raw, (size_t)size, err);
	if (!rc)
		rc = fheap_indirect_decode(&r->table, r->addr, offset, raw, (size_t)size, children,
					   err);
	if (rc)
		return err_wrap(err, rc, "block at %" PRIu64, addr);
	return bytes_append(&r->indirect, &run, sizeof(run)) ? err_no_memory(err) : 0;
}

static void advise_indirect(const struct h5_fheap_reader *r, struct cursor children,
			    unsigned int rows)
{
	const struct fheap_table *t = &r->table;
	for (unsigned int row = 0; row < rows; row++) {
		for (unsigned int col = 0; col < t->params.table_width; col++) {
			const struct fheap_child child = fheap_child_decode(t, &children, row);
			if (row >= t->direct && child.addr != H5_UNDEF)
				h5_file_advise(&r->file, child.addr,
					       fheap_indirect_size(t, fheap_child_rows(t, row)));
		}
	}
}

/* Adds the direct blocks below the indirect block at addr. The range of a child is smaller than
 * that of its parent, which limits the depth. */
static int add_indirect(struct h5_fheap_reader *r, uint64_t addr, uint64_t offset,
			unsigned int rows, struct err *err)
{
	const struct fheap_table *t = &r->table;
	uint64_t size = fheap_indirect_size(t, rows);
	int rc = use(r, size, err);
	if (rc)
		return rc;
	auto_free uint8_t *raw = malloc((size_t)size);
	if (!raw)
		return err_no_memory(err);
	struct cursor children;
	rc = read_indirect(r, addr, offset, size, raw, &children, err);
	if (!rc)
		advise_indirect(r, children, rows);
	for (unsigned int row = 0; row < rows && !rc; row++) {
		for (unsigned int col = 0; col < t->params.table_width && !rc; col++) {
			const struct fheap_entry entry = fheap_entry_at(t, row, col);
			const struct fheap_child child = fheap_child_decode(t, &children, row);
			if (child.addr == H5_UNDEF)
				continue;
			if (row < t->direct)
				rc = add_block(r, offset + entry.offset, entry.size, &child, err);
			else
				rc = add_indirect(r, child.addr, offset + entry.offset,
						  fheap_child_rows(t, row), err);
		}
	}
	return rc;
}

static int open_filters(struct h5_fheap_reader *r, struct cursor *filters, struct err *err)
{
	if (!r->header.filter_len)
		return 0;
	if (!r->file.unfilter)
		return err_set(err, -EOPNOTSUPP, "fractal heap: filters are not supported");
	r->arena = arena_new(FILTERS_LIMIT);
	if (!r->arena)
		return err_no_memory(err);
	return h5_pipeline_decode(filters, r->arena, &r->pipeline, err);
}

static int decode_header(struct h5_fheap_reader *r, const uint8_t *raw, struct err *err)
{
	struct cursor filters;
	int rc = fheap_header_decode(&r->file, raw, r->header_size, &r->header, &filters, err);
	if (!rc)
		rc = open_filters(r, &filters, err);
	if (!rc)
		rc = fheap_table_init(&r->table, &r->file, &r->header.params,
				      r->header.flags & FHEAP_CHECKSUM_BLOCKS,
				      r->header.filter_len > 0, err);
	if (!rc && r->header.root_rows > r->table.max_rows)
		rc = err_set(err, -EIO, "fractal heap: %d rows, more than the maximum of %u",
			     r->header.root_rows, r->table.max_rows);
	return rc;
}

static int read_header(struct h5_fheap_reader *r, struct err *err)
{
	uint8_t start[FHEAP_HEADER_SIZE];
	const size_t size = fheap_header_size(&r->file);
	int rc = h5_file_read(&r->file, r->addr, start, size, err);
	if (rc)
		return rc;
	const size_t more = fheap_header_more(&r->file, start);
	r->header_size = size + more;
	auto_free uint8_t *raw = malloc(r->header_size);
	if (!raw)
		return err_no_memory(err);
	memcpy(raw, start, size);
	if (more)
		rc = h5_file_read(&r->file, r->addr + size, raw + size, more, err);
	return rc ? rc : decode_header(r, raw, err);
}

static int read_heap(struct h5_fheap_reader *r, struct err *err)
{
	const struct fheap_header *h = &r->header;
	int rc = read_header(r, err);
	if (rc || h->root == H5_UNDEF)
		return rc;
	if (h->root_rows)
		return add_indirect(r, h->root, 0, h->root_rows, err);
	const uint64_t size = r->table.params.start_block;
	const struct fheap_child root = {h->root, h->filter_len ? h->root_stored : size,
					 h->root_mask};
	return add_block(r, 0, size, &root, err);
}

static int claim_blocks(struct h5_fheap_reader *r, struct err *err)
{
	struct h5_claims *claims = r->file.claims;
	if (!claims)
		return 0;
	const struct run *indirect = (const void *)r->indirect.data;
	const struct block *blocks = (const void *)r->blocks.data;
	int rc = h5_free_space_claim(&r->file, r->header.free_space, err);
	if (!r->file.is_strict && (rc == -EIO || rc == -EOPNOTSUPP)) {
		rc = 0;
		if (err)
			err_clear(err);
	}
	if (!rc)
		rc = h5_claim(claims, r->addr, r->header_size, "fractal heap", err);
	for (size_t i = 0; !rc && i < r->indirect.len / sizeof(*indirect); i++)
		rc = h5_claim(claims, indirect[i].addr, indirect[i].n, "indirect block", err);
	for (size_t i = 0; !rc && i < r->blocks.len / sizeof(*blocks); i++)
		rc = h5_claim(claims, blocks[i].addr, blocks[i].stored, "direct block", err);
	return rc;
}

int h5_fheap_open(const struct h5_file *f, uint64_t addr, struct h5_fheap_reader **out,
		  struct err *err)
{
	struct h5_fheap_reader *r = calloc(1, sizeof(*r));
	if (!r)
		return err_no_memory(err);
	r->file = *f;
	r->addr = addr;
	r->bytes_left = h5_file_size(f);
	int rc = read_heap(r, err);
	if (!rc)
		rc = claim_blocks(r, err);
	bytes_release(&r->indirect);
	if (rc) {
		h5_fheap_close(r);
		return err_wrap(err, rc, "fractal heap at %" PRIu64, addr);
	}
	*out = r;
	return 0;
}

void h5_fheap_advise(const struct h5_fheap_reader *r)
{
	const struct block *blocks = (const void *)r->blocks.data;
	for (size_t i = 0; i < r->blocks.len / sizeof(*blocks); i++)
		if (blocks[i].size <= BLOCK_MAX)
			h5_file_advise(&r->file, blocks[i].addr, blocks[i].stored);
}

void h5_fheap_close(struct h5_fheap_reader *r)
{
	if (!r)
		return;
	struct block *blocks = (void *)r->blocks.data;
	for (size_t i = 0; i < r->blocks.len / sizeof(*blocks); i++)
		free(blocks[i].data);
	bytes_release(&r->blocks);
	bytes_release(&r->indirect);
	fheap_huge_release(&r->huge);
	arena_free(r->arena);
	free(r);
}

/* ---- objects ---- */

/* Appends the n bytes to which the filters decode the `stored` bytes at addr. */
static int append_decoded(const struct h5_fheap_reader *r, const struct fheap_extent *p, size_t max,
			  struct bytes *out, struct err *err)
{
	if (p->n > max)
		return err_set(err, -EIO, "object of %" PRIu64 " bytes, more than %zu", p->n, max);
	if (p->stored > h5_file_size(&r->file))
		return err_set(err, -EIO, "the object is larger than the file");
	if (!p->stored)
		return p->n ? err_set(err, -EIO, "no bytes are stored") : 0;
	auto_bytes struct bytes in = {0}, decoded = {0};
	struct bytes *to = r->table.filtered ? &in : out;
	if (bytes_reserve(to, (size_t)p->stored))
		return err_no_memory(err);
	int rc = h5_file_read(&r->file, p->addr, to->data + to->len, (size_t)p->stored, err);
	if (rc)
		return rc;
	to->len += (size_t)p->stored;
	if (!r->table.filtered)
		return 0;
	const struct h5_unfilter *u = r->file.unfilter;
	rc = u->decode(u->ctx, &r->pipeline, p->mask, in.data, in.len, (size_t)p->n, &decoded, err);
	if (rc)
		return rc;
	if (decoded.len != p->n)
		return err_set(err, -EIO, "%zu bytes behind the filters instead of %" PRIu64,
			       decoded.len, p->n);
	return bytes_append(out, decoded.data, decoded.len) ? err_no_memory(err) : 0;
}

/* Reads a direct block and checks its prefix and checksum. */
static int read_block(const struct h5_fheap_reader *r, struct block *b, struct bytes *raw,
		      struct err *err)
{
	const struct fheap_extent extent = {
		.addr = b->addr, .stored = b->stored, .n = b->size, .mask = b->mask};
	if (b->failed)
		return err_set(err, b->failed, "block at %" PRIu64 " is damaged", b->addr);
	if (b->size > BLOCK_MAX)
		return err_set(err, -EOPNOTSUPP, "a direct block of %" PRIu64 " bytes", b->size);
	int rc = append_decoded(r, &extent, BLOCK_MAX, raw, err);
	if (!rc)
		rc = fheap_direct_check(&r->table, r->addr, b->offset, raw->data, raw->len, err);
	b->is_checked = rc == 0;
	if (rc == -EIO || rc == -EOPNOTSUPP)
		b->failed = rc;
	return rc ? err_wrap(err, rc, "block at %" PRIu64, b->addr) : 0;
}

/* Appends n bytes at offset `within` of a block. */
static int append_from(struct h5_fheap_reader *r, struct block *b, uint64_t within, uint64_t n,
		       struct bytes *out, struct err *err)
{
	auto_bytes struct bytes raw = {0};
	if (!b->data && b->is_checked && !r->table.filtered) {
		const struct fheap_extent extent = {.addr = b->addr + within, .stored = n, .n = n};
		return append_decoded(r, &extent, (size_t)n, out, err);
	}
	int rc = b->data ? 0 : read_block(r, b, &raw, err);
	if (rc)
		return rc;
	const uint8_t *data = b->data ? b->data : raw.data;
	rc = h5_file_spend(&r->file, n, err);
	if (rc)
		return rc;
	if (bytes_append(out, data + within, (size_t)n))
		return err_no_memory(err);
	if (b->data)
		return 0;
	if (r->table.filtered || r->kept + b->size <= CACHE_LIMIT) {
		b->data = raw.data;
		raw = (struct bytes){0};
		r->kept += b->size;
	}
	return 0;
}

/* Returns the direct block at a heap offset, or NULL if there is none. */
static struct block *find_block(const struct h5_fheap_reader *r, uint64_t offset)
{
	struct block *blocks = (struct block *)(void *)r->blocks.data;
	const size_t lo =
		LOWER_BOUND(i, r->blocks.len / sizeof(*blocks), blocks[i].offset <= offset);
	if (lo == 0 || offset - blocks[lo - 1].offset >= blocks[lo - 1].size)
		return NULL;
	return &blocks[lo - 1];
}

static int get_managed(struct h5_fheap_reader *r, struct cursor *id, size_t max, struct bytes *out,
		       struct err *err)
{
	uint64_t offset = cur_uint(id, r->table.off_size), len = cur_uint(id, r->table.len_size);
	struct block *b = offset < r->header.managed_bytes ? find_block(r, offset) : NULL;
	if (!b)
		return err_set(err, -EIO, "there is no block at heap offset %" PRIu64, offset);
	uint64_t within = offset - b->offset;
	if (within < r->table.prefix || len > b->size - within)
		return err_set(err, -EIO, "the object is outside of its block");
	if (len > max)
		return err_set(err, -EIO, "object of %" PRIu64 " bytes, more than %zu", len, max);
	return append_from(r, b, within, len, out, err);
}

static int get_huge(struct h5_fheap_reader *r, struct cursor *id, size_t max, struct bytes *out,
		    struct err *err)
{
	struct fheap_extent object;
	int rc = fheap_huge_find(&r->huge, &r->table, r->header.huge_tree, id, &object, err);
	if (!rc && r->table.filtered && object.n > HUGE_LIMIT - r->huge_read)
		return err_set(err, -EOPNOTSUPP,
			       "more than %d bytes of huge objects behind filters", HUGE_LIMIT);
	if (!rc)
		rc = append_decoded(r, &object, max, out, err);
	if (!rc && r->table.filtered)
		r->huge_read += object.n;
	if (!rc)
		rc = fheap_huge_claim(&r->huge, &r->table, &object, err);
	return rc;
}
static int get_tiny(const struct h5_fheap_reader *r, uint8_t flags, struct cursor *id, size_t max,
		    struct bytes *out, struct err *err)
{
	size_t len = flags & 0x0f;
	if (r->table.tiny_extended)
		len = len << 8 | cur_u8(id);
	len++;
	const uint8_t *data = cur_bytes(id, len);
	if (!data || len > max)
		return err_set(err, -EIO, "invalid tiny object of %zu bytes", len);
	return bytes_append(out, data, len) ? err_no_memory(err) : 0;
}

int h5_fheap_get(struct h5_fheap_reader *r, const uint8_t *id, size_t id_len, size_t max,
		 struct bytes *out, struct err *err)
{
	struct cursor c = cursor_of(id, id_len);
	int rc;
	if (id_len != r->table.params.id_len)
		return err_set(err, -EIO, "heap id of %zu bytes instead of %d", id_len,
			       r->table.params.id_len);
	uint8_t flags = cur_u8(&c);
	if (flags & FHEAP_ID_VERSION)
		return err_set(err, -EOPNOTSUPP, "unsupported version %d of a heap id", flags >> 6);
	switch (flags & FHEAP_ID_CLASS) {
	case FHEAP_ID_MANAGED:
		rc = get_managed(r, &c, max, out, err);
		break;
	case FHEAP_ID_HUGE:
		rc = get_huge(r, &c, max, out, err);
		break;
	case FHEAP_ID_TINY:
		rc = get_tiny(r, flags, &c, max, out, err);
		break;
	default:
		return err_set(err, -EIO, "invalid class 0x%02x of a heap id",
			       flags & FHEAP_ID_CLASS);
	}
	return rc ? err_wrap(err, rc, "fractal heap at %" PRIu64, r->addr) : 0;
}
